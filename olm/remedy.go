package olm

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
)

// Remedy is a change that helps.
type Remedy struct {
	Text string
	// Generation is the result of a resolution after the change; nil if other
	// conflicts remain.
	Generation *Generation
}

// remedies tries changes that could give a held-back Subscription a better option.
func (g *Generation) remedies(ctx context.Context, h *HeldBack, x *explainer) ([]Remedy, error) {
	p := g.problem
	var rules []*rule
	if len(h.NotTaken) > 0 {
		r, err := x.contradiction(ctx, h, h.NotTaken[0])
		if err != nil && !gaveUp(err) {
			return nil, err
		}
		if r != nil {
			rules = r.rules
		}
	}
	var facts []Fact
	for _, r := range rules {
		facts = append(facts, r.fact)
	}
	better := func(n *Generation, err error) bool {
		if err != nil {
			return false
		}
		i := n.slotOf(h.Subscription)
		if i == none || n.Slots[i].Operator == nil || n.Slots[i].Operator.Name == h.Taken {
			return false
		}
		op := n.Slots[i].Operator
		for _, o := range h.NotTaken {
			if o.Entry.Name == op.Name {
				return true
			}
		}
		return len(h.NotTaken) == 0 || op.Channel != h.NotTaken[0].Entry.Channel.Name
	}
	return tryRemedies(ctx, p, facts, h.Subscription, better)
}

// maxRemedied is for how many conflicts of a [NotSatisfiable] changes are tried:
// each takes a resolution.
const maxRemedied = 10

// Explain says in an administrator's words why a resolution of the snapshot with
// these options failed, and which changes would help, each tried out. With several
// conflicts, a change helps that leaves fewer; changes for the first ten are tried.
// The error is the one to be explained if it is not a [*NotSatisfiable], or the
// failure of the search for remedies.
func (e *NotSatisfiable) Explain(ctx context.Context, s Snapshot, o Options) (*Explanation, error) {
	p, err := newProblem(s, o)
	if err != nil {
		return nil, err
	}
	root := &Explanation{Text: "no generation satisfies all of these together"}
	var facts []Fact
	for i, set := range e.sets() {
		at := root
		if i > 0 {
			at = &Explanation{Text: "nor all of these"}
			root.Children = append(root.Children, at)
		}
		for j := range set {
			at.Children = append(at.Children, &Explanation{Text: set[j].Message})
		}
		if i < maxRemedied {
			facts = append(facts, set...)
		}
	}
	root.Remedies, err = tryRemedies(ctx, p, facts, "", func(g *Generation, err error) bool {
		left := (*NotSatisfiable)(nil)
		return err == nil || errors.As(err, &left) && len(left.sets()) < len(e.sets())
	})
	return root, err
}

// change is something that could be done to a snapshot.
type change struct {
	text string
	do   func(*Snapshot)
}

// tryRemedies resolves after each change that the facts suggest and returns those
// that help. self is the Subscription that is to be helped, empty for all.
func tryRemedies(
	ctx context.Context, p *problem, facts []Fact, self string, helps func(*Generation, error) bool,
) ([]Remedy, error) {
	var out []Remedy
	for _, c := range p.changes(facts, self) {
		s := p.snapshot
		s.Subscriptions = slices.Clone(s.Subscriptions)
		s.Installed = slices.Clone(s.Installed)
		s.Catalogs = slices.Clone(s.Catalogs)
		c.do(&s)
		g, err := Resolve(ctx, s, p.options)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if helps(g, err) {
			out = append(out, Remedy{c.text, g})
		}
	}
	return out, nil
}

// changes returns what the facts suggest: Subscriptions to go or to change their
// channel, operators without Subscription to go, catalogs to be offered.
func (p *problem) changes(facts []Fact, self string) []change {
	var out []change
	try := func(text string, do func(*Snapshot)) { out = append(out, change{text, do}) }
	remove := func(s *Snapshot, csv string) {
		s.Installed = slices.DeleteFunc(s.Installed, func(x olmapi.ClusterServiceVersion) bool { return x.Name == csv && !x.IsCopied() })
	}
	concerned := map[string]bool{self: self != ""}
	for i := range facts {
		if name := facts[i].Subscription; name != "" {
			concerned[name] = true
		}
	}
	for i := range p.requests {
		w := &p.requests[i]
		name := w.sub.Name
		if !concerned[name] {
			continue
		}
		if name != self {
			text, csv := "remove subscription "+name, ""
			shared := func(o request) bool { return o.sub != w.sub && o.installed == w.installed }
			if w.installed != none && !slices.ContainsFunc(p.requests, shared) {
				csv = p.installed[w.installed].Name
				text += " and its operator " + csv
			}
			try(text, func(s *Snapshot) {
				s.Subscriptions = slices.DeleteFunc(s.Subscriptions, func(x olmapi.Subscription) bool { return x.Name == name })
				remove(s, csv)
			})
		}
		for _, ch := range p.channelsOf(w) {
			try(fmt.Sprintf("switch subscription %s to channel %s", name, ch), func(s *Snapshot) {
				for i := range s.Subscriptions {
					if s.Subscriptions[i].Name == name {
						s.Subscriptions[i].Spec.Channel = ch
					}
				}
			})
		}
	}
	for i := range facts {
		if csv := facts[i].Member; facts[i].Kind == factFreestanding {
			try("remove the operator "+csv+", which no subscription has", func(s *Snapshot) { remove(s, csv) })
		}
	}
	for i, c := range p.snapshot.Catalogs {
		moved := types.NamespacedName{Namespace: p.snapshot.Namespace, Name: c.Key.Name}
		taken := func(o SnapshotCatalog) bool { return o.Key == moved }
		seen := func(v catalogView) bool { return v.key == c.Key }
		if c.Contents == nil || slices.ContainsFunc(p.snapshot.Catalogs, taken) || slices.ContainsFunc(p.catalogs, seen) {
			continue // unreadable, or seen already
		}
		try(fmt.Sprintf("offer catalog %s to the namespace", c.Key), func(s *Snapshot) {
			s.Catalogs[i].Key = moved
			for j := range s.Subscriptions { // who asks for it by name finds it
				if spec := &s.Subscriptions[j].Spec; spec.Source == c.Key.Name && spec.SourceNamespace == c.Key.Namespace {
					spec.SourceNamespace = moved.Namespace
				}
			}
		})
	}
	return out
}

// channelsOf returns the other channels of a Subscription's package.
func (p *problem) channelsOf(w *request) []string {
	var out []string
	for _, c := range p.catalogs {
		if c.key.Name != w.sub.Spec.Source || c.key.Namespace != w.sub.Spec.SourceNamespace {
			continue
		}
		if pkg := c.contents.Package(w.sub.Spec.Package); pkg != nil {
			for _, ch := range pkg.SearchOrder() {
				if ch.Name != w.sub.Spec.Channel && ch.Err == nil && len(ch.Ordered) > 0 {
					out = append(out, ch.Name)
				}
			}
		}
	}
	return out
}
