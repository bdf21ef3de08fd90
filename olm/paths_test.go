package olm_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/blang/semver/v4"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/olm"
)

func pathText(steps []olm.PathStep, err error) string {
	if err != nil {
		return "error: " + err.Error()
	}
	var out []string
	for i, s := range steps {
		if i > 0 && steps[i-1].To != s.From {
			return fmt.Sprintf("step %d begins at %s, not at %s", i, s.From, steps[i-1].To)
		}
		if s.Entry == nil || s.Entry.Name != s.To || s.Version != s.Entry.Bundle.RawVersion {
			return fmt.Sprintf("step %d: %+v", i, s)
		}
		out = append(out, fmt.Sprintf("%s>%s %s@%s", s.From, s.To, s.Edge, s.Channel))
	}
	return strings.Join(out, ", ")
}

func at(v string) *semver.Version {
	p := semver.MustParse(v)
	return &p
}

func TestPath(t *testing.T) {
	c := contents(
		"a.v1", "a.v2 >a.v1", "a.v3 >a.v2 ~a.v0", "a.v4 >a.v3 range=>=2.5.0_<3.0.0",
		"a.v5 @beta >a.v4", "a.v4 @beta >a.v3", "a.v3 @beta",
		"b.v1", "b.v2",
		"d.v1", "d.v2 >d.v1", "d.v3 >d.v2 deprecated range=<3.0.0")
	for _, tc := range []struct {
		name, pkg, channel string
		from               olm.Origin
		want               string
	}{
		{"replaces", "a", "stable", olm.Origin{Name: "a.v1"}, "a.v1>a.v2 replaces@stable, a.v2>a.v3 replaces@stable, a.v3>a.v4 replaces@stable"},
		{"at the head", "a", "stable", olm.Origin{Name: "a.v4"}, ""},
		{"skips", "a", "stable", olm.Origin{Name: "a.v0"}, "a.v0>a.v3 skips@stable, a.v3>a.v4 replaces@stable"},
		{"range, operator unknown", "a", "stable", olm.Origin{Name: "x", Version: at("2.6.0")}, "x>a.v4 skipRange@stable"},
		{"unknown, no version", "a", "stable", olm.Origin{Name: "x"}, ""},
		{"any channel, the default first", "a", "", olm.Origin{Name: "a.v3"}, "a.v3>a.v4 replaces@stable, a.v4>a.v5 replaces@beta"},
		{"deprecated is passed over", "d", "stable", olm.Origin{Name: "d.v1"}, "d.v1>d.v2 replaces@stable"},
		{"no package", "x", "", olm.Origin{Name: "a.v1"}, `error: the catalog has no package "x"`},
		{"no channel", "a", "x", olm.Origin{Name: "a.v1"}, `error: package "a" has no channel "x"`},
		{"disorder", "b", "stable", olm.Origin{Name: "b.v1"}, `error: a unique replacement chain within a channel is required to determine the relative order between channel entries, but 2 replacement chains were found in channel "stable" of package "b": b.v1, b.v2`},
		{"all in disorder", "b", "", olm.Origin{Name: "b.v1"}, `error: a unique replacement chain within a channel is required to determine the relative order between channel entries, but 2 replacement chains were found in channel "stable" of package "b": b.v1, b.v2`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			checktest.Same(t, tc.want, pathText(c.Path(tc.pkg, tc.channel, tc.from)))
		})
	}
}

func TestPathTo(t *testing.T) {
	c := contents("a.v1", "a.v2 >a.v1", "a.v3 >a.v2", "a.v4 >a.v3 range=>=1.0.0_<2.0.0", "a.v5 >a.v4 deprecated range=<5.0.0")
	for _, tc := range []struct{ name, to, want string }{
		{"the shortest", "a.v4", "a.v1>a.v4 skipRange@stable"},
		{"not the one that an update takes", "a.v3", "a.v1>a.v2 replaces@stable, a.v2>a.v3 replaces@stable"},
		{"deprecated", "a.v5", "error: package a: no update path from a.v1 in channels [stable]: it leads to a.v4 at most"},
		{"back", "a.v1", "error: package a: no update path from a.v1 in channels [stable]: it leads to a.v4 at most"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := pathText(c.PathTo("a", "stable", olm.Origin{Name: "a.v1"}, func(e *olm.Entry) bool { return e.Name == tc.to }))
			checktest.Same(t, tc.want, got)
		})
	}
	_, err := c.PathTo("a", "stable", olm.Origin{Name: "a.v4"}, func(*olm.Entry) bool { return true })
	var none *olm.PathError
	if !errors.As(err, &none) || len(none.Reached) != 0 || !strings.Contains(err.Error(), "nothing there replaces it") {
		t.Errorf("from the head: %v", err)
	}
	none.To = "a.v9"
	if !strings.Contains(err.Error(), "no update path from a.v4 to a.v9 in channels [stable]") {
		t.Errorf("with an end: %v", err)
	}
	checktest.SameIn(t, "a.v2 updates b.v1 by", "", c.Package("a").Channel("stable").Entry("a.v2").Edge("b.v1", nil))
}
