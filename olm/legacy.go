package olm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// LegacyBundle is what registries older than file-based catalogs tell of a
// bundle. Its properties go into a [BundleBlob] or [NewBundle].
type LegacyBundle struct {
	ProvidedAPIs []schema.GroupVersionKind
	RequiredAPIs []schema.GroupVersionKind
	Properties   []Property
	// Dependencies are of type olm.gvk, olm.package (with a range as its
	// version), olm.label or olm.constraint.
	Dependencies []Property
}

// AllProperties returns the properties that a file-based catalog would give
// the bundle: without properties its provided APIs count, without dependencies
// its required ones. A dependency that is there as a property already is not
// repeated. OLM leaves a bundle out whose dependencies are an error here.
func (b *LegacyBundle) AllProperties() ([]Property, error) {
	properties := slices.Clone(b.Properties)
	if len(properties) == 0 {
		for _, gvk := range b.ProvidedAPIs {
			p, err := newProperty(PropertyGVK, wireGVK{Group: gvk.Group, Kind: gvk.Kind, Version: gvk.Version})
			if err != nil {
				return nil, err
			}
			properties = append(properties, p)
		}
	}
	var required []Property
	for i, d := range b.Dependencies {
		p, err := requiredProperty(d)
		if err != nil {
			return nil, fmt.Errorf("dependency %d of type %q: %w", i, d.Type, err)
		}
		required = append(required, p)
	}
	if len(b.Dependencies) == 0 {
		for _, gvk := range b.RequiredAPIs {
			p, err := newProperty(PropertyGVKRequired, wireGVK{Group: gvk.Group, Kind: gvk.Kind, Version: gvk.Version})
			if err != nil {
				return nil, err
			}
			required = append(required, p)
		}
	}
	for _, p := range required {
		if !slices.ContainsFunc(properties, func(have Property) bool { return sameProperty(have, p) }) {
			properties = append(properties, p)
		}
	}
	return properties, nil
}

// requiredProperty is the property that a dependency stands for.
func requiredProperty(d Property) (Property, error) {
	switch d.Type {
	case PropertyGVK:
		var w wireGVK
		if err := json.Unmarshal(d.Value, &w); err != nil {
			return Property{}, err
		}
		return newProperty(PropertyGVKRequired, w)
	case PropertyPackage:
		var w wirePackage
		if err := json.Unmarshal(d.Value, &w); err != nil {
			return Property{}, err
		}
		return newProperty(PropertyPackageRequired, wirePackageRequired{PackageName: w.PackageName, VersionRange: w.Version})
	case PropertyLabel:
		var w wireLabel
		if err := json.Unmarshal(d.Value, &w); err != nil {
			return Property{}, err
		}
		return newProperty(PropertyLabelRequired, w)
	case PropertyConstraint:
		return d, nil
	}
	return Property{}, errors.New("unknown type of dependency")
}

func newProperty(kind string, value any) (Property, error) {
	text, err := json.Marshal(value)
	return Property{Type: kind, Value: text}, err
}

// sameProperty compares values as JSON, whatever the order of their keys.
func sameProperty(a, b Property) bool {
	if a.Type != b.Type {
		return false
	}
	if bytes.Equal(a.Value, b.Value) {
		return true
	}
	x, errX := canonical(a.Value)
	y, errY := canonical(b.Value)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

func canonical(value json.RawMessage) ([]byte, error) {
	var v any
	if err := json.Unmarshal(value, &v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}
