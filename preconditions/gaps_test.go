package preconditions_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	clusterdump "github.com/clusterupdate/clusterupdate/clusterapi/dump"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/rules"
)

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
