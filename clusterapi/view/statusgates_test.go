package view_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi/view"
)

func TestParseDetails(t *testing.T) {
	for _, name := range []string{"none", "all", "nodes", "health", "operators"} {
		if d, err := view.ParseDetails(name); err != nil || string(d) != name {
			t.Errorf("%s: %q, %v", name, d, err)
		}
	}
	for _, name := range []string{"", "None", "node", "all "} {
		want := "invalid value for --details: " + name + " (must be one of none, all, nodes, health, operators)"
		if _, err := view.ParseDetails(name); err == nil || err.Error() != want {
			t.Errorf("%q: %v", name, err)
		}
	}
	err := assess(t, updating(), time.Minute).WriteText(&strings.Builder{}, &strings.Builder{}, view.StatusText{Details: "some"})
	if err == nil || !strings.HasPrefix(err.Error(), "invalid value for --details: some (") {
		t.Error(err)
	}
}

func TestStatusErrors(t *testing.T) {
	const server = " - you must be connected to an OpenShift version 4 server"
	for _, tt := range []struct {
		name, want string
		edit       func(o *view.Objects)
	}{
		{"no version", "no cluster version information available" + server + " to fetch the current version", func(o *view.Objects) { o.ClusterVersion, o.ClusterOperators = nil, nil }},
		{"no operators", "no cluster operator information available" + server, func(o *view.Objects) { o.ClusterOperators = nil; o.ClusterVersion.Status.Conditions = nil }},
		{"no Progressing", "no current Progressing info, see `oc describe clusterversion` for more details.\n", func(o *view.Objects) { o.ClusterVersion.Status.Conditions = o.ClusterVersion.Status.Conditions[1:] }},
		{"selector", "failed to get label selector from the pool: worker", func(o *view.Objects) {
			p := configPool("worker")
			p.Spec.NodeSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
			o.MachineConfigPools = []*mcfgv1.MachineConfigPool{configPool("infra"), p}
		}},
		{"unread version", "the cluster version is unknown: forbidden", func(o *view.Objects) {
			o.ClusterVersion, o.Missing = nil, []view.Missing{{Kind: "ClusterVersion", Reason: "forbidden"}}
		}},
		{"unread operators", "the cluster operators are unknown: not collected", func(o *view.Objects) {
			o.ClusterOperators, o.Missing = nil, []view.Missing{{Kind: "ClusterOperator", Reason: "not collected"}}
		}},
	} {
		o := updating()
		tt.edit(o)
		if _, err := view.AssessStatus(o, updateStart); err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

// Where no operator is of the release, there is nothing to count: that is an error,
// and one of reading if some were not read.
func TestNoPlatformOperators(t *testing.T) {
	o := updating()
	for _, co := range o.ClusterOperators {
		co.Annotations = map[string]string{"release.openshift.io/create-only": "true", "xinclude.release.openshift.io/a": ""}
	}
	if _, err := view.AssessStatus(o, updateStart); !errors.Is(err, view.ErrNoPlatformOperators) {
		t.Error(err)
	}
	o.Missing = []view.Missing{{Kind: "ClusterOperator", Reason: "three cannot be decoded"}}
	if _, err := view.AssessStatus(o, updateStart); !errors.Is(err, view.ErrNoPlatformOperators) || !strings.Contains(err.Error(), "three cannot be decoded") {
		t.Error(err)
	}
	o.ClusterOperators[0].Annotations = map[string]string{"exclude.release.openshift.io/internal": "true"}
	if s := assess(t, o, 0); s.ControlPlane.Total != 1 {
		t.Errorf("%d operators count", s.ControlPlane.Total)
	}
}

// A cluster is being updated while it says so, or while a pool other than
// master has a node that is not updated.
func TestStatusGate(t *testing.T) {
	const not = "The cluster is not updating.\n"
	idle := func() *view.Objects {
		o := updating()
		o.ClusterVersion.Status.Conditions[0].Status = configv1.ConditionFalse
		return o
	}
	for _, tt := range []struct {
		name    string
		objects *view.Objects
		shown   bool
	}{
		{"progressing", updating(), true},
		{"idle", idle(), false},
		{"idle, done", withNodes(idle(), newNode("m", "master"), newNode("w", "worker")), false},
		{"idle, a master lags", withNodes(idle(), oldNode("m", "master")), false},
		{"idle, a worker lags", withNodes(idle(), newNode("m", "master"), oldNode("w", "worker"), newNode("v", "worker")), true},
		{"idle, a node of no pool lags", withNodes(idle(), oldNode("x", "other")), false},
	} {
		if got := statusText(t, tt.objects, time.Minute, view.StatusText{}); got != not != tt.shown {
			t.Errorf("%s:\n%s", tt.name, got)
		}
	}
	o := idle()
	o.ClusterVersion.Status.Conditions[0].Status = configv1.ConditionUnknown
	same(t, "unknown progress", not, statusText(t, o, time.Minute, view.StatusText{Details: "all"}))
	// Nothing is wrong with an update that does not happen.
	o.ClusterVersion.Status.Conditions[1].Status = configv1.ConditionTrue
	o.ClusterVersion.Status.Conditions[1].Message = "x"
	if s := assess(t, o, time.Minute); s.Updating || s.ControlPlane != nil || len(s.Health) > 0 {
		t.Errorf("%+v", s)
	}
}

// An update begins with the newest entry of the history, else when the version
// began to progress.
func TestStarted(t *testing.T) {
	o := updating()
	o.ClusterVersion.Status.Conditions[0].LastTransitionTime = after(time.Minute)
	s := assess(t, o, 2*time.Minute+1499*time.Millisecond)
	if !s.Started.Equal(updateStart) || s.UpdatingFor.Duration != 2*time.Minute+time.Second {
		t.Errorf("%v, %v", s.Started, s.UpdatingFor)
	}
	if s := assess(t, o, 2*time.Minute+1500*time.Millisecond); s.UpdatingFor.Duration != 2*time.Minute+2*time.Second {
		t.Errorf("half a second: %v", s.UpdatingFor)
	}
	o.ClusterVersion.Status.History = nil
	if s := assess(t, o, 2*time.Minute); !s.Started.Equal(updateStart.Add(time.Minute)) || s.UpdatingFor.Duration != time.Minute {
		t.Errorf("%v, %v", s.Started, s.UpdatingFor)
	}
}

// Sections come in their order, and only those that have something to show.
func TestStatusSections(t *testing.T) {
	o := withNodes(updating(), oldNode("m", "master"), oldNode("w", "worker"), oldNode("i", "infra"))
	o.MachineConfigPools = []*mcfgv1.MachineConfigPool{configPool("worker"), configPool("zoo"), configPool("master"), configPool("infra")}
	lines := func(text string) []string {
		var heads []string
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "= ") || strings.Contains(line, "Nodes") {
				heads = append(heads, strings.TrimSpace(line))
			}
		}
		return heads
	}
	same(t, "sections", "= Control Plane =, Control Plane Nodes, = Worker Upgrade =, Worker Pool Nodes: worker, Worker Pool Nodes: infra, = Update Health =",
		strings.Join(lines(statusText(t, o, time.Minute, view.StatusText{})), ", "))
	o.Nodes = o.Nodes[:1]
	same(t, "no workers", "= Control Plane =, Control Plane Nodes, = Update Health =", strings.Join(lines(statusText(t, o, time.Minute, view.StatusText{})), ", "))
	o.Nodes, o.MachineConfigPools = nil, nil
	same(t, "no pools", "= Control Plane =, = Update Health =", strings.Join(lines(statusText(t, o, time.Minute, view.StatusText{})), ", "))
}
