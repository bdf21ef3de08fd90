package olm_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/olm"
)

// TestCheck: a generation that breaks a promise is found out. As olm.Resolve makes
// none, a good one is changed.
func TestCheck(t *testing.T) {
	c := contents("a.v2 New >a.v1", "a.v1 Old", "n.v1 -Missing", "d.v1 Old deprecated")
	s := snapshot(c, installed("a.v1 Old", "z.v1 -Old"), sub("a", "a.v1"))
	for _, tc := range []struct {
		name   string
		change func(g *olm.Generation, add func(pkg, name string) *olm.Slot)
		want   []string
	}{
		{"nothing", func(*olm.Generation, func(string, string) *olm.Slot) {}, nil},
		{"an unchanged operator loses an API", func(g *olm.Generation, add func(string, string) *olm.Slot) {
			s := add("a", "a.v2")
			s.Outcome, s.Previous = "Updated", g.Slots[0].Previous
			g.Slots = append(g.Slots[1:2], *s)
		}, []string{"z.v1 would lose an operator providing an API with group: g, version: v1, kind: Old"}},
		{"a new operator lacks an API", func(g *olm.Generation, add func(string, string) *olm.Slot) {
			g.Slots = append(g.Slots, *add("n", "n.v1"))
		}, []string{"n.v1 would lack an operator providing an API with group: g, version: v1, kind: Missing"}},
		{"a second provider, deprecated", func(g *olm.Generation, add func(string, string) *olm.Slot) {
			g.Slots = append(g.Slots, *add("d", "d.v1"))
		}, []string{"d.v1 is deprecated", "a.v1 and d.v1 provide Old (g/v1)"}},
		{"one package and one name twice", func(g *olm.Generation, add func(string, string) *olm.Slot) {
			g.Slots = append(g.Slots, *add("a", "a.v2"), *add("a", "a.v2"))
		}, []string{"a.v2 and a.v2 originate from package a", "a.v2 and a.v2 have the name a.v2"}},
		{"an update without an edge", func(g *olm.Generation, add func(string, string) *olm.Slot) {
			s := add("a", "a.v2")
			s.Outcome, s.Previous = "Updated", g.Slots[1].Previous
			s.AlsoReplaced = []*olm.Bundle{{Name: "y.v1"}}
			g.Slots[1] = *s
		}, []string{"a.v2 does not replace z.v1", "a.v2 does not replace y.v1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g, err := olm.Resolve(context.Background(), s, olm.Options{})
			checktest.OK(t, err)
			if len(g.Operators) > 0 || len(g.Slots) != 2 {
				t.Fatalf("generation:\n%s", g)
			}
			tc.change(g, func(pkg, name string) *olm.Slot {
				e := c.Package(pkg).Channel("stable").Entry(name)
				return &olm.Slot{Outcome: "AddedForRequirement", Current: e.Bundle, Operator: &olm.Operator{Name: name, Bundle: e.Bundle, Entry: e}}
			})
			err = olm.Check(g)
			if len(tc.want) == 0 && err == nil {
				return
			}
			if !errors.Is(err, olm.ErrInconsistent) {
				t.Fatalf("error %v", err)
			}
			for _, text := range tc.want {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q is not in: %v", text, err)
				}
			}
		})
	}
}
