package view_test

import (
	"fmt"
	"os"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi/view"
)

// exampleObjects are a cluster that updates to 4.17.1 and whose network operator
// does not get ready.
func exampleObjects() *view.Objects {
	start := metav1.NewTime(time.Date(2024, 10, 1, 12, 0, 0, 0, time.UTC))
	later := metav1.NewTime(start.Add(20 * time.Minute))
	condition := func(t configv1.ClusterStatusConditionType, status configv1.ConditionStatus, reason, message string) configv1.ClusterOperatorStatusCondition {
		return configv1.ClusterOperatorStatusCondition{Type: t, Status: status, Reason: reason, Message: message, LastTransitionTime: later}
	}
	operator := func(name, version string, conditions ...configv1.ClusterOperatorStatusCondition) *configv1.ClusterOperator {
		co := &configv1.ClusterOperator{}
		co.Name = name
		co.Annotations = map[string]string{"include.release.openshift.io/self-managed-high-availability": "true"}
		co.Status.Versions = []configv1.OperandVersion{{Name: "operator", Version: version}}
		co.Status.Conditions = conditions
		return co
	}
	cv := &configv1.ClusterVersion{}
	cv.Name = "version"
	cv.Status.Desired.Version = "4.17.1"
	cv.Status.History = []configv1.UpdateHistory{
		{State: configv1.PartialUpdate, Version: "4.17.1", StartedTime: start},
		{State: configv1.CompletedUpdate, Version: "4.17.0", StartedTime: start, CompletionTime: &start},
	}
	cv.Status.Conditions = []configv1.ClusterOperatorStatusCondition{
		condition(configv1.OperatorProgressing, configv1.ConditionTrue, "", "Working towards 4.17.1: waiting on network"),
		condition("Failing", configv1.ConditionFalse, "", ""),
	}
	return &view.Objects{
		ClusterVersion: cv,
		ClusterOperators: []*configv1.ClusterOperator{
			operator("etcd", "4.17.1", condition(configv1.OperatorAvailable, configv1.ConditionTrue, "", "")),
			operator("network", "4.17.0",
				condition(configv1.OperatorAvailable, configv1.ConditionFalse, "Rollout", "DaemonSet \"openshift-ovn-kubernetes/ovnkube-node\" is not available"),
				condition(configv1.OperatorProgressing, configv1.ConditionTrue, "Deploying", "")),
		},
	}
}

func ExampleAssessStatus() {
	now := time.Date(2024, 10, 1, 12, 30, 0, 0, time.UTC)
	status, err := view.AssessStatus(exampleObjects(), now)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(status)
	if err := status.WriteText(os.Stdout, os.Stderr, view.StatusText{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 4.17.1: Progressing, 1 of 2 operators updated; waits on ClusterOperator network: Available=False (Rollout)
	// = Control Plane =
	// Assessment:      Progressing
	// Target Version:  4.17.1 (from 4.17.0)
	// Updating:        network
	// Completion:      50% (1 operators updated, 1 updating, 0 waiting)
	// Duration:        30m (Est. Time Remaining: 26m)
	// Operator Health: 1 Healthy, 1 Unavailable
	//
	// = Update Health =
	// SINCE   LEVEL     IMPACT             MESSAGE
	// 10m     Warning   API Availability   Cluster Operator network is unavailable (Rollout)
	//
	// Run with --details=health for additional description and links to related online documentation
}

// With the components of the release, a chain begins at the runlevel that the
// update has come to.
func ExampleChain() {
	objects := exampleObjects()
	operator := func(name string) []view.Resource {
		return []view.Resource{{Group: "config.openshift.io", Kind: "ClusterOperator", Name: name}}
	}
	objects.Components = []view.Component{
		{Runlevel: "12", Name: "etcd-operator", Objects: operator("etcd")},
		{Runlevel: "70", Name: "cluster-network-operator", Objects: operator("network")},
	}
	status, err := view.AssessStatus(objects, time.Date(2024, 10, 1, 12, 30, 0, 0, time.UTC))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, chain := range status.Waits {
		fmt.Println(chain)
		last := chain[len(chain)-1]
		fmt.Println("since", last.Since.Format(time.TimeOnly)+":", last.Message)
	}
	// Output:
	// runlevel 70 > component cluster-network-operator > ClusterOperator network: Available=False (Rollout)
	// since 12:20:00: DaemonSet "openshift-ovn-kubernetes/ovnkube-node" is not available
}
