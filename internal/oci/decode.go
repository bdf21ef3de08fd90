package oci

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"

	"sigs.k8s.io/json"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/limit"
)

// maxReason bounds, in bytes, how much of a cause gets into texts.
const maxReason = 1 << 10

// Decode reads JSON whose keys are spelt exactly and occur once. Keys that are
// not known are ignored, as OCI demands. Too many items are a [*limit.LimitError].
func Decode(data []byte, to any) error {
	items := bytes.Count(data, []byte{'{'}) + bytes.Count(data, []byte{','})
	if err := (limit.Limit{Max: maxItems, Name: "Items", What: "items in JSON"}).Check(int64(items)); err != nil {
		return err
	}
	strict, err := json.UnmarshalStrict(data, to, json.DisallowDuplicateFields)
	if err == nil && len(strict) > 0 {
		err = strict[0]
	}
	if err != nil {
		return errors.New(bounded.Text(err.Error(), maxReason))
	}
	return nil
}

// parseManifest reads an index or manifest, which must be what its descriptor
// calls it: one that could be read as either is neither.
func parseManifest(data []byte, d Descriptor) (Manifest, error) {
	var m Manifest
	if err := Decode(data, &m); err != nil {
		return m, err
	}
	if m.Manifests != nil && (m.Layers != nil || m.Config != nil) {
		return m, errors.New("it could be read as an index and as a manifest")
	}
	if m.MediaType != "" && d.MediaType != "" && m.MediaType != d.MediaType {
		return m, fmt.Errorf("its type is %s, but its descriptor says %s",
			bounded.Quote(m.MediaType), bounded.Quote(d.MediaType))
	}
	m.MediaType = cmp.Or(m.MediaType, d.MediaType)
	switch m.MediaType {
	case "":
		m.MediaType = TypeManifest
		if m.Manifests != nil {
			m.MediaType = TypeIndex
		}
	case TypeIndex, TypeDockerIndex:
		if m.Layers != nil || m.Config != nil {
			return m, errors.New("it is called an index, but has layers")
		}
	case TypeManifest, TypeDockerManifest:
		if m.Manifests != nil {
			return m, errors.New("it is called a manifest, but has manifests")
		}
	default:
		return m, fmt.Errorf("the type %s is that of no image", bounded.Quote(m.MediaType))
	}
	return m, nil
}

// IsIndex reports whether it is an index.
func (m Manifest) IsIndex() bool { return isIndex(m.MediaType) }

// IsIndex reports whether a descriptor names an index.
func (d Descriptor) IsIndex() bool { return isIndex(d.MediaType) }

// MayBeManifest reports whether a descriptor names an index or the manifest of an image,
// or does not say what it names, as in mirrors on disk.
func (d Descriptor) MayBeManifest() bool { return d.unsized || d.IsManifest() }

// IsManifest reports whether a descriptor names an index or the manifest of an image.
func (d Descriptor) IsManifest() bool { return isIndex(d.MediaType) || isImage(d.MediaType) }

func isIndex(mediaType string) bool { return mediaType == TypeIndex || mediaType == TypeDockerIndex }

func isImage(mediaType string) bool {
	return mediaType == TypeManifest || mediaType == TypeDockerManifest
}
