package clusterupdate_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/payload"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/clusterapi/view"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
	"github.com/clusterupdate/clusterupdate/signature"
)

// polled is an API that cannot be watched.
type polled struct{ clusterapi.ClusterAPI }

// TestFollowFaults: whatever befalls the follower, what it told last is the status
// of the cluster, and it tells nothing twice.
func TestFollowFaults(t *testing.T) {
	from, to := loadSample(t, sample.From(), sample.FromImage), loadSample(t, sample.To(), sample.ToImage)
	for seed := range seeds(8, 2) {
		clock := reconcile.NewClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
		cluster := checktest.Get(simulation.New(simulation.Options{
			Clock: clock, Release: payload.Release(from), ControlPlane: 3, Pools: []simulation.Pool{{Name: "worker", Nodes: 2}},
			ClusterVersion: simulation.ClusterVersion{Channel: sample.Channel},
		}))(t)
		cluster.Expect(payload.Release(to))
		v := reconcile.NewVirtual(reconcile.VirtualOptions{
			Cluster: cluster, Clock: clock, Seed: seed, Order: reconcile.Random,
			Faults: reconcile.Faults{
				Before: 0.05, Slow: 0.02, Stale: 0.05, Late: 0.3, Double: 0.1, Merge: 0.3, Crash: 0.01, Outage: 0.2, ClockBack: 0.2,
				Until: 2 * time.Hour, Processes: []string{"follow"},
			},
		}, cluster.Process())
		defer v.Close()
		u := checktest.Get(clusterupdate.New(clusterupdate.Options{API: cluster, Payloads: sampleSource(), Graph: sampleGraph(t), Verifier: signature.Insecure(), Clock: clock}))(t)
		nodes := checktest.Get(rollout.New(rollout.Options{API: cluster, Mode: rollout.Drive}))(t)
		var last *view.Status
		told := 0
		follow := checktest.Get(clusterupdate.FollowProcess(clusterupdate.FollowOptions{API: cluster, Payload: to, Observe: func(s *view.Status, err error) {
			if last, told = s, told+1; (s == nil) == (err == nil) {
				t.Errorf("seed %d: told %v and %v", seed, s, err)
			}
		}}))(t)
		v.Add(u.Process())
		v.Add(nodes.Process())
		v.Add(follow)
		checktest.OK(t, v.RunUntil(v.Now().Add(time.Minute)))
		modify(t, cluster, false, func(cv *configv1.ClusterVersion) {
			cv.Spec.DesiredUpdate = &configv1.Update{Version: sample.ToVersion}
		})
		checktest.OK(t, v.RunUntil(v.Now().Add(3*time.Hour)))
		want := checktest.Get(clusterupdate.ReadStatus(t.Context(), cluster, clusterupdate.StatusOptions{Now: v.Now(), Payload: to}))(t)
		if !last.Same(want) {
			t.Errorf("seed %d: told %s, is %s", seed, last, want)
		}
		if want.Updating || told < 10 {
			t.Errorf("seed %d: %s, told %d times", seed, want, told)
		}
		was := told
		checktest.OK(t, v.RunUntil(v.Now().Add(time.Hour)))
		if told != was {
			t.Errorf("seed %d: told %d times that nothing changed", seed, told-was)
		}
	}
}

// followed is a cluster at rest, and what a follower told of it.
type followed struct {
	*reconcile.Virtual
	*memory.Cluster
	told []string
}

func follow(t *testing.T, o memory.Options, change func(*clusterupdate.FollowOptions)) *followed {
	t.Helper()
	clock := reconcile.NewClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	o.Clock = clock
	f := &followed{Cluster: memory.NewOpenShift(o)}
	f.Virtual = reconcile.NewVirtual(reconcile.VirtualOptions{Cluster: f.Cluster, Clock: clock})
	t.Cleanup(f.Close)
	options := clusterupdate.FollowOptions{API: f.Cluster, Observe: func(s *view.Status, err error) {
		if err != nil {
			f.told = append(f.told, err.Error())
			return
		}
		f.told = append(f.told, s.String())
	}}
	if change != nil {
		change(&options)
	}
	p := checktest.Get(clusterupdate.FollowProcess(options))(t)
	f.Add(p)
	return f
}

// atRest stores the objects of a cluster that is not updating.
func (f *followed) atRest(t *testing.T) {
	t.Helper()
	now := metav1.NewTime(f.Now())
	conditions := []configv1.ClusterOperatorStatusCondition{{Type: "Progressing", Status: "False", LastTransitionTime: now}}
	for _, obj := range []any{
		&configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}, Status: configv1.ClusterVersionStatus{Conditions: conditions}},
		&configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: "etcd", Annotations: map[string]string{"include.release.openshift.io/x": "true"}}},
	} {
		u := checktest.Get(clusterapi.ToUnstructured(obj))(t)
		checktest.OK(t, f.Load(u))
	}
}

func (f *followed) advance(t *testing.T, d time.Duration) {
	t.Helper()
	checktest.OK(t, f.RunUntil(f.Now().Add(d)))
}

// setProgressing makes the cluster begin or end an update.
func (f *followed) setProgressing(t *testing.T, status configv1.ConditionStatus) {
	t.Helper()
	modify(t, f.Cluster, true, func(cv *configv1.ClusterVersion) { cv.Status.Conditions[0].Status = status })
}

func TestFollow(t *testing.T) {
	t.Run("a cluster that begins without a ClusterVersion", func(t *testing.T) {
		f := follow(t, memory.Options{}, nil)
		f.advance(t, time.Hour)
		f.atRest(t)
		f.advance(t, time.Minute)
		f.setProgressing(t, configv1.ConditionTrue)
		f.advance(t, time.Minute)
		want := []string{
			"no cluster version information available - you must be connected to an OpenShift version 4 server to fetch the current version",
			"not updating",
			"unknown: Progressing, 0 of 1 operators updated; waits on ClusterOperator etcd: Available is unknown",
		}
		if diff := cmp.Diff(want, f.told); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("nodes that may not be read at first", func(t *testing.T) {
		forbidden := true
		f := follow(t, memory.Options{Intercept: func(ctx context.Context, call memory.Call, do func(context.Context) error) error {
			if forbidden && call.GVK.Kind == "Node" {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", errors.New("no rights"))
			}
			return do(ctx)
		}}, nil)
		f.atRest(t)
		f.advance(t, time.Minute)
		forbidden = false
		f.advance(t, 2*time.Minute)
		if diff := cmp.Diff([]string{"not updating", "not updating"}, f.told); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("time alone", func(t *testing.T) {
		f := follow(t, memory.Options{}, nil)
		f.atRest(t)
		f.setProgressing(t, configv1.ConditionTrue)
		f.advance(t, 3*time.Hour)
		if len(f.told) != 1 { // without a history nothing is ever late
			t.Errorf("told %.500q", f.told)
		}
	})
	t.Run("changes in quick succession are settled", func(t *testing.T) {
		f := follow(t, memory.Options{}, func(o *clusterupdate.FollowOptions) { o.Settle = 10 * time.Second })
		f.atRest(t)
		f.advance(t, time.Minute)
		for range 20 {
			f.setProgressing(t, configv1.ConditionTrue)
			f.advance(t, 100*time.Millisecond)
			f.setProgressing(t, configv1.ConditionFalse)
			f.advance(t, 100*time.Millisecond)
		}
		if len(f.told) > 3 {
			t.Errorf("told %.500q", f.told)
		}
	})
	t.Run("an observer that panics", func(t *testing.T) {
		calls := 0
		f := follow(t, memory.Options{}, func(o *clusterupdate.FollowOptions) {
			o.Observe = func(*view.Status, error) { calls++; panic("observer") }
		})
		f.atRest(t)
		f.advance(t, time.Minute)
		f.setProgressing(t, configv1.ConditionTrue)
		f.advance(t, time.Minute)
		if calls != 2 {
			t.Errorf("called %d times", calls)
		}
	})
}

// Follow also works live, on an API that cannot be watched, until its context
// ends.
func TestFollowLive(t *testing.T) {
	f := follow(t, memory.Options{}, nil)
	f.atRest(t)
	for name, api := range map[string]clusterapi.ClusterAPI{"watched": f.Cluster, "polled": polled{f.Cluster}} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			var told []string
			err := clusterupdate.Follow(ctx, clusterupdate.FollowOptions{API: api, Observe: func(s *view.Status, err error) {
				told = append(told, s.String())
				cancel()
			}})
			if err != nil || len(told) != 1 || told[0] != "not updating" {
				t.Errorf("told %q, %v", told, err)
			}
		})
	}
}

func TestFollowOptions(t *testing.T) {
	observe := func(*view.Status, error) {}
	api := memory.New(memory.Options{})
	for want, o := range map[string]clusterupdate.FollowOptions{
		"FollowOptions.API is required":     {Observe: observe},
		"FollowOptions.Observe is required": {API: api},
		"Settle is negative":                {API: api, Observe: observe, Settle: -1},
		"Interval is negative":              {API: api, Observe: observe, Interval: -1},
	} {
		if err := clusterupdate.Follow(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestReadStatus: what cannot be read, or not in full, is unknown.
func TestReadStatus(t *testing.T) {
	f := follow(t, memory.Options{}, nil)
	f.atRest(t)
	bad := checktest.Get(clusterapi.ToUnstructured(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "bad"}}))(t)
	bad.Object["spec"] = map[string]any{"unschedulable": "perhaps"}
	checktest.OK(t, f.Load(bad))
	s := checktest.Get(clusterupdate.ReadStatus(t.Context(), f.Cluster, clusterupdate.StatusOptions{Now: f.Now()}))(t)
	if len(s.Unknown) != 1 || s.Unknown[0].Kind != "Node" || !strings.Contains(s.Unknown[0].Reason, "bad: ") {
		t.Errorf("unknown: %+v", s.Unknown)
	}
	var out, errOut strings.Builder
	checktest.OK(t, s.WriteText(&out, &errOut, view.StatusText{}))
	if !strings.HasPrefix(out.String(), "The control plane is not updating. Whether nodes are is unknown: Node: bad: ") {
		t.Error(out.String())
	}
	if !strings.HasPrefix(errOut.String(), "warning: Node: bad: ") {
		t.Error(errOut.String())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := clusterupdate.ReadStatus(ctx, f.Cluster, clusterupdate.StatusOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("after its context ended: %v", err)
	}
}
