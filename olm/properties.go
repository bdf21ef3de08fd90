package olm

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/blang/semver/v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Types of properties that the resolver knows, and of bundle contents.
const (
	PropertyPackage         = "olm.package"
	propertyGVK             = "olm.gvk"
	propertyLabel           = "olm.label"
	PropertyGVKRequired     = "olm.gvk.required"
	PropertyPackageRequired = "olm.package.required"
	PropertyLabelRequired   = "olm.label.required"
	PropertyConstraint      = "olm.constraint"
	propertyDeprecated      = "olm.deprecated"
	PropertyMaxOpenShift    = "olm.maxOpenShiftVersion"
	PropertyBundleObject    = "olm.bundle.object"
	PropertyCSVMetadata     = "olm.csv.metadata"
	propertyChannel         = "olm.channel" // internal to catalog tools, but validated
)

type wireGVK struct {
	Group   string `json:"group"`
	Kind    string `json:"kind"`
	Version string `json:"version"`
}

func (w *wireGVK) gvk() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: w.Group, Version: w.Version, Kind: w.Kind}
}

type wirePackage struct {
	PackageName string `json:"packageName"`
	Version     string `json:"version"`
	Release     string `json:"release,omitempty"`
}

type wirePackageRequired struct {
	PackageName  string `json:"packageName"`
	VersionRange string `json:"versionRange"`
}

type wireLabel struct {
	Label string `json:"label"`
}

type wireChannel struct {
	ChannelName string
	Priority    int
}

// wireCSVMetadata is what the catalog tools check of olm.csv.metadata: keys are
// matched in any case.
type wireCSVMetadata struct {
	Annotations, Labels                                map[string]string
	APIServiceDefinitions                              wireAPIs
	CustomResourceDefinitions                          wireAPIs `json:"crdDescriptions"`
	Description, DisplayName, Maturity, MinKubeVersion string
	InstallModes                                       []struct {
		Type      string
		Supported bool
	}
	Keywords    []string
	Links       []struct{ Name, URL string }
	Maintainers []struct{ Name, Email string }
	NativeAPIs  []metav1.GroupVersionKind
	Provider    struct{ Name, URL string }
}

type wireAPIs struct{ Owned, Required []wireAPI }

type wireAPI struct {
	Name, Group, Version, Kind, DisplayName, Description  string
	Resources                                             []struct{ Name, Kind, Version string }
	StatusDescriptors, SpecDescriptors, ActionDescriptors []struct {
		Path, DisplayName, Description string
		XDescriptors                   []string `json:"x-descriptors"`
	}
}

// newProperty writes a property. The value is one of the wire structs of texts,
// which always have a JSON form.
func newProperty(kind string, value any) Property {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return Property{Type: kind, Value: text}
}

func gvkProperty(kind string, gvk schema.GroupVersionKind) Property {
	return newProperty(kind, wireGVK{Group: gvk.Group, Kind: gvk.Kind, Version: gvk.Version})
}

// BundleReader reads the properties of bundles, and keeps one copy of the parts
// that they share. The zero value is ready to use. It is not safe for concurrent
// use.
type BundleReader struct {
	known  map[string]wireGVK // APIs by the text of their property
	ranges ranges

	// of the bundle that is being read
	gvks []schema.GroupVersionKind
	ids  []Identity
}

// Read fills a bundle from its Properties and RawVersion: Version, what it
// provides and requires, and the first fault of their form. What cannot be read
// of that which it provides counts as absent.
func (r *BundleReader) Read(b *Bundle) {
	if r.known == nil {
		r.known, r.ranges = make(map[string]wireGVK), make(ranges)
	}
	r.gvks, r.ids = r.gvks[:0], r.ids[:0]
	for i, p := range b.Properties {
		if err := r.property(b, p); err != nil && b.Malformed == nil {
			b.Malformed = fmt.Errorf("parse property[%d] of type %q: %w", i, p.Type, err)
		}
	}
	b.Provides, b.Identities = slices.Clone(r.gvks), slices.Clone(r.ids)
	if b.RawVersion != "" {
		if v, err := semver.ParseTolerant(b.RawVersion); err == nil {
			b.Version = &v
		}
	}
}

// property takes one property up. The error is about its form, as the catalog
// tools check it.
func (r *BundleReader) property(b *Bundle, p Property) error {
	switch p.Type {
	case propertyGVK:
		w, err := r.gvk(p.Value)
		if err == nil && !slices.Contains(r.gvks, w.gvk()) {
			r.gvks = append(r.gvks, w.gvk())
		}
		return err
	case PropertyPackage:
		var w wirePackage
		if err := json.Unmarshal(p.Value, &w); err != nil {
			return err
		}
		r.ids = append(r.ids, newIdentity(w))
		return nil
	case PropertyGVKRequired:
		w, err := r.gvk(p.Value)
		b.require(p, Constraint{Kind: constraintGVK, GVK: w.gvk()}, err)
		return err
	case PropertyPackageRequired:
		var w wirePackageRequired
		if err := json.Unmarshal(p.Value, &w); err != nil {
			b.require(p, Constraint{}, err)
			return err
		}
		c := Constraint{Kind: constraintPackage, Package: w.PackageName}
		versions, err := r.ranges.parse(w.VersionRange)
		if err == nil {
			c.Range = *versions
		}
		b.require(p, c, err)
		return nil // the range is not a matter of form
	case PropertyBundleObject:
		return json.Unmarshal(p.Value, new(struct{ Data []byte }))
	case PropertyCSVMetadata:
		return json.Unmarshal(p.Value, new(wireCSVMetadata))
	case propertyChannel:
		return json.Unmarshal(p.Value, new(wireChannel))
	case propertyLabel:
		var w wireLabel
		if json.Unmarshal(p.Value, &w) == nil && !slices.Contains(b.Labels, w.Label) {
			b.Labels = append(b.Labels, w.Label)
		}
	case PropertyLabelRequired:
		var w wireLabel
		err := json.Unmarshal(p.Value, &w)
		b.require(p, Constraint{Kind: constraintLabel, Label: w.Label}, err)
	case PropertyConstraint:
		c, err := parseConstraint(p.Value)
		b.require(p, c, err)
	case propertyDeprecated:
		b.Deprecated = true
	case PropertyMaxOpenShift:
		b.MaxOpenShift = append(b.MaxOpenShift, p.Value)
	}
	if json.Valid(p.Value) {
		return nil
	}
	return json.Unmarshal(p.Value, new(json.RawMessage)) // reports what is wrong
}

func newIdentity(w wirePackage) Identity {
	id := Identity{Package: w.PackageName, RawVersion: w.Version, Release: w.Release}
	if v, err := semver.Parse(w.Version); err == nil {
		id.Version = &v
	}
	return id
}

func (b *Bundle) require(p Property, c Constraint, err error) {
	if err != nil {
		if b.Err == nil {
			b.Err = fmt.Errorf("bundle %s: property of type %s: %w", b.Name, p.Type, err)
		}
		return
	}
	b.Requires = append(b.Requires, Requirement{Owner: b.Name, Property: p, Constraint: c})
}

// gvk reads the value of olm.gvk and olm.gvk.required.
func (r *BundleReader) gvk(value json.RawMessage) (wireGVK, error) {
	if w, ok := r.known[string(value)]; ok {
		return w, nil
	}
	var w wireGVK
	err := json.Unmarshal(value, &w)
	if err == nil {
		r.known[string(value)] = w
	}
	return w, err
}
