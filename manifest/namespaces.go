package manifest

import (
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
)

// NewNamespaces returns the namespaces, sorted, that operators of a release make once they
// run and that the release before does not know: those that a ClusterOperator of to names
// among its related objects, that no manifest of to makes, and that from neither makes nor
// names nor puts anything into. It returns nil for none.
func NewNamespaces(from, to *Payload) []string {
	before, after := namespacesOf(from), namespacesOf(to)
	return sets.List(after.related.Difference(after.made).Difference(before.made.Union(before.used).Union(before.related)))
}

// namespaces are those that manifests of a release speak of.
type namespaces struct {
	made    sets.Set[string] // by manifests
	used    sets.Set[string] // by objects in them
	related sets.Set[string] // to ClusterOperators
}

func namespacesOf(p *Payload) namespaces {
	out := namespaces{made: sets.New[string](), used: sets.New[string](), related: sets.New[string]()}
	for _, m := range p.Manifests {
		switch id := m.Identity(); {
		case m.Deletes():
		case id.Group == "" && id.Kind == "Namespace":
			out.made.Insert(id.Name)
		case m.GVK() == clusterOperatorKind.WithVersion("v1"):
			out.related.Insert(m.relatedNamespaces()...)
		case id.Namespace != "":
			out.used.Insert(id.Namespace)
		}
	}
	return out
}

// relatedNamespaces are those among the status.relatedObjects of a ClusterOperator.
func (m *Manifest) relatedNamespaces() []string {
	var co configv1.ClusterOperator
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(m.Object().Object, &co); err != nil {
		return nil
	}
	var names []string
	for _, o := range co.Status.RelatedObjects {
		if o.Group == "" && o.Resource == "namespaces" && o.Name != "" {
			names = append(names, o.Name)
		}
	}
	return names
}
