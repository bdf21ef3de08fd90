package view_test

import (
	"context"
	"fmt"
	"os"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
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

// exampleVersion is a cluster with one update that is recommended, and one that is
// not.
func exampleVersion() *configv1.ClusterVersion {
	begin := time.Date(2024, 2, 7, 16, 0, 0, 0, time.UTC)
	end := metav1.NewTime(begin.Add(52 * time.Minute))
	return &configv1.ClusterVersion{
		ObjectMeta: metav1.ObjectMeta{Name: "version"},
		Spec:       configv1.ClusterVersionSpec{Channel: "stable-4.14"},
		Status: configv1.ClusterVersionStatus{
			Desired: configv1.Release{Version: "4.14.1", Image: "registry.example/release:4.14.1", Channels: []string{"fast-4.14", "stable-4.14"}},
			Conditions: []configv1.ClusterOperatorStatusCondition{
				{Type: "Failing", Status: "False"},
				{Type: "Progressing", Status: "False", Message: "Cluster version is 4.14.1"},
			},
			AvailableUpdates: []configv1.Release{{Version: "4.14.2", Image: "registry.example/release:4.14.2"}},
			ConditionalUpdates: []configv1.ConditionalUpdate{{
				Release:    configv1.Release{Version: "4.14.3", Image: "registry.example/release:4.14.3", URL: "https://errata.example/3"},
				Risks:      []configv1.ConditionalUpdateRisk{{Name: "SlowDNS", URL: "https://issues.example/1", Message: "DNS may be slow."}},
				Conditions: []metav1.Condition{{Type: "Recommended", Status: "False", Reason: "SlowDNS", Message: "DNS may be slow. https://issues.example/1"}},
			}},
			History: []configv1.UpdateHistory{{State: "Completed", Version: "4.14.1", Image: "registry.example/release:4.14.1", StartedTime: metav1.NewTime(begin), CompletionTime: &end, Verified: true}},
		},
	}
}

// exampleCluster is a cluster that has nothing else.
func exampleCluster() clusterapi.Reader {
	cluster := memory.New(memory.Options{Lenient: true})
	u, err := clusterapi.ToUnstructured(exampleVersion())
	if err == nil {
		err = cluster.Load(u)
	}
	if err != nil {
		panic(err)
	}
	return cluster
}

// The updates of a cluster, live or recorded.
func ExampleReadSummary() {
	s, err := view.ReadSummary(context.Background(), exampleCluster())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Version, "to", s.Updates[0].Version)
	// Output:
	// 4.14.1 to 4.14.2
}

// What a cluster can update to, with what speaks against the rest.
func ExampleSummarize() {
	s, err := view.Summarize(exampleVersion())
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := s.WriteText(os.Stdout, os.Stderr, view.SummaryText{IncludeNotRecommended: true}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// Cluster version is 4.14.1
	//
	// Upstream is unset, so the cluster will use an appropriate default.
	// Channel: stable-4.14 (available channels: fast-4.14, stable-4.14)
	//
	// Recommended updates:
	//
	//   VERSION     IMAGE
	//   4.14.2      registry.example/release:4.14.2
	//
	// Updates with known issues:
	//
	//   Version: 4.14.3
	//   Image: registry.example/release:4.14.3
	//   Reason: SlowDNS
	//   Message: DNS may be slow. https://issues.example/1
}

// Whether to update to one release now: its known issue and a critical alert
// speak against it, and only the alert was accepted.
func ExampleReadRecommend() {
	alerts := func(context.Context) ([]clusterapi.Alert, error) { // such as Prometheus.Firing of graph/risk
		return []clusterapi.Alert{{Labels: map[string]string{"alertname": "DiskFull", "severity": "critical"}, State: "firing"}}, nil
	}
	r, err := view.ReadRecommend(context.Background(), exampleCluster(), view.RecommendOptions{
		Alerts:  alerts,
		Version: "4.14.3",
		Accept:  []string{"DiskFull"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, issue := range r.Issues {
		fmt.Println(issue.Name, issue.Accepted)
	}
	fmt.Println("error:", r.WriteText(os.Stdout, os.Stderr, view.RecommendText{Quiet: true}))
	// Output:
	// ConditionalUpdateRisk false
	// DiskFull true
	// error: issues that apply to this cluster but which were not included in --accept: ConditionalUpdateRisk
}

// The newest releases of each minor version, and what is known against them.
func ExampleRecommend_WriteText() {
	r, err := view.AssessRecommend(view.RecommendInput{ClusterVersion: exampleVersion()})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := r.WriteText(os.Stdout, os.Stderr, view.RecommendText{}); err != nil {
		fmt.Println("error:", err)
	}
	// Output:
	// Upstream update service is unset, so the cluster will use an appropriate default.
	// Channel: stable-4.14 (available channels: fast-4.14, stable-4.14)
	//
	// Updates to 4.14:
	//
	//   Version: 4.14.3
	//   Image: registry.example/release:4.14.3
	//   Reason: SlowDNS
	//   Message: DNS may be slow. https://issues.example/1
	//
	//   VERSION     ISSUES
	//   4.14.2      no known issues relevant to this cluster
}

// The releases that a cluster has run.
func ExampleAssessHistory() {
	h, err := view.AssessHistory(exampleVersion(), time.Now())
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := h.WriteText(os.Stdout, view.HistoryText{WithoutImages: true}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// VERSION   STATE       STARTED                COMPLETED              DURATION   VERIFIED
	// 4.14.1    Completed   2024-02-07T16:00:00Z   2024-02-07T16:52:00Z   52m        true
}
