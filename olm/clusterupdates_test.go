package olm_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/olm"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
)

func TestMaxOpenShiftVersion(t *testing.T) {
	for _, tc := range []struct {
		name string
		csv  olmapi.ClusterServiceVersion
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
		{"unreadable", newCSV("a", withAnnotation(olmapi.AnnotationProperties, "{")), "failed to unmarshal properties annotation: ", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v, warning, err := olm.MaxOpenShiftVersion(&tc.csv)
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
		release := checktest.Get(olm.ParseOpenShiftVersion(tc.release))(t)
		c := olm.CheckNext(release, []olmapi.ClusterServiceVersion{maxed("a", `"`+tc.max+`"`)})
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

// Reading a limit never panics, and what it accepts it can show and read again.
func FuzzMaxOpenShiftVersion(f *testing.F) {
	for _, seed := range []string{`"4.9"`, `4.10`, `""`, `"v04.9.0+x"`, `null`, `"`, `"4.9.1"`, `{}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		read := func(value string) (*olm.OpenShiftVersion, error) {
			v, _, err := (&olm.Bundle{MaxOpenShift: []json.RawMessage{json.RawMessage(value)}}).MaxOpenShiftVersion()
			return v, err
		}
		v, err := read(value)
		if err != nil {
			return
		}
		again, err := read(fmt.Sprintf("%q", v))
		if err != nil || *again != *v {
			t.Errorf("%q is %v, read again %v, %v", value, v, again, err)
		}
	})
}
