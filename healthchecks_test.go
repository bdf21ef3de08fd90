package clusterupdate_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/preconditions/remedy"
)

// The pause of a MachineHealthCheck, and the mark of the one that paused it.
const (
	annotationPaused    = "cluster.x-k8s.io/paused"
	annotationPausedFor = clusterapi.AnnotationPrefix + "paused-for"
)

// guardedCluster has MachineHealthChecks: it finds manifests of a new release that
// are applied while one of them may act.
type guardedCluster struct {
	*testCluster
	from   string // its release
	faults []string
}

func (c *guardedCluster) Apply(ctx context.Context, u *unstructured.Unstructured, o clusterapi.ApplyOptions) (*unstructured.Unstructured, error) {
	updating := strings.Contains(strings.SplitN(c.history(), ",", 2)[0], "Partial")
	if release := u.GetAnnotations()[annotationRelease]; updating && release != "" && release != c.from && c.healthChecks()["active"] == "" {
		c.faults = append(c.faults, fmt.Sprintf("%s %s of %s is applied while a MachineHealthCheck is active", u.GetKind(), u.GetName(), release))
	}
	return c.testCluster.Apply(ctx, u, o)
}

func (c *guardedCluster) history() string {
	cv, err := clusterapi.Read[configv1.ClusterVersion](context.Background(), c.testCluster.Cluster, clusterapi.Key("", "version"))
	if err != nil {
		return err.Error()
	}
	return historyOf(cv)
}

// healthChecks tells the pause and the mark of each.
func (c *guardedCluster) healthChecks() map[string]string {
	all, err := clusterapi.List[machinev1beta1.MachineHealthCheck](context.Background(), c.testCluster.Cluster, clusterapi.ListOptions{})
	if err != nil {
		return map[string]string{"error": err.Error()}
	}
	out := map[string]string{}
	for _, m := range all {
		text := ""
		if pause, ok := m.Annotations[annotationPaused]; ok {
			text = fmt.Sprintf("paused %q", pause)
		}
		if mark, ok := m.Annotations[annotationPausedFor]; ok {
			text += " for " + mark
		}
		out[m.Name] = text
	}
	return out
}

func healthCheck(name string, condition corev1.NodeConditionType, annotations map[string]string) *machinev1beta1.MachineHealthCheck {
	m := &machinev1beta1.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-machine-api", Name: name, Annotations: annotations}}
	m.Spec.UnhealthyConditions = []machinev1beta1.UnhealthyCondition{{Type: condition, Status: "False", Timeout: metav1.Duration{Duration: time.Minute}}}
	return m
}

// setPool brings a pool to be updated or not.
func (c *guardedCluster) setPool(t testing.TB, name string, updated bool) {
	t.Helper()
	checktest.Get(clusterapi.Modify(context.Background(), c.testCluster.Cluster, clusterapi.Key("", name), clusterapi.ModifyOptions{Status: true}, func(p *mcfgv1.MachineConfigPool) error {
		status := map[bool]corev1.ConditionStatus{true: corev1.ConditionTrue, false: corev1.ConditionFalse}
		p.Status.ObservedGeneration = p.Generation
		p.Status.Conditions = []mcfgv1.MachineConfigPoolCondition{
			{Type: mcfgv1.MachineConfigPoolUpdated, Status: status[updated]}, {Type: mcfgv1.MachineConfigPoolUpdating, Status: status[!updated]},
		}
		return nil
	}))(t)
}

// guard makes a cluster with two nodes, two pools and MachineHealthChecks, and an
// Updater that pauses these.
func guard(t *testing.T, releases []*toyRelease, h remedy.HealthChecks, seed uint64, faults reconcile.Faults) (*guardedCluster, *reconcile.Virtual) {
	t.Helper()
	c := &guardedCluster{from: "1.0.0", testCluster: newTestCluster(t, releases[0].payload, releases[1].payload, func(cv *configv1.ClusterVersion) {
		cv.Spec.DesiredUpdate = &configv1.Update{Version: "1.0.1"}
	})}
	for _, o := range []any{
		healthCheck("active", corev1.NodeReady, nil),
		healthCheck("others", corev1.NodeReady, map[string]string{annotationPaused: "theirs"}),
		healthCheck("termination", "Terminating", nil),
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "b"}},
		&mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: "master"}}, &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: "worker"}},
	} {
		u := checktest.Get(clusterapi.ToUnstructured(o))(t)
		checktest.OK(t, c.Load(u))
	}
	c.setPool(t, "master", true)
	c.setPool(t, "worker", true)
	clock := reconcile.NewClock(toyStart)
	u := checktest.Get(clusterupdate.New(clusterupdate.Options{
		API: c, Payloads: payloadsOf(releases), Graph: toyGraph(t, releases), Verifier: toyVerifier(releases), Clock: clock,
		Hooks: []clusterversion.Hook{h}, Interval: 5 * time.Minute,
	}))(t)
	v := reconcile.NewVirtual(reconcile.VirtualOptions{Cluster: c, Clock: clock, Seed: seed, Faults: faults}, u.Process())
	t.Cleanup(v.Close)
	return c, v
}

const updatedHistory = "1.0.1 Completed, 1.0.0 Completed"

// until runs until something holds, and tells what happened to the checks meanwhile.
func (c *guardedCluster) until(t *testing.T, v *reconcile.Virtual, holds func() bool) []string {
	t.Helper()
	return changes(t, v, holds, func() string { return fmt.Sprintf("%s: %v", historyOf(c.version(t)), c.healthChecks()) })
}

func (c *guardedCluster) resumed() bool {
	return cmp.Equal(c.healthChecks(), map[string]string{"active": "", "others": `paused "theirs"`, "termination": ""})
}

// TestPauseMachineHealthChecks: they are paused before the first manifest, and resumed
// when the last pool is updated.
func TestPauseMachineHealthChecks(t *testing.T) {
	releases := toyReleases(t)
	image := releases[1].payload.Release.Image
	c, v := guard(t, releases, remedy.HealthChecks{}, 1, reconcile.Faults{})
	updating := false
	seen := c.until(t, v, func() bool {
		if history := historyOf(c.version(t)); !updating && history != "1.0.0 Completed" {
			updating = true
			c.setPool(t, "worker", false)
			// One that is made meanwhile is paused too.
			checktest.Get(clusterapi.Create(t.Context(), c.testCluster.Cluster, healthCheck("later", corev1.NodeReady, nil), clusterapi.CreateOptions{}))(t)
		}
		return historyOf(c.version(t)) == updatedHistory
	})
	checktest.OK(t, v.RunUntil(v.Now().Add(30*time.Minute)))
	want := map[string]string{"active": `paused "" for ` + image, "later": `paused "" for ` + image, "others": `paused "theirs"`, "termination": ""}
	if diff := cmp.Diff(want, c.healthChecks()); diff != "" {
		t.Errorf("while the workers are updated: %s\n%s", diff, strings.Join(seen, "\n"))
	}
	text := condition(c.version(t), configv1.OperatorProgressing)
	if !strings.HasSuffix(text, "waiting on hook MachineHealthChecks: active, later stay paused until these are updated: machine config pools worker (updating)") {
		t.Errorf("Progressing is %s", text)
	}
	c.setPool(t, "worker", true)
	checktest.OK(t, v.RunUntil(v.Now().Add(10*time.Minute)))
	if diff := cmp.Diff(map[string]string{"active": "", "later": "", "others": `paused "theirs"`, "termination": ""}, c.healthChecks()); diff != "" {
		t.Errorf("in the end: %s", diff)
	}
	for _, fault := range c.faults {
		t.Error(fault)
	}
}

// TestPauseMachineHealthChecksCrash: the process crashes at each call around the
// checks, or the call is refused for a conflict, or fails after it took effect.
func TestPauseMachineHealthChecksCrash(t *testing.T) {
	releases := toyReleases(t)
	var names []string
	for n := range 6 {
		for _, call := range []string{"List MachineHealthCheck", "Get MachineHealthCheck openshift-machine-api/active", "Update MachineHealthCheck openshift-machine-api/active",
			"List MachineConfigPool", "List Node", "UpdateStatus ClusterVersion version", "Apply ConfigMap toy/first", "Apply ConfigMap toy/last"} {
			for _, what := range []string{"crash", "fails after", "conflict", "fails before"} {
				names = append(names, fmt.Sprintf("updater %s #%d: %s", call, n+1, what))
			}
		}
	}
	struck, least := 0, 30
	if israce.Enabled { // every fifth
		least = 4
	}
	for i, name := range names {
		if israce.Enabled && i%5 != 0 {
			continue
		}
		c, v := guard(t, releases, remedy.HealthChecks{}, 1, reconcile.Faults{Crash: 1, After: 1, Before: 1, Conflict: 1, Only: map[string]bool{name: true}, Until: 6 * time.Hour})
		paused := false
		seen := c.until(t, v, func() bool {
			paused = paused || c.healthChecks()["active"] != ""
			return paused && historyOf(c.version(t)) == updatedHistory && c.resumed()
		})
		for _, fault := range c.faults {
			t.Errorf("%s: %s\n%s", name, fault, strings.Join(seen, "\n"))
		}
		struck += len(v.Faults())
	}
	if struck < least {
		t.Errorf("%d faults took place", struck)
	}
}

// TestPauseMachineHealthChecksWayOut: the update is given up for the old release while
// it is applied; one that another process left behind is resumed.
func TestPauseMachineHealthChecksWayOut(t *testing.T) {
	releases := toyReleases(t)
	for name, target := range map[string]int{"for the old release": 0, "for another one": 2} {
		t.Run(name, func(t *testing.T) {
			c, v := guard(t, releases, remedy.HealthChecks{}, 1, reconcile.Faults{})
			c.hold["beta"] = true
			c.until(t, v, func() bool {
				return historyOf(c.version(t)) == "1.0.1 Partial, 1.0.0 Completed" && c.healthChecks()["active"] != ""
			})
			release := releases[target].payload
			c.request(t, configv1.Update{Version: release.Release.Version, Image: release.Release.Image, Force: true})
			c.mu.Lock()
			c.next, c.hold["beta"] = release.Operators(), false
			c.mu.Unlock()
			c.from = release.Release.Version // going back is not guarded here
			c.until(t, v, func() bool {
				return strings.HasPrefix(historyOf(c.version(t)), release.Release.Version+" Completed, 1.0.1 Partial") && c.resumed()
			})
		})
	}
	t.Run("left behind", func(t *testing.T) {
		c, v := guard(t, releases, remedy.HealthChecks{}, 1, reconcile.Faults{})
		left := healthCheck("left", corev1.NodeReady, map[string]string{annotationPaused: "", annotationPausedFor: "gone"})
		checktest.Get(clusterapi.Create(t.Context(), c.testCluster.Cluster, left, clusterapi.CreateOptions{}))(t)
		modify(t, c.testCluster.Cluster, false, func(cv *configv1.ClusterVersion) { cv.Spec.DesiredUpdate = nil })
		c.setPool(t, "worker", false) // of no interest to an update that is gone
		c.until(t, v, func() bool { return c.healthChecks()["left"] == "" })
	})
}

// TestPauseMachineHealthChecksSeeds: whatever goes wrong, nothing is applied while a
// check may act, and all that were paused are resumed.
func TestPauseMachineHealthChecksSeeds(t *testing.T) {
	releases := toyReleases(t)
	seeds := uint64(20)
	if israce.Enabled {
		seeds = 4
	}
	for seed := range seeds {
		c, v := guard(t, releases, remedy.HealthChecks{ResumeAfterControlPlane: seed%2 == 0}, seed,
			reconcile.Faults{Crash: .01, After: .05, Before: .05, Conflict: .05, Until: time.Hour})
		c.until(t, v, func() bool { return historyOf(c.version(t)) == updatedHistory && c.resumed() })
		if len(c.faults) > 0 {
			t.Errorf("seed %d: %q", seed, c.faults)
		}
	}
}
