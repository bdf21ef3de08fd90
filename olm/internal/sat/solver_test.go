package sat_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/olm/internal/sat"
)

// formula is a formula that can be checked by looking.
type formula struct {
	vars    int
	clauses [][]sat.Lit
	groups  []map[sat.Lit]int // literal → class
}

func (f *formula) holds(assignment uint) bool {
	is := func(l sat.Lit) bool { return assignment>>(l/2)&1 == 1 != l.Negative() }
	for _, c := range f.clauses {
		ok := false
		for _, l := range c {
			ok = ok || is(l)
		}
		if !ok {
			return false
		}
	}
	for _, g := range f.groups {
		for a, ca := range g {
			for b, cb := range g {
				if a != b && is(a) && is(b) && (ca == 0 || ca != cb) {
					return false
				}
			}
		}
	}
	return true
}

func (f *formula) satisfiable(assumptions []sat.Lit) bool {
	g := *f
	g.clauses = append([][]sat.Lit(nil), f.clauses...)
	for _, a := range assumptions {
		g.clauses = append(g.clauses, []sat.Lit{a})
	}
	for m := uint(0); m < 1<<f.vars; m++ {
		if g.holds(m) {
			return true
		}
	}
	return false
}

// TestSolveAgainstBruteForce grows a formula step by step and compares every
// answer with that of trying all assignments.
func TestSolveAgainstBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s sat.Solver
		var f formula
		ids := make(map[int]sat.Group)
		lit := func() sat.Lit {
			return sat.Lit(rapid.IntRange(0, 2*f.vars-1).Draw(t, "literal"))
		}
		newVar := func() {
			s.NewVar()
			f.vars++
		}
		newVar()
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				if f.vars < 10 {
					newVar()
				}
			case 1, 2: // requirement
				c := []sat.Lit{lit() | 1}
				for range rapid.IntRange(0, 4).Draw(t, "options") {
					c = append(c, lit()&^1)
				}
				s.Add(c...)
				f.clauses = append(f.clauses, c)
			case 3:
				if len(f.groups) < 4 {
					ids[len(f.groups)] = s.NewGroup()
					f.groups = append(f.groups, map[sat.Lit]int{})
				}
				g := rapid.IntRange(0, len(f.groups)-1).Draw(t, "group")
				l := lit() &^ 1
				if _, ok := f.groups[g][l]; !ok {
					class := rapid.IntRange(0, 1).Draw(t, "class")
					f.groups[g][l] = class
					s.Join(ids[g], l, class)
				}
			case 4: // requirement under a further condition
				c := []sat.Lit{lit() | 1, lit() | 1, lit() &^ 1, lit() &^ 1}
				s.Add(c...)
				f.clauses = append(f.clauses, c)
			case 5:
				if rapid.IntRange(0, 3).Draw(t, "fact") == 0 {
					l := lit()
					s.Add(l)
					f.clauses = append(f.clauses, []sat.Lit{l})
				}
			}
			var assumptions []sat.Lit
			for range rapid.IntRange(0, 3).Draw(t, "assumptions") {
				assumptions = append(assumptions, lit())
			}
			got := checktest.Get(s.Solve(context.Background(), assumptions...))(t)
			if want := f.satisfiable(assumptions); got != want {
				t.Fatalf("satisfiable: %v, want %v; %v under %v", got, want, f, assumptions)
			}
			if !got {
				if f.satisfiable(s.Failed()) {
					t.Fatalf("the assumptions %v are blamed wrongly; %v under %v", s.Failed(), f, assumptions)
				}
				continue
			}
			var model uint
			s.True(func(l sat.Lit) { model |= 1 << (l / 2) })
			if !f.holds(model) {
				t.Fatalf("%b is not a model of %v", model, f)
			}
			for _, a := range assumptions {
				if !s.Value(a) {
					t.Fatalf("assumption %d is false in the model", a)
				}
			}
		}
	})
}

// TestGuardedGroups compares formulas whose groups can be put into force one by
// one with all assignments.
func TestGuardedGroups(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s sat.Solver
		f := formula{vars: rapid.IntRange(4, 9).Draw(t, "variables")}
		for range f.vars {
			s.NewVar()
		}
		positive := func() sat.Lit { return sat.Lit(2 * rapid.IntRange(0, f.vars-1).Draw(t, "variable")) }
		for range rapid.IntRange(1, 3).Draw(t, "groups") {
			guard := positive()
			g := s.NewGuardedGroup(guard)
			joined := map[sat.Lit]bool{guard: true}
			var members []sat.Lit
			for range rapid.IntRange(2, 4).Draw(t, "members") {
				l := positive()
				if joined[l] {
					continue
				}
				joined[l] = true
				s.Join(g, l, 0)
				for _, m := range members {
					f.clauses = append(f.clauses, []sat.Lit{guard.Not(), m.Not(), l.Not()})
				}
				members = append(members, l)
			}
		}
		for range rapid.IntRange(0, 6).Draw(t, "clauses") {
			c := []sat.Lit{positive().Not(), positive(), positive()}
			s.Add(c...)
			f.clauses = append(f.clauses, c)
		}
		for range 6 {
			var assumptions []sat.Lit
			for range rapid.IntRange(0, 4).Draw(t, "assumptions") {
				assumptions = append(assumptions, positive()|sat.Lit(rapid.IntRange(0, 1).Draw(t, "sign")))
			}
			got := checktest.Get(s.Solve(context.Background(), assumptions...))(t)
			if want := f.satisfiable(assumptions); got != want {
				t.Fatalf("satisfiable: %v, want %v; %v under %v", got, want, f, assumptions)
			}
			if !got && f.satisfiable(s.Failed()) {
				t.Fatalf("the assumptions %v are blamed wrongly; %v under %v", s.Failed(), f, assumptions)
			}
		}
	})
}

// TestForget compares a solver that hardly keeps what it learns with one that
// keeps it all, on formulas that take many conflicts.
func TestForget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := formula{vars: rapid.IntRange(30, 60).Draw(t, "variables")}
		positive := func() sat.Lit { return sat.Lit(2 * rapid.IntRange(0, f.vars-1).Draw(t, "variable")) }
		for range rapid.IntRange(0, 8).Draw(t, "facts") {
			f.clauses = append(f.clauses, []sat.Lit{positive()})
		}
		for range 3 * f.vars {
			f.clauses = append(f.clauses, []sat.Lit{positive().Not(), positive(), positive(), positive()})
		}
		for range f.vars {
			g := map[sat.Lit]int{}
			for range rapid.IntRange(2, 5).Draw(t, "members") {
				g[positive()] = 0
			}
			f.groups = append(f.groups, g)
		}
		forgets, keeps := sat.Solver{MaxLearnt: 1}, sat.Solver{MaxLearnt: 1 << 30}
		for _, s := range []*sat.Solver{&forgets, &keeps} {
			for range f.vars {
				s.NewVar()
			}
			for _, c := range f.clauses {
				s.Add(c...)
			}
			for _, g := range f.groups {
				id := s.NewGroup()
				for _, l := range slices.Sorted(maps.Keys(g)) {
					s.Join(id, l, 0)
				}
			}
		}
		assumptions := []sat.Lit{positive(), positive(), positive()}
		for i := range len(assumptions) + 1 { // calls that begin alike
			got := checktest.Get(forgets.Solve(context.Background(), assumptions[:i]...))(t)
			want, err := keeps.Solve(context.Background(), assumptions[:i]...)
			if err != nil || got != want {
				t.Fatalf("satisfiable: %v, want %v, %v; %v under %v", got, want, err, f, assumptions[:i])
			}
			for _, s := range []*sat.Solver{&forgets, &keeps} {
				var model uint
				s.True(func(l sat.Lit) { model |= 1 << (l / 2) })
				if got && !f.holds(model) {
					t.Fatalf("%b is not a model of %v", model, f)
				}
			}
		}
	})
}

// pigeons asks for n pigeons in m holes.
func pigeons(s *sat.Solver, n, m int) {
	holes := make([]sat.Group, m)
	for h := range holes {
		holes[h] = s.NewGroup()
	}
	for range n {
		owner := s.NewVar()
		c := []sat.Lit{owner.Not()}
		for h := range holes {
			l := s.NewVar()
			s.Join(holes[h], l, 0)
			c = append(c, l)
		}
		s.Add(c...)
		s.Add(owner)
	}
}

func TestFirstOptionsFirst(t *testing.T) {
	var s sat.Solver
	a, x, y, z := s.NewVar(), s.NewVar(), s.NewVar(), s.NewVar()
	s.Add(a.Not(), z, y, x)
	s.Add(a)
	if ok, err := s.Solve(context.Background()); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if !s.Value(z) || s.Value(y) || s.Value(x) {
		t.Errorf("x %v, y %v, z %v: want z alone, the first option", s.Value(x), s.Value(y), s.Value(z))
	}
}

// TestForgetPigeons: a proof of many thousand conflicts succeeds although nearly
// all that is learnt is dropped.
func TestForgetPigeons(t *testing.T) {
	s := sat.Solver{MaxLearnt: 50}
	pigeons(&s, 9, 8)
	if ok, err := s.Solve(context.Background()); ok || err != nil {
		t.Error(ok, err)
	}
	if s.Conflicts() < 1000 {
		t.Errorf("%d conflicts: nothing was dropped", s.Conflicts())
	}
	if kept := sat.Clauses(&s); kept > s.Conflicts()/2 {
		t.Errorf("%d clauses kept after %d conflicts", kept, s.Conflicts())
	}
}

func TestPigeons(t *testing.T) {
	for n := 1; n <= 7; n++ {
		for _, m := range []int{n - 1, n} {
			t.Run(fmt.Sprintf("%d in %d", n, m), func(t *testing.T) {
				var s sat.Solver
				pigeons(&s, n, m)
				got, err := s.Solve(context.Background())
				if err != nil || got != (m >= n) {
					t.Errorf("got %v, %v", got, err)
				}
			})
		}
	}
}

func TestLimitAndCancel(t *testing.T) {
	s := sat.Solver{MaxConflicts: 50}
	pigeons(&s, 12, 11)
	if _, err := s.Solve(context.Background()); !errors.Is(err, sat.ErrLimit) {
		t.Errorf("error %v, want ErrLimit", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var free sat.Solver
	pigeons(&free, 12, 11)
	if _, err := free.Solve(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want Canceled", err)
	}
}

func BenchmarkPigeons(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		var s sat.Solver
		pigeons(&s, 8, 7)
		if ok, err := s.Solve(context.Background()); ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}
