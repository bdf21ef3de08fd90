package sigstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/clusterupdate/clusterupdate/internal/oci"
	"github.com/clusterupdate/clusterupdate/signature"
)

// bundleType begins the types of bundles of newer versions of cosign.
const bundleType = "application/vnd.dev.sigstore.bundle"

// validate reports whether a blob may be asked for at all.
func validate(d oci.Descriptor, limit int64) error {
	return cmp.Or(signature.ValidateDigestStrict(d.Digest), d.Validate(limit))
}

// check reports whether data is the blob.
func check(d oci.Descriptor, data []byte) error {
	if d.Check(data) != nil {
		return errors.New("blob differs from its descriptor")
	}
	return nil
}

// isBundle reports whether this is a bundle of newer versions of cosign.
func isBundle(d oci.Descriptor) bool { return strings.HasPrefix(d.ArtifactType, bundleType) }

func parseManifest(data []byte) (oci.Manifest, error) {
	var m oci.Manifest
	err := decode(data, &m)
	return m, err
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
func (n *counter) take(ctx context.Context, layers []oci.Descriptor, blob func(oci.Descriptor, int64) ([]byte, error), yield func(Attachment, error) bool) bool {
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
