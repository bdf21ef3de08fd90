package clusterupdate_test

import (
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

	"github.com/clusterupdate/clusterupdate/clusterapi"
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

// healthChecks tells the pause and the mark of each.
func (c *hookedCluster) healthChecks() map[string]string {
	all, err := clusterapi.List[machinev1beta1.MachineHealthCheck](c.ctx(), c.Cluster, clusterapi.ListOptions{})
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
func (c *hookedCluster) setPool(t testing.TB, name string, updated bool) {
	t.Helper()
	checktest.Get(clusterapi.Modify(c.ctx(), c.Cluster, clusterapi.Key("", name), clusterapi.ModifyOptions{Status: true}, func(p *mcfgv1.MachineConfigPool) error {
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
func guard(t *testing.T, releases []*toyRelease, h remedy.HealthChecks, seed uint64, faults reconcile.Faults) (*hookedCluster, *reconcile.Virtual) {
	t.Helper()
	c := newHookedCluster(t, releases, &configv1.Update{Version: "1.0.1"})
	c.unprepared = func(string) string {
		if c.healthChecks()["active"] == "" {
			return "a MachineHealthCheck is active"
		}
		return ""
	}
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
	v, _ := c.play(t, releases, h, seed, faults)
	return c, v
}

const updatedHistory = "1.0.1 Completed, 1.0.0 Completed"

// until runs until something holds, and tells what happened to the checks meanwhile.
func (c *hookedCluster) until(t *testing.T, v *reconcile.Virtual, holds func() bool) []string {
	t.Helper()
	return changes(t, v, holds, func() string { return fmt.Sprintf("%s: %v", historyOf(c.version(t)), c.healthChecks()) })
}

func (c *hookedCluster) resumed() bool {
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
			checktest.Get(clusterapi.Create(t.Context(), c.Cluster, healthCheck("later", corev1.NodeReady, nil), clusterapi.CreateOptions{}))(t)
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
