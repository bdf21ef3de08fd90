package catalog

import (
	"encoding/json"

	"github.com/blang/semver/v4"

	"github.com/clusterupdate/clusterupdate/olm"
)

// Schemas of the objects that a file-based catalog consists of.
const (
	schemaPackage      = "olm.package"
	schemaChannel      = "olm.channel"
	schemaBundle       = "olm.bundle"
	schemaDeprecations = "olm.deprecations"
)

// Blobs are the objects of a file-based catalog, as written. Their order means
// nothing, except that the first of two objects with one name counts.
type Blobs struct {
	Packages     []PackageBlob
	Channels     []ChannelBlob
	Bundles      []BundleBlob
	Deprecations []DeprecationsBlob
	Others       []Meta
}

// PackageBlob is an object of schema olm.package.
type PackageBlob struct {
	Name           string         `json:"name"`
	DefaultChannel string         `json:"defaultChannel"`
	Icon           *olm.Icon      `json:"icon,omitempty"`
	Description    string         `json:"description,omitempty"`
	Properties     []olm.Property `json:"properties,omitempty"`
}

// ChannelBlob is an object of schema olm.channel.
type ChannelBlob struct {
	Package    string         `json:"package"`
	Name       string         `json:"name"`
	Entries    []ChannelEntry `json:"entries"`
	Properties []olm.Property `json:"properties,omitempty"`
}

// ChannelEntry is one entry of a channel.
type ChannelEntry struct {
	Name      string   `json:"name"`
	Replaces  string   `json:"replaces,omitempty"`
	Skips     []string `json:"skips,omitempty"`
	SkipRange string   `json:"skipRange,omitempty"`
}

// BundleBlob is an object of schema olm.bundle.
type BundleBlob struct {
	Package       string             `json:"package"`
	Name          string             `json:"name"`
	Image         string             `json:"image"`
	Properties    []olm.Property     `json:"properties,omitempty"`
	RelatedImages []olm.RelatedImage `json:"relatedImages,omitempty"`
}

// DeprecationsBlob is an object of schema olm.deprecations.
type DeprecationsBlob struct {
	Package string             `json:"package"`
	Entries []DeprecationEntry `json:"entries"`
}

// DeprecationEntry deprecates a package (without a name), a channel or a
// bundle of its package.
type DeprecationEntry struct {
	Reference Reference `json:"reference"`
	Message   string    `json:"message"`
}

// Reference names an object of a package.
type Reference struct {
	Schema string `json:"schema"`
	Name   string `json:"name,omitempty"`
}

// Meta is an object of a schema that the resolver does not know.
type Meta struct {
	Schema, Package, Name string

	Blob json.RawMessage // the whole object, as JSON
}

// New makes a catalog of its objects. Its faults are among the problems
// of the contents and hide nothing else. The values of properties are kept,
// not copied.
func New(blobs Blobs) *Catalog {
	r := new(olm.BundleReader)
	var objects []object
	for i := range blobs.Packages {
		objects = append(objects, object{pkg: &blobs.Packages[i]})
	}
	for i := range blobs.Channels {
		objects = append(objects, object{channel: &blobs.Channels[i]})
	}
	for i := range blobs.Bundles {
		objects = append(objects, object{bundle: readBundle(r, &blobs.Bundles[i])})
	}
	for i := range blobs.Deprecations {
		objects = append(objects, object{deprecations: &blobs.Deprecations[i]})
	}
	for i := range blobs.Others {
		objects = append(objects, object{other: &blobs.Others[i]})
	}
	return build(objects, nil)
}

// object is one object of a catalog; one of the pointers is set.
type object struct {
	pos          position
	pkg          *PackageBlob
	channel      *ChannelBlob
	bundle       *olm.Bundle
	deprecations *DeprecationsBlob
	other        *Meta
}

// readBundle reads a bundle of a catalog, whose version is in its property
// olm.package.
func readBundle(r *olm.BundleReader, blob *BundleBlob) *olm.Bundle {
	b := &olm.Bundle{Package: blob.Package, Name: blob.Name, Image: blob.Image, Properties: blob.Properties,
		RelatedImages: blob.RelatedImages}
	r.Read(b)
	if len(b.Identities) == 0 {
		return b
	}
	id := b.Identities[0]
	b.RawVersion, b.Release = id.RawVersion, id.Release
	b.Version = id.Version
	if v, err := semver.ParseTolerant(id.RawVersion); b.Version == nil && err == nil {
		b.Version = &v
	}
	return b
}
