package sigstore

import (
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"strings"

	"github.com/clusterupdate/clusterupdate/signature"
)

// Media types of OCI.
const (
	ociManifest = "application/vnd.oci.image.manifest.v1+json"
	ociIndex    = "application/vnd.oci.image.index.v1+json"
	bundleType  = "application/vnd.dev.sigstore.bundle"
)

type descriptor struct {
	MediaType    string            `json:"mediaType"`
	ArtifactType string            `json:"artifactType"`
	Digest       string            `json:"digest"`
	Size         int64             `json:"size"`
	Annotations  map[string]string `json:"annotations"`
}

// validate reports whether the blob may be asked for at all.
func (d descriptor) validate(limit int64) error {
	if err := signature.ValidateDigestStrict(d.Digest); err != nil {
		return err
	}
	if d.Size < 0 || d.Size > limit {
		return fmt.Errorf("blob of %d bytes, more than the limit of %d", d.Size, limit)
	}
	return nil
}

// check reports whether data is the blob.
func (d descriptor) check(data []byte) error {
	algo, want, _ := strings.Cut(d.Digest, ":")
	var h hash.Hash
	switch algo {
	case "sha256":
		h = sha256.New()
	case "sha384":
		h = sha512.New384()
	default:
		h = sha512.New()
	}
	h.Write(data)
	if int64(len(data)) != d.Size || hex.EncodeToString(h.Sum(nil)) != want {
		return errors.New("blob differs from its descriptor")
	}
	return nil
}

// index is an index or a manifest, as far as it matters here.
type index struct {
	MediaType string       `json:"mediaType"`
	Manifests []descriptor `json:"manifests"`
	Layers    []descriptor `json:"layers"`
	Subject   *descriptor  `json:"subject"`
}

func parseIndex(data []byte) (index, error) {
	var i index
	err := decode(data, &i)
	return i, err
}

// counter yields the layers of signature images, within the limit.
type counter struct {
	source     string
	digest     string // of the image that is signed
	image      string // the one whose layers are taken, for locations
	signatures int
}

// take yields the signatures that layers hold, read by blob. It returns false
// when no more are wanted.
func (n *counter) take(ctx context.Context, layers []descriptor, blob func(descriptor, int64) ([]byte, error), yield func(Attachment, error) bool) bool {
	for i, layer := range layers {
		if err := ctx.Err(); err != nil {
			yield(Attachment{}, err)
			return false
		}
		a := Attachment{Location: fmt.Sprintf("%s layer %d", n.image, i+1)}
		if n.signatures == MaxAttachments || i == MaxAttachments {
			yield(a, &LimitError{Limit: limitLayers, Max: MaxAttachments, What: fmt.Sprintf("%s holds more layers for %s than are tried", short(n.source), n.digest)})
			return false
		}
		if layer.MediaType != LayerType {
			if !yield(a, &OtherError{Location: a.Location, MediaType: short(layer.MediaType)}) {
				return false
			}
			continue
		}
		n.signatures++
		a.Number, a.Annotations = n.signatures, layer.Annotations
		var err error
		if len(layer.Annotations) > maxAnnotations {
			a.Annotations, err = nil, &LimitError{Limit: limitAnnotations, Max: maxAnnotations, What: a.Location}
		} else if a.Payload, err = blob(layer, MaxPayload); err != nil {
			a.Payload, err = nil, fmt.Errorf("unable to read %s: %w", a.Location, err)
		}
		if !yield(a, err) || spent(err) {
			return false
		}
	}
	return true
}

// spent reports whether err says that nothing more may be read.
func spent(err error) bool {
	limit, ok := errors.AsType[*LimitError](err)
	return ok && (limit.Limit == limitBytes || limit.Limit == limitCandidates)
}
