package remedy_test

import (
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"

	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/remedy"
)

func healthCheck(name string, condition corev1.NodeConditionType, annotations ...string) *machinev1beta1.MachineHealthCheck {
	m := &machinev1beta1.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-machine-api", Name: name}}
	for i := 0; i < len(annotations); i += 2 {
		if m.Annotations == nil {
			m.Annotations = map[string]string{}
		}
		m.Annotations[annotations[i]] = annotations[i+1]
	}
	m.Spec.UnhealthyConditions = []machinev1beta1.UnhealthyCondition{{Type: condition, Status: "False"}}
	return m
}

func node(name string) *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }

func pool(name string, updated, updating, paused bool) *mcfgv1.MachineConfigPool {
	status := map[bool]corev1.ConditionStatus{true: corev1.ConditionTrue, false: corev1.ConditionFalse}
	p := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.Paused = paused
	p.Status.Conditions = []mcfgv1.MachineConfigPoolCondition{{Type: mcfgv1.MachineConfigPoolUpdated, Status: status[updated]}, {Type: mcfgv1.MachineConfigPoolUpdating, Status: status[updating]}}
	return p
}

func pauses(t *testing.T, r clusterapi.Reader) map[string]map[string]string {
	t.Helper()
	all := checktest.Get(clusterapi.List[machinev1beta1.MachineHealthCheck](t.Context(), r,
		clusterapi.ListOptions{}))(t)
	out := map[string]map[string]string{}
	for _, m := range all {
		out[m.Name] = m.Annotations
	}
	return out
}

const paused, pausedFor = "cluster.x-k8s.io/paused", clusterapi.AnnotationPrefix + "paused-for"

// The finding goes while they are paused, and each is as it was in the end.
func TestHealthChecks(t *testing.T) {
	eachFault(t, func(t *testing.T, f *faults) {
		api := forkOf(t, f, clusterVersion("4.18.5"), infrastructure("AWS"), node("a"), node("b"), pool("worker", true, false, false),
			healthCheck("one", corev1.NodeReady), healthCheck("two", corev1.NodeReady), healthCheck("others", corev1.NodeReady, paused, ""), healthCheck("termination", "Terminating"))
		before := pauses(t, api)
		judged := func() preconditions.State {
			return check(t, api, "MachineHealthChecks", configv1.Release{Version: "4.18.6"}, nil).State
		}
		checktest.Equal(t, preconditions.Failed, judged(), "at first")
		var h remedy.HealthChecks
		var names []string
		again(t, func() (err error) { names, err = h.Pause(t.Context(), api, "T"); return err })
		if diff := cmp.Diff([]string{"one", "two"}, names); diff != "" || judged() != preconditions.Passed {
			t.Errorf("paused: %s, %s", diff, judged())
		}
		again(t, func() error { _, _, err := h.Resume(t.Context(), api, "T"); return err })
		checktest.Same(t, before, pauses(t, api))
	})
}

func TestHealthChecksPause(t *testing.T) {
	for _, tt := range []struct {
		name  string
		nodes int
		check *machinev1beta1.MachineHealthCheck
		want  map[string]string
		ours  bool
	}{
		{"active", 2, healthCheck("x", corev1.NodeReady), map[string]string{paused: "", pausedFor: "T"}, true},
		{"single node", 1, healthCheck("x", corev1.NodeReady), nil, false},
		{"paused by others", 2, healthCheck("x", corev1.NodeReady, paused, "x"), map[string]string{paused: "x"}, false},
		{"paused for this already", 2, healthCheck("x", corev1.NodeReady, paused, "", pausedFor, "T"), map[string]string{paused: "", pausedFor: "T"}, true},
		{"paused for another", 2, healthCheck("x", corev1.NodeReady, paused, "", pausedFor, "S"), map[string]string{paused: "", pausedFor: "T"}, true},
		{"paused for a plan", 2, healthCheck("x", corev1.NodeReady, paused, "", pausedFor, "plan/p"), map[string]string{paused: "", pausedFor: "plan/p"}, false},
		{"paused for another, and of no interest now", 2, healthCheck("x", "Terminating", paused, "", pausedFor, "S"), map[string]string{}, false},
		{"somebody resumed it", 2, healthCheck("x", corev1.NodeReady, pausedFor, "T"), map[string]string{paused: "", pausedFor: "T"}, true},
		{"of no interest", 2, healthCheck("x", "Terminating"), nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			objects := []any{tt.check}
			for i := range tt.nodes {
				objects = append(objects, node(string(rune('a'+i))))
			}
			api := forkOf(t, nil, objects...)
			names, err := remedy.HealthChecks{}.Pause(t.Context(), api, "T")
			got := pauses(t, api)["x"]
			if err != nil || (len(names) == 1) != tt.ours || len(got) != len(tt.want) || len(got) > 0 && !cmp.Equal(got, tt.want) {
				t.Errorf("%v, %v: %v", names, err, got)
			}
		})
	}
	checktest.Fails(t, checktest.Err(
		(remedy.HealthChecks{}).Pause(t.Context(), forkOf(t, nil, node("a"), node("b")), "")), "no image, no error")
	if names, err := (remedy.HealthChecks{}).Pause(t.Context(), memory.New(memory.Options{}), "T"); err != nil || len(names) > 0 {
		t.Errorf("a cluster without machines: %v, %v", names, err)
	}
}

func TestHealthChecksResume(t *testing.T) {
	mine := []string{paused, "", pausedFor, "T"}
	for _, tt := range []struct {
		name        string
		annotations []string
		pools       []any
		h           remedy.HealthChecks
		still       string
		waits       string
		want        map[string]string
	}{
		{name: "all updated", annotations: mine, pools: []any{pool("master", true, false, false), pool("worker", true, false, false)}},
		{name: "no pools", annotations: mine},
		{name: "updating", annotations: mine, pools: []any{pool("master", true, false, false), pool("worker", false, true, false)}, still: "x", waits: "machine config pools worker (updating)", want: map[string]string{paused: "", pausedFor: "T"}},
		{name: "not updated", annotations: mine, pools: []any{pool("worker", false, false, false)}, still: "x", waits: "machine config pools worker (not updated)", want: map[string]string{paused: "", pausedFor: "T"}},
		{name: "a canary", annotations: mine, pools: []any{pool("canary", false, false, true), pool("worker", true, false, false)}, still: "x", waits: "machine config pools canary (paused)", want: map[string]string{paused: "", pausedFor: "T"}},
		{name: "a canary that is done", annotations: mine, pools: []any{pool("canary", true, false, true)}},
		{name: "after the control plane", annotations: mine, h: remedy.HealthChecks{ResumeAfterControlPlane: true}, pools: []any{pool("worker", false, true, false)}},
		{name: "for another release", annotations: []string{paused, "", pausedFor, "S"}, pools: []any{pool("worker", false, true, false)}},
		{name: "of a plan", annotations: []string{paused, "", pausedFor, "plan/p"}, pools: []any{pool("worker", true, false, false)}, want: map[string]string{paused: "", pausedFor: "plan/p"}},
		{name: "others", annotations: []string{paused, ""}, pools: []any{pool("worker", true, false, false)}, want: map[string]string{paused: ""}},
		{name: "taken over by somebody", annotations: []string{paused, "by ann", pausedFor, "T"}, want: map[string]string{paused: "by ann"}},
		{name: "resumed by somebody", annotations: []string{pausedFor, "T"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			api := forkOf(t, nil, append(tt.pools, healthCheck("x", corev1.NodeReady, tt.annotations...))...)
			still, waits, err := tt.h.Resume(t.Context(), api, "T")
			got := pauses(t, api)["x"]
			if err != nil || strings.Join(still, " ") != tt.still || waits != tt.waits || len(got) != len(tt.want) || len(got) > 0 && !cmp.Equal(got, tt.want) {
				t.Errorf("still %v, waits %q, %v: %v", still, waits, err, got)
			}
		})
	}
}

// What stays paused for an error is named in it, and the others are resumed.
func TestHealthChecksResumeFails(t *testing.T) {
	f := &faults{at: 1, what: "before"}
	api := forkOf(t, f, healthCheck("one", corev1.NodeReady, paused, "", pausedFor, "T"), healthCheck("two", corev1.NodeReady, paused, "", pausedFor, "T"))
	_, _, err := remedy.HealthChecks{}.Resume(t.Context(), api, "T")
	if err == nil || err.Error() != "resuming MachineHealthChecks one: connection lost" || len(pauses(t, api)["two"]) > 0 {
		t.Errorf("%v: %v", err, pauses(t, api))
	}
}
