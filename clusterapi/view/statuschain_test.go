package view_test

import (
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/view"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// waitsOf is what an update waits on, a chain a line.
func waitsOf(s *view.Status) string {
	var all []string
	for _, c := range s.Waits {
		all = append(all, c.String())
	}
	return strings.Join(all, "\n")
}

func wantWaits(t *testing.T, name string, o *view.Objects, want ...string) {
	t.Helper()
	same(t, name, strings.Join(want, "\n"), waitsOf(assess(t, o, 30*time.Minute)))
}

func TestWaitsForRequest(t *testing.T) {
	const chain = "ClusterVersion version: ReleaseAccepted=False (RetrievePayload)"
	for _, tt := range []struct {
		name     string
		request  *configv1.Update
		accepted string
		want     string
	}{
		{"another version", &configv1.Update{Version: "4.14.2"}, "False", chain},
		{"another image", &configv1.Update{Version: "4.14.1", Image: "other"}, "False", chain},
		{"another architecture", &configv1.Update{Version: "4.14.1", Architecture: "Multi"}, "False", chain},
		{"still looked at", &configv1.Update{Version: "4.14.2"}, "Unknown", strings.Replace(chain, "False", "Unknown", 1)},
		{"accepted", &configv1.Update{Version: "4.14.2"}, "True", ""},
		{"no condition", &configv1.Update{Version: "4.14.2"}, "", ""},
		{"what it runs", &configv1.Update{Version: "4.14.1"}, "False", ""},
		{"the image that it runs", &configv1.Update{Image: "quay.io/release:4.14.1"}, "False", ""},
		{"a preflight", &configv1.Update{Version: "4.14.2", Mode: configv1.UpdateModePreflight}, "False", ""},
		{"no request", nil, "False", ""},
	} {
		for _, progressing := range []string{"True", "False"} {
			o := updating()
			st := &o.ClusterVersion.Status
			st.Conditions[0].Status = configv1.ConditionStatus(progressing)
			o.ClusterVersion.Spec.DesiredUpdate = tt.request
			if tt.accepted != "" {
				st.Conditions = append(st.Conditions, says("ReleaseAccepted="+tt.accepted, after(time.Minute), "RetrievePayload", "signature\nnot found"))
			}
			want := tt.want
			if want == "" && progressing == "True" {
				want = "ClusterOperator network: Progressing=True (Deploying)"
			}
			wantWaits(t, tt.name+", progressing "+progressing, o, want)
		}
	}
	o := updating()
	o.ClusterVersion.Status.Conditions = []configv1.ClusterOperatorStatusCondition{says("Progressing=False", after(0)), says("ReleaseAccepted=False", after(time.Minute), "RetrievePayload", "signature\nnot found")}
	o.ClusterVersion.Spec.DesiredUpdate = &configv1.Update{Version: "4.14.2"}
	same(t, "text", "The cluster is not updating.\n\nThe requested update waits on:\n  "+chain+", for 29m\n    signature\n    not found\n", statusText(t, o, 30*time.Minute, view.StatusText{Waits: true}))
	// The architecture that it has is not asked for again.
	o.ClusterVersion.Spec.DesiredUpdate = &configv1.Update{Version: "4.14.1", Architecture: "Multi"}
	o.ClusterVersion.Status.Desired.Architecture = "Multi"
	wantWaits(t, "architecture reached", o)
}

func operatorRef(name string) view.Resource {
	return view.Resource{Group: "config.openshift.io", Kind: "ClusterOperator", Name: name}
}

func TestWaitsForComponents(t *testing.T) {
	deployment := func(name string, edit func(*appsv1.Deployment)) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Generation: 3}}
		d.Spec.Replicas = new(int32(2))
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: 3, UpdatedReplicas: 2, AvailableReplicas: 2}
		edit(d)
		return d
	}
	daemons := func(edit func(*appsv1.DaemonSet)) []*appsv1.DaemonSet {
		d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "agent", Generation: 3}}
		d.Status = appsv1.DaemonSetStatus{ObservedGeneration: 3, DesiredNumberScheduled: 6, UpdatedNumberScheduled: 6}
		edit(d)
		return []*appsv1.DaemonSet{d}
	}
	components := []view.Component{
		{Runlevel: "50", Name: "storage", Objects: []view.Resource{operatorRef("storage")}},
		{Runlevel: "07", Name: "network", Objects: []view.Resource{{Group: "apps", Kind: "DaemonSet", Namespace: "ns", Name: "agent"}, {Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "net"}, operatorRef("network")}},
		{Runlevel: "07", Name: "dns", Objects: []view.Resource{{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "dns"}, operatorRef("dns")}},
		{Runlevel: "05", Name: "etcd", Objects: []view.Resource{operatorRef("etcd")}},
	}
	const etcd, dns, network, storage = "runlevel 05 > component etcd > ", "runlevel 07 > component dns > ", "runlevel 07 > component network > ", "runlevel 50 > component storage > "
	for _, tt := range []struct {
		name string
		edit func(o *view.Objects)
		want []string
	}{
		{"operator", nil, []string{network + "ClusterOperator network: Progressing=True (Deploying)"}},
		{"the lowest runlevel", func(o *view.Objects) { o.ClusterOperators[0] = platformOperator("etcd", "4.14.0") }, []string{etcd + "ClusterOperator etcd: version 4.14.0, not 4.14.1"}},
		{"a later runlevel", func(o *view.Objects) { o.ClusterOperators[2] = platformOperator("network", "4.14.1") }, []string{storage + "ClusterOperator storage: version 4.14.0, not 4.14.1"}},
		{"missing", func(o *view.Objects) { o.ClusterOperators = o.ClusterOperators[1:] }, []string{etcd + "ClusterOperator etcd: missing"}},
		{"missing, or not read", func(o *view.Objects) {
			o.ClusterOperators = o.ClusterOperators[1:]
			o.Missing = []view.Missing{{Kind: "ClusterOperator", Reason: "lost"}}
		}, []string{network + "ClusterOperator network: Progressing=True (Deploying)"}},
		{"updated and degraded", func(o *view.Objects) {
			o.ClusterOperators[0] = platformOperator("etcd", "4.14.1", says("Degraded=True", after(0), "Sick", "m"))
		}, []string{etcd + "ClusterOperator etcd: Degraded=True (Sick)"}},
		{"updated and unavailable", func(o *view.Objects) {
			o.ClusterOperators[0] = platformOperator("etcd", "4.14.1", says("Degraded=True", after(0), "Sick", "m"), says("Available=False", after(0), "Down", "m"))
		}, []string{etcd + "ClusterOperator etcd: Available=False (Down)"}},
		{"no Available", func(o *view.Objects) { dropCondition(o.ClusterOperators[0], "Available") }, []string{etcd + "ClusterOperator etcd: Available is unknown"}},
		{"no version", func(o *view.Objects) { o.ClusterOperators[0] = platformOperator("etcd", "") }, []string{etcd + "ClusterOperator etcd: no version reported"}},
		{"two of a runlevel", func(o *view.Objects) { o.ClusterOperators[1] = platformOperator("dns", "4.14.0") },
			[]string{dns + "ClusterOperator dns: version 4.14.0, not 4.14.1", network + "ClusterOperator network: Progressing=True (Deploying)"}},
		{"deployment", func(o *view.Objects) {
			o.Deployments = []*appsv1.Deployment{nil, deployment("dns", func(d *appsv1.Deployment) {
				d.Status.UpdatedReplicas, d.Status.AvailableReplicas, d.Status.UnavailableReplicas = 1, 1, 1
				d.Status.Conditions = []appsv1.DeploymentCondition{{Type: "Progressing", Status: "False", Reason: "Deadline"}, {Type: "Available", Status: "False", Reason: "Few"}}
			}), deployment("net", func(*appsv1.Deployment) {})}
		}, []string{dns + "Deployment ns/dns: 1 of 2 replicas updated, 1 available, Available=False (Few)", network + "ClusterOperator network: Progressing=True (Deploying)"}},
		{"deployment that is not seen", func(o *view.Objects) {
			o.Deployments = []*appsv1.Deployment{deployment("dns", func(d *appsv1.Deployment) { d.Generation = 4 })}
		}, []string{dns + "Deployment ns/dns: 2 of 2 replicas updated, 2 available", network + "ClusterOperator network: Progressing=True (Deploying)"}},
		{"deployment of one", func(o *view.Objects) {
			o.Deployments = []*appsv1.Deployment{deployment("dns", func(d *appsv1.Deployment) {
				d.Spec.Replicas, d.Status.UpdatedReplicas = nil, 0
				d.Status.Conditions = []appsv1.DeploymentCondition{{Type: "ReplicaFailure", Status: "True", Reason: "Quota"}, {Type: "Available", Status: "False", Reason: "Few"}}
			})}
		}, []string{dns + "Deployment ns/dns: 0 of 1 replicas updated, 2 available, ReplicaFailure=True (Quota)", network + "ClusterOperator network: Progressing=True (Deploying)"}},
		{"daemon set", func(o *view.Objects) {
			o.DaemonSets = append(daemons(func(d *appsv1.DaemonSet) { d.Status.UpdatedNumberScheduled, d.Status.NumberUnavailable = 4, 1 }), nil)
		}, []string{network + "DaemonSet ns/agent: 4 of 6 pods updated, 1 unavailable", network + "ClusterOperator network: Progressing=True (Deploying)"}},
		{"deployment with fewer than it wants", func(o *view.Objects) {
			o.Deployments = []*appsv1.Deployment{deployment("dns", func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 1 })}
		}, []string{dns + "Deployment ns/dns: 2 of 2 replicas updated, 1 available", network + "ClusterOperator network: Progressing=True (Deploying)"}},
		{"deployment with old replicas", func(o *view.Objects) {
			o.Deployments = []*appsv1.Deployment{deployment("dns", func(d *appsv1.Deployment) { d.Status.UnavailableReplicas = 1 })}
		}, []string{dns + "Deployment ns/dns: 2 of 2 replicas updated, 2 available", network + "ClusterOperator network: Progressing=True (Deploying)"}},
		{"daemon set that is not seen", func(o *view.Objects) { o.DaemonSets = daemons(func(d *appsv1.DaemonSet) { d.Generation = 4 }) },
			[]string{network + "DaemonSet ns/agent: 6 of 6 pods updated, 0 unavailable", network + "ClusterOperator network: Progressing=True (Deploying)"}},
		{"daemon set that is not available", func(o *view.Objects) {
			o.DaemonSets = daemons(func(d *appsv1.DaemonSet) { d.Status.NumberUnavailable = 1 })
		},
			[]string{network + "DaemonSet ns/agent: 6 of 6 pods updated, 1 unavailable", network + "ClusterOperator network: Progressing=True (Deploying)"}},
		{"an object of another group", func(o *view.Objects) {
			o.Components = append([]view.Component{{Runlevel: "01", Name: "x", Objects: []view.Resource{{Group: "example.com", Kind: "ClusterOperator", Name: "x"}}}}, components...)
		}, []string{network + "ClusterOperator network: Progressing=True (Deploying)"}},
		{"daemon set that is done", func(o *view.Objects) { o.DaemonSets = daemons(func(*appsv1.DaemonSet) {}) }, []string{network + "ClusterOperator network: Progressing=True (Deploying)"}},
		{"nothing of a component", func(o *view.Objects) {
			o.ClusterOperators[2], o.ClusterOperators[3] = platformOperator("network", "4.14.1"), platformOperator("storage", "4.14.1")
			o.ClusterVersion.Status.Conditions[0].Reason = "Working"
		}, []string{"ClusterVersion version: Progressing=True (Working)"}},
		{"failing", func(o *view.Objects) {
			o.ClusterOperators[2], o.ClusterOperators[3] = platformOperator("network", "4.14.1"), platformOperator("storage", "4.14.1")
			o.ClusterVersion.Status.Conditions[1] = says("Failing=True", after(0), "Bad", "m")
		}, []string{"ClusterVersion version: Failing=True (Bad)"}},
	} {
		o := updating()
		o.Components = components
		if tt.edit != nil {
			tt.edit(o)
		}
		wantWaits(t, tt.name, o, tt.want...)
	}
}

// What is not collected of a component's workloads is said to be unknown.
func TestUnknownWorkloads(t *testing.T) {
	o := updating()
	o.Missing = []view.Missing{{Kind: "Deployment", Reason: "lost"}, {Kind: "DaemonSet", Reason: "lost as well"}}
	if s := assess(t, o, time.Minute); len(s.Unknown) > 0 {
		t.Errorf("without components: %v", s.Unknown)
	}
	o.Components = []view.Component{{Runlevel: "07", Name: "network", Objects: []view.Resource{
		{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "net"}, {Group: "apps", Kind: "DaemonSet", Namespace: "ns", Name: "agent"}, operatorRef("network")}}}
	s := assess(t, o, time.Minute)
	var kinds []string
	for _, u := range s.Unknown {
		kinds = append(kinds, u.Kind+" "+u.Reason)
	}
	same(t, "unknown", "Deployment lost, DaemonSet lost as well", strings.Join(kinds, ", "))
}

// Without components, operators that the version operator names come first, with
// those that are being updated.
func TestWaitsForOperators(t *testing.T) {
	for _, tt := range []struct {
		name, progressing, failing string
		edit                       func(o *view.Objects)
		want                       []string
	}{
		{"being updated", "", "", nil, []string{"ClusterOperator network: Progressing=True (Deploying)"}},
		{"named", "Working towards 4.14.1: 106 of 841 done (12% complete), waiting on storage", "", nil,
			[]string{"ClusterOperator network: Progressing=True (Deploying)", "ClusterOperator storage: version 4.14.0, not 4.14.1"}},
		{"named as failing", "", "Cluster operator etcd is degraded", func(o *view.Objects) {
			o.ClusterOperators[0] = platformOperator("etcd", "4.14.1", says("Degraded=True", after(0), "Sick", ""))
		}, []string{"ClusterOperator etcd: Degraded=True (Sick)", "ClusterOperator network: Progressing=True (Deploying)"}},
		{"named and well", "waiting on etcd, dns", "", nil, []string{"ClusterOperator network: Progressing=True (Deploying)"}},
		{"updated and not well", "", "", func(o *view.Objects) {
			o.ClusterOperators[2] = platformOperator("network", "4.14.0")
			o.ClusterOperators[0] = platformOperator("etcd", "4.14.1", says("Available=False", after(0), "Down", ""))
		}, []string{"ClusterOperator etcd: Available=False (Down)"}},
		{"all that are left", "", "", func(o *view.Objects) { o.ClusterOperators[2] = platformOperator("network", "4.14.0") },
			[]string{"ClusterOperator network: version 4.14.0, not 4.14.1", "ClusterOperator storage: version 4.14.0, not 4.14.1"}},
		{"none", "", "", func(o *view.Objects) { o.ClusterOperators = o.ClusterOperators[:2] }, []string{"ClusterVersion version: Progressing=True"}},
	} {
		o := updating()
		o.ClusterVersion.Status.Conditions[0].Message = tt.progressing
		if tt.failing != "" {
			o.ClusterVersion.Status.Conditions[1] = says("Failing=True", after(0), "F", tt.failing)
		}
		if tt.edit != nil {
			tt.edit(o)
		}
		wantWaits(t, tt.name, o, tt.want...)
	}
}

func TestWaitsForPools(t *testing.T) {
	render := mcfgv1.MachineConfigPoolCondition{Type: mcfgv1.MachineConfigPoolRenderDegraded, Status: corev1.ConditionTrue, Reason: "NoRender", LastTransitionTime: after(0)}
	const mc = "ClusterOperator machine-config: Progressing=True > "
	for _, tt := range []struct {
		name string
		edit func(o *view.Objects)
		want string
	}{
		{"node", nil, mc + "MachineConfigPool master: 1 of 3 nodes updated > Node m2: Updating"},
		{"node that is done and bad", func(o *view.Objects) {
			o.Nodes[0] = changingNode("m1", "master", "Done")
			nodeSays(o.Nodes[0], "Ready=False", after(0), "")
		},
			mc + "MachineConfigPool master: 2 of 3 nodes updated > Node m2: Updating"},
		{"degraded node", func(o *view.Objects) { o.Nodes[0].Annotations[mcd+"state"] = "Degraded" }, mc + "MachineConfigPool master: 1 of 3 nodes updated > Node m1: Pending, Degraded"},
		{"unavailable node", func(o *view.Objects) { nodeSays(o.Nodes[0], "Ready=False", after(0), "") }, mc + "MachineConfigPool master: 1 of 3 nodes updated > Node m1: Pending, Unavailable"},
		{"paused", func(o *view.Objects) { o.MachineConfigPools[0].Spec.Paused = true }, mc + "MachineConfigPool master: 1 of 3 nodes updated, paused"},
		{"render degraded", func(o *view.Objects) {
			o.MachineConfigPools[0].Status.Conditions = []mcfgv1.MachineConfigPoolCondition{render}
		}, mc + "MachineConfigPool master: RenderDegraded=True (NoRender)"},
		{"a pool that is not required", func(o *view.Objects) { o.Nodes = append(o.Nodes[3:], newNode("m1", "master")) }, strings.TrimSuffix(mc, " > ")},
		{"a required pool", func(o *view.Objects) {
			o.Nodes = append(o.Nodes[3:], newNode("m1", "master"))
			o.MachineConfigPools[1].Labels = map[string]string{"operator.machineconfiguration.openshift.io/required-for-upgrade": ""}
		}, mc + "MachineConfigPool worker: 0 of 1 nodes updated > Node w1: Pending"},
		{"no pools", func(o *view.Objects) { o.MachineConfigPools = nil }, strings.TrimSuffix(mc, " > ")},
		{"nodes of unknown version", func(o *view.Objects) {
			o.MachineConfigs, o.Missing = nil, []view.Missing{{Kind: "MachineConfig", Reason: "lost"}}
		}, mc + "MachineConfigPool master: how many of its nodes are updated is unknown > Node m2: Unavailable"},
		{"workers that lag", func(o *view.Objects) { o.ClusterVersion.Status.Conditions[0].Status = "False" }, "MachineConfigPool worker: 0 of 1 nodes updated > Node w1: Pending"},
		{"paused workers that lag", func(o *view.Objects) {
			o.ClusterVersion.Status.Conditions[0].Status = "False"
			o.MachineConfigPools[1].Spec.Paused = true
		}, "MachineConfigPool worker: 0 of 1 nodes updated, paused"},
	} {
		o := updating()
		o.ClusterOperators = append(o.ClusterOperators[:2], platformOperator("machine-config", "4.14.0", says("Progressing=True", after(20*time.Minute))))
		o = withNodes(o, oldNode("m1", "master"), changingNode("m2", "master", "Working"), newNode("m3", "master"), oldNode("w1", "worker"))
		if tt.edit != nil {
			tt.edit(o)
		}
		wantWaits(t, tt.name, o, tt.want)
	}
}

// Each link says since when, as far as that is known.
func TestWaitsText(t *testing.T) {
	o := updating()
	o.ClusterOperators = append(o.ClusterOperators[:3], platformOperator("machine-config", "4.14.0", says("Progressing=True", after(30*time.Minute), "", "Working\ttowards 4.14.1\nnow")))
	o = withNodes(o, nodeSays(oldNode("m1", "master"), "Ready=False", after(10*time.Minute), ""), newNode("m2", "master"))
	o.Components = []view.Component{
		{Runlevel: "80", Name: "mco", Objects: []view.Resource{operatorRef("machine-config")}},
		{Runlevel: "80", Name: "network", Objects: []view.Resource{operatorRef("network")}},
	}
	text := statusText(t, o, 30*time.Minute, view.StatusText{Waits: true})
	same(t, "text", `The update waits on:
  runlevel 80
    component network
      ClusterOperator network: Progressing=True (Deploying), for 26m
        Rolling out
    component mco
      ClusterOperator machine-config: Progressing=True, just now
        Working	towards 4.14.1
        now
        MachineConfigPool master: 1 of 2 nodes updated
          Node m1: Pending, Unavailable, for 20m
            Not ready
`, section(t, text, "The update waits", "\n"))
	if strings.Index(text, "The update waits") > strings.Index(text, "= Update Health") {
		t.Error("waits come behind the health")
	}
	if strings.Contains(statusText(t, o, 30*time.Minute, view.StatusText{}), "waits on") {
		t.Error("waits are shown unasked")
	}
	same(t, "string", "4.14.1: Progressing, 2 of 4 operators updated, master 1 of 2 nodes; waits on runlevel 80 > component mco > ClusterOperator machine-config: Progressing=True > MachineConfigPool master: 1 of 2 nodes updated > Node m1: Pending, Unavailable (and 1 more)",
		assess(t, o, 30*time.Minute).String())
	o.ClusterVersion.Status.Conditions[0].Status = "False"
	same(t, "idle", "not updating", assess(t, o, 30*time.Minute).String())
}

// A cause that several objects have stands once, the one that has lasted longest comes
// first, and lines are cut to the width.
func TestWaitsTextCauses(t *testing.T) {
	const message = "A message that is longer than the terminal of whoever reads it"
	o := updating()
	o.ClusterOperators = []*configv1.ClusterOperator{
		platformOperator("dns", "4.14.0", says("Degraded=True", after(20*time.Minute), "Sick", "another")),
		platformOperator("etcd", "4.14.0", says("Degraded=True", after(10*time.Minute), "Sick", message)),
		platformOperator("network", "4.14.0", says("Degraded=True", after(15*time.Minute), "Sick", message)),
		platformOperator("storage", "4.14.0", says("Degraded=True", after(5*time.Minute), "Sick", message)),
	}
	o.ClusterVersion.Status.Conditions[0].Message = "waiting on dns, etcd, network, storage"
	for width, want := range map[int]string{
		0: `The update waits on:
  ClusterOperator storage: Degraded=True (Sick), for 25m
    A message that is longer than the terminal of whoever reads it
    and so ClusterOperator etcd, ClusterOperator network
  ClusterOperator dns: Degraded=True (Sick), for 10m
    another
`,
		30: `The update waits on:
  ClusterOperator storage: De…
    A message that is longer …
    and so ClusterOperator et…
  ClusterOperator dns: Degrad…
    another
`,
	} {
		text := statusText(t, o, 30*time.Minute, view.StatusText{Waits: true, Width: width})
		same(t, "text", want, section(t, text, "The update waits", "\n"))
	}
}

// A node that is drained waits for pods that budgets keep, if these are read.
func TestWaitsForDrain(t *testing.T) {
	pod := func(name, app, node string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{"app": app}}}
		p.Spec.NodeName = node
		p.Spec.Containers = []corev1.Container{{Name: "c", Image: "i"}}
		p.Status.Phase = corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		return p
	}
	budget := func(name, app string, allowed int32) *policyv1.PodDisruptionBudget {
		b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
		b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
		b.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, DisruptionsAllowed: allowed, ExpectedPods: 1, DesiredHealthy: 1 - allowed, CurrentHealthy: 1}
		return b
	}
	o := updating()
	o.ClusterVersion.Status.Conditions[0].Status = "False"
	n := changingNode("w1", "worker", "Working", "desiredDrain=drain-new", "lastAppliedDrain=uncordon-old")
	n.Spec.Unschedulable = true
	o = withNodes(o, newNode("m1", "master"), n)
	const head = "MachineConfigPool worker: 0 of 1 nodes updated > Node w1: Draining"
	wantWaits(t, "no pods", o, head)
	o.Pods = []*corev1.Pod{nil, pod("b", "held", "w1"), pod("a", "held", "w1"), pod("c", "free", "w1"), pod("d", "held", "w2"), pod("e", "none", "w1")}
	o.PodDisruptionBudgets = []*policyv1.PodDisruptionBudget{nil, budget("keep", "held", 0), budget("let", "free", 1)}
	wantWaits(t, "held", o,
		head+" > Pod ns/a: not evicted > PodDisruptionBudget ns/keep: refuses",
		head+" > Pod ns/b: not evicted > PodDisruptionBudget ns/keep: refuses")
	same(t, "text", `The update waits on:
  MachineConfigPool worker: 0 of 1 nodes updated
    Node w1: Draining
      Pod ns/a: not evicted
        PodDisruptionBudget ns/keep: refuses
          The disruption budget keep needs 1 healthy pods and has 1 currently
      Pod ns/b: not evicted
        PodDisruptionBudget ns/keep: refuses
          The disruption budget keep needs 1 healthy pods and has 1 currently
`, strings.Replace(section(t, statusText(t, o, 30*time.Minute, view.StatusText{Waits: true}), "The ", "\n"), "requested update", "update", 1))

	cluster := memory.New(memory.Options{Lenient: true})
	load(t, cluster, o.ClusterVersion)
	load(t, cluster, o.ClusterOperators...)
	load(t, cluster, o.MachineConfigPools...)
	load(t, cluster, o.MachineConfigs...)
	load(t, cluster, o.Nodes...)
	load(t, cluster, o.Pods[1:]...)
	load(t, cluster, o.PodDisruptionBudgets[1:]...)
	for drains, want := range map[bool]int{false: 1, true: 2} {
		s := checktest.Get(view.ReadStatus(t.Context(), cluster, view.StatusOptions{Now: after(30 * time.Minute).Time, Drains: drains}))(t)
		checktest.Equal(t, want, len(s.Waits), "drains %v: %v", drains, s.Waits)
	}
}

// load puts objects into a cluster.
func load[T any](t *testing.T, cluster *memory.Cluster, objects ...*T) {
	t.Helper()
	for _, o := range objects {
		checktest.OK(t, cluster.Load(checktest.Get(clusterapi.ToUnstructured(o))(t)))
	}
}
