package runlevel

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/apiserver"
	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/internal/objects"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// endsDifferently are the fields in which the modes end differently, with reasons:
// what lies below the path of an object, in server-side apply or in merges.
var endsDifferently = []struct{ object, path, suffix, reason string }{
	{"Deployment openshift-cloud-controller-manager-operator/cluster-cloud-controller-manager-operator", "spec.template.spec.containers", ".hostPort",
		"a merge gives each port of a pod on the host's network that number on the host, as servers did in templates until Kubernetes 1.28"},
	{"Deployment openshift-cluster-machine-approver/machine-approver", "spec.template.spec.containers", ".hostPort", "likewise"},
}

// verbs counts the writes of a cluster by verb.
type verbs struct {
	*memory.Cluster
	calls map[string]int
}

func (v verbs) Apply(ctx context.Context, obj *unstructured.Unstructured, o clusterapi.ApplyOptions) (*unstructured.Unstructured, error) {
	v.calls["Apply"]++
	return v.Cluster.Apply(ctx, obj, o)
}

func (v verbs) Create(ctx context.Context, obj *unstructured.Unstructured, o clusterapi.CreateOptions) (*unstructured.Unstructured, error) {
	v.calls["Create"]++
	return v.Cluster.Create(ctx, obj, o)
}

func (v verbs) Update(ctx context.Context, obj *unstructured.Unstructured, o clusterapi.UpdateOptions) (*unstructured.Unstructured, error) {
	v.calls["Update"]++
	return v.Cluster.Update(ctx, obj, o)
}

// A cluster that the operator wrote comes to the same state in both modes.
func TestTakeoverReal(t *testing.T) {
	if testing.Short() || israce.Enabled {
		t.Skip("updates a cluster of real size twice")
	}
	t.Parallel()
	from, to := loadReal(t, "payload-4.17.30"), loadReal(t, "payload-4.18.15")
	operator := memory.NewOpenShift(memory.Options{})
	run := func(tasks []*manifest.Task, o Options) {
		t.Helper()
		o.Backoff, o.SkipChecks, o.Owner = &Backoff{Steps: 1}, true, &metav1.OwnerReference{Name: "version", UID: "uid"}
		if _, err := Run(t.Context(), tasks, o); err != nil {
			t.Fatalf("%s: %v", o.Mode, causeOf(err))
		}
	}
	pass := func(p *manifest.Payload, o Options) {
		t.Helper()
		run(p.Tasks(), o)
		o.State = Reconciling // when metadata of ClusterOperators is written
		run(slices.DeleteFunc(slices.Clone(p.Tasks()), func(t *manifest.Task) bool { return t.Manifest.GVK().Kind != "ClusterOperator" }), o)
	}
	pass(from, Options{API: writtenAs{defaulting{operator}, operatorManager}, Mode: ApplyMerge})
	calls := make(map[string]int) // of server-side apply
	applied := memory.NewOpenShift(memory.Options{Base: operator})
	merged := memory.NewOpenShift(memory.Options{Base: operator})
	pass(to, Options{API: verbs{applied, calls}, Workers: 1})
	pass(to, Options{API: defaulting{merged}, Mode: ApplyMerge})
	if n := calls["Apply"] + calls["Create"]; calls["Update"] == 0 || calls["Update"] > n || n > len(to.Tasks()) {
		t.Errorf("%v for %d tasks", calls, len(to.Tasks()))
	}

	met, compared := make([]bool, len(endsDifferently)), make(map[manifest.Identity]bool)
	for _, task := range append(to.Tasks(), from.Tasks()...) {
		m := task.Manifest
		if compared[m.Identity()] {
			continue
		}
		compared[m.Identity()] = true
		get := func(c *memory.Cluster) *unstructured.Unstructured {
			u, err := c.Get(t.Context(), m.GVK(), clusterapi.KeyOf(m.Object()))
			if err != nil {
				return nil
			}
			return apiserver.Fill(objects.WithoutServerFields(u))
		}
		object := m.GVK().Kind + " " + shortName(clusterapi.KeyOf(m.Object()))
		a, b := get(applied), get(merged)
		if (a == nil) != (b == nil) {
			t.Errorf("%s: it is there after server-side apply: %t, after merges: %t", object, a != nil, b != nil)
		}
		if a == nil || b == nil {
			continue
		}
	fields:
		for _, f := range clusterapi.Compare(a, b, nil) {
			for i, e := range endsDifferently {
				if e.object == object && strings.HasPrefix(f.Path, e.path) && strings.HasSuffix(f.Path, e.suffix) {
					met[i] = true
					continue fields
				}
			}
			t.Errorf("%s: %s is %s after server-side apply, %s after merges", object, f.Path, fmt.Sprint(f.Old), fmt.Sprint(f.New))
		}
	}
	if len(compared) < 800 {
		t.Errorf("%d objects compared", len(compared))
	}
	for i, e := range endsDifferently {
		if !met[i] {
			t.Errorf("%s: no %s differs", e.object, e.suffix)
		}
	}
}
