package memory

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// appsRules are those of workloads.
func appsRules(kind string) rules {
	switch kind {
	case "Deployment":
		return rules{valid: validDeployment, update: sameSelector}
	case "DaemonSet":
		return rules{valid: validDaemonSet, update: sameSelector}
	case "ReplicaSet":
		return rules{valid: validReplicaSet, update: sameSelector}
	case "StatefulSet":
		return rules{name: apivalidation.NameIsDNSLabel, valid: validStatefulSet, update: updatedStatefulSet}
	}
	return rules{}
}

func sameSelector(old, n node) { immutable(old.get("spec"), n.get("spec"), "selector") }

func validDeployment(n node) {
	s := n.get("spec")
	s.notNegative("replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
	s.controls("deployment")
	s.get("template").template()
	s.alwaysRestarts("Deployment")
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

func (n node) alwaysRestarts(kind string) {
	s := n.get("template", "spec")
	if f := s.get("restartPolicy"); f.text() != "" && f.text() != "Always" {
		f.notSupported("Always")
	}
	if f := s.get("activeDeadlineSeconds"); f.set() {
		f.forbidden("activeDeadlineSeconds in " + kind + " is not Supported")
	}
}

func validDaemonSet(n node) {
	s := n.get("spec")
	s.notNegative("minReadySeconds", "revisionHistoryLimit")
	s.controls("daemonset")
	s.get("template").template()
	s.alwaysRestarts("DaemonSet")
	s.strategy("updateStrategy", "OnDelete", "RollingUpdate")
	n.get("status").notNegative("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady",
		"observedGeneration", "updatedNumberScheduled", "numberAvailable", "numberUnavailable")
}

func validReplicaSet(n node) {
	s := n.get("spec")
	s.notNegative("replicas", "minReadySeconds")
	s.controls("replicaset")
	s.get("template").template()
	s.alwaysRestarts("ReplicaSet")
	n.get("status").notNegative("observedGeneration", "replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas")
}

func validStatefulSet(n node) {
	s := n.get("spec")
	s.notNegative("replicas", "minReadySeconds", "revisionHistoryLimit")
	s.controls("statefulset")
	s.get("template").template()
	s.alwaysRestarts("StatefulSet")
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
		if !mutableStatefulSet[name] && !equal(a.get(name).v, b.get(name).v) {
			b.fail(field.Forbidden(b.path(), "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"))
			return
		}
	}
}
