package differential

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// key gives the symbols of a step the names of the run.
func (r *run) key(s step) types.NamespacedName {
	key := types.NamespacedName{Name: s.name}
	switch {
	case s.kind.Namespaced:
		key.Namespace = r.namespace(s.namespace)
	case s.kind.Name == "CustomResourceDefinition" && s.name != "":
		key.Name = "things" + s.name + "." + r.id + ".clusterupdate.github.io"
	case s.name != "":
		key.Name = r.id + "-" + s.name
	}
	return key
}

func (r *run) namespace(symbol string) string {
	if symbol == "" {
		return ""
	}
	return r.id + "-" + symbol
}

// fill puts the run's names into a value.
func (r *run) fill(name string, v any) any {
	fill := strings.NewReplacer("RUN", r.id, "NS-x", r.id+"-one", "PLURAL", "things"+name, "SINGULAR", "thing"+name, "KIND", "Thing"+strings.ToUpper(name))
	var walk func(v any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			for name, e := range v {
				v[name] = walk(e)
			}
		case []any:
			for i, e := range v {
				v[i] = walk(e)
			}
		case string:
			return fill.Replace(v)
		}
		return v
	}
	return walk(v)
}

// object makes an object of a step: content with an identity, and the label
// by which the run selects.
func (r *run) object(s step, content map[string]any) *unstructured.Unstructured {
	content, _ = r.fill(s.name, runtime.DeepCopyJSON(content)).(map[string]any)
	u := &unstructured.Unstructured{Object: content}
	r.identify(s, u)
	return u
}

func (r *run) identify(s step, u *unstructured.Unstructured) {
	key := r.key(s)
	u.SetGroupVersionKind(s.kind.gvk)
	m, ok := u.Object["metadata"].(map[string]any)
	if !ok {
		m = map[string]any{}
		u.Object["metadata"] = m
	}
	for name, v := range map[string]string{"name": key.Name, "namespace": key.Namespace} {
		if v != "" {
			m[name] = v
		} else {
			delete(m, name)
		}
	}
	if m["labels"] == nil {
		m["labels"] = map[string]any{}
	}
	if l, ok := m["labels"].(map[string]any); ok {
		l["run"] = r.id
	}
}

// mutate changes an object, which must not matter to anybody else.
func mutate(u *unstructured.Unstructured) {
	if u == nil || u.Object == nil {
		return
	}
	for _, v := range u.Object {
		if m, ok := v.(map[string]any); ok {
			m["spoilt"] = "spoilt"
			for _, below := range m {
				if m, ok := below.(map[string]any); ok {
					m["spoilt"] = "spoilt"
				}
			}
		}
	}
}
