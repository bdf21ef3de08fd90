package sigstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/clusterupdate/clusterupdate/signature"
)

// SignatureAnnotation is the annotation of a layer that holds the signature over the
// payload, in base64.
const SignatureAnnotation = "dev.cosignproject.cosign/signature"

const (
	// layerType is the media type of a layer that holds a payload.
	layerType = "application/vnd.dev.cosign.simplesigning.v1+json"
	// These annotations belong to roots of trust other than a key.
	bundleAnnotation      = "dev.sigstore.cosign/bundle"
	certificateAnnotation = "dev.sigstore.cosign/certificate"
	chainAnnotation       = "dev.sigstore.cosign/chain"
)

// Attachment is a signature beside an image. Nothing about it is trusted.
type Attachment struct {
	// Payload is what was signed, exactly.
	Payload []byte
	// Annotations are those of the layer that held the payload.
	Annotations map[string]string
	// Location names that place; Number counts from 1 within the source.
	Location string
	Number   int
}

// Source is where the signatures of images come from. It must be safe for
// concurrent use.
type Source interface {
	// Attachments yields the signatures of the image with this digest. A pair
	// with an error is a failure to read one, after which more may follow; an
	// [*OtherError] reports something there that is not a signature of this kind,
	// and an error that wraps [signature.ErrNotFound] that there is nothing.
	// Implementations must be safe for concurrent use, return promptly when ctx
	// ends, and bound what they read.
	Attachments(ctx context.Context, digest string) iter.Seq2[Attachment, error]
	// String describes the source to people, without any credentials.
	String() string
}

// OtherError reports an attachment that is not a signature in the layout of this
// package: of another media type, or one of the bundles that newer versions of
// cosign attach, which cluster runtimes do not read.
type OtherError struct {
	Location  string
	MediaType string
}

func (e *OtherError) Error() string {
	return fmt.Sprintf("%s is of type %s: no signature that is read here", e.Location, e.MediaType)
}

// signatureTag returns the tag, in the image's repository, under which its
// signatures lie: sha256-<hash>.sig. The index of a multi-architecture image
// and each of its images have their own. A digest that is not one is an error.
func signatureTag(digest string) (string, error) {
	if err := signature.ValidateDigestStrict(digest); err != nil {
		return "", err
	}
	return strings.Replace(digest, ":", "-", 1) + ".sig", nil
}

// MemorySource holds attachments by the digest of the image. It is safe for
// concurrent use as long as it is not changed.
type MemorySource map[string][]Attachment

// Attachments implements [Source].
func (m MemorySource) Attachments(ctx context.Context, digest string) iter.Seq2[Attachment, error] {
	return func(yield func(Attachment, error) bool) {
		for i, a := range m[digest] {
			a.Number = i + 1
			if err := ctx.Err(); err != nil {
				yield(Attachment{}, err)
				return
			}
			if !yield(a, nil) {
				return
			}
		}
		if len(m[digest]) == 0 {
			yield(Attachment{}, fmt.Errorf("%s has none for %s: %w", m, digest, signature.ErrNotFound))
		}
	}
}

func (m MemorySource) String() string { return "signatures in memory" }

// errMissing is the failure of a layer without a signature.
var errMissing = errors.New("missing " + SignatureAnnotation + " annotation")
