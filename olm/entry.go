package olm

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Property is a typed value that a bundle carries. The types that the resolver
// knows are the Property… constants; all types are kept and shown to cel
// constraints.
type Property struct {
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`
}

// RelatedImage is an image that a bundle's operator may run.
type RelatedImage struct {
	Name  string `json:"name"`
	Image string `json:"image"`
}

// Identity is a package name and a version that a bundle claims by a property
// of type olm.package.
type Identity struct {
	Package    string
	Version    *semver.Version // strict semantic version, nil if the text is not one
	RawVersion string
	Release    string
}

// Bundle is one version of an operator: a bundle of a catalog, or an installed
// ClusterServiceVersion seen as one. It is immutable after [NewBundle] or
// loading and may be shared between goroutines.
type Bundle struct {
	Package string `json:"-"`                 // package of the catalog's blob; empty for an installed operator without one
	Name    string `json:"name"`              // name of its ClusterServiceVersion
	Image   string `json:"image,omitempty"`   // bundle image, empty for inline bundles and installed operators
	Release string `json:"release,omitempty"` // release part of the version, mostly empty

	// Version is parsed tolerantly ("v1.2" is 1.2.0) by github.com/blang/semver,
	// whose order of pre-releases the update ranges of OLM follow. Nil if there
	// is none or it cannot be parsed. RawVersion is the text.
	Version    *semver.Version `json:"-"`
	RawVersion string          `json:"version,omitempty"`

	Properties    []Property     `json:"properties,omitempty"` // as found, in order
	RelatedImages []RelatedImage `json:"-"`

	Provides   []schema.GroupVersionKind `json:"-"` // APIs that it owns, each once, in property order
	Labels     []string                  `json:"-"` // labels that it provides, each once, in property order
	Identities []Identity                `json:"-"` // of its readable olm.package properties, in order
	Requires   []Requirement             `json:"-"` // in property order

	// Deprecated is set by a property olm.deprecated: the bundle may not be chosen.
	// Deprecation is the message of an olm.deprecations blob, which never affects a
	// resolution; empty if absent.
	Deprecated  bool   `json:"-"`
	Deprecation string `json:"deprecation,omitempty"`

	// MaxOpenShift holds the values of the properties olm.maxOpenShiftVersion as
	// written; a well-formed bundle has one at most.
	MaxOpenShift []json.RawMessage `json:"-"`

	// Err is set if a requirement cannot be read. Its needs are unknown, so a
	// resolution that reaches the bundle is prevented.
	Err error `json:"-"`

	// Malformed is the first fault of a property's form that the catalog tools
	// refuse, nil if absent. It prevents nothing.
	Malformed error `json:"-"`
}

// NewBundle returns the bundle of a package with a version and properties, as
// a catalog or the annotation of a ClusterServiceVersion holds them. Package
// and version may be empty. A bundle of a package that says so by no readable
// property olm.package gets one. If a requirement cannot be read, the bundle is
// returned together with the error, which its field Err holds too.
//
// The properties are kept, not copied.
func NewBundle(pkg, name, version string, properties []Property) (*Bundle, error) {
	b := &Bundle{Package: pkg, Name: name, RawVersion: version, Properties: properties}
	new(BundleReader).Read(b)
	b.addIdentity()
	return b, b.Err
}

// Annotation returns the value of api.AnnotationProperties on the bundle's
// ClusterServiceVersion: its properties without the bundle's content, which would double
// its size. The error is about a property that is not JSON.
func (b *Bundle) Annotation() (string, error) {
	list := propertyList{Properties: []Property{}}
	for _, p := range b.Properties {
		if p.Type != PropertyBundleObject && p.Type != PropertyCSVMetadata {
			list.Properties = append(list.Properties, p)
		}
	}
	data, err := json.Marshal(list)
	if err != nil {
		return "", fmt.Errorf("failed to construct properties annotation for %q: %w", b.Name, err)
	}
	return string(data), nil
}

// propertyList is the form of api.AnnotationProperties.
type propertyList struct {
	Properties []Property `json:"properties"`
}

// addIdentity gives a bundle of a package the property olm.package that it
// lacks, as OLM does: cel rules look at it.
func (b *Bundle) addIdentity() {
	if b.Package == "" || len(b.Identities) > 0 {
		return
	}
	w := wirePackage{PackageName: b.Package, Version: b.RawVersion}
	b.Properties = append(slices.Clip(b.Properties), newProperty(PropertyPackage, w))
	b.Identities = []Identity{newIdentity(w)}
}

// Entry is a bundle as it appears in one channel. The same bundle in two
// channels is two entries.
type Entry struct {
	Name     string   `json:"name"`
	Bundle   *Bundle  `json:"-"` // nil only if the catalog lacks the bundle; such an entry is never ordered
	Package  *Package `json:"-"`
	Channel  *Channel `json:"-"`
	Replaces string   `json:"replaces,omitempty"` // name of the operator that it replaces, present in the channel or not
	Skips    []string `json:"skips,omitempty"`    // names that it replaces too, and hides from the channel

	// SkipRange is the range of versions that it replaces too, as written. A
	// text that is not a range counts as absent.
	SkipRange string `json:"skipRange,omitempty"`

	skipRange *Range // nil: none

	rank  int // position in the catalog's order, -1 if the entry is not ordered
	place int // position among all entries of the catalog, by channels in search order
	walk  int // position on its channel's walk from the head, -1 if the walk does not meet it
}

// Rank is the position of the entry in the order in which a requirement searches
// a catalog: default channels first (across all packages), then by package name,
// then by channel name, then from the channel's head down. It is -1 if the entry
// is skipped, stranded, or in a channel that cannot be ordered.
func (e *Entry) Rank() int { return e.rank }

// Updates reports whether the entry may replace an installed operator of this
// name and version: it names it in replaces or skips, or its skipRange
// contains the version, which may be nil. See [Channel.Updates] for which
// entries of a channel are candidates.
func (e *Entry) Updates(installed string, version *semver.Version) bool {
	if installed == "" {
		return false
	}
	if e.Replaces == installed || slices.Contains(e.Skips, installed) {
		return true
	}
	return version != nil && e.skipRange != nil && e.skipRange.Contains(*version)
}
