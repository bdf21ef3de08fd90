package nodes_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi/dump"
	"github.com/clusterupdate/clusterupdate/examples/internal/nodes"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// recorded plays what is pending in a recording of these manifests.
func recorded(t *testing.T, manifests ...string) *nodes.Result {
	t.Helper()
	files := fstest.MapFS{}
	for i, m := range manifests {
		files[fmt.Sprintf("heap/%d.yaml", i)] = &fstest.MapFile{Data: []byte(m)}
	}
	recording := checktest.Get(dump.Open(t.Context(), files, dump.Options{}))(t)
	r := checktest.Get(nodes.Fork(t.Context(), nodes.Options{Title: "recorded"}, recording))(t)
	defer r.Close()
	return checktest.Get(r.Play(t.Context(), 2*time.Hour))(t)
}

// pool is a pool that wants its configuration 2.
func pool(name string, more string) string {
	return fmt.Sprintf(`apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfigPool
metadata: {name: %[1]s}
spec:
  nodeSelector: {matchLabels: {node-role.kubernetes.io/%[1]s: ""}}
  machineConfigSelector: {matchLabels: {machineconfiguration.openshift.io/role: %[1]s}}
  configuration: {name: rendered-%[1]s-2}
  %[2]s
status:
  machineCount: 1
  configuration: {name: rendered-%[1]s-1}
`, name, more)
}

// node is a node of a pool, at its configuration 1.
func node(name, pool string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Node
metadata:
  name: %[1]s
  labels: {kubernetes.io/os: linux, node-role.kubernetes.io/%[2]s: ""}
  annotations:
    machineconfiguration.openshift.io/currentConfig: rendered-%[2]s-1
    machineconfiguration.openshift.io/desiredConfig: rendered-%[2]s-1
    machineconfiguration.openshift.io/state: Done
status:
  nodeInfo: {bootID: x}
  conditions: [{type: Ready, status: "True", lastTransitionTime: "2026-01-01T00:00:00Z"}]
`, name, pool)
}

// controller is what a real cluster's machine-config controller leaves in a recording.
const controller = `apiVersion: v1
kind: Pod
metadata:
  namespace: openshift-machine-config-operator
  name: machine-config-controller-x
  labels: {k8s-app: machine-config-controller}
spec: {nodeName: m0, containers: [{name: c, image: i}]}
status: {phase: Running}
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {namespace: openshift-machine-config-operator, name: machine-config-controller}
spec: {holderIdentity: x, leaseDurationSeconds: 137, renewTime: "2026-01-01T00:00:00.000000Z"}
---
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfigNode
metadata: {name: w0}
spec: {node: {name: w0}, pool: {name: worker}, configVersion: {desired: rendered-worker-1}}
---
apiVersion: machineconfiguration.openshift.io/v1
kind: ControllerConfig
metadata: {name: machine-config-controller}
spec: {infra: {status: {controlPlaneTopology: HighlyAvailable}}}
`

// The cluster's own controller does not stand in the way, configurations that were
// not recorded are made up, and pools that are paused stay as they are.
func TestFork(t *testing.T) {
	got := recorded(t, pool("worker", ""), pool("infra", "paused: true"), node("w0", "worker"), node("w1", "worker"), node("i0", "infra"), controller)
	if got.Outcome != nodes.Completed || got.Duration == 0 {
		t.Errorf("%s after %s: %q", got.Outcome, got.Duration, got.Why)
	}
	for i := range got.Pools {
		got.Pools[i].Duration = 0
	}
	checktest.Same(t, []nodes.Pool{{Name: "infra", Nodes: 1, Paused: true}, {Name: "worker", Updated: 2, Nodes: 2}},
		got.Pools)
	assumed := strings.Join(got.Assumed, "\n")
	checktest.Has(t, assumed,
		"pool worker counts 1 nodes, the recording has 2",
		"these MachineConfigs were not recorded, and going from or to them takes a reboot: rendered-infra-1, rendered-infra-2, rendered-worker-1, rendered-worker-2",
	)
	if strings.Contains(assumed, "ControllerConfig") {
		t.Errorf("the ControllerConfig is there:\n%s", assumed)
	}
}

// What a recording has of pods and budgets holds drains up.
func TestForkWithPods(t *testing.T) {
	const pods = `apiVersion: apps/v1
kind: ReplicaSet
metadata: {namespace: shop, name: db, uid: rs}
spec:
  replicas: 1
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: c, image: i}]}}
---
apiVersion: v1
kind: Pod
metadata:
  namespace: shop
  name: db-0
  labels: {app: db}
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: db, uid: rs, controller: true}]
spec: {nodeName: w0, containers: [{name: c, image: i}]}
status: {phase: Running, conditions: [{type: Ready, status: "True"}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {namespace: shop, name: db, generation: 1}
spec: {minAvailable: 1, selector: {matchLabels: {app: db}}}
status: {observedGeneration: 1, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1, disruptionsAllowed: 0}
`
	got := recorded(t, pool("worker", ""), node("w0", "worker"), pods)
	if got.Outcome != nodes.Stuck || len(got.Why) == 0 || !strings.HasPrefix(got.Why[0], "worker > w0 > Failed in Draining: shop/db-0: ") {
		t.Errorf("%s: %q", got.Outcome, got.Why)
	}
	checktest.Has(t, strings.Join(got.Assumed, "\n"), "not all pods were recorded: drains evict the 1 that were")
}

// A control plane of one node, as the Infrastructure says, is not drained.
func TestForkOfOneNode(t *testing.T) {
	const infrastructure = `apiVersion: config.openshift.io/v1
kind: Infrastructure
metadata: {name: cluster}
status: {controlPlaneTopology: SingleReplica}
`
	got := recorded(t, pool("master", ""), node("m0", "master"), infrastructure)
	checktest.Has(t, strings.Join(got.Assumed, "\n"), "the control plane is SingleReplica, as the Infrastructure says")
	if got.Outcome != nodes.Completed {
		t.Errorf("%s: %q", got.Outcome, got.Why)
	}
	for _, e := range got.Timeline.Entries {
		if e.Phase == "Draining" {
			t.Errorf("%+v", e)
		}
	}
}
