package olm

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/olm/internal/sat"
)

// Kinds of facts that a search adds: what it decided before. Only the explanation
// why something was held back mentions them.
const (
	factSubscriptionTook = "SubscriptionTook"
	factRequirementTook  = "RequirementTook"
	factPromise          = "Promise"
)

// factSet gives each constraint of a formula a literal that puts it into force,
// so that contradictions can be found.
type factSet struct {
	rules  []rule
	groups map[sat.Group]int // rule
	firm   []*rule           // those that can contradict each other, by weight; nil until somebody asks
}

type rule struct {
	lit      sat.Lit
	fact     Fact
	members  []int // nodes of a group
	shared   trait // by the members
	need     *need // of a requirement or a Subscription
	node     int   // that the fact is about; none if it is about several
	replaced int   // node that the node replaces, with Replaces
}

// rule adds a fact and returns its literal.
func (s *factSet) rule(f *formula, fact Fact) sat.Lit {
	l := f.newVar(subject{node: none})
	s.rules = append(s.rules, rule{lit: l, fact: fact, node: none})
	return l
}

// of returns the rule of a literal.
func (s *factSet) of(l sat.Lit) *rule {
	i, _ := slices.BinarySearchFunc(s.rules, l, func(r rule, l sat.Lit) int { return cmp.Compare(r.lit, l) })
	return &s.rules[i]
}

func (s *factSet) newGroup(f *formula, t trait) sat.Group {
	fact := Fact{Kind: factSameName, Member: t.name}
	switch t.kind {
	case traitAPI:
		fact = Fact{Kind: factSameAPI, API: t.api}
	case traitPackage:
		fact = Fact{Kind: factSamePackage, Package: t.name}
	}
	l := s.rule(f, fact)
	s.rules[len(s.rules)-1].shared = t
	g := f.s.NewGuardedGroup(l)
	if s.groups == nil {
		s.groups = map[sat.Group]int{}
	}
	s.groups[g] = len(s.rules) - 1
	return g
}

func (s *factSet) joined(g sat.Group, n int) {
	r := &s.rules[s.groups[g]]
	r.members = append(r.members, n)
}

// expandAll makes a formula complete.
func (f *formula) expandAll() {
	for i := 0; i < len(f.nodes); i++ {
		f.expand(i)
	}
}

// finish writes the facts about groups that depend on all members being known.
func (s *factSet) finish(f *formula) {
	for i := range s.rules {
		r := &s.rules[i]
		if len(r.members) < 2 {
			continue
		}
		ids := make([]string, len(r.members))
		for j, n := range r.members {
			ids[j] = f.id(n)
		}
		slices.Sort(ids)
		r.fact.IDs = ids
		r.fact.Message = joinLast(ids, " and ") + " " + r.shared.shared()
	}
}

// requestFact describes what a Subscription needs.
func (f *formula) requestFact(n *need) Fact {
	name := f.p.requests[n.request].sub.Name
	fact := Fact{Kind: factSubscriptionNeeds, Subscription: name}
	lits := n.lits
	if n.last != noLit {
		lits = append(slices.Clone(lits), n.last)
	}
	for _, l := range lits {
		if node := f.subjects[l/2].node; node != none {
			fact.IDs = append(fact.IDs, f.id(node))
		}
	}
	switch len(fact.IDs) {
	case 0:
		fact.Message = "subscription " + name + " requires nothing that there is"
	case 1:
		fact.Message = "subscription " + name + " requires " + fact.IDs[0]
	default:
		fact.Message = "subscription " + name + " requires at least one of " + joinLast(fact.IDs, " or ")
	}
	return fact
}

// joinLast lists texts with commas, and a word before the last.
func joinLast(texts []string, last string) string {
	n := len(texts) - 1
	if n <= 0 {
		return strings.Join(texts, "")
	}
	return strings.Join(texts[:n], ", ") + last + texts[n]
}

// conflict returns a *NotSatisfiable with all that stands in the way.
func (p *problem) conflict(ctx context.Context) error {
	facts := &factSet{}
	f := newFormula(p, facts)
	f.expandAll()
	facts.finish(f)
	var cores [][]Fact
	for rules := f.inForce(nil); ; {
		core, err := f.minimalCore(ctx, rules)
		if gaveUp(err) && len(cores) > 0 {
			break // what was found still holds
		}
		if err != nil {
			return err
		}
		if core == nil {
			break
		}
		rules = slices.DeleteFunc(rules, func(r *rule) bool { return slices.Contains(core, r) })
		cores = append(cores, f.coreFacts(core))
	}
	if len(cores) == 0 {
		return errInconsistent
	}
	return &NotSatisfiable{cores[0], cores[1:]}
}

// coreFacts describes what the rules of a core mean, by message.
func (f *formula) coreFacts(core []*rule) []Fact {
	facts := make([]Fact, len(core))
	for i, r := range core {
		facts[i] = r.fact
		if r.fact.Kind == factRequirement {
			for _, l := range r.need.lits {
				facts[i].IDs = append(facts[i].IDs, f.id(f.subjects[l/2].node))
			}
		}
	}
	slices.SortStableFunc(facts, func(a, b Fact) int { return strings.Compare(a.Message, b.Message) })
	return facts
}

// inForce returns what can contradict each other, with what was decided before:
// the facts that say least come first. The formula is complete.
func (f *formula) inForce(decided []rule) []*rule {
	var rules []*rule
	for i := range decided {
		rules = append(rules, &decided[i])
	}
	sortByWeight(rules)
	if f.facts.firm == nil {
		for i := range f.facts.rules {
			if r := &f.facts.rules[i]; r.members == nil || len(r.members) > 1 {
				f.facts.firm = append(f.facts.firm, r)
			}
		}
		sortByWeight(f.facts.firm)
	}
	return append(rules, f.facts.firm...)
}

func sortByWeight(rules []*rule) {
	slices.SortStableFunc(rules, func(a, b *rule) int { return cmp.Compare(a.fact.weight(), b.fact.weight()) })
}

// minimalCore returns rules that cannot hold together, in addition to what is
// given, and of which none can be left out; nil if all can hold. Of several such
// sets it returns one that does without the first rules if it can.
func (f *formula) minimalCore(ctx context.Context, rules []*rule, given ...sat.Lit) ([]*rule, error) {
	byLit := make(map[sat.Lit]*rule, len(rules))
	core := make([]sat.Lit, len(rules))
	for i, r := range rules {
		core[i] = r.lit
		byLit[r.lit] = r
	}
	// fails reports whether literals contradict each other, and reduces core to
	// those that do.
	fails := func(parts ...[]sat.Lit) (bool, error) {
		f.s.MaxConflicts = f.p.maxConflicts()
		ok, err := f.s.Solve(ctx, slices.Concat(append([][]sat.Lit{given}, parts...)...)...)
		if errors.Is(err, sat.ErrLimit) {
			err = f.p.limitError("")
		}
		if ok || err != nil {
			return false, err
		}
		core = slices.DeleteFunc(slices.Clone(f.s.Failed()), func(l sat.Lit) bool { return slices.Contains(given, l) })
		return true, nil
	}
	// First without the choices made before: a conflict of firm facts says more.
	firm := slices.IndexFunc(rules, func(r *rule) bool { return r.fact.weight() > weightDecided })
	failed, err := fails(core[max(firm, 0):])
	if err == nil && !failed && firm > 0 {
		failed, err = fails(core)
	}
	if err != nil || !failed {
		return nil, err
	}
	for i := 0; i < len(core); {
		// Those found needed before are in every contradiction, and come first.
		failed, err := fails(core[:i], core[i+1:])
		if err != nil {
			return nil, err
		}
		if !failed {
			i++
		}
	}
	out := make([]*rule, len(core))
	for i, l := range core {
		out[i] = byLit[l]
	}
	return out, nil
}

// weightDecided is the greatest weight of facts that are choices made before.
const weightDecided = 3

// weight is how informative a kind of fact is: an explanation omits the lighter
// ones if it can.
func (f *Fact) weight() int {
	switch f.Kind {
	case factPromise:
		return 1
	case factRequirementTook:
		return 2
	case factSubscriptionTook:
		return 3
	case factSameName:
		return 4
	case factReplaces:
		return 5
	case factSameAPI:
		return 6
	case factSamePackage:
		return 7
	case factDeprecated:
		return 8
	case factRequirement:
		return 9
	case factSubscriptionNeeds:
		return 10
	case factFreestanding:
		return 11
	case factSubscription:
		return 13
	}
	return 12
}
