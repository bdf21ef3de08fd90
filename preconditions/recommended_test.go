package preconditions_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/rules"
)

// checkNamed returns a check of the documentation.
func checkNamed(t testing.TB, name string, o ...rules.Options) preconditions.Check {
	t.Helper()
	for _, c := range rules.Default(append(o, rules.Options{})[0]) {
		if c.Name() == name {
			return c
		}
	}
	t.Fatalf("no check %s", name)
	return nil
}

// The remedy of the operator's own check names what is offered on the way, and the offer
// that comes nearest.
func TestRecommendedRemedy(t *testing.T) {
	recommendedIs := func(status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: "Recommended", Status: status, Reason: reason, Message: "m"}
	}
	retrieved := cond("RetrievedUpdates", "True", "", "")
	const none = "Prefer a recommended update; there is none now"
	for _, tt := range []struct {
		name, target string
		edits        []cvEdit
		remedy       string // empty: nothing is found
	}{
		{name: "recommended", target: "4.18.6", edits: []cvEdit{available("4.18.6")}},
		{name: "recommended by its condition", target: "4.18.6", edits: []cvEdit{conditional("4.18.6", recommendedIs("True", ""))}},
		{name: "at risk", target: "4.19.2", edits: []cvEdit{available("4.18.6", "4.19.1", "4.19.3", "4.19.4", "4.20.1"), conditional("4.19.2", recommendedIs("False", "DiskFull")), conditional("4.18.7", recommendedIs("False", "R")), conditional("4.18.8", recommendedIs("Unknown", "U")), conditional("4.18.9")},
			remedy: "Prefer 4.19.1, the nearest recommended update. On the way: 4.18.6 (recommended), 4.18.7 (not recommended: R), 4.18.8 (not known to be recommended: U), 4.18.9 (not known to be recommended: no condition says so), 4.19.1 (recommended)"},
		{name: "the next above in the minor", target: "4.19.2", edits: []cvEdit{retrieved, available("4.18.6", "4.19.3", "4.19.4")}, remedy: "Prefer 4.19.3, the nearest recommended update. On the way: 4.18.6 (recommended)"},
		{name: "the greatest below", target: "4.19.2", edits: []cvEdit{retrieved, available("4.18.6", "4.18.7", "4.20.1")}, remedy: "Prefer 4.18.7, the nearest recommended update. On the way: 4.18.6 (recommended), 4.18.7 (recommended)"},
		{name: "the least above", target: "4.19.2", edits: []cvEdit{retrieved, available("4.20.2", "4.20.1")}, remedy: "Prefer 4.20.1, the nearest recommended update"},
		{name: "10 is above 9", target: "4.18.11", edits: []cvEdit{retrieved, available("4.18.9", "4.18.10")}, remedy: "Prefer 4.18.10, the nearest recommended update. On the way: 4.18.9 (recommended), 4.18.10 (recommended)"},
		{name: "not what the cluster has left behind", target: "4.19.2", edits: []cvEdit{retrieved, available("4.18.4", "4.18.5")}, remedy: none},
		{name: "offers that are no versions", target: "4.19.2", edits: []cvEdit{retrieved, available("", "x", "4.18")}, remedy: none},
		{name: "no channel", target: "4.19.2", edits: []cvEdit{channel("")}, remedy: none},
		{name: "target is not a version", target: "x", edits: []cvEdit{available("4.18.6")}, remedy: "Prefer 4.18.6, the nearest recommended update"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cv := clusterVersion("4.18.5@A", tt.edits...)
			result, _ := run(t, preconditions.Operator(), input(reader(t, cv), cv, tt.target)).Result("ClusterVersionRecommendedUpdate")
			var remedies []string
			for _, f := range result.Findings {
				remedies = append(remedies, f.Remedy)
			}
			checktest.Equal(t, tt.remedy, strings.Join(remedies, "; "), "remedy")
		})
	}
}

func TestBootLoader(t *testing.T) {
	runCases(t, checkNamed(t, "BootLoader"), []checkCase{
		{name: "4.4", cv: clusterVersion("4.18.5@A", history("4.18.5@A C", "4.4.9@Z C")), want: "Passed\nInfo BootLoaderNotAdopted: The cluster was installed with 4.4.9, so bootupd may not manage the boot loader of its nodes"},
		{name: "4.1", cv: clusterVersion("4.18.5@A", history("4.18.5@A C", "4.1.0@Z C")), want: "Passed\nInfo BootLoaderNotAdopted: The cluster was installed with 4.1.0, so bootupd may not manage the boot loader of its nodes"},
		{name: "4.5", cv: clusterVersion("4.18.5@A", history("4.18.5@A C", "4.5.0-rc.1@Z C")), want: "Passed"},
		{name: "5.0", cv: clusterVersion("5.0.1@A", history("5.0.1@A C")), want: "Passed"},
		{name: "older entry in the middle", cv: clusterVersion("4.18.5@A", history("4.18.5@A C", "4.4.0@Y P", "4.6.1@Z C")), want: "Passed"},
		{name: "no history", cv: clusterVersion("4.18.5@A"), want: "Passed"},
		{name: "not a version", cv: clusterVersion("4.18.5@A", history("4.18.5@A C", "@Z C")), want: `Unknown
Warning UnknownError: the oldest version of the history, "": Version string empty`},
		{name: "forbidden", fail: map[string]error{"ClusterVersion": noKind("ClusterVersion")}, want: "NotApplicable\nInfo NotApplicable: the cluster has no ClusterVersion"},
	})
}
