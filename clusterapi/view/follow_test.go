package view_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/dump"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/view"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/internal/updatetest"
)

// polled is an API that cannot be watched.
type polled struct{ clusterapi.ClusterAPI }

// TestFollowFaults: whatever befalls the follower, what it told last is the status
// of the cluster, and it tells nothing twice.
func TestFollowFaults(t *testing.T) {
	seeds := uint64(8)
	if israce.Enabled {
		seeds = 2
	}
	for seed := range seeds {
		var last *view.Status
		observed := 0
		observe := func(s *view.Status, err error) {
			if last, observed = s, observed+1; (s == nil) == (err == nil) {
				t.Errorf("seed %d: observed %v and %v", seed, s, err)
			}
		}
		c := newUpdating(t, reconcile.VirtualOptions{
			Seed: seed, Order: reconcile.Random,
			Faults: reconcile.Faults{
				Before: 0.05, Slow: 0.02, Stale: 0.05, Late: 0.3, Double: 0.1, Merge: 0.3, Crash: 0.01, Outage: 0.2, ClockBack: 0.2,
				Until: 2 * time.Hour, Processes: []string{"follow"},
			},
		}, func(c *updatetest.Cluster) reconcile.Process {
			return checktest.Get(view.FollowProcess(view.FollowOptions{API: c, Components: components(c), Observe: observe}))(t)
		})
		c.Advance(t, 3*time.Hour)
		want := checktest.Get(view.ReadStatus(t.Context(), c, view.StatusOptions{Now: c.Virtual.Now(), Components: components(c)}))(t)
		checktest.FailIf(t, !last.Same(want), "seed %d: observed %s, is %s", seed, last, want)
		checktest.FailIf(t, want.Updating || observed < 10, "seed %d: %s, observed %d times", seed, want, observed)
		was := observed
		c.Advance(t, time.Hour)
		checktest.FailIf(t, observed != was, "seed %d: observed %d times that nothing changed", seed, observed-was)
	}
}

// followed is a cluster at rest, and what a follower told of it.
type followed struct {
	*reconcile.Virtual
	*memory.Cluster
	told []string
}

func follow(t *testing.T, o memory.Options, change func(*view.FollowOptions)) *followed {
	t.Helper()
	clock := reconcile.NewClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	o.Clock = clock
	f := &followed{Cluster: memory.NewOpenShift(o)}
	f.Virtual = reconcile.NewVirtual(reconcile.VirtualOptions{Cluster: f.Cluster, Clock: clock})
	t.Cleanup(f.Close)
	options := view.FollowOptions{API: f.Cluster, Observe: func(s *view.Status, err error) {
		if err != nil {
			f.told = append(f.told, err.Error())
			return
		}
		f.told = append(f.told, s.String())
	}}
	if change != nil {
		change(&options)
	}
	p := checktest.Get(view.FollowProcess(options))(t)
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
	checktest.Get(clusterapi.Modify(t.Context(), f.Cluster, clusterapi.Key("", "version"), clusterapi.ModifyOptions{Status: true},
		func(cv *configv1.ClusterVersion) error {
			cv.Status.Conditions[0].Status = status
			return nil
		}))(t)
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
		checktest.Same(t, want, f.told)
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
		checktest.Same(t, []string{"control plane not updating, nodes unknown", "not updating"}, f.told)
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
		f := follow(t, memory.Options{}, func(o *view.FollowOptions) { o.Settle = 10 * time.Second })
		f.atRest(t)
		f.advance(t, time.Minute)
		for range 20 {
			f.setProgressing(t, configv1.ConditionTrue)
			f.advance(t, 100*time.Millisecond)
			f.setProgressing(t, configv1.ConditionFalse)
			f.advance(t, 100*time.Millisecond)
		}
		checktest.FailIf(t, len(f.told) > 3, "told %.500q", f.told)
	})
	t.Run("an observer that panics", func(t *testing.T) {
		calls := 0
		f := follow(t, memory.Options{}, func(o *view.FollowOptions) {
			o.Observe = func(*view.Status, error) { calls++; panic("observer") }
		})
		f.atRest(t)
		f.advance(t, time.Minute)
		f.setProgressing(t, configv1.ConditionTrue)
		f.advance(t, time.Minute)
		checktest.FailIf(t, calls != 2, "called %d times", calls)
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
			err := view.Follow(ctx, view.FollowOptions{API: api, Observe: func(s *view.Status, err error) {
				told = append(told, s.String())
				cancel()
			}})
			checktest.FailIf(t, err != nil || len(told) != 1 || told[0] != "not updating", "told %q, %v", told, err)
		})
	}
}

func TestFollowOptions(t *testing.T) {
	observe := func(*view.Status, error) {}
	api := memory.New(memory.Options{})
	for want, o := range map[string]view.FollowOptions{
		"FollowOptions.API is required":     {Observe: observe},
		"FollowOptions.Observe is required": {API: api},
		"Settle is negative":                {API: api, Observe: observe, Settle: -1},
		"Interval is negative":              {API: api, Observe: observe, Interval: -1},
	} {
		if err := view.Follow(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
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
	s := checktest.Get(view.ReadStatus(t.Context(), f.Cluster, view.StatusOptions{Now: f.Now()}))(t)
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
	if _, err := view.ReadStatus(ctx, f.Cluster, view.StatusOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("after its context ended: %v", err)
	}
}

// Each view of a recorded cluster is one call, at the time and with the alerts of the
// recording; what it lacks is an issue.
func TestReadUpdates(t *testing.T) {
	for _, tt := range []struct {
		cluster, version, target string
		issues                   []string
	}{
		{"insights-4.7", "4.7.16", "4.7.18", []string{"ClusterVersionOperatorDown"}},
		{"clusters/recommend", "4.14.1", "4.14.2", []string{"FailedToCompletePrecheck", "Progressing"}},
	} {
		t.Run(tt.cluster, func(t *testing.T) {
			dir := filepath.Join(testdata.Dir(t), tt.cluster)
			r := clusterapi.ReadOnly(checktest.Get(dump.Open(t.Context(), os.DirFS(dir), dump.Options{}))(t))
			s := checktest.Get(view.ReadSummary(t.Context(), r))(t)
			checktest.Equal(t, tt.version, s.Version, "version")
			recommend := checktest.Get(view.ReadRecommend(t.Context(), r, view.RecommendOptions{Version: tt.target}))(t)
			var issues []string
			for _, issue := range recommend.Issues {
				issues = append(issues, issue.Name)
			}
			checktest.Same(t, tt.issues, issues)
		})
	}
}

func TestReadUpdatesFails(t *testing.T) {
	empty := memory.New(memory.Options{Lenient: true})
	forbidden := errors.New("forbidden")
	noAlerts := view.RecommendOptions{Alerts: func(context.Context) ([]clusterapi.Alert, error) { return nil, forbidden }}
	_, summary := view.ReadSummary(t.Context(), empty)
	_, recommend := view.ReadRecommend(t.Context(), empty, noAlerts)
	for _, err := range []error{summary, recommend} {
		checktest.ErrorHas(t, "reading the ClusterVersion: ", err)
		if !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	}
	checktest.Must(clusterapi.Create(t.Context(), empty, healthy(), clusterapi.CreateOptions{}))
	r := checktest.Get(view.ReadRecommend(t.Context(), empty, noAlerts))(t)
	checktest.Same(t, []string{"fetching alerts: forbidden"}, r.PrecheckErrors)
	ctx, cancel := context.WithCancel(t.Context())
	noAlerts.Prechecks = []view.PrecheckFunc{func(context.Context) ([]view.PrecheckCondition, error) { cancel(); return nil, nil }}
	checktest.ErrorIs(t, context.Canceled, checktest.Err(view.ReadRecommend(ctx, empty, noAlerts)))
}
