package olm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// LegacyBundle is a bundle as registries older than file-based catalogs describe
// it. Its properties go into a catalog.BundleBlob or [NewBundle].
type LegacyBundle struct {
	ProvidedAPIs []schema.GroupVersionKind
	RequiredAPIs []schema.GroupVersionKind
	Properties   []Property
	// Dependencies are of type olm.gvk, olm.package (with a range as its
	// version), olm.label or olm.constraint; others do not count.
	Dependencies []Property
}

// AllProperties returns the properties that a file-based catalog would give
// the bundle: without properties its provided APIs count, without dependencies
// its required ones. A dependency that is there as a property already is not
// repeated, one of another type does not count. OLM leaves a bundle out whose
// dependencies are an error here.
func (b *LegacyBundle) AllProperties() ([]Property, error) {
	properties := slices.Clone(b.Properties)
	if len(properties) == 0 {
		for _, gvk := range b.ProvidedAPIs {
			properties = append(properties, gvkProperty(propertyGVK, gvk))
		}
	}
	var required []Property
	for i, d := range b.Dependencies {
		p, ok, err := requiredProperty(d)
		if err != nil {
			return nil, fmt.Errorf("dependency %d of type %q: %w", i, d.Type, err)
		}
		if ok {
			required = append(required, p)
		}
	}
	if len(b.Dependencies) == 0 {
		for _, gvk := range b.RequiredAPIs {
			required = append(required, gvkProperty(PropertyGVKRequired, gvk))
		}
	}
	for _, p := range required {
		if !slices.ContainsFunc(properties, func(have Property) bool { return sameProperty(have, p) }) {
			properties = append(properties, p)
		}
	}
	return properties, nil
}

// requiredProperty is the property that a dependency stands for, if it is of a
// known type.
func requiredProperty(d Property) (p Property, ok bool, err error) {
	switch d.Type {
	case propertyGVK:
		var w wireGVK
		err := json.Unmarshal(d.Value, &w)
		return newProperty(PropertyGVKRequired, w), true, err
	case PropertyPackage:
		var w wirePackage
		err := json.Unmarshal(d.Value, &w)
		return newProperty(PropertyPackageRequired,
			wirePackageRequired{PackageName: w.PackageName, VersionRange: w.Version}), true, err
	case propertyLabel:
		return Property{Type: PropertyLabelRequired, Value: d.Value}, true, nil
	case PropertyConstraint:
		return d, true, nil
	}
	return Property{}, false, nil
}

// sameProperty compares values as JSON, whatever the order of their keys.
func sameProperty(a, b Property) bool {
	if a.Type != b.Type || bytes.Equal(a.Value, b.Value) {
		return a.Type == b.Type
	}
	var x, y any
	return json.Unmarshal(a.Value, &x) == nil && json.Unmarshal(b.Value, &y) == nil && reflect.DeepEqual(x, y)
}
