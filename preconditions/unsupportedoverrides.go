package preconditions

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

func unsupportedOverridesCheck() Check {
	var reads []schema.GroupVersionKind
	for _, k := range overridable() {
		reads = append(reads, k.gvk)
	}
	return documented{Rule{
		Name: "UnsupportedOverrides", Severities: []Severity{Warning, Blocking},
		Source: "Performing a cluster update, Before updating", Link: docsPerforming,
		Reads: reads,
	}, unsupportedOverrides}
}

// overridableKind is a kind of operator configuration that has
// spec.unsupportedConfigOverrides.
type overridableKind struct {
	gvk       schema.GroupVersionKind
	all       bool // all objects count, not only the one called cluster
	namespace string
}

func overridable() []overridableKind {
	operator := func(kind string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: "operator.openshift.io", Version: "v1", Kind: kind}
	}
	var kinds []overridableKind
	for _, kind := range []string{
		"Authentication", "CSISnapshotController", "CloudCredential", "Config", "Console", "Etcd", "InsightsOperator", "KubeAPIServer",
		"KubeControllerManager", "KubeScheduler", "KubeStorageVersionMigrator", "MachineConfiguration", "Network", "OLM",
		"OpenShiftAPIServer", "OpenShiftControllerManager", "ServiceCA", "Storage",
	} {
		kinds = append(kinds, overridableKind{gvk: operator(kind)})
	}
	return append(kinds,
		overridableKind{gvk: operator("ClusterCSIDriver"), all: true},
		overridableKind{gvk: operator("IngressController"), all: true, namespace: "openshift-ingress-operator"},
		overridableKind{gvk: schema.GroupVersionKind{Group: "imageregistry.operator.openshift.io", Version: "v1", Kind: "Config"}},
	)
}

// unsupportedOverrides: no operator runs with settings that are not supported, and
// which the next version may read in another way.
func unsupportedOverrides(ctx context.Context, in *Input) ([]Finding, error) {
	var errs []error
	var found []Object
	for _, k := range overridable() {
		objects, err := k.read(ctx, in.Reader)
		if err != nil {
			errs = append(errs, about(k.gvk.Kind, err))
		}
		for _, o := range objects {
			spec, _ := o.Unstructured().Object["spec"].(map[string]any)
			value := spec["unsupportedConfigOverrides"]
			if m, ok := value.(map[string]any); value == nil || ok && len(m) == 0 {
				continue
			}
			text, _ := json.Marshal(value)
			found = append(found, Object{
				GVK: k.gvk, Namespace: o.Key().Namespace, Name: o.Name(), FieldPath: "spec.unsupportedConfigOverrides",
				Value: bounded.Text(string(text), 1<<10), Note: k.gvk.Kind,
			})
		}
	}
	if len(found) == 0 {
		return nil, joinErrors(errs...)
	}
	slices.SortStableFunc(found, func(a, b Object) int {
		return cmp.Or(strings.Compare(a.GVK.Kind, b.GVK.Kind), strings.Compare(a.GVK.Group, b.GVK.Group), strings.Compare(a.Name, b.Name))
	})
	return []Finding{newFinding(blockMinor(in.Transition), "UnsupportedConfigOverridesSet", "Operators have settings that are not supported", found,
		"Remove spec.unsupportedConfigOverrides of these objects before the update")}, joinErrors(errs...)
}

// read returns the objects of the kind. There may be none, and no such kind.
func (k overridableKind) read(ctx context.Context, r clusterapi.Reader) ([]*clusterapi.Object, error) {
	var objects []*clusterapi.Object
	var err error
	if k.all {
		objects, err = clusterapi.ListShared(ctx, r, k.gvk, clusterapi.ListOptions{Namespace: k.namespace})
	} else {
		var o *clusterapi.Object
		if o, err = clusterapi.GetShared(ctx, r, k.gvk, clusterapi.Key("", "cluster")); err == nil {
			objects = append(objects, o)
		}
	}
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		err = nil
	}
	return objects, err
}
