package preconditions_test

import (
	"errors"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/manifest"
)

func TestMultiArch(t *testing.T) {
	const multi = configv1.ClusterVersionArchitectureMulti
	arch := func(a configv1.ClusterVersionArchitecture) cvEdit {
		return func(cv *configv1.ClusterVersion) { cv.Status.Desired.Architecture = a }
	}
	offered := func(image string, a configv1.ClusterVersionArchitecture) cvEdit {
		return func(cv *configv1.ClusterVersion) {
			cv.Status.AvailableUpdates = append(cv.Status.AvailableUpdates, configv1.Release{Version: "4.18.6", Image: image, Architecture: a})
		}
	}
	retrieved := cond("RetrievedUpdates", "True", "", "")
	payload := func(a configv1.ClusterVersionArchitecture) *manifest.Payload {
		return &manifest.Payload{Release: configv1.Release{Version: "4.18.6", Architecture: a}}
	}
	onPlatform := func(p configv1.PlatformType) *configv1.Infrastructure {
		return infrastructure(func(i *configv1.Infrastructure) { i.Status.PlatformStatus.Type = p })
	}
	nodeArch := func(a string) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Labels["kubernetes.io/arch"] = a }
	}
	const door = "Failed\nBlocking MultiToSingleArchitecture: A cluster with the payload for several architectures cannot go back to that of one"
	const noChange = "NotApplicable\nInfo NotApplicable: the architecture of the release does not change"
	const notRetrieved = "Blocking MultiUpdatesNotRetrieved: The update service has to be reached for the migration, and the condition RetrievedUpdates is "
	runCases(t, checkNamed(t, "MultiArch"), []checkCase{
		{name: "single to single", target: "4.18.6", want: noChange},
		{name: "multi to multi", edits: []cvEdit{arch(multi)}, target: "4.18.6", arch: multi, want: "NotApplicable"},
		{name: "multi to multi by payload", edits: []cvEdit{arch(multi)}, target: "4.18.6", payload: payload(multi), want: noChange},
		{name: "multi to single by payload", edits: []cvEdit{arch(multi)}, target: "4.18.6", payload: payload(""), want: door},
		{name: "names the nodes", edits: []cvEdit{arch(multi)}, target: "4.18.6", payload: payload(""),
			objects: []any{node("b", "worker", nodeArch("arm64")), node("a", "master", nodeArch("amd64"))}, want: door + ": a (amd64), b (arm64)"},
		{name: "nodes of one architecture", edits: []cvEdit{arch(multi)}, target: "4.18.6", payload: payload(""), objects: []any{node("a", "master", nodeArch("amd64"))}, want: door},
		{name: "nodes not known", edits: []cvEdit{arch(multi)}, target: "4.18.6", payload: payload(""), fail: map[string]error{"Node": errors.New("boom")}, want: door},
		{name: "multi to single of the same version", edits: []cvEdit{arch(multi)}, target: "4.18.5@S", payload: &manifest.Payload{Release: configv1.Release{Version: "4.18.5"}}, want: door},
		{name: "multi to single by the offer", edits: []cvEdit{arch(multi), offered("S", "")}, target: "4.18.6@S", want: door},
		{name: "multi to what is not known", edits: []cvEdit{arch(multi), offered("S", "")}, target: "4.18.6@X",
			want: "Unknown\nWarning NoSource: no source given for TargetPayload, which would tell whether it is for several architectures, as that of the cluster is"},
		{name: "the cluster does not tell", target: "4.18.6", arch: multi, running: payload(multi), payload: payload(multi), want: noChange},
		{name: "and goes to single", target: "@S", running: payload(multi), payload: payload(""), want: door},
		{name: "migration", edits: []cvEdit{retrieved}, target: "4.18.5@M", arch: multi, objects: []any{onPlatform("AWS")}, want: "Passed"},
		{name: "on each platform", edits: []cvEdit{retrieved}, target: "4.18.5@M", arch: multi, objects: []any{onPlatform("None")}, want: "Passed"},
		{name: "on another platform", edits: []cvEdit{retrieved}, target: "4.18.5@M", arch: multi, objects: []any{onPlatform("OpenStack")},
			want: "Failed\nWarning MultiPlatform: Nodes of several architectures are not supported on platform \"OpenStack\""},
		{name: "4.12", current: "4.12.9@A", edits: []cvEdit{retrieved}, target: "4.12.9", arch: multi, want: "Failed\nBlocking MultiNotSupported: Release 4.12.9 cannot be migrated to several architectures: 4.13.0 is the first that can"},
		{name: "before 4.13.0", current: "4.13.0-rc.1@A", edits: []cvEdit{retrieved}, target: "4.13.0-rc.1", arch: multi, want: "Failed\nBlocking MultiNotSupported: Release 4.13.0-rc.1 cannot be migrated to several architectures: 4.13.0 is the first that can"},
		{name: "4.13.0", current: "4.13.0@A", edits: []cvEdit{retrieved}, target: "4.13.0", arch: multi, want: "Passed"},
		{name: "not retrieved", edits: []cvEdit{cond("RetrievedUpdates", "False", "R", "m")}, target: "4.18.5", arch: multi, want: "Failed\n" + notRetrieved + "False"},
		{name: "no condition", target: "4.18.5", arch: multi, want: "Failed\n" + notRetrieved + "missing"},
		{name: "with another version", edits: []cvEdit{retrieved}, target: "4.18.6", arch: multi,
			want: "Failed\nBlocking MultiVersionChange: A migration to several architectures keeps the version: that to 4.18.6 would be left out"},
		{name: "Infrastructure not known", edits: []cvEdit{retrieved}, target: "4.18.5", arch: multi, fail: map[string]error{"Infrastructure": clusterapi.ErrNotCollected},
			want: "Unknown\nWarning NotCollected: Infrastructure: not collected in this recording"},
	})
}

func TestMachineHealthChecks(t *testing.T) {
	health := func(name string, paused bool, types ...corev1.NodeConditionType) *machinev1beta1.MachineHealthCheck {
		c := &machinev1beta1.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-machine-api", Name: name}}
		for _, typ := range types {
			c.Spec.UnhealthyConditions = append(c.Spec.UnhealthyConditions, machinev1beta1.UnhealthyCondition{Type: typ, Status: corev1.ConditionFalse})
		}
		if paused {
			c.Annotations = map[string]string{"cluster.x-k8s.io/paused": "false"}
		}
		return c
	}
	elsewhere := health("x", false, "Ready")
	elsewhere.Namespace = "mine"
	const active = "Failed\nWarning MachineHealthCheckActive: Machine health checks may replace nodes that are being updated: "
	two := []any{infrastructure(), node("a", "master"), node("b", "worker")}
	runCases(t, checkNamed(t, "MachineHealthChecks"), []checkCase{
		{name: "none", want: "Passed"},
		{name: "active", objects: append(two, health("b", false, "Terminating", "Ready"), health("a", false, "Ready")), want: active + "openshift-machine-api/a, openshift-machine-api/b"},
		{name: "patch too", target: "4.18.6@T", objects: append(two, health("a", false, "Ready")), want: active + "openshift-machine-api/a"},
		{name: "paused, whatever the value", objects: append(two, health("a", true, "Ready")), want: "Passed"},
		{name: "the one that is shipped", objects: append(two, health("machine-api-termination-handler", false, "Terminating")), want: "Passed"},
		{name: "in another namespace", objects: append(two, elsewhere), want: "Passed"},
		{name: "one node in all", objects: []any{infrastructure(), node("a", "master"), health("a", false, "Ready")}, want: "NotApplicable\nInfo NotApplicable: the cluster has a single node"},
		{name: "single replica with workers", objects: []any{infrastructure(singleReplica), node("a", "master"), node("b", "worker"), health("a", false, "Ready")}, want: active + "openshift-machine-api/a"},
		{name: "nodes not known", objects: []any{health("a", false, "Ready")}, fail: map[string]error{"Node": errors.New("boom")}, want: active + "openshift-machine-api/a"},
		{name: "malformed", objects: append(two, health("a", false, "Ready"), func() *unstructured.Unstructured {
			u := malformed("machine.openshift.io/v1beta1", "MachineHealthCheck", "x")
			u.SetNamespace("openshift-machine-api")
			return u
		}()), want: active + "openshift-machine-api/a\nWarning UnknownError: MachineHealthCheck openshift-machine-api/x: spec: got a JSON string, want v1beta1.MachineHealthCheckSpec"},
		{name: "not served", fail: map[string]error{"MachineHealthCheck": noKind("MachineHealthCheck")}, want: "NotApplicable\nInfo NotApplicable: the cluster has no MachineHealthChecks"},
		{name: "forbidden", fail: map[string]error{"MachineHealthCheck": forbidden("machinehealthchecks")}, want: "Unknown\nWarning NotAllowed: not allowed to list machinehealthchecks.machine.openshift.io: machinehealthchecks is forbidden: no"},
	})
}

func TestOperatorCompatibility(t *testing.T) {
	csv := func(namespace, name, properties string) *unstructured.Unstructured {
		u := object("operators.coreos.com/v1alpha1", "ClusterServiceVersion", namespace, name, nil)
		if properties != "" {
			u.SetAnnotations(map[string]string{"operatorframework.io/properties": `{"properties":` + properties + `}`})
		}
		return u
	}
	upTo := func(v string) string { return `[{"type":"olm.maxOpenShiftVersion","value":` + v + `}]` }
	copied := csv("b", "a.v1", upTo(`"4.18"`))
	copied.SetLabels(map[string]string{"olm.copiedFrom": "a"})
	plan := func(name string, approved bool, phase string) *unstructured.Unstructured {
		return object("operators.coreos.com/v1alpha1", "InstallPlan", "a", name, map[string]any{
			"spec":   map[string]any{"clusterServiceVersionNames": []any{"x.v2", "y.v2"}, "approval": "Manual", "approved": approved},
			"status": map[string]any{"phase": phase},
		})
	}
	const held = "Failed\nBlocking IncompatibleOperatorsInstalled: Operators do not support OpenShift 4.19: "
	runCases(t, checkNamed(t, "OperatorCompatibility"), []checkCase{
		{name: "none", want: "Passed"},
		{name: "no limit, and enough", objects: []any{csv("a", "a.v1", ""), csv("a", "b.v1", upTo(`"4.19"`)), csv("a", "c.v1", upTo(`"5.0"`))}, want: "Passed"},
		{name: "too low", objects: []any{csv("b", "a.v1", upTo(`"4.18"`)), csv("a", "z.v1", upTo(`"4.17"`)), copied}, want: held + "a/z.v1 (up to 4.17), b/a.v1 (up to 4.18)"},
		{name: "two steps", target: "4.20.1@T", objects: []any{csv("a", "a.v1", upTo(`"4.19"`))}, want: "Failed\nBlocking IncompatibleOperatorsInstalled: Operators do not support OpenShift 4.20: a/a.v1 (up to 4.19)"},
		{name: "4.23 is 5.0", current: "4.22.1@A", target: "5.0.1@T", objects: []any{csv("a", "a.v1", upTo(`"4.23"`)), csv("a", "b.v1", upTo(`"4.22"`))}, want: "Failed\nBlocking IncompatibleOperatorsInstalled: Operators do not support OpenShift 5.0: a/b.v1 (up to 4.22)"},
		{name: "invalid", objects: []any{csv("a", "a.v1", upTo(`"4.19.1"`))}, want: held + `a/a.v1 (its olm.maxOpenShiftVersion is invalid: property olm.maxOpenShiftVersion must specify only <major>.<minor> version, got invalid value 4.19.1)`},
		{name: "plan waits", objects: []any{plan("p", false, "RequiresApproval"), plan("q", true, "RequiresApproval"), plan("r", false, "Complete")}, want: "Failed\nWarning OperatorUpdatePending: Updates of operators wait for approval: a/p (x.v2, y.v2)"},
		{name: "both", objects: []any{csv("a", "a.v1", upTo(`"4.18"`)), plan("p", false, "RequiresApproval")}, want: held + "a/a.v1 (up to 4.18)\nWarning OperatorUpdatePending: Updates of operators wait for approval: a/p (x.v2, y.v2)"},
		{name: "plans not known", objects: []any{csv("a", "a.v1", upTo(`"4.18"`))}, fail: map[string]error{"InstallPlan": clusterapi.ErrNotCollected}, want: held + "a/a.v1 (up to 4.18)\nWarning NotCollected: InstallPlan: not collected in this recording"},
		{name: "target not known", target: "x@T", objects: []any{csv("a", "a.v1", upTo(`"4.18"`))}, want: held + "a/a.v1 (up to 4.18)"},
		{name: "nor current", current: "x@A", target: "x@T", objects: []any{csv("a", "a.v1", upTo(`"4.18"`))}, want: "Unknown\nWarning UnknownError: current version \"x\": No Major.Minor.Patch elements found"},
		{name: "no OLM", fail: map[string]error{"ClusterServiceVersion": noKind("ClusterServiceVersion")}, want: "NotApplicable\nInfo NotApplicable: the cluster has no ClusterServiceVersions"},
	})
}
