package solvercompare_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/go-air/gini"
	"github.com/go-air/gini/logic"
	"github.com/go-air/gini/z"

	"github.com/clusterupdate/clusterupdate/olm/internal/sat"
)

// formula is what choosing operators comes to: variables 0 to vars-1, some of
// which must be true, requirements and groups.
type formula struct {
	vars     int
	roots    []int
	requires []requirement
	groups   [][]int // of each at most one is true
}

// requirement: if the owner is true, so is one of the options.
type requirement struct {
	owner   int
	options []int
}

// ours decides the formula by the solver of package olm.
func (f *formula) ours() bool {
	var s sat.Solver
	lits := make([]sat.Lit, f.vars)
	for i := range lits {
		lits[i] = s.NewVar()
	}
	for _, g := range f.groups {
		id := s.NewGroup()
		for _, v := range g {
			s.Join(id, lits[v], 0)
		}
	}
	for _, r := range f.requires {
		clause := []sat.Lit{lits[r.owner].Not()}
		for _, o := range r.options {
			clause = append(clause, lits[o])
		}
		s.Add(clause...)
	}
	for _, v := range f.roots {
		s.Add(lits[v])
	}
	ok, err := s.Solve(context.Background())
	if err != nil {
		panic(err) // there is no limit and no end of the context
	}
	return ok
}

// pairwise decides it by gini, with a clause for each pair of a group.
func (f *formula) pairwise() bool {
	g := gini.NewV(f.vars)
	for _, group := range f.groups {
		for i, a := range group {
			for _, b := range group[:i] {
				add(g, lit(a).Not(), lit(b).Not())
			}
		}
	}
	f.rest(g, lit)
	return g.Solve() == 1
}

// sorted decides it by gini, with a sorting network for each group, as OLM
// does.
func (f *formula) sorted() bool {
	c := logic.NewC()
	lits := make([]z.Lit, f.vars)
	for i := range lits {
		lits[i] = c.Lit()
	}
	var most []z.Lit
	for _, group := range f.groups {
		members := make([]z.Lit, len(group))
		for i, v := range group {
			members[i] = lits[v]
		}
		most = append(most, c.CardSort(members).Leq(1))
	}
	g := gini.New()
	c.ToCnf(g)
	for _, m := range most {
		add(g, m)
	}
	f.rest(g, func(v int) z.Lit { return lits[v] })
	return g.Solve() == 1
}

// rest adds what needs no encoding.
func (f *formula) rest(g *gini.Gini, of func(int) z.Lit) {
	for _, r := range f.requires {
		clause := []z.Lit{of(r.owner).Not()}
		for _, o := range r.options {
			clause = append(clause, of(o))
		}
		add(g, clause...)
	}
	for _, v := range f.roots {
		add(g, of(v))
	}
}

func lit(v int) z.Lit { return z.Var(v + 1).Pos() }

func add(g *gini.Gini, clause ...z.Lit) {
	for _, m := range clause {
		g.Add(m)
	}
	g.Add(z.LitNull)
}

// packages are n packages of so many versions each, of which one may be chosen.
func packages(n, versions int) *formula {
	f := &formula{vars: n * versions}
	for p := range n {
		var group []int
		for v := range versions {
			group = append(group, p*versions+v)
		}
		f.groups = append(f.groups, group)
	}
	return f
}

// layered is a catalog in layers of ten packages of twenty versions: a version
// needs three packages of the next layer, in any of sixteen versions in a row.
func layered(entries int) *formula {
	const across, versions, window = 10, 20, 16
	f := packages(entries/versions, versions)
	r := rand.New(rand.NewPCG(1, uint64(entries)))
	for p := 0; p+across < entries/versions; p++ {
		next := (p/across + 1) * across
		for v := range versions {
			for range 3 {
				to, first := next+r.IntN(across), r.IntN(versions-window)
				q := requirement{owner: p*versions + v}
				for k := range window {
					q.options = append(q.options, to*versions+first+k)
				}
				f.requires = append(f.requires, q)
			}
		}
	}
	f.want(across, versions)
	return f
}

// agreement is a catalog in which each version of a package needs the same
// version of the next one, and the last one has but its oldest.
func agreement(entries int) *formula {
	const versions = 20
	n := entries / versions
	f := packages(n, versions)
	for p := range n - 1 {
		for v := range versions {
			f.requires = append(f.requires, requirement{p*versions + v, []int{(p+1)*versions + v}})
		}
	}
	for v := range versions - 1 {
		f.requires = append(f.requires, requirement{owner: (n-1)*versions + v})
	}
	f.want(1, versions)
	return f
}

// wide is one package of so many versions.
func wide(entries int) *formula {
	f := packages(1, entries)
	f.want(1, entries)
	return f
}

// pigeons want one place each, of which there is one too few.
func pigeons(places int) *formula {
	n := places + 1
	f := &formula{vars: n*places + n}
	for p := range places {
		var group []int
		for i := range n {
			group = append(group, i*places+p)
		}
		f.groups = append(f.groups, group)
	}
	for i := range n {
		q := requirement{owner: n*places + i}
		for p := range places {
			q.options = append(q.options, i*places+p)
		}
		f.requires = append(f.requires, q)
		f.roots = append(f.roots, q.owner)
	}
	return f
}

// want asks for the first packages, in any version.
func (f *formula) want(packages, versions int) {
	for p := range packages {
		q := requirement{owner: f.vars}
		f.vars++
		for v := range versions {
			q.options = append(q.options, p*versions+v)
		}
		f.requires = append(f.requires, q)
		f.roots = append(f.roots, q.owner)
	}
}

var solvers = []struct {
	name  string
	solve func(*formula) bool
}{
	{"ours", (*formula).ours},
	{"gini, pairs", (*formula).pairwise},
	{"gini, sorted", (*formula).sorted},
}

func TestShapes(t *testing.T) {
	for _, tt := range []struct {
		name string
		f    *formula
		want bool
	}{
		{"layered", layered(2000), true},
		{"agreement", agreement(2000), true},
		{"wide", wide(500), true},
		{"pigeons", pigeons(6), false},
	} {
		for _, s := range solvers {
			if got := s.solve(tt.f); got != tt.want {
				t.Errorf("%s by %s: %v", tt.name, s.name, got)
			}
		}
	}
}

func BenchmarkShapes(b *testing.B) {
	for _, shape := range []struct {
		name string
		f    *formula
		not  string // takes too long, or too much memory
	}{
		{"layered/2000", layered(2000), ""},
		{"layered/6000", layered(6000), ""},
		{"agreement/2000", agreement(2000), ""},
		{"agreement/6000", agreement(6000), ""},
		{"wide/6000", wide(6000), "gini, pairs"},
		{"pigeons/8", pigeons(8), ""},
	} {
		for _, s := range solvers {
			if s.name == shape.not {
				continue
			}
			b.Run(shape.name+"/"+s.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					s.solve(shape.f)
				}
			})
		}
	}
}
