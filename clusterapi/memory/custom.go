package memory

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	openapierrors "k8s.io/kube-openapi/pkg/validation/errors"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"

	"github.com/clusterupdate/clusterupdate/internal/apiserver"
	"github.com/clusterupdate/clusterupdate/internal/objects"
)

// customRules are those that a definition's schema states. Rules in CEL
// (x-kubernetes-validations) are not among them.
type customRules struct {
	tree   map[string]any
	root   *spec.Schema            // of the whole, without what its fields say
	fields map[string]*spec.Schema // of all but metadata
}

func newCustomRules(tree map[string]any) (*customRules, error) {
	out := &customRules{tree: tree, fields: make(map[string]*spec.Schema)}
	top := maps.Clone(tree)
	delete(top, "properties")
	delete(top, "additionalProperties")
	var err error
	out.root, err = apiserver.Parse(top)
	if err != nil {
		return nil, err
	}
	properties, _ := tree["properties"].(map[string]any)
	for name, p := range properties {
		if name == "metadata" || name == "apiVersion" || name == "kind" {
			continue
		}
		out.fields[name], err = apiserver.Parse(p)
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// judge validates what is new in an object against the schema.
func (c *customRules) judge(old, obj *unstructured.Unstructured) field.ErrorList {
	var errs field.ErrorList
	sameKeys := old != nil && len(old.Object) == len(obj.Object)
	for name := range obj.Object {
		sameKeys = sameKeys && has(old.Object, name)
	}
	if !sameKeys {
		errs = append(errs, validateBy(c.root, obj.Object, "")...)
	}
	for _, name := range slices.Sorted(maps.Keys(c.fields)) {
		v, ok := obj.Object[name]
		if !ok || old != nil && objects.Equal(old.Object[name], v) {
			continue
		}
		found := c.judgeField(name, v)
		if before, ok := priorValue(old, name); ok && len(found) > 0 {
			properties, _ := c.tree["properties"].(map[string]any)
			if tree, ok := properties[name].(map[string]any); ok {
				before = dropForbiddenNulls(tree, before) // as the new one was stored without
			}
			found = without(found, c.judgeField(name, before))
		}
		errs = append(errs, found...)
	}
	return errs
}

func priorValue(old *unstructured.Unstructured, name string) (any, bool) {
	if old == nil {
		return nil, false
	}
	v, ok := old.Object[name]
	return v, ok
}

func (c *customRules) judgeField(name string, v any) field.ErrorList {
	errs := validateBy(c.fields[name], v, name)
	properties, _ := c.tree["properties"].(map[string]any)
	tree, _ := properties[name].(map[string]any)
	judgeLists(tree, v, field.NewPath(name), &errs)
	return errs
}

func validateBy(s *spec.Schema, v any, name string) field.ErrorList {
	result := validate.NewSchemaValidator(s, nil, name, strfmt.Default).Validate(v)
	var errs field.ErrorList
	for _, err := range result.Errors {
		errs = append(errs, fieldError(err))
	}
	return errs
}

// fieldError describes what the validator says in the way of an API server.
func fieldError(err error) *field.Error {
	v, ok := err.(*openapierrors.Validation)
	if !ok {
		return field.Invalid(nil, "", err.Error())
	}
	var at *field.Path
	if name := strings.TrimPrefix(v.Name, "."); name != "" {
		at = field.NewPath(name)
	}
	value := v.Value
	if value == nil {
		value = ""
	}
	limit := func(v any) int {
		if i, ok := v.(int64); ok {
			return int(i)
		}
		return -1
	}
	switch v.Code() {
	case openapierrors.RequiredFailCode:
		return field.Required(at, "")
	case openapierrors.EnumFailCode:
		allowed := make([]string, len(v.Values))
		for i, a := range v.Values {
			if s, ok := a.(string); ok {
				allowed[i] = s
			} else if data, err := json.Marshal(a); err == nil {
				allowed[i] = string(data)
			}
		}
		return field.NotSupported(at, v.Value, allowed)
	case openapierrors.TooLongFailCode:
		return field.TooLong(at, "", limit(v.Valid))
	case openapierrors.MaxItemsFailCode, openapierrors.TooManyPropertiesCode:
		return field.TooMany(at, limit(v.Value), limit(v.Valid))
	case openapierrors.InvalidTypeCode:
		return field.TypeInvalid(at, value, v.Error())
	}
	return field.Invalid(at, value, v.Error())
}

// judgeLists refuses elements that a set or a list with keys has twice, and
// embedded objects that do not say what they are.
func judgeLists(schema map[string]any, v any, at *field.Path, errs *field.ErrorList) {
	if schema == nil {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		if schema["x-kubernetes-embedded-resource"] == true {
			for _, name := range []string{"apiVersion", "kind"} {
				if s, _ := v[name].(string); s == "" {
					*errs = append(*errs, field.Required(at.Child(name), "must not be empty"))
				}
			}
		}
		properties, _ := schema["properties"].(map[string]any)
		others, _ := schema["additionalProperties"].(map[string]any)
		if len(properties) == 0 && others == nil {
			return
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if p, ok := properties[name].(map[string]any); ok {
				judgeLists(p, v[name], at.Child(name), errs)
			} else if others != nil {
				judgeLists(others, v[name], at.Key(name), errs)
			}
		}
	case []any:
		items, _ := schema["items"].(map[string]any)
		kind, _ := schema["x-kubernetes-list-type"].(string)
		keys, _ := schema["x-kubernetes-list-map-keys"].([]any)
		seen := make(map[string]bool)
		for i, e := range v {
			if kind == "set" || kind == "map" {
				part := e
				if m, ok := e.(map[string]any); ok && kind == "map" {
					key := make(map[string]any, len(keys))
					for _, k := range keys {
						if name, ok := k.(string); ok {
							if value, ok := m[name]; ok {
								key[name] = value
							}
						}
					}
					part = key
				}
				text := fmt.Sprintf("%T %v", part, part) // maps print in the order of their keys
				if seen[text] {
					*errs = append(*errs, field.Duplicate(at.Index(i), part))
				}
				seen[text] = true
			}
			judgeLists(items, e, at.Index(i), errs)
		}
	}
}

// defaulted returns an object with the defaults of its definition.
func (k *kind) defaulted(content map[string]any) map[string]any {
	out, _ := k.defaults.Fill(content).(map[string]any)
	return out
}
