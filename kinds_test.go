package clusterupdate_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/dump"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/clusterapi/view"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
	"github.com/clusterupdate/clusterupdate/olm/install"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/rules"
	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/signature/sigstore"
)

// readKinds notes which kinds are read and watched.
type readKinds struct {
	mu    sync.Mutex
	kinds map[schema.GroupVersionKind]bool
}

func (k *readKinds) note(gvk schema.GroupVersionKind) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kinds[gvk] = true
}

// noted is a cluster whose reads are noted.
type noted struct {
	clusterapi.ClusterAPI
	by *readKinds
}

func (n noted) Get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	n.by.note(gvk)
	return n.ClusterAPI.Get(ctx, gvk, key)
}

func (n noted) List(ctx context.Context, gvk schema.GroupVersionKind, o clusterapi.ListOptions) (*unstructured.UnstructuredList, error) {
	n.by.note(gvk)
	return n.ClusterAPI.List(ctx, gvk, o)
}

// process notes what a process watches, and what it reads.
func (k *readKinds) process(p reconcile.Process) reconcile.Process {
	inner := p.New
	p.New = func(api clusterapi.ClusterAPI) []reconcile.Reconciler {
		all := inner(noted{api, k})
		for _, r := range all {
			for _, w := range r.Watches() {
				k.note(w.GVK)
			}
		}
		return all
	}
	return p
}

// An update of a fork runs as that of a cluster, and leaves its base as it was.
// Together with all checks, reports and watches it reads no other kinds than
// dump.Kinds and those of the payload.
func TestKindsRead(t *testing.T) {
	from, to := loadSample(t, sample.From(), sample.FromImage), loadSample(t, sample.To(), sample.ToImage)
	c := newTestCluster(t, from, to, func(cv *configv1.ClusterVersion) {
		cv.UID = "11111111-2222-3333-4444-555555555555"
		cv.Spec.DesiredUpdate = &configv1.Update{Version: sample.ToVersion}
	})
	base := c.Cluster
	before := everything(t, base)
	c.Cluster = memory.New(memory.Options{Base: clusterapi.ReadOnly(base), Intercept: func(ctx context.Context, call memory.Call, do func(context.Context) error) error {
		err := do(ctx)
		if err == nil && call.Verb == "Apply" && ctx.Value(reactionKey{}) == nil {
			c.react(context.WithValue(context.WithoutCancel(ctx), reactionKey{}, true), call)
		}
		return err
	}})
	read := &readKinds{kinds: map[schema.GroupVersionKind]bool{}}
	api := noted{c.Cluster, read}
	clock := reconcile.NewClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	u := checktest.Get(clusterupdate.New(clusterupdate.Options{
		API: c.Cluster, Payloads: sampleSource(), Graph: sampleGraph(t), Verifier: signature.Insecure(),
		Clock: clock,
	}))(t)
	nodes := checktest.Get(rollout.New(rollout.Options{API: c.Cluster, Mode: rollout.Drive}))(t)
	v := reconcile.NewVirtual(reconcile.VirtualOptions{Cluster: c.Cluster, Clock: clock}, read.process(u.Process()), read.process(nodes.Process()))
	defer v.Close()
	checktest.OK(t, v.RunWhile(12*time.Hour, func() bool { return historyOf(c.version(t)) != completedHistory }))
	checkApplied(t, c, to)
	if diff := cmp.Diff(before, everything(t, base)); diff != "" {
		t.Errorf("the base changed: %s", diff)
	}

	if _, err := preconditions.Run(t.Context(), rules.Default(rules.Options{}), &preconditions.Input{Reader: api, TargetPayload: to, CurrentPayload: from}, preconditions.Options{}); err != nil {
		t.Error(err)
	}
	checktest.Good(t, checktest.Err(view.ReadStatus(t.Context(), api, view.StatusOptions{})))
	_, _ = install.ReadSnapshots(t.Context(), api, install.SnapshotOptions{}) // kinds that the cluster lacks count, too
	checktest.Good(t, checktest.Err(sigstore.ReadPolicies(t.Context(), api)))
	known := map[schema.GroupKind]bool{}
	for _, gvk := range dump.Kinds() {
		known[gvk.GroupKind()] = true
	}
	for _, p := range []*manifest.Payload{from, to} {
		for _, m := range p.Manifests {
			known[m.GVK().GroupKind()] = true
		}
	}
	for _, c := range rules.Documented(rules.Options{}) {
		for _, gvk := range c.(preconditions.Described).Rule().Reads {
			read.kinds[gvk] = true
		}
	}
	for gvk := range read.kinds {
		if !known[gvk.GroupKind()] {
			t.Errorf("dump.Kinds lacks %s, which is read", gvk)
		}
	}
}

// everything is what a cluster has of the kinds of a recording.
func everything(t *testing.T, r clusterapi.Reader) []string {
	t.Helper()
	var out []string
	for _, gvk := range dump.Kinds() {
		list, err := r.List(t.Context(), gvk, clusterapi.ListOptions{})
		if err != nil {
			continue // not served
		}
		for _, u := range list.Items {
			out = append(out, gvk.Kind+" "+u.GetNamespace()+"/"+u.GetName()+" "+u.GetResourceVersion())
		}
	}
	slices.Sort(out)
	return out
}
