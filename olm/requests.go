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
		w.waits = slices.ContainsFunc(p.updates, func(u InProgressUpdate) bool {
			return slices.Contains(u.Subscriptions, sub.Name)
		})
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

// place is a channel of a catalog.
type place struct {
	catalog int
	channel *Channel
}

// places returns the channels that a Subscription names, in order. That there is none is
// a fact.
func (p *problem) places(w *request) []place {
	spec := &w.sub.Spec
	var inCatalog, inPackage bool // there are entries
	var places []place
	for c := range p.catalogs {
		contents := p.catalogs[c].contents
		if !spec.Takes(p.catalogs[c].key) || !contents.holdsEntries() {
			continue
		}
		inCatalog = true
		pkg := contents.Package(spec.Package)
		if pkg == nil {
			continue
		}
		for _, ch := range pkg.SearchOrder() {
			if !ch.holdsEntries() {
				continue
			}
			inPackage = true
			if spec.Channel == "" || spec.Channel == ch.Name {
				places = append(places, place{c, ch})
			}
		}
	}
	switch {
	case !inCatalog:
		w.lacks(factNoCatalogEntries, "from catalog %s in namespace %s referenced by", spec.Source, spec.SourceNamespace)
	case !inPackage:
		w.lacks(factNoPackage, "in package %s in the catalog referenced by", spec.Package)
	case len(places) == 0:
		w.lacks(factNoChannel, "in channel %s of package %s in the catalog referenced by", spec.Channel, spec.Package)
	}
	return places
}

// lacks notes why nothing can be chosen for a Subscription, in OLM's words.
func (w *request) lacks(kind, where string, args ...any) {
	text := fmt.Sprintf("no operators found "+where+" subscription %s", append(args, w.sub.Name)...)
	w.fact = &Fact{Kind: kind, Subscription: w.sub.Name, Package: w.sub.Spec.Package, Message: text}
}

// findCandidates looks for the entries that a Subscription can have. A reason
// why there can be none at all is a fact; a channel without an order is an
// error, which leaves the candidates of further channels.
func (p *problem) findCandidates(w *request) {
	switch places := p.places(w); {
	case w.installed != none:
		w.findUpdates(p.installed[w.installed], places)
	case w.fact != nil:
	case w.sub.Spec.StartingCSV != "":
		w.findStarting(places)
	default:
		w.findNew(places)
	}
}

// findUpdates looks for what can replace the installed operator.
func (w *request) findUpdates(b *Bundle, places []place) {
	var listed, head bool
	channels := make([]*Channel, len(places))
	for i, x := range places {
		channels[i] = x.channel
	}
	for i, updates := range updatesIn(channels, b.Name, b.Version) {
		ch := channels[i]
		if ch.Err != nil {
			w.err = cmp.Or(w.err, ch.Err)
			w.lost = w.lost || ch.holdsUpdate(b)
			continue
		}
		w.candidates.add(places[i].catalog, updates)
		if e := ch.Entry(b.Name); e != nil {
			listed = true
			head = head || ch.Heads[0] == e
		}
	}
	w.lost = w.lost || !listed
	w.stuck = listed && !head && !w.lost && w.candidates.length == 0
}

// holdsUpdate reports whether a channel, which may be without an order, has an entry
// that may replace an operator.
func (ch *Channel) holdsUpdate(b *Bundle) bool {
	return slices.ContainsFunc(ch.Entries, func(e *Entry) bool {
		return e.Name != b.Name && e.Updates(b.Name, b.Version)
	})
}

// findStarting looks for the entries that startingCSV names, skipped and disordered ones too.
func (w *request) findStarting(places []place) {
	spec := &w.sub.Spec
	for _, x := range places {
		if e := x.channel.Entry(spec.StartingCSV); e != nil && e.Bundle != nil {
			w.candidates.add(x.catalog, []*Entry{e})
		}
	}
	if w.candidates.length == 0 {
		w.lacks(factNoStartingCSV, "with name %s in channel %s of package %s in the catalog referenced by",
			spec.StartingCSV, spec.Channel, spec.Package)
	}
}

// findNew looks for what can be installed.
func (w *request) findNew(places []place) {
	for _, x := range places {
		if x.channel.Err != nil {
			w.err = cmp.Or(w.err, x.channel.Err)
			w.lost = true
		}
		w.candidates.add(x.catalog, x.channel.Ordered)
	}
	if w.candidates.length == 0 && w.err == nil {
		w.lacks(factNoMatch, "matching the criteria of")
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
