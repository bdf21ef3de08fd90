package clusterupdate_test

import (
	"context"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// TestTrackerOverARestart: an operator is slow after 30 minutes, also where the
// process is another one by then that was given what the first one tracked, but
// not where the update is another one.
func TestTrackerOverARestart(t *testing.T) {
	releases := toyReleases(t)
	for _, tc := range []struct {
		name     string
		degraded bool          // else behind
		before   time.Duration // the restart
		save     bool
		request  string // while no process is there
		want     string // two minutes after it
	}{
		{"with the clocks", false, 29 * time.Minute, true, "", "Unknown SlowClusterOperator: waiting on beta over 30 minutes which is longer than expected"},
		{"without", false, 29 * time.Minute, false, "", "False :"},
		{"of another update", false, 29 * time.Minute, true, "1.0.2", "False :"},
		{"degraded", true, 39 * time.Minute, true, "", "True ClusterOperatorDegraded: Cluster operator beta is degraded"},
		{"degraded, without", true, 39 * time.Minute, false, "", "False :"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newTestCluster(t, releases[0].payload, releases[1].payload, func(cv *configv1.ClusterVersion) {
				cv.Spec.DesiredUpdate = &configv1.Update{Version: "1.0.1"}
			})
			c.hold["beta"] = true
			clock := reconcile.NewClock(toyStart)
			start := func(tracker []byte) (*clusterupdate.Updater, *reconcile.Virtual) {
				u := checktest.Get(clusterupdate.New(clusterupdate.Options{
					API: c, Payloads: payloadsOf(releases), Graph: toyGraph(t, releases), Verifier: toyVerifier(releases), Clock: clock, Tracker: tracker,
					Interval: 30 * time.Second,
				}))(t)
				return u, reconcile.NewVirtual(reconcile.VirtualOptions{Cluster: c, Clock: clock, Seed: 1}, u.Process())
			}
			failing := func() string { return condition(c.version(t), clusterversion.ConditionFailing) }
			run := func(v *reconcile.Virtual, d time.Duration) {
				t.Helper()
				checktest.OK(t, v.RunUntil(v.Now().Add(d)))
			}
			u, v := start(nil)
			run(v, time.Second) // from then on it is awaited
			if tc.degraded {
				degrade(t, c, "beta")
			}
			run(v, tc.before)
			if got := failing(); got != "False :" {
				t.Fatalf("after %s Failing is %s", tc.before, got)
			}
			saved := checktest.Get(u.Tracker())(t)
			v.Close()
			if !tc.save {
				saved = nil
			}
			if tc.request != "" {
				c.request(t, configv1.Update{Version: tc.request})
				c.next = releases[2].payload.Operators()
			}
			u, v = start(saved)
			defer v.Close()
			if again, err := u.Tracker(); err != nil || string(again) != string(saved) {
				t.Errorf("before the first pass it is %s, %v", again, err)
			}
			run(v, 20*time.Second)
			if got := failing(); got != "False :" {
				t.Errorf("after a restart Failing is %s", got)
			}
			run(v, 100*time.Second)
			if got := failing(); got != tc.want {
				t.Errorf("%s and 2 minutes later Failing is %s, want %s", tc.before, got, tc.want)
			}
		})
	}
}

func degrade(t *testing.T, c *testCluster, operator string) {
	t.Helper()
	ctx := context.WithValue(t.Context(), reactionKey{}, true)
	checktest.Get(clusterapi.Modify(ctx, c.Cluster, clusterapi.Key("", operator), clusterapi.ModifyOptions{Status: true}, func(co *configv1.ClusterOperator) error {
		co.Status.Versions = []configv1.OperandVersion{{Name: "operator", Version: "1.0.1"}}
		co.Status.Conditions = []configv1.ClusterOperatorStatusCondition{
			{Type: configv1.OperatorAvailable, Status: configv1.ConditionTrue, LastTransitionTime: metav1.Unix(0, 0)},
			{Type: configv1.OperatorDegraded, Status: configv1.ConditionTrue, LastTransitionTime: metav1.Unix(0, 0)},
		}
		return nil
	}))(t)
}

// TestTrackerVersion: what a later version saved is refused by name.
func TestTrackerVersion(t *testing.T) {
	for saved, want := range map[string]string{
		`{"version":2,"tracker":{}}`:                  "Options.Tracker has version 2; this program knows 1 to 1",
		`{"version":1,"tracker":{"version":7}}`:       "has version 7",
		`{"tracker":{"version":1}}`:                   "has version 0",
		`nothing`:                                     "Options.Tracker: invalid character",
		`{"version":1}`:                               "Options.Tracker",
		`{"version":1,"tracker":{"version":1}}`:       "",
		`{"version":1,"x":1,"tracker":{"version":1}}`: "",
	} {
		_, err := clusterupdate.New(clusterupdate.Options{API: newTestCluster(t, toyReleases(t)[0].payload, toyReleases(t)[0].payload, nil), Payloads: sampleSource(), Tracker: []byte(saved)})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: error is %v, want %q", saved, err, want)
		}
	}
}
