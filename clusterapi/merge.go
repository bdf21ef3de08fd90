package clusterapi

import (
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Merge lays the fields of over on those of base, as if two field managers
// had applied one after the other: maps are merged key by key, lists with
// list-map keys element by element, sets are united, and everything else is
// over's where both have it. Which lists and structs are merged is known for
// kinds of k8s.io/api and github.com/openshift/api; in others every list is
// one value. A null in over leaves base as it is.
//
// overridden, unless nil, gets the path of each value of base that over
// replaces by another one, such as spec.containers[name=a].image, in the order
// of the paths. Both objects should have the same apiVersion and kind; over's
// decides. base is changed, over is not, and they share nothing afterwards.
func Merge(base, over *unstructured.Unstructured, overridden func(path string)) {
	if overridden == nil {
		overridden = func(string) {}
	}
	t, _ := TypeOf(over.GroupVersionKind())
	if base.Object == nil {
		base.Object = map[string]any{}
	}
	merger{overridden}.object(base.Object, over.Object, shape{typ: t}, "")
}

// atomicTypes are the structs that server-side apply replaces as a whole, and
// atomicMaps the fields with such maps. Both stand in comments (structType,
// mapType) of the packages.
var (
	atomicTypes = map[string]bool{
		"k8s.io/api/core/v1.SecretReference":                          true,
		"k8s.io/api/core/v1.FileKeySelector":                          true,
		"k8s.io/api/core/v1.ObjectFieldSelector":                      true,
		"k8s.io/api/core/v1.ResourceFieldSelector":                    true,
		"k8s.io/api/core/v1.ConfigMapKeySelector":                     true,
		"k8s.io/api/core/v1.SecretKeySelector":                        true,
		"k8s.io/api/core/v1.NodeSelector":                             true,
		"k8s.io/api/core/v1.NodeSelectorTerm":                         true,
		"k8s.io/api/core/v1.TopologySelectorTerm":                     true,
		"k8s.io/api/core/v1.EndpointAddress":                          true,
		"k8s.io/api/core/v1.EndpointPort":                             true,
		"k8s.io/api/core/v1.ObjectReference":                          true,
		"k8s.io/api/core/v1.LocalObjectReference":                     true,
		"k8s.io/api/core/v1.TypedLocalObjectReference":                true,
		"k8s.io/api/core/v1.ScopeSelector":                            true,
		"k8s.io/api/rbac/v1.Subject":                                  true,
		"k8s.io/api/rbac/v1.RoleRef":                                  true,
		"k8s.io/api/admissionregistration/v1.ParamKind":               true,
		"k8s.io/api/admissionregistration/v1.ParamRef":                true,
		"k8s.io/api/admissionregistration/v1.Variable":                true,
		"k8s.io/api/admissionregistration/v1.MatchResources":          true,
		"k8s.io/api/admissionregistration/v1.NamedRuleWithOperations": true,
		"k8s.io/api/networking/v1.ServiceBackendPort":                 true,
		"k8s.io/apimachinery/pkg/apis/meta/v1.OwnerReference":         true,
		"k8s.io/apimachinery/pkg/apis/meta/v1.LabelSelector":          true,
		"k8s.io/apimachinery/pkg/runtime.RawExtension":                true,
	}
	atomicMaps = map[string]bool{
		"k8s.io/api/core/v1.PodSpec.NodeSelector":               true,
		"k8s.io/api/core/v1.ReplicationControllerSpec.Selector": true,
		"k8s.io/api/core/v1.ServiceSpec.Selector":               true,
		"k8s.io/api/node/v1.Scheduling.NodeSelector":            true,
	}
	// sets are the lists of scalars that it unites (listType=set).
	sets = map[string]bool{
		"k8s.io/apimachinery/pkg/apis/meta/v1.ObjectMeta.Finalizers":                                 true,
		"k8s.io/api/core/v1.ContainerRestartRuleOnExitCodes.Values":                                  true,
		"k8s.io/api/core/v1.NodeSpec.PodCIDRs":                                                       true,
		"k8s.io/api/batch/v1.PodFailurePolicyOnExitCodesRequirement.Values":                          true,
		"k8s.io/api/admissionregistration/v1.ValidatingAdmissionPolicyBindingSpec.ValidationActions": true,
		"k8s.io/api/storage/v1.CSIDriverSpec.VolumeLifecycleModes":                                   true,
	}
)

// merger merges JSON trees.
type merger struct{ overridden func(path string) }

func (m merger) object(base, over map[string]any, s shape, path string) {
	for _, name := range slices.Sorted(maps.Keys(over)) {
		ov, bv := over[name], base[name]
		switch {
		case bv == nil:
			base[name] = runtime.DeepCopyJSONValue(ov)
		case ov != nil && !equalJSON(bv, ov):
			base[name] = m.value(bv, ov, s.field(name), JoinPath(path, name))
		}
	}
}

func (m merger) value(base, over any, s shape, path string) any {
	switch b := base.(type) {
	case map[string]any:
		if o, ok := over.(map[string]any); ok && !s.atomic {
			m.object(b, o, s, path)
			return b
		}
	case []any:
		if o, ok := over.([]any); ok {
			if merged, ok := m.list(b, o, s, path); ok {
				return merged
			}
		}
	}
	m.overridden(path)
	return runtime.DeepCopyJSONValue(over)
}

// list merges lists that are maps or sets; ok is false for those that are one
// value.
func (m merger) list(base, over []any, s shape, path string) (merged []any, ok bool) {
	if s.set {
		for _, o := range over {
			if !contains(base, o) {
				base = append(base, o)
			}
		}
		return base, true
	}
	at, baseOK := index(base, s.keys)
	_, overOK := index(over, s.keys)
	if !baseOK || !overOK {
		return nil, false // not what the schema asks for: the server will say so
	}
	element := s.element()
	for _, o := range over {
		key := ElementPath(o, s.keys)
		i, ok := at[key]
		switch {
		case !ok:
			base = append(base, runtime.DeepCopyJSONValue(o))
		case !equalJSON(base[i], o):
			base[i] = m.value(base[i], o, element, path+key)
		}
	}
	return base, true
}

func isAtomic(t reflect.Type) bool {
	t = deref(t)
	return t != nil && t.Kind() == reflect.Struct && atomicTypes[t.PkgPath()+"."+t.Name()]
}
