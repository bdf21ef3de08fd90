package preconditions_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	clusterdump "github.com/clusterupdate/clusterupdate/clusterapi/dump"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/preconditions"
)

// dump reads the objects of a recorded cluster; what a recording does not
// contain was not collected.
func dump(t *testing.T, name string) (*fakeReader, *configv1.ClusterVersion) {
	t.Helper()
	pattern := filepath.Join(testdata.Dir(t), "clusters", name, "*.yaml")
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no files %s: %v", pattern, err)
	}
	r := reader(t).failing("ConfigMap", clusterapi.ErrNotCollected)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var object map[string]any
		if err := yaml.Unmarshal(data, &object); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if items, ok := object["items"].([]any); ok {
			for _, item := range items {
				r.objects = append(r.objects, &unstructured.Unstructured{Object: item.(map[string]any)})
			}
		} else {
			r.objects = append(r.objects, &unstructured.Unstructured{Object: object})
		}
	}
	cv, err := clusterapi.Get[configv1.ClusterVersion](context.Background(), r, clusterapi.Key("", "version"))
	if err != nil {
		t.Fatal(err)
	}
	return r, cv
}

// TestRealUpgradeable: the recorded condition of an older operator, written in
// its style from the recorded ClusterOperators.
func TestRealUpgradeable(t *testing.T) {
	r, cv := dump(t, "4.14.1-degraded")
	operators := preconditions.Sources(preconditions.RiskOptions{Reader: r, OwnVersion: "4.14.1"})[4:]
	u := preconditions.Upgradeable(context.Background(), operators, nil, preconditions.Legacy, nil)
	got, risks := u.Condition, u.Risks
	for _, want := range cv.Status.Conditions {
		if want.Type != configv1.OperatorUpgradeable {
			continue
		}
		if got == nil || got.Reason != want.Reason || got.Message != want.Message || len(risks) != 2 {
			t.Errorf("%s", cmp.Diff(&want, got))
		}
		return
	}
	t.Error("the recording has no condition Upgradeable")
}

// TestRealClusters: the operator's checks on clusters in mid-update.
func TestRealClusters(t *testing.T) {
	for _, tt := range []struct {
		cluster, target string
		blocked         bool
		contains        string
	}{
		{"4.14.1-degraded", "4.15.0", true, `failed because of "ClusterOperatorsNotUpgradeable": Multiple cluster operators`},
		{"4.14.1-degraded", "4.16.0", true, `"MultipleMinorVersionsUpdate"`},
		{"4.14.1-degraded", "4.13.1", true, `"LowDesiredVersion": 4.13.1 is less than the current target 4.14.1`},
		{"recommend", "4.14.10", false, ""},
		{"recommend", "4.14.999", false, `"UnknownUpdate"`},
		{"not-upgrading", "3.11.0", true, `"LowDesiredVersion"`},
		{"4.15.0-ec2-early", "4.16.0", false, ""},
	} {
		t.Run(tt.cluster+" to "+tt.target, func(t *testing.T) {
			r, cv := dump(t, tt.cluster)
			d := run(t, preconditions.Operator(), input(r, cv, tt.target)).Decide(preconditions.Policy{})
			if d.Blocked != tt.blocked || !strings.Contains(d.Summary, tt.contains) {
				t.Errorf("blocked %v: %s", d.Blocked, d.Summary)
			}
		})
	}
}

// TestRealDocumented: what the documented checks say of real clusters. What a recording
// does not hold is not known, never passed.
func TestRealDocumented(t *testing.T) {
	for _, tt := range []struct {
		cluster, target string
		failed          map[string]string // check: what its text contains
		passed          []string
	}{
		{"4.14.1-degraded", "4.15.0", map[string]string{
			"ClusterOperators": "ClusterOperatorDegraded", "UpdateInProgress": "UpdateInProgress",
		}, []string{"PoolsPaused", "PoolsUpdating", "NodesUnavailable", "RHELNodes", "MaxUnavailable", "VersionOverrides", "BootLoader"}},
		{"4.14.1-workers-started-updating-multiple-pools", "4.14.2", map[string]string{"PoolsUpdating": "PoolUpdating", "UpdateInProgress": "UpdateInProgress", "ClusterOperators": "kube-storage-version-migrator"},
			[]string{"PoolsDegraded", "RHELNodes", "SingleNode"}},
		{"not-upgrading", "4.14.2", map[string]string{"Channel": "UnsupportedChannel"},
			[]string{"ClusterOperators", "PoolsPaused", "PoolsDegraded", "PoolsUpdating", "NodesUnavailable", "MaxUnavailable", "RHELNodes", "UpdateInProgress"}},
		{"4.15.0-ec2-early", "4.16.0", map[string]string{"UpdateInProgress": "UpdateInProgress"}, []string{"PoolsPaused"}},
	} {
		t.Run(tt.cluster, func(t *testing.T) {
			r, cv := recorded(t, tt.cluster)
			report := run(t, preconditions.Documented(), input(r, cv, tt.target))
			for name, want := range tt.failed {
				result, _ := report.Result(name)
				if result.State != preconditions.Failed || !strings.Contains(text(result), want) {
					t.Errorf("%s: %s", name, text(result))
				}
			}
			for _, name := range tt.passed {
				if result, _ := report.Result(name); result.State != preconditions.Passed && result.State != preconditions.Unknown {
					t.Errorf("%s: %s", name, text(result))
				}
			}
			for _, name := range []string{"CloudCredentials", "UnsupportedOverrides", "MachineHealthChecks", "DisruptionBudgets", "OperatorCompatibility", "DeprecatedAPIs", "SpareCapacity"} {
				result, _ := report.Result(name)
				if result.State != preconditions.Unknown && tt.target != "4.14.2" {
					t.Errorf("%s was not collected: %s", name, text(result))
				}
			}
		})
	}
}

// recorded opens a recording of a real cluster.
func recorded(t *testing.T, name string) (clusterapi.Reader, *configv1.ClusterVersion) {
	t.Helper()
	recording, err := clusterdump.Open(t.Context(), os.DirFS(filepath.Join(testdata.Dir(t), "clusters", name)), clusterdump.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cv, err := clusterapi.Get[configv1.ClusterVersion](t.Context(), recording, clusterapi.Key("", "version"))
	if err != nil {
		t.Fatal(err)
	}
	return recording, cv
}
