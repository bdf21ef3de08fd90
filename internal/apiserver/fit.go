package apiserver

import (
	"fmt"
	"math"
	"unicode/utf8"

	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// Schema is an openAPIV3Schema that values are cut to. It is read-only, and safe for
// concurrent use.
type Schema struct {
	properties map[string]*Schema
	others     *Schema // additionalProperties
	free       bool    // fields that it does not name stay
	items      *Schema
	kind       string // its type
	nullable   bool
	required   []string // fields without a default
	maxItems   int64    // negative: any number
	maxLength  int64    // likewise
	unique     bool     // a set, or a list with keys
	keys       []string
	rules      *validate.SchemaValidator // of the value, without what is below it; nil: its type is all
}

// maxDepth bounds the depth of a schema. An API server takes none that is deeper.
const maxDepth = 100

// Compile reads an openAPIV3Schema, or a part of one. It does not change tree.
func Compile(tree map[string]any) (*Schema, error) { return compile(tree, 0) }

func compile(tree map[string]any, depth int) (*Schema, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("a schema of more than %d levels", maxDepth)
	}
	s := &Schema{
		nullable: tree["nullable"] == true, maxItems: limitOf(tree, "maxItems"), maxLength: limitOf(tree, "maxLength"),
		free: tree["x-kubernetes-preserve-unknown-fields"] == true || tree["x-kubernetes-embedded-resource"] == true || tree["additionalProperties"] == true,
	}
	var err error
	below := func(v any) *Schema {
		t, ok := v.(map[string]any)
		if !ok || err != nil {
			return nil
		}
		var out *Schema
		out, err = compile(t, depth+1)
		return out
	}
	properties, _ := tree["properties"].(map[string]any)
	if len(properties) > 0 {
		s.properties = make(map[string]*Schema, len(properties))
	}
	for name, p := range properties {
		s.properties[name] = below(p)
	}
	s.others, s.items = below(tree["additionalProperties"]), below(tree["items"])
	if err != nil {
		return nil, err
	}
	for _, name := range texts(tree["required"]) {
		if p, _ := properties[name].(map[string]any); p["default"] == nil {
			s.required = append(s.required, name)
		}
	}
	switch tree["x-kubernetes-list-type"] {
	case "map":
		s.keys, s.unique = texts(tree["x-kubernetes-list-map-keys"]), true
	case "set":
		s.unique = true
	}

	own := make(map[string]any)
	for _, name := range rules {
		if v, ok := tree[name]; ok {
			own[name] = v
		}
	}
	s.kind, _ = own["type"].(string)
	if len(own) > 1 || s.kind == "" && len(own) > 0 {
		parsed, err := Parse(own)
		if err != nil {
			return nil, err
		}
		s.rules = validate.NewSchemaValidator(parsed, nil, "", strfmt.Default)
	}
	return s, nil
}

// rules are what a schema says of a value, apart from what is below that.
var rules = []string{
	"type", "format", "enum", "pattern", "maxLength", "minLength", "maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum", "multipleOf",
	"maxItems", "minItems", "uniqueItems", "maxProperties", "minProperties", "allOf", "anyOf", "oneOf", "not", "x-kubernetes-int-or-string",
}

// accepts reports whether a value that has been cut is one that the schema accepts.
func (s *Schema) accepts(value any) bool {
	if s.rules != nil {
		return s.rules.Validate(value).IsValid()
	}
	is := false
	switch s.kind {
	case "string":
		_, is = value.(string)
	case "boolean":
		_, is = value.(bool)
	case "object":
		_, is = value.(map[string]any)
	case "array":
		_, is = value.([]any)
	case "integer":
		switch n := value.(type) {
		case int64:
			is = true
		case float64:
			is = n == math.Trunc(n)
		}
	case "number":
		switch value.(type) {
		case int64, float64:
			is = true
		}
	default:
		is = true
	}
	return is
}

func texts(v any) (out []string) {
	list, _ := v.([]any)
	for _, e := range list {
		if text, ok := e.(string); ok {
			out = append(out, text)
		}
	}
	return out
}

func limitOf(tree map[string]any, name string) int64 {
	switch n := tree[name].(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	}
	return -1
}

// prose are the fields that people read. They are cut where they are too long; any
// other text that is cut would name something else.
var prose = map[string]bool{"message": true, "acceptedRisks": true}

// Fit returns the part of a value that a server with the schema accepts: without the
// fields that the schema lacks, and without values that it refuses. The value is not
// changed, and shares what stays. ok is false if the rest is refused as well.
//
// A list loses the elements that do not fit, those that it has already, and those
// beyond its limit. What an object requires and does not have makes it unfit.
func (s *Schema) Fit(value any) (fitting any, ok bool) { return s.fit("", value) }

func (s *Schema) fit(name string, value any) (any, bool) {
	if s == nil {
		return value, true
	}
	ok := true
	switch v := value.(type) {
	case nil:
		return nil, s.nullable
	case map[string]any:
		value, ok = s.fitObject(v)
	case []any:
		value = s.fitList(v)
	case string:
		if s.maxLength >= 0 && prose[name] && utf8.RuneCountInString(v) > int(s.maxLength) {
			value = bounded.Text(v, int(s.maxLength))
		}
	}
	return value, ok && s.accepts(value)
}

func (s *Schema) fitObject(v map[string]any) (any, bool) {
	out := make(map[string]any, len(v))
	for name, e := range v {
		p, known := s.properties[name]
		switch {
		case known:
		case s.others != nil:
			p = s.others
		case !s.free:
			continue
		}
		if e, ok := p.fit(name, e); ok {
			out[name] = e
		}
	}
	ok := true
	for _, name := range s.required {
		if _, has := out[name]; has {
			continue
		}
		// A null stands for an empty list.
		if null, has := v[name]; has && null == nil && s.properties[name] != nil && s.properties[name].kind == "array" {
			if none, fits := s.properties[name].fit(name, []any{}); fits {
				out[name] = none
				continue
			}
		}
		ok = false
	}
	return out, ok
}

func (s *Schema) fitList(v []any) []any {
	out := make([]any, 0, len(v))
	seen := make(map[string]bool)
	for _, e := range v {
		if s.maxItems >= 0 && len(out) >= int(s.maxItems) {
			break
		}
		e, ok := s.items.fit("", e)
		id := s.identity(e)
		if !ok || s.unique && seen[id] {
			continue
		}
		seen[id] = true
		out = append(out, e)
	}
	return out
}

// identity distinguishes the elements of a set, or of a list with keys.
func (s *Schema) identity(e any) string {
	if !s.unique {
		return ""
	}
	if m, ok := e.(map[string]any); ok && s.keys != nil {
		key := make([]any, len(s.keys))
		for i, name := range s.keys {
			key[i] = m[name]
		}
		return fmt.Sprintf("%#v", key)
	}
	return fmt.Sprintf("%#v", e)
}
