package install_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/olm"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
	"github.com/clusterupdate/clusterupdate/olm/install"
)

func TestUpgradeableCondition(t *testing.T) {
	check := func(release string, csvs ...olmapi.ClusterServiceVersion) *olm.Compatibility {
		v := checktest.Get(olm.ParseOpenShiftVersion(release))(t)
		return olm.CheckNext(v, csvs)
	}
	copied := maxed("copy", `"4.1"`)
	copied.Labels = map[string]string{"olm.copiedFrom": "x"}
	blocking := check("4.18.0", maxed("a", `"4.18"`), maxed("b", `""`), maxed("c", `"4.19"`), copied, maxed("d", `"v4"`), maxed("e", `"x"`))
	for _, tc := range []struct {
		name     string
		c        *olm.Compatibility
		err      error
		updating bool
		want     configv1.ClusterOperatorStatusCondition
	}{
		{"nothing blocks", check("4.18.0", maxed("c", `"4.19"`)), nil, false,
			configv1.ClusterOperatorStatusCondition{Type: "Upgradeable", Status: "True"}},
		{"errors first, the others in reverse", blocking, nil, false,
			configv1.ClusterOperatorStatusCondition{Type: "Upgradeable", Status: "False", Reason: "IncompatibleOperatorsInstalled", Message: `ClusterServiceVersions blocking minor version upgrades to 4.19:
- ops/b has invalid olm.maxOpenShiftVersion properties: value cannot be "" (an empty string)
- ops/e has invalid olm.maxOpenShiftVersion properties: failed to parse "x" as semver: Invalid character(s) found in major number "x"
- maximum supported OCP version for ops/d is 4.0
- maximum supported OCP version for ops/a is 4.18`}},
		{"two names of the next", check("4.22.1", maxed("a", `"4.22"`)), nil, false,
			configv1.ClusterOperatorStatusCondition{Type: "Upgradeable", Status: "False", Reason: "IncompatibleOperatorsInstalled",
				Message: "ClusterServiceVersions blocking minor version upgrades to 4.23 or major version upgrades to 5.0:\n- maximum supported OCP version for ops/a is 4.22"}},
		{"the next is of another major version", check("4.23.0", maxed("a", `"5.0"`)), nil, false,
			configv1.ClusterOperatorStatusCondition{Type: "Upgradeable", Status: "False", Reason: "IncompatibleOperatorsInstalled",
				Message: "ClusterServiceVersions blocking major version upgrades to 5.1:\n- maximum supported OCP version for ops/a is 5.0"}},
		{"shown as written", check("5.0.0", maxed("a", `"4.23"`)), nil, false,
			configv1.ClusterOperatorStatusCondition{Type: "Upgradeable", Status: "False", Reason: "IncompatibleOperatorsInstalled",
				Message: "ClusterServiceVersions blocking minor version upgrades to 5.1:\n- maximum supported OCP version for ops/a is 4.23"}},
		{"unknown", nil, errors.New("boom"), false,
			configv1.ClusterOperatorStatusCondition{Type: "Upgradeable", Status: "False", Reason: "ErrorCheckingOperatorCompatibility",
				Message: "Encountered errors while checking compatibility with the next minor version of OpenShift: boom"}},
		{"updating wins", blocking, errors.New("boom"), true,
			configv1.ClusterOperatorStatusCondition{Type: "Upgradeable", Status: "False", Message: "Waiting for updates to take effect"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			checktest.Same(t, tc.want, install.UpgradeableCondition(tc.c, tc.err, tc.updating))
		})
	}
}

// All namespaces count, copies do not, and numbers are warned of.
func TestReadCompatibility(t *testing.T) {
	api := memory.NewOpenShift(memory.Options{})
	other := maxed("b", `4.18`)
	other.Namespace = "other"
	copied := maxed("a", `"4.18"`)
	copied.Namespace = "third"
	copied.Labels = map[string]string{"olm.copiedFrom": ns}
	for _, c := range []olmapi.ClusterServiceVersion{maxed("a", `"4.18"`), other, copied} {
		create(t, api, &c)
	}
	c := checktest.Get(install.ReadCompatibility(context.Background(), api, "4.18.9"))(t)
	var got []string
	for _, b := range c.Blocking {
		got = append(got, b.String())
	}
	want := []string{"maximum supported OCP version for ops/a is 4.18", "maximum supported OCP version for other/b is 4.18"}
	checktest.Same(t, want, got)
	if len(c.Warnings) != 1 || !strings.HasPrefix(c.Warnings[0], "other/b: ") {
		t.Errorf("warnings: %q", c.Warnings)
	}
	if _, err := install.ReadCompatibility(context.Background(), api, "latest"); err == nil || !strings.Contains(err.Error(), "latest") {
		t.Errorf("a release that is none: %v", err)
	}
}

// create stores an object with its status.
func create[T any](t testing.TB, api clusterapi.ClusterAPI, obj *T) *T {
	t.Helper()
	u := checktest.Get(clusterapi.ToUnstructured(obj))(t)
	if m, ok := api.(*memory.Cluster); ok {
		checktest.OK(t, m.Load(u))
	}
	stored := checktest.Get(clusterapi.Get[T](context.Background(), api, clusterapi.KeyOf(u)))(t)
	return stored
}
