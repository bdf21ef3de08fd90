package olm

import (
	"fmt"
	"slices"
	"strings"
)

// renderer describes a minimal contradiction as a tree, beginning with the option
// that it excludes.
type renderer struct {
	f         *formula
	option    int // node
	rules     []*rule
	seen      map[*rule]bool
	mentioned map[int]bool // nodes that the facts are about
}

func newRenderer(f *formula, option int, rules []*rule) *renderer {
	s := &renderer{f: f, option: option, rules: rules, seen: map[*rule]bool{}, mentioned: map[int]bool{option: true}}
	for _, r := range rules {
		if r.node != none {
			s.mentioned[r.node] = true
		}
		if r.need != nil && r.fact.Kind != factSubscriptionTook && r.fact.Kind != factRequirementTook {
			for _, n := range s.options(r.need) {
				s.mentioned[n] = true
			}
		}
		if r.fact.Kind == factSubscription {
			s.seen[r] = true // needs no words
		}
	}
	return s
}

// options are the nodes of a need.
func (s *renderer) options(n *need) []int {
	var out []int
	for _, l := range n.lits {
		out = append(out, s.f.subjects[l/2].node)
	}
	if n.last != noLit {
		if node := s.f.subjects[n.last/2].node; node != none {
			out = append(out, node)
		}
	}
	return out
}

// whyNot describes what rules out a node.
func (s *renderer) whyNot(node int) []*Explanation {
	var out []*Explanation
	if n := &s.f.nodes[node]; n.unreadable {
		out = append(out, &Explanation{Text: s.f.p.readable(n.bundle).Error()})
	}
	for _, r := range s.rules {
		if s.seen[r] {
			continue
		}
		switch r.fact.Kind {
		case factDeprecated:
			if r.node == node {
				out = append(out, s.tell(r, s.name(node)+" is deprecated"))
			}
		case factRequirement:
			if r.node == node {
				out = append(out, s.tellNeed(r))
			}
		case factReplaces:
			if r.node == node || r.replaced == node {
				rival := r.node
				if rival == node {
					rival = r.replaced
				}
				e := s.tell(r, s.name(r.node)+" replaces "+s.name(r.replaced))
				e.Children = s.whyThere(rival)
				out = append(out, e)
			}
		case factSameAPI, factSamePackage, factSameName:
			if !slices.Contains(r.members, node) {
				continue
			}
			e := s.tell(r, s.clash(r))
			for _, m := range r.members {
				if m != node && s.mentioned[m] {
					e.Children = append(e.Children, s.whyThere(m)...)
				}
			}
			if r.fact.Kind != factSameAPI && len(e.Children) > 0 {
				out = append(out, e.Children...) // everybody knows that versions exclude each other
				continue
			}
			out = append(out, e)
		}
	}
	return out
}

// tellNeed describes what a member needs, and why nothing provides it.
func (s *renderer) tellNeed(r *rule) *Explanation {
	options := s.options(r.need)
	names := s.names(options)
	text := fmt.Sprintf("%s requires %s, which ", s.name(r.node), apiOf(r.need.req))
	switch len(names) {
	case 0:
		text += "nothing provides"
	case 1:
		text += "only " + names[0] + " provides"
	default:
		text += "only " + joinLast(names, " and ") + " provide"
	}
	e := s.tell(r, text)
	for _, n := range options {
		e.Children = append(e.Children, s.whyNot(n)...)
	}
	for _, c := range s.f.p.catalogs {
		channels, _ := c.contents.disordered(r.need.req, s.f.p.options.CEL)
		for _, ch := range channels {
			e.Children = append(e.Children, &Explanation{Text: ch.Err.Error()})
		}
	}
	return e
}

// whyThere describes what demands a node.
func (s *renderer) whyThere(node int) []*Explanation {
	var out []*Explanation
	for _, r := range s.rules {
		if s.seen[r] {
			continue
		}
		switch r.fact.Kind {
		case factFreestanding:
			if r.node == node {
				out = append(out, s.tell(r, s.name(node)+" is installed and no subscription has it, so it stays"))
			}
		case factSubscriptionTook, factRequirementTook:
			if r.node == node {
				out = append(out, s.tell(r, r.fact.Message))
			}
		case factSubscriptionNeeds, factPromise:
			if options := s.options(r.need); slices.Contains(options, node) {
				out = append(out, s.tellRequest(r))
			}
		case factRequirement:
			if slices.Contains(s.options(r.need), node) {
				e := s.tellNeed(r)
				e.Children = append(s.whyThere(r.node), e.Children...)
				out = append(out, e)
			}
		}
	}
	return out
}

// tellRequest describes what a Subscription needs.
func (s *renderer) tellRequest(r *rule) *Explanation {
	options := s.options(r.need)
	format := "subscription %s can have nothing but %s"
	if r.fact.Kind == factPromise {
		if n := len(options); r.need.last != noLit && s.f.subjects[r.need.last/2].node != none {
			options = options[:n-1]
		}
		format = "subscription %s is updated first, with %s"
		if s.f.p.requests[r.need.request].installed == none {
			format = "subscription %s is served first, with %s"
		}
	}
	e := s.tell(r, fmt.Sprintf(format, r.fact.Subscription, joinLast(s.names(options), " or ")))
	for _, n := range options {
		e.Children = append(e.Children, s.whyNot(n)...)
	}
	return e
}

// tell explains a rule, which is not explained again.
func (s *renderer) tell(r *rule, text string) *Explanation {
	s.seen[r] = true
	return &Explanation{Text: text}
}

// rest describes what is connected to the option indirectly.
func (s *renderer) rest() []*Explanation {
	var out []*Explanation
	for _, r := range s.rules {
		if s.seen[r] {
			continue
		}
		switch r.fact.Kind {
		case factRequirement:
			e := s.tellNeed(r)
			e.Children = append(s.whyThere(r.node), e.Children...)
			out = append(out, e)
		case factSubscriptionNeeds, factPromise:
			out = append(out, s.tellRequest(r))
		case factSameAPI, factSamePackage, factSameName:
			out = append(out, s.tell(r, s.clash(r)))
		default:
			out = append(out, s.tell(r, r.fact.Message))
		}
	}
	return out
}

// clash names the members of a group that the text is about.
func (s *renderer) clash(r *rule) string {
	var nodes []int
	for _, m := range r.members {
		if s.mentioned[m] {
			nodes = append(nodes, m)
		}
	}
	return r.shared.clash(s.names(nodes))
}

func (s *renderer) name(node int) string { return s.f.nodes[node].bundle.Name }

// shownNames is how many names a text shows.
const shownNames = 5

// names returns the names of nodes, each once, in order: the first, and how many follow.
func (s *renderer) names(nodes []int) []string {
	var out []string
	for _, n := range nodes {
		if name := s.name(n); !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	if n := len(out); n > shownNames {
		out = append(out[:shownNames], fmt.Sprintf("%d others", n-shownNames))
	}
	return out
}

// apiOf is what a requirement asks for, as briefly as it can be said.
func apiOf(r *Requirement) string {
	if r.Constraint.Kind == constraintGVK && r.Constraint.FailureMessage == "" {
		return apiText(r.Constraint.GVK)
	}
	return strings.TrimSpace("an operator " + r.String())
}
