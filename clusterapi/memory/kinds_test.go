package memory_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

var manager = clusterapi.ApplyOptions{FieldManager: "test"}

var widgets = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}

func mustApply(t testing.TB, c *memory.Cluster, text string) *unstructured.Unstructured {
	t.Helper()
	u := checktest.Must(c.Apply(t.Context(), object(t, text), manager))
	return u
}

func mustLoad(t testing.TB, c *memory.Cluster, texts ...string) {
	t.Helper()
	for _, text := range texts {
		checktest.OK(t, c.Load(object(t, text)))
	}
}

func mustGet(t testing.TB, c *memory.Cluster, gvk schema.GroupVersionKind, ns, name string) *unstructured.Unstructured {
	t.Helper()
	u := checktest.Must(c.Get(t.Context(), gvk, clusterapi.Key(ns, name)))
	return u
}

// Every kind that programs of a cluster use is in the embedded schema, and a
// field that it lacks is refused.
func TestBuiltinKinds(t *testing.T) {
	c := memory.New(memory.Options{Lenient: true}) // nothing but a name is given
	for _, kind := range strings.Fields(`
		v1/Namespace v1/Node v1/Pod v1/Service v1/ConfigMap v1/Secret v1/ServiceAccount v1/Event v1/Endpoints
		v1/PersistentVolume v1/PersistentVolumeClaim v1/ResourceQuota v1/LimitRange v1/ReplicationController
		apps/v1/Deployment apps/v1/DaemonSet apps/v1/StatefulSet apps/v1/ReplicaSet apps/v1/ControllerRevision
		batch/v1/Job batch/v1/CronJob policy/v1/PodDisruptionBudget
		rbac.authorization.k8s.io/v1/Role rbac.authorization.k8s.io/v1/RoleBinding
		rbac.authorization.k8s.io/v1/ClusterRole rbac.authorization.k8s.io/v1/ClusterRoleBinding
		networking.k8s.io/v1/NetworkPolicy networking.k8s.io/v1/Ingress scheduling.k8s.io/v1/PriorityClass
		storage.k8s.io/v1/StorageClass storage.k8s.io/v1/CSIDriver coordination.k8s.io/v1/Lease
		admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration admissionregistration.k8s.io/v1/MutatingWebhookConfiguration
		admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy flowcontrol.apiserver.k8s.io/v1/FlowSchema
		autoscaling/v2/HorizontalPodAutoscaler certificates.k8s.io/v1/CertificateSigningRequest
		discovery.k8s.io/v1/EndpointSlice node.k8s.io/v1/RuntimeClass`) {
		at := strings.LastIndex(kind, "/")
		u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "x", "namespace": "ns"}}}
		u.SetAPIVersion(kind[:at])
		u.SetKind(kind[at+1:])
		if _, err := c.Apply(t.Context(), u, manager); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		u.Object["bogus"] = "x"
		checktest.ErrorHas(t, ".bogus: field not declared in schema", checktest.Err(c.Apply(t.Context(), u, manager)))
	}
}

func TestScope(t *testing.T) {
	c := memory.New(memory.Options{})
	u := mustApply(t, c, `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r, namespace: wrong}}`)
	checktest.Equal(t, "", u.GetNamespace(), "a cluster-scoped object is in namespace")
	mustGet(t, c, u.GroupVersionKind(), "", "r")

	checking := memory.New(memory.Options{CheckNamespaces: true})
	for _, text := range []string{
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: missing}}`,
	} {
		checktest.Fails(t, checktest.Err(checking.Apply(t.Context(), object(t, text), manager)), "%s was stored", text)
	}
}

func TestStrict(t *testing.T) {
	route := `{apiVersion: route.openshift.io/v1, kind: Route, metadata: {name: r, namespace: ns}, spec: {anything: [1, two]}}`
	c := memory.New(memory.Options{Lenient: true})
	mustApply(t, c, route)
	strict := memory.New(memory.Options{})
	checktest.ErrorBy(t, meta.IsNoMatchError, checktest.Err(strict.Apply(t.Context(), object(t, route), manager)))
	checktest.ErrorBy(t, meta.IsNoMatchError, strict.Load(object(t, route)))
	mustApply(t, strict, benchDefinition)
	mustApply(t, strict, benchWidget)
	u := object(t, benchWidget)
	u.SetAPIVersion("example.com/v2")
	checktest.ErrorBy(t, meta.IsNoMatchError, checktest.Err(strict.Apply(t.Context(), u, manager)))
}

func TestStatusSubresource(t *testing.T) {
	c := memory.New(memory.Options{Lenient: true})
	for _, tc := range []struct {
		apiVersion, kind string
		separate         bool
	}{
		{"config.openshift.io/v1", "ClusterVersion", true},
		{"config.openshift.io/v1", "ClusterOperator", true},
		{"machineconfiguration.openshift.io/v1", "MachineConfigPool", true},
		{"machineconfiguration.openshift.io/v1", "MachineConfig", false},
		{"unknown.example.com/v1", "Unknown", true},
		{"apps/v1", "Deployment", true},
		{"v1", "Secret", false},
	} {
		t.Run(tc.kind, func(t *testing.T) {
			u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "x", "namespace": "ns"}}}
			u.SetAPIVersion(tc.apiVersion)
			u.SetKind(tc.kind)
			u, err := c.Create(t.Context(), u, clusterapi.CreateOptions{})
			checktest.OK(t, err)
			_, err = c.UpdateStatus(t.Context(), u, clusterapi.UpdateOptions{})
			checktest.Equal(t, tc.separate, err == nil, "UpdateStatus: %v, want a subresource: %t", err, tc.separate)
		})
	}
}

func TestDefinition(t *testing.T) {
	c := memory.New(memory.Options{Lenient: true})
	t.Run("before its definition a kind takes all", func(t *testing.T) {
		u := object(t, benchWidget)
		checktest.OK(t, unstructured.SetNestedField(u.Object, "x", "spec", "later"))
		checktest.Must(c.Apply(t.Context(), u, clusterapi.ApplyOptions{FieldManager: "early"}))
	})
	crd := mustApply(t, c, benchDefinition)
	got, _, _ := unstructured.NestedStringSlice(crd.Object, "status", "storedVersions")
	checktest.FailIf(t, !cmp.Equal(got, []string{"v1"}), "storedVersions %v", got)
	t.Run("then fields that it lacks go with the next write", func(t *testing.T) {
		u := mustApply(t, c, benchWidget)
		_, ok, _ := unstructured.NestedString(u.Object, "spec", "later")
		checktest.FailIf(t, ok, "the field is still there")
	})
	t.Run("a changed schema counts at once", func(t *testing.T) {
		u := object(t, benchWidget)
		checktest.OK(t, unstructured.SetNestedField(u.Object, "x", "spec", "color"))
		if _, err := c.Apply(t.Context(), u, manager); err == nil || !strings.Contains(err.Error(), ".spec.color") {
			t.Fatalf("got %v, want an error that names .spec.color", err)
		}
		mustApply(t, c, strings.Replace(benchDefinition, "mode: {type: string}", "mode: {type: string}\n              color: {type: string}", 1))
		checktest.Good(t, checktest.Err(c.Apply(t.Context(), u, manager)))
	})
	t.Run("metadata is that of every object", func(t *testing.T) {
		u := object(t, benchWidget)
		u.SetFinalizers([]string{"example.com/x"})
		u = checktest.Get(c.Apply(t.Context(), u, clusterapi.ApplyOptions{FieldManager: "finalizer"}))(t)
		checktest.Equal(t, 1, len(u.GetFinalizers()), "len(u.GetFinalizers()) of %v", u)
	})
}

func TestEstablishAfter(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	c := memory.New(memory.Options{Clock: clock, EstablishAfter: time.Minute})
	established := func() string {
		crd := mustGet(t, c, schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, "", "widgets.example.com")
		list, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
		for _, condition := range list {
			if m := condition.(map[string]any); m["type"] == "Established" {
				return m["status"].(string) + " " + m["lastTransitionTime"].(string)
			}
		}
		return ""
	}
	mustApply(t, c, benchDefinition)
	checktest.Equal(t, "False 2026-01-01T00:00:00Z", established(), "at first Established")
	checktest.ErrorBy(t, meta.IsNoMatchError, checktest.Err(c.Apply(t.Context(), object(t, benchWidget), manager)))
	clock.SetTime(clock.Now().Add(time.Minute))
	checktest.Equal(t, "True 2026-01-01T00:01:00Z", established(), "later Established")
	mustApply(t, c, benchWidget)
}

func TestVersions(t *testing.T) {
	c := memory.New(memory.Options{Lenient: true})
	mustLoad(t, c, `{apiVersion: machineconfiguration.openshift.io/v1alpha1, kind: MachineConfigNode, metadata: {name: node}, spec: {a: b}}`)
	u := mustGet(t, c, schema.GroupVersionKind{Group: "machineconfiguration.openshift.io", Version: "v1", Kind: "MachineConfigNode"}, "", "node")
	checktest.Equal(t, "machineconfiguration.openshift.io/v1", u.GetAPIVersion(), "apiVersion")
	u.Object["spec"] = map[string]any{"a": "c"}
	checktest.Good(t, checktest.Err(c.Update(t.Context(), u, clusterapi.UpdateOptions{})))
	mustApply(t, c, `{apiVersion: machineconfiguration.openshift.io/v1alpha1, kind: MachineConfigNode, metadata: {name: node}, spec: {d: e}}`)
	u = mustGet(t, c, u.GroupVersionKind(), "", "node")
	checktest.Same(t, map[string]any{"a": "c", "d": "e"}, u.Object["spec"])
}

func TestValues(t *testing.T) {
	c := memory.New(memory.Options{Lenient: true})
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": "x"},
		"spec": map[string]any{"int": 1, "int32": int32(2), "whole": -3.0, "many": 1e15, "part": 0.5, "large": 1e300, "strings": []string{"a"}, "map": map[string]string{"b": "c"}},
	}}
	got := checktest.Must(c.Create(t.Context(), u, clusterapi.CreateOptions{}))
	want := map[string]any{"int": int64(1), "int32": int64(2), "whole": int64(-3), "many": int64(1e15), "part": 0.5, "large": 1e300, "strings": []any{"a"}, "map": map[string]any{"b": "c"}}
	checktest.Same(t, want, got.Object["spec"])
	got.Object["spec"].(map[string]any)["whole"] = -3.0
	if again, err := c.Update(t.Context(), got, clusterapi.UpdateOptions{}); err != nil || again.GetResourceVersion() != got.GetResourceVersion() {
		t.Errorf("the same number in another form counts as a change (%v)", err)
	}
	u.SetName("y")
	u.Object["spec"] = map[string]any{"list": []any{errors.New("x")}}
	checktest.ErrorHas(t, ".spec.list[0]", checktest.Err(c.Create(t.Context(), u, clusterapi.CreateOptions{})))
}
