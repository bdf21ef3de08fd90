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
