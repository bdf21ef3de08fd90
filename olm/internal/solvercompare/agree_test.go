package solvercompare_test

import (
	"testing"

	"pgregory.net/rapid"
)

// TestAgree: all solvers give the same answer to any formula.
func TestAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := &formula{vars: rapid.IntRange(1, 30).Draw(t, "variables")}
		variable := rapid.IntRange(0, f.vars-1)
		some := rapid.SliceOfNDistinct(variable, 0, min(5, f.vars), rapid.ID[int])
		for range rapid.IntRange(0, 60).Draw(t, "requirements") {
			f.requires = append(f.requires, requirement{variable.Draw(t, "owner"), some.Draw(t, "options")})
		}
		for range rapid.IntRange(0, 15).Draw(t, "groups") {
			if group := some.Draw(t, "group"); len(group) > 1 {
				f.groups = append(f.groups, group)
			}
		}
		f.roots = some.Draw(t, "roots")
		want := f.ours()
		for _, s := range solvers[1:] {
			if got := s.solve(f); got != want {
				t.Fatalf("%s says %v, ours %v: %+v", s.name, got, want, f)
			}
		}
	})
}
