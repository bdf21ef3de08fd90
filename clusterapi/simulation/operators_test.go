package simulation_test

import (
	"encoding/json"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/mcp"
)

func TestOperatorRollsOut(t *testing.T) {
	from, to := release("4.20.3", "dns", "etcd"), release("4.21.1", "dns", "etcd")
	to.Operators[0].Workloads = append(to.Operators[0].Workloads, operatorDeployment("dns-extra", "4.21.1"))
	gone := operatorDeployment("dns-old", "4.21.1")
	gone.SetAnnotations(map[string]string{"release.openshift.io/delete": "true"})
	to.Operators[0].Workloads = append(to.Operators[0].Workloads, gone) // is not waited for
	to.Operators[0].After = 5 * time.Minute
	to.Operators[0].Versions = []configv1.OperandVersion{{Name: "operator", Version: "4.21.1"}, {Name: "coredns", Version: "1.12"}}
	c := start(t, simulation.Options{Release: from})
	c.Expect(to)
	c.pass(time.Hour)
	expectOperator(t, c, "dns", "at rest", "ATrue PFalse DFalse 4.20.3")
	before := get[configv1.ClusterOperator](t, c, "", "dns").ResourceVersion

	// One of two workloads is not enough.
	apply(t, c, to.Operators[0].Workloads[0])
	c.pass(time.Hour)
	if get[configv1.ClusterOperator](t, c, "", "dns").ResourceVersion != before {
		t.Error("changed with half of its workloads")
	}
	apply(t, c, to.Operators[0].Workloads[1])
	c.pass(time.Second)
	expectOperator(t, c, "dns", "with its workloads", "ATrue PTrue DFalse 4.20.3")
	co := get[configv1.ClusterOperator](t, c, "", "dns")
	if got := coCondition(co, configv1.OperatorProgressing).Message; got != "Working towards 4.21.1" {
		t.Errorf("Progressing message %q", got)
	}
	c.pass(5*time.Minute - 3*time.Second)
	expectOperator(t, c, "dns", "before its time", "4.20.3")
	c.pass(4 * time.Second)
	expectOperator(t, c, "dns", "afterwards", "ATrue PFalse DFalse")
	co = get[configv1.ClusterOperator](t, c, "", "dns")
	checktest.SameIn(t, "versions", to.Operators[0].Versions, co.Status.Versions)
	expectOperator(t, c, "etcd", "without its workload", "4.20.3")

	// And back: the old form of the workloads is the old release.
	apply(t, c, from.Operators[0].Workloads[0])
	c.pass(time.Hour)
	if co = get[configv1.ClusterOperator](t, c, "", "dns"); version(co) != "4.20.3" || len(co.Status.Versions) != 1 {
		t.Errorf("after going back: %v", co.Status.Versions)
	}
}

func TestOperatorOutlivesRestart(t *testing.T) {
	c := made(t, simulation.Options{Release: release("4.20.3", "dns")})
	to := release("4.21.1", "dns")
	c.Expect(to)
	stop := c.run(t)
	apply(t, c, to.Operators[0].Workloads[0])
	c.pass(90 * time.Second)
	stop()
	c.run(t)
	c.pass(31 * time.Second) // 2 min since it began, though it was stopped between
	expectOperator(t, c, "dns", "after the restart", "4.21.1")
}

func TestOperatorWithoutWorkloadFollowsClusterVersion(t *testing.T) {
	from := simulation.Release{Version: "4.20.3", Operators: []simulation.Operator{{Name: "config"}}}
	to := simulation.Release{Version: "4.21.1", Operators: []simulation.Operator{{Name: "config"}}}
	c := start(t, simulation.Options{Release: from})
	c.Expect(to)
	c.pass(time.Hour)
	expectOperator(t, c, "config", "before the cluster moved", "4.20.3")
	checktest.Get(clusterapi.Modify(t.Context(), c, clusterapi.Key("", "version"), clusterapi.ModifyOptions{Status: true}, func(cv *configv1.ClusterVersion) error {
		cv.Status.Desired = configv1.Release{Version: "4.21.1", Image: "registry.example/other"}
		return nil
	}))(t)
	c.pass(time.Hour)
	expectOperator(t, c, "config", "after the cluster moved", "4.21.1")
}

func TestNewOperator(t *testing.T) {
	to := release("4.21.1", "olm")
	c := start(t, simulation.Options{Release: release("4.20.3", "dns")})
	c.Expect(to)
	apply(t, c, to.Operators[0].Workloads[0])
	c.pass(time.Second)
	expectOperator(t, c, "olm", "just installed", "AFalse PTrue DFalse")
	c.pass(time.Hour)
	expectOperator(t, c, "olm", "later", "ATrue PFalse DFalse 4.21.1")
}

// A release may bring a kind of workload that nobody watched so far.
func TestOperatorWithWorkloadOfAnotherKind(t *testing.T) {
	widget := func(size int64) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget",
			"metadata": map[string]any{"name": "w"}, "spec": map[string]any{"size": size}}}
	}
	c := start(t, simulation.Options{Release: release("4.20.3", "dns")})
	checktest.OK(t, c.Load(memory.Definition(widget(1).GroupVersionKind(), "Cluster")))
	c.pass(time.Minute)
	c.Expect(simulation.Release{Version: "4.21.1", Operators: []simulation.Operator{{Name: "dns", Workloads: []*unstructured.Unstructured{widget(2)}}}})
	c.pass(time.Minute)
	apply(t, c, widget(1))
	c.pass(time.Hour)
	expectOperator(t, c, "dns", "with another spec", "4.20.3")
	apply(t, c, widget(2))
	checktest.OK(t, c.Delete(t.Context(), operatorDeployment("dns", "").GroupVersionKind(), clusterapi.Key("openshift-dns", "dns"), clusterapi.DeleteOptions{}))
	c.pass(time.Hour)
	expectOperator(t, c, "dns", "with the wanted spec", "4.21.1")
}

func TestOperatorFaults(t *testing.T) {
	tests := []struct {
		fault simulation.Fault
		// What the operator shows 3, 4 and 14 minutes after its workload came;
		// it works for 2.
		want [3]string
	}{
		{simulation.Fault{Kind: simulation.FaultDegraded}, [3]string{"ATrue PTrue DTrue 4.20.3", "ATrue PTrue DTrue 4.20.3", "ATrue PTrue DTrue 4.20.3"}},
		{simulation.Fault{Kind: simulation.FaultDegraded, For: 10 * time.Minute}, [3]string{"ATrue PTrue DTrue 4.20.3", "ATrue PTrue DTrue 4.20.3", "ATrue PFalse DFalse 4.21.1"}},
		{simulation.Fault{Kind: simulation.FaultUnavailable}, [3]string{"AFalse PTrue DFalse 4.20.3", "AFalse PTrue DFalse 4.20.3", "AFalse PTrue DFalse 4.20.3"}},
		{simulation.Fault{Kind: simulation.FaultStuck}, [3]string{"ATrue PTrue DFalse 4.20.3", "ATrue PTrue DFalse 4.20.3", "ATrue PTrue DFalse 4.20.3"}},
		{simulation.Fault{Kind: simulation.FaultStuck, For: 10 * time.Minute}, [3]string{"ATrue PTrue DFalse 4.20.3", "ATrue PTrue DFalse 4.20.3", "ATrue PFalse DFalse 4.21.1"}},
		{simulation.Fault{Kind: simulation.FaultFlaps, Every: 90 * time.Second}, [3]string{"ATrue PFalse DTrue 4.21.1", "ATrue PFalse DFalse 4.21.1", "ATrue PFalse DTrue 4.21.1"}},
	}
	for _, tt := range tests {
		name := string(tt.fault.Kind)
		if tt.fault.For > 0 {
			name += "ForAWhile"
		}
		t.Run(name, func(t *testing.T) {
			to := release("4.21.1", "dns")
			to.Operators[0].Fault = &tt.fault
			c := start(t, simulation.Options{Release: release("4.20.3", "dns")})
			c.Expect(to)
			apply(t, c, to.Operators[0].Workloads[0])
			var got [3]string
			for i, d := range []time.Duration{3 * time.Minute, time.Minute, 10 * time.Minute} {
				c.pass(d)
				co := get[configv1.ClusterOperator](t, c, "", "dns")
				got[i] = conditions(co) + " " + version(co)
			}
			if got != tt.want {
				t.Errorf("after 3, 4 and 14 minutes: %q, want %q", got, tt.want)
			}
			c.SetOperatorFault("dns", nil)
			c.pass(3 * time.Minute)
			expectOperator(t, c, "dns", "once repaired", "ATrue PFalse DFalse 4.21.1")
		})
	}
}

func TestOperatorFaultAtRest(t *testing.T) {
	c := start(t, simulation.Options{Release: release("4.20.3", "dns")})
	c.SetOperatorFault("dns", &simulation.Fault{Kind: simulation.FaultDegraded, Reason: "Broken", Message: "no answer", For: time.Minute})
	c.pass(time.Second)
	d := coCondition(get[configv1.ClusterOperator](t, c, "", "dns"), configv1.OperatorDegraded)
	if d.Status != configv1.ConditionTrue || d.Reason != "Broken" || d.Message != "no answer" {
		t.Errorf("Degraded %+v", d)
	}
	c.pass(time.Minute)
	expectOperator(t, c, "dns", "a minute later", "ATrue PFalse DFalse")
}

func TestMachineConfigOperatorAwaitsPools(t *testing.T) {
	to := release("4.21.1", "machine-config")
	c := start(t, simulation.Options{Release: release("4.20.3", "machine-config"), ControlPlane: 1,
		Pools: []simulation.Pool{{Name: "worker", Nodes: 1}, {Name: "infra", Nodes: 1}}})
	c.Expect(to)
	drainer(t, c)
	old := map[string]string{}
	for _, p := range []string{"master", "worker", "infra"} {
		old[p] = get[mcfgv1.MachineConfigPool](t, c, "", p).Spec.Configuration.Name
	}
	apply(t, c, to.Operators[0].Workloads[0])
	c.pass(3 * time.Minute)
	for p, name := range old {
		pool := get[mcfgv1.MachineConfigPool](t, c, "", p)
		next := pool.Spec.Configuration.Name
		if next == name || len(pool.Spec.Configuration.Source) == 0 || pool.Status.Configuration.Name != name {
			t.Errorf("pool %s: spec %s, status %s, before %s", p, next, pool.Status.Configuration.Name, name)
		}
		mc := get[mcfgv1.MachineConfig](t, c, "", next)
		if mc.Annotations[mcp.AnnotationReleaseImageVersion] != "4.21.1" || mc.Spec.OSImageURL == get[mcfgv1.MachineConfig](t, c, "", name).Spec.OSImageURL {
			t.Errorf("rendered config %s: annotations %v, OS image %s", next, mc.Annotations, mc.Spec.OSImageURL)
		}
	}
	expectOperator(t, c, "machine-config", "with the master pool behind", "ATrue PTrue DFalse 4.20.3")
	co := get[configv1.ClusterOperator](t, c, "", "machine-config")
	var texts map[string]string
	checktest.OK(t, json.Unmarshal(co.Status.Extension.Raw, &texts))
	wantError := "MachineConfigPool master has not progressed to latest configuration: controller version mismatch for " + old["master"]
	if got := texts["lastSyncError"]; len(got) < len(wantError) || got[:len(wantError)] != wantError {
		t.Errorf("lastSyncError %q, want %q…", got, wantError)
	}

	c.pass(10 * time.Minute) // one required machine
	co = get[configv1.ClusterOperator](t, c, "", "machine-config")
	if d := coCondition(co, configv1.OperatorDegraded); d.Status != configv1.ConditionTrue || d.Reason != "RequiredPoolsFailed" {
		t.Errorf("after the limit: Degraded %+v", d)
	}

	// The master pool, alone, is enough.
	config := retarget(t, c, "master", "master-0")
	c.pass(10 * time.Minute)
	modifyStatus(t, c, "master", func(s *mcfgv1.MachineConfigPoolStatus) {
		s.Configuration.Name = config
		s.ObservedGeneration = 100
	})
	c.pass(time.Second)
	expectOperator(t, c, "machine-config", "with the master pool done", "ATrue PFalse DFalse 4.21.1")
	n := get[corev1.Node](t, c, "", "master-0")
	if n.Status.NodeInfo.KubeletVersion != "v1.34.0" {
		t.Errorf("kubelet %s, want v1.34.0", n.Status.NodeInfo.KubeletVersion)
	}
}

func modifyStatus(t *testing.T, c *cluster, pool string, f func(*mcfgv1.MachineConfigPoolStatus)) {
	t.Helper()
	checktest.Get(clusterapi.Modify(t.Context(), c, clusterapi.Key("", pool), clusterapi.ModifyOptions{Status: true}, func(p *mcfgv1.MachineConfigPool) error {
		f(&p.Status)
		return nil
	}))(t)
}

func setPool(s *mcfgv1.MachineConfigPoolStatus, t mcfgv1.MachineConfigPoolConditionType, status corev1.ConditionStatus, message string) {
	for i := range s.Conditions {
		if s.Conditions[i].Type == t {
			s.Conditions[i].Status, s.Conditions[i].Message = status, message
		}
	}
}

func TestPoolProblems(t *testing.T) {
	tests := []struct {
		name   string
		change func(t *testing.T, c *cluster, config string)
		want   string // lastSyncError
		failed bool   // Degraded at once
	}{
		{"not updated", func(t *testing.T, c *cluster, config string) {
			modifyStatus(t, c, "master", func(s *mcfgv1.MachineConfigPoolStatus) {
				s.Configuration.Name, s.ObservedGeneration, s.UnavailableMachineCount = config, 100, 1
				setPool(s, mcfgv1.MachineConfigPoolUpdated, corev1.ConditionFalse, "")
			})
		}, "required MachineConfigPool master is not ready, retrying. Status: (total: 3, ready 3, updated: 3, unavailable: 1, degraded: 0)", false},
		{"changed since its status was written", func(t *testing.T, c *cluster, config string) {
			modifyStatus(t, c, "master", func(s *mcfgv1.MachineConfigPoolStatus) { s.Configuration.Name, s.ObservedGeneration = config, 1 })
		}, "required MachineConfigPool master is not ready, retrying. Status: (total: 3, ready 3, updated: 3, unavailable: 0, degraded: 0)", false},
		{"paused on the new release", func(t *testing.T, c *cluster, config string) {
			modify(t, c, "", "master", func(p *mcfgv1.MachineConfigPool) { p.Spec.Paused = true })
			modifyStatus(t, c, "master", func(s *mcfgv1.MachineConfigPoolStatus) {
				s.Configuration.Name = config
				setPool(s, mcfgv1.MachineConfigPoolUpdated, corev1.ConditionFalse, "")
			})
		}, "required MachineConfigPool master is paused and cannot sync until it is unpaused", true},
		{"a custom pool degraded", func(t *testing.T, c *cluster, config string) {
			modifyStatus(t, c, "infra", func(s *mcfgv1.MachineConfigPoolStatus) {
				setPool(s, mcfgv1.MachineConfigPoolDegraded, corev1.ConditionTrue, "x")
				setPool(s, mcfgv1.MachineConfigPoolNodeDegraded, corev1.ConditionTrue, "Node infra-0 is broken")
			})
			modifyStatus(t, c, "master", func(s *mcfgv1.MachineConfigPoolStatus) { s.Configuration.Name, s.ObservedGeneration = config, 100 })
		}, "MachineConfigPool infra is not ready, retrying. Status: (pool degraded: true total: 2, ready 2, updated: 2, unavailable: 0, reason: Node infra-0 is broken)", false},
		{"done", func(t *testing.T, c *cluster, config string) {
			modifyStatus(t, c, "master", func(s *mcfgv1.MachineConfigPoolStatus) { s.Configuration.Name, s.ObservedGeneration = config, 100 })
		}, "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			to := release("4.21.1", "machine-config")
			c := start(t, simulation.Options{Release: release("4.20.3", "machine-config"),
				Pools: []simulation.Pool{{Nodes: 1}, {Name: "infra", Nodes: 2}}})
			c.Expect(to)
			apply(t, c, to.Operators[0].Workloads[0])
			c.pass(3 * time.Minute)
			tt.change(t, c, get[mcfgv1.MachineConfigPool](t, c, "", "master").Spec.Configuration.Name)
			c.pass(time.Second)
			co := get[configv1.ClusterOperator](t, c, "", "machine-config")
			var texts map[string]string
			checktest.OK(t, json.Unmarshal(co.Status.Extension.Raw, &texts))
			if texts["lastSyncError"] != tt.want {
				t.Errorf("lastSyncError %q, want %q", texts["lastSyncError"], tt.want)
			}
			if got := version(co) == "4.21.1"; got != (tt.want == "") {
				t.Errorf("version %s", version(co))
			}
			checktest.Equal(t, tt.failed, coCondition(co, configv1.OperatorDegraded).Status == configv1.ConditionTrue, "Degraded")
			degraded := tt.name == "a custom pool degraded"
			if got := coCondition(co, configv1.OperatorUpgradeable); (got.Reason == "DegradedPool") != degraded {
				t.Errorf("Upgradeable %+v", got)
			}
		})
	}
}

// What the operator's status.extension says of a pool that is neither updated nor
// updating.
func TestPoolTexts(t *testing.T) {
	c := start(t, simulation.Options{Release: release("4.20.3", "machine-config"), Pools: []simulation.Pool{{Nodes: 1}}})
	c.pass(time.Minute)
	is := func(t mcfgv1.MachineConfigPoolConditionType, status corev1.ConditionStatus, message string) mcfgv1.MachineConfigPoolCondition {
		return mcfgv1.MachineConfigPoolCondition{Type: t, Status: status, Reason: "why", Message: message}
	}
	const yes, no = corev1.ConditionTrue, corev1.ConditionFalse
	pinned := is(mcfgv1.MachineConfigPoolPinnedImageSetsDegraded, yes, "no space")
	for _, tt := range []struct {
		conditions []mcfgv1.MachineConfigPoolCondition
		want       string
	}{
		{[]mcfgv1.MachineConfigPoolCondition{is("Updated", no, ""), is("Updating", no, "")}, "<unknown>"},
		{[]mcfgv1.MachineConfigPoolCondition{is("Updated", no, ""), pinned}, `pool is degraded because pinned image sets failed with "why": "no space"`},
		{[]mcfgv1.MachineConfigPoolCondition{is("RenderDegraded", yes, "x"), pinned}, `pool is degraded because rendering fails with "why": "x"`},
	} {
		modifyStatus(t, c, "worker", func(s *mcfgv1.MachineConfigPoolStatus) { s.Conditions = tt.conditions })
		c.pass(time.Second)
		var texts map[string]string
		checktest.OK(t, json.Unmarshal(get[configv1.ClusterOperator](t, c, "", "machine-config").Status.Extension.Raw, &texts))
		if texts["worker"] != tt.want {
			t.Errorf("%q, want %q", texts["worker"], tt.want)
		}
	}
}

func TestRendering(t *testing.T) {
	c := start(t, simulation.Options{Release: release("4.20.3"), Pools: []simulation.Pool{{Nodes: 1}, {Name: "infra", Nodes: 1}}})
	c.pass(time.Minute)
	worker, infra := get[mcfgv1.MachineConfigPool](t, c, "", "worker"), get[mcfgv1.MachineConfigPool](t, c, "", "infra")
	digits := func(p *mcfgv1.MachineConfigPool) string {
		n := p.Spec.Configuration.Name
		return n[len(n)-32:]
	}
	if worker.Spec.Configuration.Name != "rendered-worker-"+digits(worker) || digits(worker) != digits(infra) {
		t.Errorf("equal content: %s and %s", worker.Spec.Configuration.Name, infra.Spec.Configuration.Name)
	}
	before := worker.ResourceVersion
	addMachineConfig(t, c, "99-infra-motd", "infra", "hello")
	c.pass(time.Minute)
	if got := get[mcfgv1.MachineConfigPool](t, c, "", "worker"); got.ResourceVersion != before {
		t.Error("worker changed with infra's MachineConfig")
	}
	next := get[mcfgv1.MachineConfigPool](t, c, "", "infra")
	if digits(next) == digits(infra) {
		t.Error("infra has the same rendered config with a MachineConfig more")
	}
	var sources []string
	for _, s := range next.Spec.Configuration.Source {
		sources = append(sources, s.Name)
	}
	checktest.SameIn(t, "sources", []string{"00-worker", "01-worker-kubelet", "99-infra-motd"}, sources)

	// A pool that selects nothing.
	modify(t, c, "", "infra", func(p *mcfgv1.MachineConfigPool) {
		p.Spec.MachineConfigSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"none": "such"}}
	})
	c.pass(time.Minute)
	for _, cond := range get[mcfgv1.MachineConfigPool](t, c, "", "infra").Status.Conditions {
		if cond.Type == mcfgv1.MachineConfigPoolRenderDegraded &&
			(cond.Status != corev1.ConditionTrue || cond.Message != "Failed to render configuration for pool infra: no MachineConfigs found matching selector none=such") {
			t.Errorf("RenderDegraded %s %q", cond.Status, cond.Message)
		}
	}
}
