package sources

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/operator-framework/operator-registry/pkg/api"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/limit"
	"github.com/clusterupdate/clusterupdate/olm"
)

// bundleProperties returns the properties that a file-based catalog would give a bundle
// of a registry: without properties its provided APIs count, without dependencies its
// required ones. A dependency that is there as a property already is not repeated, one of
// an unknown type does not count. The error is a limit of a value, or a dependency for
// which OLM leaves the bundle out.
func bundleProperties(b *api.Bundle) ([]olm.Property, error) {
	var properties, required []olm.Property
	for _, p := range b.GetProperties() {
		if err := checkValue(p.GetType(), p.GetValue()); err != nil {
			return nil, err
		}
		properties = append(properties, olm.Property{Type: p.GetType(), Value: json.RawMessage(p.GetValue())})
	}
	if len(properties) == 0 {
		properties = apiProperties("olm.gvk", b.GetProvidedApis())
	}
	for i, d := range b.GetDependencies() {
		if err := checkValue(d.GetType(), d.GetValue()); err != nil {
			return nil, err
		}
		p, err := requiredProperty(d)
		if err != nil {
			return nil, fmt.Errorf("dependency %d of type %q: %w", i, d.GetType(), err)
		}
		if p.Type != "" {
			required = append(required, p)
		}
	}
	if len(b.GetDependencies()) == 0 {
		required = apiProperties(olm.PropertyGVKRequired, b.GetRequiredApis())
	}
	for _, p := range required {
		if !slices.ContainsFunc(properties, func(have olm.Property) bool { return sameProperty(have, p) }) {
			properties = append(properties, p)
		}
	}
	return properties, nil
}

func checkValue(kind, value string) error {
	if err := limit.JSON([]byte(value), new(any)); err != nil {
		return fmt.Errorf("property of type %s: %w", bounded.Quote(kind), err)
	}
	return nil
}

func apiProperties(kind string, all []*api.GroupVersionKind) []olm.Property {
	var out []olm.Property
	for _, a := range all {
		out = append(out, property(kind, map[string]any{"group": a.GetGroup(), "kind": a.GetKind(), "version": a.GetVersion()}))
	}
	return out
}

// requiredProperty returns the property that a dependency stands for, a zero one if its
// type is unknown.
func requiredProperty(d *api.Dependency) (olm.Property, error) {
	value := json.RawMessage(d.GetValue())
	switch d.GetType() {
	case "olm.gvk":
		var w struct{ Group, Kind, Version string }
		err := json.Unmarshal(value, &w)
		return property(olm.PropertyGVKRequired, map[string]any{"group": w.Group, "kind": w.Kind, "version": w.Version}), err
	case olm.PropertyPackage:
		var w struct{ PackageName, Version string }
		err := json.Unmarshal(value, &w)
		return property(olm.PropertyPackageRequired, map[string]any{"packageName": w.PackageName, "versionRange": w.Version}), err
	case "olm.label":
		return olm.Property{Type: olm.PropertyLabelRequired, Value: value}, nil
	case olm.PropertyConstraint:
		return olm.Property{Type: olm.PropertyConstraint, Value: value}, nil
	}
	return olm.Property{}, nil
}

// sameProperty compares values as JSON, whatever the order of their keys.
func sameProperty(a, b olm.Property) bool {
	if a.Type != b.Type || bytes.Equal(a.Value, b.Value) {
		return a.Type == b.Type
	}
	var x, y any
	return json.Unmarshal(a.Value, &x) == nil && json.Unmarshal(b.Value, &y) == nil && reflect.DeepEqual(x, y)
}

func property(kind string, value map[string]any) olm.Property {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err) // strings and bytes are always written
	}
	return olm.Property{Type: kind, Value: data}
}
