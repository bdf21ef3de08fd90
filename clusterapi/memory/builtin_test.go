package memory

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// keys returns the keys of a list in a built-in kind, by the names of fields;
// "[]" steps into a list.
func keys(t *testing.T, gvk schema.GroupVersionKind, path ...string) []string {
	t.Helper()
	k := builtin().kind(gvk)
	checktest.FatalIf(t, k == nil, "%s is not in the embedded schema", gvk)
	atom, _ := k.types.Schema.Resolve(k.types.TypeRef)
	for _, name := range path {
		var next smd.TypeRef
		if name == "[]" {
			next = atom.List.ElementType
		} else {
			f, ok := atom.Map.FindField(name)
			checktest.FatalIf(t, !ok, "%s has no %s of %v", gvk, name, path)
			next = f.Type
		}
		atom, _ = k.types.Schema.Resolve(next)
	}
	if atom.List.ElementRelationship != smd.Associative {
		return nil
	}
	return append([]string{}, atom.List.Keys...)
}

// The lists that merge element by element on a server do so here, and the
// others are one value.
func TestEmbeddedLists(t *testing.T) {
	deployment := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	pod := []string{"spec", "template", "spec"}
	for _, tc := range []struct {
		gvk  schema.GroupVersionKind
		path []string
		want []string
	}{
		{deployment, append(pod[:3:3], "containers"), []string{"name"}},
		{deployment, append(pod[:3:3], "initContainers"), []string{"name"}},
		{deployment, append(pod[:3:3], "volumes"), []string{"name"}},
		{deployment, append(pod[:3:3], "imagePullSecrets"), []string{"name"}},
		{deployment, append(pod[:3:3], "tolerations"), nil},
		{deployment, append(pod[:3:3], "topologySpreadConstraints"), []string{"topologyKey", "whenUnsatisfiable"}},
		{deployment, append(pod[:3:3], "containers", "[]", "env"), []string{"name"}},
		{deployment, append(pod[:3:3], "containers", "[]", "args"), nil},
		{deployment, append(pod[:3:3], "containers", "[]", "ports"), []string{"containerPort", "protocol"}},
		{deployment, append(pod[:3:3], "containers", "[]", "volumeMounts"), []string{"mountPath"}},
		{deployment, []string{"status", "conditions"}, []string{"type"}},
		{deployment, []string{"metadata", "ownerReferences"}, []string{"uid"}},
		{deployment, []string{"metadata", "finalizers"}, []string{}},
		{schema.GroupVersionKind{Version: "v1", Kind: "Service"}, []string{"spec", "ports"}, []string{"port", "protocol"}},
		{schema.GroupVersionKind{Version: "v1", Kind: "Node"}, []string{"status", "conditions"}, []string{"type"}},
		{schema.GroupVersionKind{Version: "v1", Kind: "Node"}, []string{"spec", "taints"}, nil},
		{schema.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"}, []string{"secrets"}, []string{"name"}},
		{schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, []string{"status", "conditions"}, nil},
		{schema.GroupVersionKind{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"}, []string{"status", "conditions"}, []string{"type"}},
		{schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}, []string{"rules"}, nil},
		{schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"}, []string{"webhooks"}, []string{"name"}},
	} {
		got := keys(t, tc.gvk, tc.path...)
		same := (got == nil) == (tc.want == nil) && len(got) == len(tc.want)
		for i := range got {
			same = same && got[i] == tc.want[i]
		}
		checktest.FailIf(t, !same, "%s %v: keys %v, want %v", tc.gvk.Kind, tc.path, got, tc.want)
	}
}

func TestReadBuiltinRefusesGarbage(t *testing.T) {
	for _, file := range [][]byte{nil, []byte("garbage"), builtinFile[:len(builtinFile)/2]} {
		checktest.Fails(t, checktest.Err(readBuiltin(file)), "%d bytes were read", len(file))
	}
}

func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		New(Options{})
	}
}

// BenchmarkSchema is the cost, once per process, of the first use.
func BenchmarkSchema(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		checktest.Must(readBuiltin(builtinFile))
	}
}
