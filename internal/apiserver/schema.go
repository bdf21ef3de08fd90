package apiserver

import (
	"maps"

	"github.com/clusterupdate/clusterupdate/internal/objects"
)

// Defaults are those that the openAPIV3Schema of a definition gives to a value and to
// what is below it. Nil has none. They are safe for concurrent use.
type Defaults struct {
	values        map[string]fieldDefault
	fields        map[string]*Defaults // of all properties, if there are others too
	others, items *Defaults
}

// fieldDefault is the default of a field. A null counts as absent unless it is nullable.
type fieldDefault struct {
	value    any
	nullable bool
}

// ReadDefaults reads the defaults of a schema, which must not change afterwards; nil if
// it has none.
func ReadDefaults(schema any) *Defaults {
	m, ok := schema.(map[string]any)
	if !ok {
		return nil
	}
	d := &Defaults{
		values: make(map[string]fieldDefault), fields: make(map[string]*Defaults),
		others: ReadDefaults(m["additionalProperties"]), items: ReadDefaults(m["items"]),
	}
	properties, _ := m["properties"].(map[string]any)
	for name, p := range properties {
		if below := ReadDefaults(p); below != nil || d.others != nil {
			d.fields[name] = below
		}
		if p, ok := p.(map[string]any); ok && p["default"] != nil {
			d.values[name] = fieldDefault{p["default"], p["nullable"] == true}
		}
	}
	if len(d.values)+len(d.fields) == 0 && d.others == nil && d.items == nil {
		return nil
	}
	return d
}

// Fill returns a value with its defaults, as an API server fills them in: first the field
// of an object, then what is below it. The result shares with v what it does not change,
// and the defaults with the schema.
func (d *Defaults) Fill(v any) any {
	if d == nil {
		return v
	}
	switch m := v.(type) {
	case map[string]any:
		filled, copied := m, false
		for name, field := range d.values {
			if value, ok := m[name]; ok && (value != nil || field.nullable) {
				continue
			}
			if !copied {
				filled, copied = maps.Clone(m), true
			}
			filled[name] = field.value
		}
		return objects.Rewrite(filled, func(name string, e any) (any, bool) {
			if below, ok := d.fields[name]; ok {
				return below.Fill(e), true
			}
			return d.others.Fill(e), true
		}, nil)
	case []any:
		return objects.Rewrite(m, nil, d.items.Fill)
	}
	return v
}
