package sourcestest

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/olm"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
	"github.com/clusterupdate/clusterupdate/olm/install"
	"github.com/clusterupdate/clusterupdate/olm/install/installtest"
)

// Namespace is where the operators of a life are installed.
const Namespace = "operators"

// catalogKey is the catalog of a life.
var catalogKey = types.NamespacedName{Namespace: "openshift-marketplace", Name: "catalog"}

// World is what a life takes place in.
type World struct {
	API      clusterapi.ClusterAPI // with the namespaces, and the definitions of OLM
	Catalog  olm.Catalog
	Unpacker install.Unpacker
	// Publish makes the catalog the one of a level.
	Publish func(level int)
	// Collects reports that the cluster deletes what has lost its owners.
	Collects bool
}

// Life installs mesh by a Subscription, updates it twice along its channel, in which the
// first update also needs tracing, and uninstalls it. Each time it compares what there is.
func Life(t *testing.T, w World) {
	t.Helper()
	controller := checktest.Get(install.New(install.Options{
		API: w.API, Unpacker: w.Unpacker, Execute: true,
		SnapshotOptions: install.SnapshotOptions{Catalogs: map[types.NamespacedName]olm.Catalog{catalogKey: w.Catalog}},
	}))(t)
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	source := &olmapi.CatalogSource{ObjectMeta: meta(catalogKey.Namespace, catalogKey.Name)}
	source.Spec.SourceType = "grpc"
	sub := &olmapi.Subscription{ObjectMeta: meta(Namespace, "mesh")}
	sub.Spec = olmapi.SubscriptionSpec{
		Source: catalogKey.Name, SourceNamespace: catalogKey.Namespace, Package: "mesh", Channel: "stable",
	}
	create(t, w.API, source)
	create(t, w.API, &olmapi.OperatorGroup{ObjectMeta: meta(Namespace, "group")})
	create(t, w.API, sub)

	w.Publish(1)
	w.settle(t, controller)
	checktest.SameIn(t, "installed", []string{
		"operator mesh.v1 Succeeded", "subscription mesh AtLatestKnown mesh.v1", "plan [mesh.v1] Complete",
		"config mesh-config 1", "account mesh", "definition meshs.example.com as of mesh.v1", "roles 1 1",
	}, w.state(t))
	w.Publish(2)
	w.settle(t, controller)
	checktest.SameIn(t, "updated", []string{
		"operator mesh.v2 Succeeded", "operator tracing.v1 Succeeded", "subscription mesh AtLatestKnown mesh.v2",
		"subscription tracing-stable-catalog-openshift-marketplace AtLatestKnown tracing.v1",
		"plan [mesh.v1] Complete", "plan [mesh.v2 tracing.v1] Complete",
		"config mesh-config 2", "config tracing-config 1", "account mesh", "account tracing",
		"definition meshs.example.com as of mesh.v2", "definition tracings.example.com as of tracing.v1", w.roles(2),
	}, w.state(t))
	w.Publish(3)
	w.settle(t, controller)
	checktest.Equal(t, "operator mesh.v3 Succeeded", w.state(t)[0], "the next update")

	w.remove(t, sub, "mesh")
	w.remove(t, &olmapi.ClusterServiceVersion{}, "mesh.v3")
	w.settle(t, controller)
	left := w.state(t)
	for _, line := range left {
		if slices.Contains([]string{"operator mesh.v3 Succeeded", "subscription mesh AtLatestKnown mesh.v3"}, line) ||
			w.Collects && slices.Contains([]string{"config mesh-config 3", "account mesh"}, line) {
			t.Errorf("after it was uninstalled there is %s", line)
		}
	}
	checktest.Equal(t, "operator tracing.v1 Succeeded", left[0], "what nobody uninstalled")
}

// roles describes how many Roles and ClusterRoles n operators have; if nothing is
// collected, those of the one that was replaced are there, too.
func (w *World) roles(n int) string {
	if w.Collects {
		return fmt.Sprintf("roles %d %d", n, n+1) // ClusterRoles have no owner that a collector knows
	}
	return fmt.Sprintf("roles %d %d", n+1, n+1)
}

func create[T any](t *testing.T, api clusterapi.ClusterAPI, object *T) {
	t.Helper()
	checktest.OK(t, checktest.Err(clusterapi.Create(t.Context(), api, object, clusterapi.CreateOptions{})))
}

func (w *World) remove(t *testing.T, kind clusterapi.Kinder, name string) {
	t.Helper()
	checktest.OK(t, w.API.Delete(t.Context(), kind.APIKind(), clusterapi.Key(Namespace, name), clusterapi.DeleteOptions{}))
}

// settle makes passes until nothing changes. Between them it plays OLM's other half.
func (w *World) settle(t *testing.T, c *install.Controller) {
	t.Helper()
	for range 60 {
		r := checktest.Get(c.Sync(t.Context(), Namespace))(t)
		if !checktest.Get(installtest.OLM{}.Advance(t.Context(), w.API, Namespace))(t) && !r.Changed && !r.Soon {
			return
		}
	}
	t.Fatalf("it does not settle: %q", w.state(t))
}

func list[T any](t *testing.T, api clusterapi.ClusterAPI) []T {
	t.Helper()
	return checktest.Get(clusterapi.List[T](t.Context(), api, clusterapi.ListOptions{Namespace: Namespace}))(t)
}

// state are the operators, Subscriptions and plans, and what belongs to the operators.
func (w *World) state(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, csv := range list[olmapi.ClusterServiceVersion](t, w.API) {
		out = append(out, "operator "+csv.Name+" "+csv.Status.Phase)
	}
	for _, s := range list[olmapi.Subscription](t, w.API) {
		out = append(out, fmt.Sprintf("subscription %s %s %s", s.Name, s.Status.State, s.Status.InstalledCSV))
	}
	plans := list[olmapi.InstallPlan](t, w.API)
	slices.SortFunc(plans, func(a, b olmapi.InstallPlan) int { return int(a.Spec.Generation - b.Spec.Generation) })
	for _, p := range plans {
		names := slices.Sorted(slices.Values(p.Spec.ClusterServiceVersionNames))
		out = append(out, fmt.Sprintf("plan %s %s", names, p.Status.Phase))
	}
	for _, c := range list[corev1.ConfigMap](t, w.API) {
		out = append(out, "config "+c.Name+" "+c.Data["version"])
	}
	for _, a := range list[corev1.ServiceAccount](t, w.API) {
		out = append(out, "account "+a.Name)
	}
	definitions := schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	for _, d := range checktest.Get(w.API.List(t.Context(), definitions, clusterapi.ListOptions{}))(t).Items {
		if group, _, _ := unstructured.NestedString(d.Object, "spec", "group"); group == "example.com" {
			versions, _, _ := unstructured.NestedSlice(d.Object, "spec", "versions")
			about, _, _ := unstructured.NestedString(versions[0].(map[string]any), "schema", "openAPIV3Schema", "description")
			out = append(out, "definition "+d.GetName()+" "+about)
		}
	}
	owned := clusterapi.ListOptions{Labels: labels.SelectorFromSet(labels.Set{"olm.owner.namespace": Namespace})}
	roles := list[rbacv1.Role](t, w.API)
	clusterRoles := checktest.Get(clusterapi.List[rbacv1.ClusterRole](t.Context(), w.API, owned))(t)
	return append(out, fmt.Sprintf("roles %d %d", len(roles), len(clusterRoles)))
}
