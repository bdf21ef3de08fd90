package olm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/olm"
)

// maxed is an operator whose annotation has these values of
// olm.maxOpenShiftVersion.
func maxed(name string, values ...string) olm.ClusterServiceVersion {
	props := []string{`{"type":"olm.label","value":{"label":"x"}}`}
	for _, v := range values {
		props = append(props, `{"type":"olm.maxOpenShiftVersion","value":`+v+`}`)
	}
	return newCSV(name, withAnnotation(olm.AnnotationProperties, `{"properties":[`+strings.Join(props, ",")+`]}`))
}

func TestMaxOpenShiftVersion(t *testing.T) {
	for _, tc := range []struct {
		name string
		csv  olm.ClusterServiceVersion
		want string
		warn bool
	}{
		{"no annotation", newCSV("a"), "any", false},
		{"no property", maxed("a"), "any", false},
		{"text", maxed("a", `"4.9"`), "4.9", false},
		{"blanks and v", maxed("a", `" v4.9 "`), "4.9", false},
		{"leading zeros", maxed("a", `"04.09"`), "4.9", false},
		{"major alone", maxed("a", `"4"`), "4.0", false},
		{"patch zero", maxed("a", `"4.9.0"`), "4.9", false},
		{"build metadata", maxed("a", `"4.9.0+b"`), "4.9", false},
		{"doubly quoted", maxed("a", `"\"4.9\""`), `failed to parse "\"4.9\`, false},
		{"number", maxed("a", `4.9`), "4.9", true},
		{"number with a zero", maxed("a", `4.10`), "4.10", true},
		{"two", maxed("a", `"4.9"`, `"4.9"`), `defining more than one "olm.maxOpenShiftVersion" property is not allowed`, false},
		{"empty", maxed("a", `""`), `value cannot be "" (an empty string)`, false},
		{"no version", maxed("a", `"next"`), `failed to parse "next" as semver: `, false},
		{"null", maxed("a", `null`), `failed to parse "null" as semver: `, false},
		{"patch", maxed("a", `"4.9.1"`), "property olm.maxOpenShiftVersion must specify only <major>.<minor> version, got invalid value 4.9.1", false},
		{"pre-release", maxed("a", `"4.9.0-rc.1"`), "property olm.maxOpenShiftVersion must specify only <major>.<minor> version, got invalid value 4.9.0-rc.1", false},
		{"unreadable", newCSV("a", withAnnotation(olm.AnnotationProperties, "{")), "failed to unmarshal properties annotation: ", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v, warning, err := tc.csv.MaxOpenShiftVersion()
			got := "any"
			switch {
			case err != nil:
				got = err.Error()
			case v != nil:
				got = v.String()
			}
			if got != tc.want && !(err != nil && strings.HasPrefix(got, tc.want)) {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			if (warning != "") != tc.warn {
				t.Errorf("warning: %q", warning)
			}
		})
	}
}

// 4.23 and 5.0 are one release.
func TestBlocksNext(t *testing.T) {
	for _, tc := range []struct {
		release, max string
		blocks       bool
	}{
		{"4.18.5", "4.18", true}, {"4.18.5", "4.19", false}, {"4.18.0-rc.1", "4.18", true}, {"4.9.1", "4.10", false}, {"4.9.1", "4.9", true},
		{"4.18.5", "5.0", false}, {"4.18.5", "3.11", true},
		{"4.22.0", "4.22", true}, {"4.22.0", "4.23", false}, {"4.22.0", "5.0", false}, {"4.22.0", "4.24", false},
		{"4.23.0", "4.23", true}, {"4.23.0", "4.24", true}, {"4.23.0", "5.0", true}, {"4.23.0", "5.1", false},
		{"5.0.0", "4.23", true}, {"5.0.0", "4.24", true}, {"5.0.0", "5.0", true}, {"5.0.0", "5.1", false},
		{"5.1.0", "5.1", true}, {"5.1.0", "5.2", false},
	} {
		release, err := olm.ParseOpenShiftVersion(tc.release)
		if err != nil {
			t.Fatal(err)
		}
		c := olm.CheckNext(release, []olm.ClusterServiceVersion{maxed("a", `"`+tc.max+`"`)})
		if got := len(c.Blocking) > 0; got != tc.blocks {
			t.Errorf("%s with max %s: blocks %v, want %v", tc.release, tc.max, got, tc.blocks)
		}
	}
}

func TestAllowsTarget(t *testing.T) {
	v := func(major, minor uint64) olm.OpenShiftVersion {
		return olm.OpenShiftVersion{Major: major, Minor: minor}
	}
	for _, tc := range []struct {
		highest, target olm.OpenShiftVersion
		want            bool
	}{
		{v(4, 23), v(5, 0), true}, {v(4, 24), v(5, 0), true}, {v(4, 22), v(5, 0), false}, {v(5, 0), v(4, 23), true}, {v(4, 23), v(5, 1), false}, {v(4, 18), v(4, 18), true},
	} {
		if got := tc.highest.Allows(tc.target); got != tc.want {
			t.Errorf("%s allows %s: %v", tc.highest, tc.target, got)
		}
	}
}

func TestUpgradeableCondition(t *testing.T) {
	check := func(release string, csvs ...olm.ClusterServiceVersion) *olm.Compatibility {
		v, err := olm.ParseOpenShiftVersion(release)
		if err != nil {
			t.Fatal(err)
		}
		return olm.CheckNext(v, csvs)
	}
	copied := maxed("copy", `"4.1"`)
	copied.Labels = map[string]string{"olm.copiedFrom": "x"}
	blocking := check("4.18.0", maxed("a", `"4.18"`), maxed("b", `""`), maxed("c", `"4.19"`), copied, maxed("d", `"v4"`), maxed("e", `"x"`))
	for _, tc := range []struct {
		name string
		in   olm.UpgradeableInput
		want configv1.ClusterOperatorStatusCondition
	}{
		{"nothing blocks", olm.UpgradeableInput{Compatibility: check("4.18.0", maxed("c", `"4.19"`))},
			configv1.ClusterOperatorStatusCondition{Type: "Upgradeable", Status: "True"}},
		{"errors first, the others in reverse", olm.UpgradeableInput{Compatibility: blocking},
			configv1.ClusterOperatorStatusCondition{Type: "Upgradeable", Status: "False", Reason: "IncompatibleOperatorsInstalled", Message: `ClusterServiceVersions blocking minor version upgrades to 4.19:
- ops/b has invalid olm.maxOpenShiftVersion properties: value cannot be "" (an empty string)
- ops/e has invalid olm.maxOpenShiftVersion properties: failed to parse "x" as semver: Invalid character(s) found in major number "x"
- maximum supported OCP version for ops/d is 4.0
- maximum supported OCP version for ops/a is 4.18`}},
		{"two names of the next", olm.UpgradeableInput{Compatibility: check("4.22.1", maxed("a", `"4.22"`))},
			configv1.ClusterOperatorStatusCondition{Type: "Upgradeable", Status: "False", Reason: "IncompatibleOperatorsInstalled",
				Message: "ClusterServiceVersions blocking minor version upgrades to 4.23 or major version upgrades to 5.0:\n- maximum supported OCP version for ops/a is 4.22"}},
		{"the next is of another major version", olm.UpgradeableInput{Compatibility: check("4.23.0", maxed("a", `"5.0"`))},
			configv1.ClusterOperatorStatusCondition{Type: "Upgradeable", Status: "False", Reason: "IncompatibleOperatorsInstalled",
				Message: "ClusterServiceVersions blocking major version upgrades to 5.1:\n- maximum supported OCP version for ops/a is 5.0"}},
		{"shown as written", olm.UpgradeableInput{Compatibility: check("5.0.0", maxed("a", `"4.23"`))},
			configv1.ClusterOperatorStatusCondition{Type: "Upgradeable", Status: "False", Reason: "IncompatibleOperatorsInstalled",
				Message: "ClusterServiceVersions blocking minor version upgrades to 5.1:\n- maximum supported OCP version for ops/a is 4.23"}},
		{"unknown", olm.UpgradeableInput{Err: errors.New("boom")},
			configv1.ClusterOperatorStatusCondition{Type: "Upgradeable", Status: "False", Reason: "ErrorCheckingOperatorCompatibility",
				Message: "Encountered errors while checking compatibility with the next minor version of OpenShift: boom"}},
		{"updating wins", olm.UpgradeableInput{Updating: true, Err: errors.New("boom"), Compatibility: blocking},
			configv1.ClusterOperatorStatusCondition{Type: "Upgradeable", Status: "False", Message: "Waiting for updates to take effect"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, olm.UpgradeableCondition(tc.in)); diff != "" {
				t.Error(diff)
			}
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
	for _, c := range []olm.ClusterServiceVersion{maxed("a", `"4.18"`), other, copied} {
		create(t, api, &c)
	}
	c, err := olm.ReadCompatibility(context.Background(), api, "4.18.9")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, b := range c.Blocking {
		got = append(got, b.String())
	}
	want := []string{"maximum supported OCP version for ops/a is 4.18", "maximum supported OCP version for other/b is 4.18"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(c.Warnings) != 1 || !strings.HasPrefix(c.Warnings[0], "other/b: ") {
		t.Errorf("warnings: %q", c.Warnings)
	}
	if _, err := olm.ReadCompatibility(context.Background(), api, "latest"); err == nil || !strings.Contains(err.Error(), "latest") {
		t.Errorf("a release that is none: %v", err)
	}
}

// create stores an object with its status.
func create[T any](t testing.TB, api clusterapi.ClusterAPI, obj *T) *T {
	t.Helper()
	u, err := clusterapi.ToUnstructured(obj)
	if err != nil {
		t.Fatal(err)
	}
	if m, ok := api.(*memory.Cluster); ok {
		if err := m.Load(u); err != nil {
			t.Fatal(err)
		}
	}
	stored, err := clusterapi.Get[T](context.Background(), api, clusterapi.KeyOf(u))
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

// Reading a limit never panics, and what it accepts it can show and read again.
func FuzzMaxOpenShiftVersion(f *testing.F) {
	for _, seed := range []string{`"4.9"`, `4.10`, `""`, `"v04.9.0+x"`, `null`, `"`, `"4.9.1"`, `{}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		v, _, err := olm.MaxOpenShiftVersion([]olm.Property{{Type: olm.PropertyMaxOpenShift, Value: json.RawMessage(value)}})
		if err != nil {
			return
		}
		again, _, err := olm.MaxOpenShiftVersion([]olm.Property{{Type: olm.PropertyMaxOpenShift, Value: json.RawMessage(fmt.Sprintf("%q", v))}})
		if err != nil || *again != *v {
			t.Errorf("%q is %v, read again %v, %v", value, v, again, err)
		}
	})
}
