package olm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
)

// readSubscriptions finds what each Subscription can have. The error is a
// *Prevented with AllOrNothing; without it, faults are reasons of single
// Subscriptions.
func (p *problem) readSubscriptions() error {
	s := &p.snapshot
	subs := make([]*olmapi.Subscription, len(s.Subscriptions))
	for i := range s.Subscriptions {
		subs[i] = &s.Subscriptions[i]
	}
	slices.SortFunc(subs, func(a, b *olmapi.Subscription) int { return strings.Compare(a.Name, b.Name) })

	p.requests = make([]request, len(subs))
	var errs []error
	for i, sub := range subs {
		w := &p.requests[i]
		w.sub = sub
		w.installed, w.err = p.installedFor(sub)
		if w.err != nil {
			errs = append(errs, w.err)
			continue
		}
		p.findCandidates(w)
		if p.options.AllOrNothing {
			if err := p.requestFault(w); err != nil {
				errs = append(errs, err)
			}
			continue
		}
		w.waits = slices.ContainsFunc(p.updates, func(u InProgressUpdate) bool { return slices.Contains(u.Subscriptions, sub.Name) })
		w.stuck = w.stuck && !w.waits
		p.dropUnreadable(w)
		if w.err != nil && (w.candidates.length > 0 || !w.lost) {
			p.warnings = append(p.warnings, fmt.Sprintf("subscription %s: %v", sub.Name, w.err))
			w.err = nil
		}
	}
	if p.options.AllOrNothing && len(errs) > 0 {
		return &Prevented{errs}
	}
	return nil
}

// installedFor returns the index of the installed operator of a Subscription: the one
// that status.installedCSV names; none if it is not there. Two of that name are an error.
func (p *problem) installedFor(sub *olmapi.Subscription) (int, error) {
	found := none
	var names []string
	for i, b := range p.installed {
		if b.Name == sub.Status.InstalledCSV {
			found = i
			names = append(names, b.Name)
		}
	}
	if len(names) > 1 {
		return none, fmt.Errorf("multiple name matches for status.installedCSV of subscription %s/%s: %s",
			sub.Namespace, sub.Name, strings.Join(names, ", "))
	}
	return found, nil
}

// findCandidates looks for the entries that a Subscription can have. A reason
// why there can be none at all is a fact; a channel without an order is an
// error, which leaves the candidates of further channels.
func (p *problem) findCandidates(w *request) {
	spec := &w.sub.Spec
	starting := spec.StartingCSV
	var b *Bundle // the installed one
	if w.installed != none {
		b = p.installed[w.installed]
		starting = ""
	}
	var catalogs, packages, channels, named bool
	head, listed := false, false
	for c := range p.catalogs {
		view := &p.catalogs[c]
		if !spec.Takes(view.key) {
			continue
		}
		catalogs = catalogs || view.contents.holdsEntries()
		pkg := view.contents.Package(spec.Package)
		if pkg == nil {
			continue
		}
		for _, ch := range pkg.SearchOrder() {
			if !ch.holdsEntries() {
				continue
			}
			packages = true
			if spec.Channel != "" && spec.Channel != ch.Name {
				continue
			}
			channels = true
			if starting != "" {
				if e := ch.Entry(starting); e != nil && e.Bundle != nil {
					named = true
					w.candidates.add(c, []*Entry{e})
				}
				continue
			}
			switch {
			case ch.Err != nil:
				w.err = cmp.Or(w.err, ch.Err)
				w.lost = w.lost || b != nil && ch.holdsUpdate(b)
			case b == nil:
				w.candidates.add(c, ch.Ordered)
			default:
				w.candidates.add(c, ch.Updates(b.Name, b.Version))
				if e := ch.Entry(b.Name); e != nil {
					listed = true
					head = head || len(ch.Heads) == 1 && ch.Heads[0] == e
				}
			}
		}
	}
	w.lost = w.lost || !listed
	w.stuck = listed && !head && w.candidates.length == 0 && !w.lost

	fact := func(kind string, format string, args ...any) {
		w.fact = &Fact{Kind: kind, Subscription: w.sub.Name, Package: spec.Package, Message: fmt.Sprintf(format, args...)}
	}
	switch {
	case !catalogs:
		fact(factNoCatalogEntries, "no operators found from catalog %s in namespace %s referenced by subscription %s",
			spec.Source, spec.SourceNamespace, w.sub.Name)
	case !packages:
		fact(factNoPackage, "no operators found in package %s in the catalog referenced by subscription %s", spec.Package,
			w.sub.Name)
	case !channels:
		fact(factNoChannel, "no operators found in channel %s of package %s in the catalog referenced by subscription %s",
			spec.Channel, spec.Package, w.sub.Name)
	case starting != "" && !named:
		fact(factNoStartingCSV, "no operators found with name %s in channel %s of package %s in the catalog referenced by subscription %s", starting, spec.Channel, spec.Package, w.sub.Name)
	case w.installed == none && w.candidates.length == 0 && w.err == nil:
		fact(factNoMatch, "no operators found matching the criteria of subscription %s", w.sub.Name)
	}
}

// requestFault returns the first fault of the bundles that a Subscription reaches.
func (p *problem) requestFault(w *request) error {
	if w.err != nil || w.fact != nil {
		return w.err
	}
	var from []reached
	for catalog, e := range w.candidates.all() {
		from = append(from, reached{catalog, e.Bundle})
	}
	return p.faults(from)
}

// holdsUpdate reports whether a channel, which may be without an order, has an entry
// that may replace an operator.
func (ch *Channel) holdsUpdate(b *Bundle) bool {
	return slices.ContainsFunc(ch.Entries, func(e *Entry) bool {
		return e.Name != b.Name && e.Updates(b.Name, b.Version)
	})
}

// dropUnreadable removes the candidates whose needs are unknown.
func (p *problem) dropUnreadable(w *request) {
	unreadable := func(e *Entry) bool {
		err := p.readable(e.Bundle)
		w.err = cmp.Or(w.err, err)
		w.lost = w.lost || err != nil
		return err != nil
	}
	for i := range w.candidates.segments {
		s := &w.candidates.segments[i]
		if slices.ContainsFunc(s.entries, unreadable) {
			kept := slices.DeleteFunc(slices.Clone(s.entries), unreadable)
			w.candidates.length -= len(s.entries) - len(kept)
			s.entries = kept
		}
	}
}

// SearchOrder returns the channels in the order in which a Subscription without a channel
// looks: the default channel, then by name. The caller must not change the slice.
func (p *Package) SearchOrder() []*Channel {
	i := slices.IndexFunc(p.Channels, func(ch *Channel) bool { return ch.Name == p.DefaultChannel })
	if i <= 0 {
		return p.Channels
	}
	out := make([]*Channel, 0, len(p.Channels))
	out = append(out, p.Channels[i])
	out = append(out, p.Channels[:i]...)
	return append(out, p.Channels[i+1:]...)
}

func (ch *Channel) holdsEntries() bool {
	return slices.ContainsFunc(ch.Entries, func(e *Entry) bool { return e.Bundle != nil })
}

func (c *Contents) holdsEntries() bool {
	return slices.ContainsFunc(c.packages, func(p *Package) bool {
		return slices.ContainsFunc(p.Channels, (*Channel).holdsEntries)
	})
}
