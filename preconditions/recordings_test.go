package preconditions_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	clusterdump "github.com/clusterupdate/clusterupdate/clusterapi/dump"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/rules"
)

// recorded opens a recording of a real cluster.
func recorded(t *testing.T, name string) (clusterapi.Reader, *configv1.ClusterVersion) {
	t.Helper()
	recording := checktest.Get(clusterdump.Open(t.Context(), os.DirFS(filepath.Join(testdata.Dir(t), name)),
		clusterdump.Options{}))(t)
	cv := checktest.Get(clusterapi.Get[configv1.ClusterVersion](t.Context(), recording,
		clusterapi.Key("", "version")))(t)
	return recording, cv
}

// TestRealUpgradeable: the recorded condition of an older operator, written in
// its style from the recorded ClusterOperators.
func TestRealUpgradeable(t *testing.T) {
	r, cv := recorded(t, "clusters/4.14.1-degraded")
	operators := preconditions.Sources(preconditions.RiskOptions{Reader: r, OwnVersion: "4.14.1"})[4:]
	got := preconditions.Upgradeable(t.Context(), operators, nil, preconditions.Legacy, nil)
	for _, want := range cv.Status.Conditions {
		if want.Type != configv1.OperatorUpgradeable {
			continue
		}
		want.LastTransitionTime = metav1.Time{}
		if diff := cmp.Diff(&want, got.Condition); diff != "" || len(got.Risks) != 2 {
			t.Error(diff)
		}
		return
	}
	t.Error("the recording has no condition Upgradeable")
}

// TestRecordings lists every finding of every check over each recorded cluster, for its
// next patch and its next minor version, with why an administrator should see it. What is
// not recorded is not known, and not listed.
func TestRecordings(t *testing.T) {
	const (
		recommended = "ClusterVersionRecommendedUpdate/UnknownUpdate" // the update service does not offer the target
		fires       = "CriticalAlerts/CriticalAlert"                  // an alert
		candidate   = "Channel/UnsupportedChannel"                    // the cluster has a candidate channel
		behind      = "Channel/ChannelBehindTarget"                   // its channel does not have the target
		going       = "UpdateInProgress/UpdateInProgress"             // an update to another release is not complete
		down        = "ClusterOperators/ClusterOperatorNotAvailable"  // the update will wait for it
		degraded    = "ClusterOperators/ClusterOperatorDegraded"      // likewise
		kubelets    = "KubeletSkew/KubeletVersionUnknown"             // the recorded nodes do not have their kubelet's version
		rollout     = "PoolsUpdating/PoolUpdating"                    // nodes are on their way to the last configuration
		held        = "ClusterVersionUpgradeable/ClusterOperatorsNotUpgradeable"
		heldBy      = "ClusterOperators/ClusterOperatorNotUpgradeable" // what the line above tells, where there is one
	)
	type list = []string
	w := func(finding string) string { return "Warning " + finding }
	b := func(finding string) string { return "Blocking " + finding }
	const byVersion, byOperators = ", repeat of ClusterVersionUpgradeable", ", repeat of ClusterOperators"
	for _, tt := range []struct {
		cluster, target string
		want            list
	}{
		{"clusters/4.14.1-degraded", "4.14.2", list{w(recommended), w(down), w(degraded), w(candidate), w(going)}},
		{"clusters/4.14.1-degraded", "4.15.0", list{b(held), w(recommended), w(kubelets), b(down), b(degraded), b(heldBy) + byVersion, w(candidate), w(behind), b(going)}},
		{"clusters/4.14.1-workers-started-updating-multiple-pools", "4.14.2", list{w(rollout), w(down), w(candidate), w(going)}},
		{"clusters/4.14.1-workers-started-updating-multiple-pools", "4.15.0", list{w(recommended), b(rollout) + byOperators, w(rollout) + byOperators, w(kubelets), b(down), b(heldBy), w(candidate), w(behind), b(going)}},
		{"clusters/4.15.0-ec2-early", "4.15.0", list{w(recommended), w(candidate), w(going)}},
		{"clusters/4.15.0-ec2-early", "4.16.0", list{w(recommended), w(kubelets), w(candidate), w(behind), b(going)}},
		{"clusters/not-upgrading", "4.14.2", list{w(recommended), w(candidate)}},
		{"clusters/not-upgrading", "4.15.0", list{w(recommended), w(kubelets), w(candidate), w(behind)}},
		{"clusters/recommend", "4.14.2", list{w(candidate), w(going)}},
		{"clusters/recommend", "4.15.0", list{w(recommended), w(candidate), w(behind), b(going)}},
		{"insights-4.7", "4.7.17", list{w(recommended), w(degraded), w(fires)}},
		{"insights-4.7", "4.8.0", list{b(held), w(recommended), b(degraded), b(heldBy) + byVersion, w(fires), w(behind)}},
	} {
		t.Run(tt.cluster+" to "+tt.target, func(t *testing.T) {
			r, cv := recorded(t, tt.cluster)
			in := input(r, cv, tt.target)
			report := checktest.Get(preconditions.Run(t.Context(), rules.Default(rules.Options{}), in,
				preconditions.Options{}))(t)
			checktest.Same(t, tt.want, listed(report))
		})
	}
}

// listed are the findings that are not only worth knowing, one a line.
func listed(report *preconditions.Report) []string {
	var lines []string
	for _, result := range report.Results {
		for i, f := range result.Findings {
			if f.Severity < preconditions.Warning || result.Err != nil && i == len(result.Findings)-1 {
				continue
			}
			line := f.Severity.String() + " " + result.Check + "/" + f.Reason
			if f.RepeatOf != "" {
				line += ", repeat of " + f.RepeatOf
			}
			lines = append(lines, line)
		}
	}
	return lines
}

// A cause is told once, in summaries by the most general finding; once that one is set
// aside the others count by themselves.
func TestRepeats(t *testing.T) {
	const gate = "ack-4.18-kube"
	const message = "One or more machine config pools are degraded"
	co := clusterOperator("machine-config", coCond("Available", "True", "", ""), coCond("Degraded", "False", "", ""), coCond("Upgradeable", "False", "DegradedPool", message))
	cv := clusterVersion("4.18.5@A", channel("stable-4.19"), available("4.19.1"), history("4.18.5@A C"),
		cond("Upgradeable", "False", "MultipleReasons", "Cluster should not be upgraded for multiple reasons:\n* APIs are removed\n* "+message))
	r := reader(t, cv, co, pool("worker", false, "NodeDegraded"), gates(map[string]string{gate: "APIs are removed"}), acks(nil))
	report := run(t, rules.Default(rules.Options{}), input(r, cv, "4.19.1"))
	repeats := []string{`"PoolsDegraded" failed because of "DegradedPool"`, `"ClusterOperators" failed because of "ClusterOperatorNotUpgradeable"`, `"AdminAcks" failed`}
	d := report.Decide(preconditions.Policy{})
	for _, line := range repeats {
		checktest.FailIf(t, strings.Contains(d.Summary, line), "the summary repeats %s:\n%s", line, d.Summary)
	}
	checktest.Equal(t, true, d.Blocked, "blocked: %s", d.Summary)
	d = report.Decide(preconditions.Policy{Bypasses: []preconditions.Bypass{{Check: "ClusterVersionUpgradeable", By: "ann", Why: "a test"}}})
	for _, line := range repeats {
		if !d.Blocked || !strings.Contains(d.Summary, line) {
			t.Errorf("the summary lacks %s:\n%s", line, d.Summary)
		}
	}
}

// A finding that names no ClusterOperators repeats nothing.
func TestRepeatsUnnamed(t *testing.T) {
	cv := clusterVersion("4.18.5@A", channel("stable-4.19"), available("4.19.1"), history("4.18.5@A C"))
	report := run(t, []preconditions.Check{
		stub{name: "ClusterVersionUpgradeable", findings: []preconditions.Finding{finding(preconditions.Blocking, "R", "m")}},
		stub{name: "ClusterOperators", findings: []preconditions.Finding{finding(preconditions.Blocking, "ClusterOperatorNotUpgradeable", "own")}},
	}, input(reader(t, cv), cv, "4.19.1"))
	for _, result := range report.Results {
		checktest.Equal(t, "", result.Findings[0].RepeatOf, "%s repeats", result.Check)
	}
}

// mustGather lays out parts of a recorded cluster as oc adm must-gather does.
func mustGather(t *testing.T, name string, parts map[string]string) *clusterdump.Recording {
	t.Helper()
	tree := fstest.MapFS{}
	for part, at := range parts {
		data := checktest.Get(os.ReadFile(filepath.Join(testdata.Dir(t), "clusters", name, name+"-"+part+".yaml")))(t)
		tree["must-gather.local.1/quay-io-x-sha256-0/cluster-scoped-resources/"+at+".yaml"] = &fstest.MapFile{Data: data}
	}
	return checktest.Get(clusterdump.Open(t.Context(), tree, clusterdump.Options{}))(t)
}

// TestMustGatherWithGaps: no check passes on a must-gather without the nodes,
// pools, APIRequestCounts or definitions that it looks at.
func TestMustGatherWithGaps(t *testing.T) {
	recording := mustGather(t, "4.14.1-degraded", map[string]string{
		"cv": "config.openshift.io/clusterversions", "co": "config.openshift.io/clusteroperators",
	})
	cv := checktest.Get(clusterapi.Get[configv1.ClusterVersion](t.Context(), recording,
		clusterapi.Key("", "version")))(t)
	looked := map[string]int{}
	for _, check := range append(preconditions.Operator(), rules.Documented(rules.Options{})...) {
		report := run(t, []preconditions.Check{check}, input(recording, cv, "4.15.0"))
		for _, kind := range []string{"Node", "MachineConfigPool", "MachineConfig", "APIRequestCount", "CustomResourceDefinition", "FeatureGate", "Infrastructure"} {
			if !slices.ContainsFunc(check.(preconditions.Described).Rule().Reads, kindIs(kind)) {
				continue
			}
			looked[kind]++
			if r := report.Results[0]; r.State == preconditions.Passed {
				t.Errorf("%s passes without any %s", r.Check, kind)
			}
		}
	}
	if looked["Node"] < 3 || looked["MachineConfigPool"] < 3 || looked["APIRequestCount"] < 1 {
		t.Errorf("too few checks look: %v", looked)
	}
}

// TestAssumed: a report says which kinds a recording is assumed to have completely.
func TestAssumed(t *testing.T) {
	recording := mustGather(t, "4.14.1-degraded", map[string]string{
		"cv": "config.openshift.io/clusterversions", "co": "config.openshift.io/clusteroperators",
		"node": "core/nodes/n", "mcp": "machineconfiguration.openshift.io/machineconfigpools/m",
	})
	cv := checktest.Get(clusterapi.Get[configv1.ClusterVersion](t.Context(), recording,
		clusterapi.Key("", "version")))(t)
	var checks []preconditions.Check
	for _, c := range rules.Documented(rules.Options{}) {
		switch c.Name() {
		case "PoolsPaused", "KubeletSkew", "ClusterOperators":
			checks = append(checks, c)
		}
	}
	report := run(t, checks, input(recording, cv, "4.15.0"))
	want := []string{"MachineConfigPool.machineconfiguration.openshift.io", "Node"}
	checktest.Same(t, want, report.Assumed)
	checktest.Same(t, want, report.Decide(preconditions.Policy{}).Assumed)
	// What a list shows is not assumed.
	heap, cv := recorded(t, "clusters/4.14.1-degraded")
	if got := run(t, checks, input(heap, cv, "4.15.0")).Assumed; len(got) > 0 {
		t.Error(got)
	}
}
