package olm

import (
	"context"
	"errors"
	"slices"

	"github.com/clusterupdate/clusterupdate/olm/internal/sat"
)

// What only tests look at.
var (
	Check           = (*Generation).check
	ErrInconsistent = errInconsistent
	ReadInstalled   = readInstalled
	ParseConstraint = parseConstraint
)

func (c *Contents) Matching(r *Requirement, eval CELEvaluator) ([]*Entry, error) {
	return c.index.matching(r, eval)
}

func (c *Contents) Disordered(r *Requirement, eval CELEvaluator) ([]*Channel, error) {
	return c.disordered(r, eval)
}

// RedundantFacts explains why a resolution fails, or else what it holds back. It
// returns how many sets of facts that takes, and the facts without which the others
// of their set still contradict each other, by formulas of their own.
func RedundantFacts(ctx context.Context, s Snapshot, o Options) (sets int, redundant []string, err error) {
	p, err := newProblem(s, o)
	if err != nil {
		return 0, nil, err
	}
	g, err := Resolve(ctx, s, o)
	if unsat := (*NotSatisfiable)(nil); errors.As(err, &unsat) {
		all := func() *formula {
			f := newFormula(p, &factSet{})
			f.expandAll()
			f.facts.finish(f)
			return f
		}
		f := all()
		core, err := f.minimalCore(ctx, f.inForce(nil))
		return 1, redundantIn(ctx, all(), core), err
	}
	if err != nil {
		return 0, nil, err
	}
	for i := range g.HeldBack {
		h := &g.HeldBack[i]
		for _, option := range h.NotTaken {
			r, err := (&explainer{p: g.problem, held: []*HeldBack{h}}).contradiction(ctx, h, option)
			if err != nil {
				return sets, nil, err
			}
			again := &explainer{p: g.problem, held: []*HeldBack{h}}
			if err := again.prepare(ctx); err != nil {
				return sets, nil, err
			}
			sets++
			redundant = append(redundant, redundantIn(ctx, again.f, r.rules, again.f.nodes[r.option].lit)...)
		}
	}
	return sets, redundant, nil
}

func redundantIn(ctx context.Context, f *formula, core []*rule, given ...sat.Lit) (out []string) {
	contradicts := func(without int) bool {
		lits := slices.Clone(given)
		for i, r := range core {
			if i != without {
				lits = append(lits, r.lit)
			}
		}
		ok, err := f.s.Solve(ctx, lits...)
		return !ok && err == nil
	}
	if !contradicts(none) {
		out = append(out, "the whole set contradicts nothing")
	}
	for i, r := range core {
		if contradicts(i) {
			out = append(out, r.fact.Kind+" "+r.fact.Message)
		}
	}
	return out
}
