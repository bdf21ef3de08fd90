package kubernetes_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes/internal/testserver"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/runlevel"
)

// asked notes the calls of passes.
type asked struct {
	clusterapi.ClusterAPI
	mu    sync.Mutex
	calls []string
}

func (a *asked) note(verb, kind, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, verb+" "+kind+" "+name)
}

func (a *asked) Get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	a.note("Get", gvk.Kind, key.Name)
	return a.ClusterAPI.Get(ctx, gvk, key)
}

func (a *asked) Create(ctx context.Context, u *unstructured.Unstructured, o clusterapi.CreateOptions) (*unstructured.Unstructured, error) {
	a.note("Create", u.GetKind(), u.GetName())
	return a.ClusterAPI.Create(ctx, u, o)
}

func (a *asked) Apply(ctx context.Context, u *unstructured.Unstructured, o clusterapi.ApplyOptions) (*unstructured.Unstructured, error) {
	a.note("Apply", u.GetKind(), u.GetName())
	return a.ClusterAPI.Apply(ctx, u, o)
}

func (a *asked) Update(ctx context.Context, u *unstructured.Unstructured, o clusterapi.UpdateOptions) (*unstructured.Unstructured, error) {
	a.note("Update", u.GetKind(), u.GetName())
	return a.ClusterAPI.Update(ctx, u, o)
}

// TestReconcileByWatch: a pass over a real release on a real API server that nobody
// has changed makes no call, and one after somebody has changed something finds just
// that.
func TestReconcileByWatch(t *testing.T) {
	t.Parallel()
	for _, mode := range []runlevel.Mode{runlevel.ApplyServerSide, runlevel.ApplyMerge} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			reconcileByWatch(t, mode)
		})
	}
}

func reconcileByWatch(t *testing.T, mode runlevel.Mode) {
	both, _, err := realReleases(t.Context(), testdata.Dir(t))
	checktest.OK(t, err)
	s := testserver.Start(t)
	api := newAPI(t, s, kubernetes.Options{})
	p := both[1].payload
	define(t, api, lacking(p.Manifests))
	var manifests []*manifest.Manifest
	for _, m := range p.Manifests {
		if m.GVK().Kind == "ClusterOperator" || m.Annotations()["release.openshift.io/delete"] != "" {
			continue // nobody reports here, and nothing is to be deleted
		}
		manifests = append(manifests, m)
		if ns := m.Identity().Namespace; ns != "" {
			_, err := api.Create(t.Context(), object(t, "{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", ns), clusterapi.CreateOptions{})
			checktest.FatalIf(t, err != nil && !apierrors.IsAlreadyExists(err), "%v", err)
		}
	}
	for _, m := range manifests { // at once: a pass waits for one after another
		if m.GVK().Kind == "CustomResourceDefinition" {
			checktest.OK(t, checktest.Err(
				api.Apply(t.Context(), m.Object(), clusterapi.ApplyOptions{FieldManager: clusterapi.ManagerPayload})))
		}
	}
	time.Sleep(5 * time.Second)
	for _, kind := range []string{"Proxy", "Infrastructure"} {
		_, err := api.Create(t.Context(), object(t, "{apiVersion: config.openshift.io/v1, kind: %s, metadata: {name: cluster}, spec: {}}", kind), clusterapi.CreateOptions{})
		checktest.FatalIf(t, err != nil && !apierrors.IsAlreadyExists(err), "%v", err)
	}
	tasks := manifest.NewTasks(manifests)
	tracker := runlevel.NewTracker(nil)
	kinds := tracker.Watch(tasks, manifest.Filter{})
	known := map[types.UID]*clusterapi.Object{}
	hear := func() {
		t.Helper()
		before := maps.Clone(known)
		for _, k := range kinds {
			list, err := api.List(t.Context(), k.GVK, clusterapi.ListOptions{Namespace: k.Namespace})
			if err != nil {
				t.Logf("%s: %v", k.GVK, err)
				continue
			}
			for i := range list.Items {
				u := &list.Items[i]
				o := clusterapi.NewObject(k.Trim(u))
				delete(before, o.UID())
				known[o.UID()] = o
				tracker.Observe(nil, o)
			}
		}
		for uid, o := range before {
			delete(known, uid)
			tracker.Observe(o, nil)
		}
	}
	var told []runlevel.Drift
	pass := func(state runlevel.State) []string {
		t.Helper()
		a := &asked{ClusterAPI: api}
		told = nil
		start := time.Now()
		_, err := runlevel.Run(t.Context(), tasks, runlevel.Options{API: a, Mode: mode, State: state, Tracker: tracker, Owner: &metav1.OwnerReference{Name: "version", UID: "uid"},
			Observe: func(e clusterapi.Event) {
				if p := e.Data.(*runlevel.Progress); p.Drift != nil {
					told = append(told, *p.Drift)
				}
			}})
		checktest.FatalIf(t, err != nil, "%s: %v", state, err)
		slices.Sort(a.calls)
		t.Logf("%s: %d calls, %s", state, len(a.calls), time.Since(start))
		return a.calls
	}
	pass(runlevel.Updating)
	time.Sleep(2 * time.Second) // definitions get their conditions
	hear()
	calls := pass(runlevel.Reconciling) // which applies everything
	if mode == runlevel.ApplyMerge {
		calls = slices.DeleteFunc(calls, func(call string) bool { return strings.HasPrefix(call, "Get ") })
		if len(calls) > 0 {
			t.Errorf("by a merge over its own outcome: %d writes:\n%s", len(calls), strings.Join(calls, "\n"))
		}
	}
	hear()
	if calls := pass(runlevel.Reconciling); len(calls) > 0 {
		t.Errorf("%d calls over an unchanged cluster:\n%s", len(calls), strings.Join(calls, "\n"))
	}

	// what others add is not drift, though it costs a look; what they change is
	role := schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}
	deployment := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	var deployments, roles []*manifest.Manifest
	for _, m := range manifests {
		switch m.GVK() {
		case deployment:
			deployments = append(deployments, m)
		case role:
			roles = append(roles, m)
		}
	}
	change := func(m *manifest.Manifest, f func(*unstructured.Unstructured)) {
		t.Helper()
		u, err := api.Get(t.Context(), m.GVK(), clusterapi.KeyOf(m.Object()))
		if err == nil {
			f(u)
			_, err = api.Update(t.Context(), u, clusterapi.UpdateOptions{FieldManager: "someone"})
		}
		checktest.OK(t, err)
	}
	change(deployments[0], func(u *unstructured.Unstructured) {
		l := u.GetLabels()
		if l == nil {
			l = map[string]string{}
		}
		l["theirs"] = "x"
		u.SetLabels(l)
	})
	hear()
	looks := map[runlevel.Mode]int{runlevel.ApplyServerSide: 2, runlevel.ApplyMerge: 1}[mode]
	if calls := pass(runlevel.Reconciling); len(calls) != looks || len(told) > 0 {
		t.Errorf("calls after a label of others: %q", calls)
	}
	hear()
	change(deployments[1], func(u *unstructured.Unstructured) {
		containers, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "template", "spec", "containers")
		containers.([]any)[0].(map[string]any)["image"] = "registry.example/theirs"
	})
	change(deployments[2], func(u *unstructured.Unstructured) { u.SetOwnerReferences(nil) })
	change(roles[0], func(u *unstructured.Unstructured) { u.Object["rules"] = []any{} })
	checktest.OK(t, api.Delete(t.Context(), role, clusterapi.KeyOf(roles[1].Object()), clusterapi.DeleteOptions{}))
	hear()
	calls = pass(runlevel.Reconciling)
	var texts []string
	for _, d := range told {
		t.Log(d.Text())
		texts = append(texts, d.Identity.Name)
	}
	slices.Sort(texts)
	want := []string{deployments[1].Identity().Name, deployments[2].Identity().Name, roles[0].Identity().Name, roles[1].Identity().Name}
	slices.Sort(want)
	diff := cmp.Diff(want, texts)
	checktest.FailIf(t, diff != "" || len(calls) > 8, "told %s; calls %q", diff, calls)
	hear()
	if calls := pass(runlevel.Reconciling); len(calls) > 0 || len(told) > 0 {
		t.Errorf("calls after the repair: %q", calls)
	}
}
