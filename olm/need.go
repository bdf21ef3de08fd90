package olm

import (
	"fmt"

	"github.com/clusterupdate/clusterupdate/olm/internal/sat"
)

// need is a choice: its owner needs one of the options.
type need struct {
	request int // index; none for a requirement
	owner   int // node that has the requirement; none for a Subscription
	req     *Requirement

	lit      sat.Lit   // the owner's; for a Subscription one of its own
	before   []int     // installed operators that do, the first options
	options  entryList // entries that do, the next options
	last     sat.Lit   // the last option, noLit if absent
	optional bool      // the owner gets along without

	lits    []sat.Lit // of the options so far
	clauses int       // how many of lits are in clauses
	rest    sat.Lit   // stands for the options that are in no clause yet
	rule    sat.Lit   // the literal that puts it into force, with facts
	segment int       // of the next option
	entry   int       // in segment

	budget int  // conflicts that the search for it may still meet
	gaveUp bool // they were not enough
}

// firstClause is how many options the first clause of a need has. Each further
// clause has twice as many as the one before.
const firstClause = 2

// extend puts the next options of a need into a clause.
func (f *formula) extend(n *need) {
	owner, count := n.lit, firstClause
	if n.clauses > 0 {
		owner, count = n.rest, 2*n.clauses
	}
	if f.facts != nil {
		count = n.count()
	}
	from := n.clauses
	to := min(from+count, n.count())
	for k := from; k < to; k++ {
		f.option(n, k)
	}
	lits := make([]sat.Lit, 0, to-from+4)
	lits = append(lits, owner.Not())
	if n.rule != noLit {
		lits = append(lits, n.rule.Not())
	}
	lits = append(lits, n.lits[from:to]...)
	n.rest = noLit
	if to < n.count() {
		n.rest = f.newVar(subject{node: none, rest: n})
		lits = append(lits, n.rest)
	}
	if from == 0 && n.last != noLit {
		lits = append(lits, n.last)
	}
	n.clauses = to
	f.s.Add(lits...)
}

// count is the number of options but the last.
func (n *need) count() int { return len(n.before) + n.options.length }

// option returns the literal of the option k.
func (f *formula) option(n *need, k int) sat.Lit {
	for len(n.lits) <= k {
		if i := len(n.lits); i < len(n.before) {
			n.lits = append(n.lits, f.nodes[n.before[i]].lit)
			continue
		}
		for n.entry == len(n.options.segments[n.segment].entries) {
			n.segment, n.entry = n.segment+1, 0
		}
		s := n.options.segments[n.segment]
		node := f.entryNode(s.catalog, s.entries[n.entry])
		n.entry++
		n.lits = append(n.lits, f.nodes[node].lit)
	}
	return n.lits[k]
}

// expand states the needs of an operator and, in turn, of the first candidate for
// each, which most likely come next.
func (f *formula) expand(id int) {
	for stack := []int{id}; len(stack) > 0; {
		id := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if f.nodes[id].expanded {
			continue
		}
		f.nodes[id].expanded = true
		b := f.nodes[id].bundle
		for i := range b.Requires {
			n := f.newNeed(id, &b.Requires[i])
			f.nodes[id].needs = append(f.nodes[id].needs, n)
			if n.optional {
				continue
			}
			if f.facts != nil {
				n.rule = f.facts.rule(f, Fact{Kind: factRequirement, Member: f.id(id), Requirement: n.req,
					Message: fmt.Sprintf("bundle %s requires an operator %s", b.Name, n.req)})
				r := f.facts.of(n.rule)
				r.need, r.node = n, id
			}
			f.extend(n)
			if len(n.before) == 0 && len(n.lits) > 0 {
				stack = append(stack, f.subjects[n.lits[0]/2].node)
			}
		}
	}
}

// newNeed looks up who can satisfy a requirement.
func (f *formula) newNeed(owner int, r *Requirement) *need {
	p, o := f.p, &f.nodes[owner]
	n := &need{request: none, owner: owner, req: r, lit: o.lit, last: noLit, rest: noLit, rule: noLit,
		budget: p.maxConflicts()}
	for i := range p.installed {
		b := p.installed[i]
		if !p.leaving[b.Name] && matches(r, b, p.options.CEL) {
			n.before = append(n.before, f.installed[i])
		}
	}
	n.options = p.eligible(o.catalog, r)
	n.optional = p.lenient() && o.installed != none && len(n.before) == 0
	return n
}

// eligible returns the entries that satisfy a requirement, in order, last those
// that only a startingCSV makes available.
func (p *problem) eligible(own int, r *Requirement) entryList {
	o, err := p.providers(own, r)
	if err != nil {
		return entryList{} // only with an unreadable requirement, which nobody asks for
	}
	for i := range p.requests {
		w := &p.requests[i]
		if w.sub.Spec.StartingCSV == "" || w.installed != none {
			continue
		}
		for catalog, e := range w.candidates.all() {
			if e.rank < 0 && matches(r, e.Bundle, p.options.CEL) {
				o.add(catalog, []*Entry{e})
			}
		}
	}
	return o
}

// matches reports whether a bundle satisfies a requirement that can be read.
func matches(r *Requirement, b *Bundle, eval CELEvaluator) bool {
	ok, err := r.Matches(b, eval)
	return ok && err == nil
}
