package memory

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterupdate/clusterupdate/internal/objects"
)

func sameSelector(old, n node) { immutable(old.get("spec"), n.get("spec"), "selector") }

// workload judges what all workloads but jobs have in common, and returns the spec.
// Counts are fields of it that are not negative.
func (n node) workload(kind string, counts ...string) node {
	s := n.get("spec")
	s.notNegative(counts...)
	s.controls(strings.ToLower(kind))
	s.get("template").template()
	pod := s.get("template", "spec")
	pod.get("restartPolicy").oneOf("Always")
	if f := pod.get("activeDeadlineSeconds"); f.set() {
		f.forbidden("activeDeadlineSeconds in " + kind + " is not Supported")
	}
	return s
}

func validDeployment(n node) {
	s := n.workload("Deployment", "replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
	s.strategy("strategy", "Recreate", "RollingUpdate")
	least, _ := s.get("minReadySeconds").number()
	if i, ok := s.get("progressDeadlineSeconds").number(); ok && i <= least {
		s.get("progressDeadlineSeconds").invalid("must be greater than minReadySeconds")
	}
	n.get("status").notNegative("observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas")
}

// strategy judges how a workload is updated.
func (n node) strategy(name string, kinds ...string) {
	s := n.get(name)
	s.get("type").oneOf(kinds...)
	rolling := s.get("rollingUpdate")
	if kind := s.get("type").text(); kind == "Recreate" && rolling.set() {
		rolling.forbidden("may not be specified when strategy `type` is 'Recreate'")
	}
	unavailable, surge := rolling.get("maxUnavailable"), rolling.get("maxSurge")
	unavailable.intOrPercent()
	surge.intOrPercent()
	if name == "strategy" && none(unavailable) && none(surge) {
		unavailable.invalid("may not be 0 when `maxSurge` is 0")
	}
}

func none(n node) bool { return n.v == int64(0) || n.v == "0%" }

func validDaemonSet(n node) {
	s := n.workload("DaemonSet", "minReadySeconds", "revisionHistoryLimit")
	s.strategy("updateStrategy", "OnDelete", "RollingUpdate")
	n.get("status").notNegative("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady",
		"observedGeneration", "updatedNumberScheduled", "numberAvailable", "numberUnavailable")
}

func validReplicaSet(n node) {
	n.workload("ReplicaSet", "replicas", "minReadySeconds")
	n.get("status").notNegative("observedGeneration", "replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas")
}

func validStatefulSet(n node) {
	s := n.workload("StatefulSet", "replicas", "minReadySeconds", "revisionHistoryLimit")
	s.get("podManagementPolicy").oneOf("OrderedReady", "Parallel")
	s.strategy("updateStrategy", "OnDelete", "RollingUpdate")
}

// mutableStatefulSet are the fields of its spec that an update may change.
var mutableStatefulSet = map[string]bool{
	"replicas": true, "ordinals": true, "template": true, "updateStrategy": true, "revisionHistoryLimit": true,
	"persistentVolumeClaimRetentionPolicy": true, "minReadySeconds": true,
}

func updatedStatefulSet(old, n node) {
	a, b := old.get("spec"), n.get("spec")
	for _, name := range append(a.keys(), b.keys()...) {
		if !mutableStatefulSet[name] && !objects.Equal(a.get(name).v, b.get(name).v) {
			b.fail(field.Forbidden(b.path(), "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"))
			return
		}
	}
}
