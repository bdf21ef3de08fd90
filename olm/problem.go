package olm

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/options"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
	"github.com/clusterupdate/clusterupdate/olm/internal/objects"
)

// problem is a snapshot made ready for resolution: what is visible, in order.
// It is immutable once made.
type problem struct {
	snapshot Snapshot
	options  Options

	catalogs  []catalogView // readable ones, in the order in which they are searched
	installed []*Bundle     // by name
	updates   []InProgressUpdate
	leaving   map[string]bool // names of installed operators that are being replaced
	requests  []request       // by name
	warnings  []string
}

// catalogView is a catalog that the namespace sees.
type catalogView struct {
	key      types.NamespacedName
	contents *Contents
}

// request is a Subscription with the operators that it can have.
type request struct {
	sub        *olmapi.Subscription
	installed  int       // index of the installed operator, none if there is none
	candidates entryList // updates, or what can be installed
	fact       *Fact     // why it leads nowhere
	err        error     // why channels or candidates could not be taken
	lost       bool      // err may have cost it something that it can have
	waits      bool      // an update of its operator is in progress
	stuck      bool
}

const none = -1

// entryList holds entries in order of preference.
type entryList struct {
	segments []segment
	length   int
}

// segment is a run of entries of one catalog.
type segment struct {
	catalog int
	entries []*Entry
}

func (o *entryList) add(catalog int, entries []*Entry) {
	if len(entries) > 0 {
		o.segments = append(o.segments, segment{catalog, entries})
		o.length += len(entries)
	}
}

// all returns the entries with their catalogs.
func (o *entryList) all() iter.Seq2[int, *Entry] {
	return func(yield func(int, *Entry) bool) {
		for _, s := range o.segments {
			for _, e := range s.entries {
				if !yield(s.catalog, e) {
					return
				}
			}
		}
	}
}

// newProblem checks a snapshot and reads what does not depend on the search.
// The error is one about the snapshot or the options, or a *Prevented.
func newProblem(s Snapshot, o Options) (*problem, error) {
	if err := options.NonNegative(&o); err != nil {
		return nil, err
	}
	if err := checkSnapshot(&s); err != nil {
		return nil, err
	}
	// Explanations look at it later, when the caller may have continued.
	s.Subscriptions, s.Installed = slices.Clone(s.Subscriptions), slices.Clone(s.Installed)
	s.OperatorGroups, s.Catalogs = slices.Clone(s.OperatorGroups), slices.Clone(s.Catalogs)
	p := &problem{snapshot: s, options: o}
	if len(s.Subscriptions) == 0 {
		// Nothing is asked for, so nothing that could fail is looked at.
		p.installed, _, _ = readInstalled(s.Namespace, s.Installed, nil, nil)
		return p, nil
	}
	if n := len(s.OperatorGroups); n != 1 {
		return nil, &Prevented{[]error{fmt.Errorf("expected 1 OperatorGroup in the namespace, found %d", n)}}
	}
	faults := p.readCatalogs()
	var err error
	p.installed, p.updates, err = readInstalled(s.Namespace, s.Installed, s.Subscriptions, s.OperatorGroups)
	if err != nil {
		faults = append(faults, &CatalogError{s.Namespace + "/@existing", err})
	} else if err := p.checkInstalled(); err != nil {
		return nil, &Prevented{[]error{err}}
	}
	if len(faults) > 0 {
		slices.SortStableFunc(faults, func(a, b *CatalogError) int { return strings.Compare(a.Catalog, b.Catalog) })
		errs := make([]error, len(faults))
		for i, f := range faults {
			errs[i] = f
		}
		return nil, &Prevented{errs}
	}
	p.leaving = map[string]bool{}
	if !o.AllOrNothing {
		for _, u := range p.updates {
			p.leaving[u.Old] = true
		}
	}
	if err := p.readSubscriptions(); err != nil {
		return nil, err
	}
	return p, nil
}

// checkSnapshot finds what contradicts itself.
func checkSnapshot(s *Snapshot) error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	belongs := func(kind, namespace, name string) {
		if !objects.Belongs(namespace, s.Namespace) {
			fault("%s %s/%s is of another namespace than %s", kind, namespace, name, s.Namespace)
		}
	}
	if s.Namespace == "" {
		fault("no namespace")
	}
	names := map[string]bool{}
	for i := range s.Subscriptions {
		sub := &s.Subscriptions[i]
		belongs("subscription", sub.Namespace, sub.Name)
		switch {
		case sub.Name == "":
			fault("subscription %d has no name", i)
		case names[sub.Name]:
			fault("subscription %s occurs twice", sub.Name)
		}
		names[sub.Name] = true
	}
	for i := range s.Installed {
		csv := &s.Installed[i]
		belongs("clusterserviceversion", csv.Namespace, csv.Name)
		if csv.Name == "" {
			fault("clusterserviceversion %d has no name", i)
		}
	}
	for i := range s.OperatorGroups {
		g := &s.OperatorGroups[i]
		belongs("operatorgroup", g.Namespace, g.Name)
	}
	keys := map[types.NamespacedName]bool{}
	for _, c := range s.Catalogs {
		if c.Key.Name == "" || c.Key.Namespace == "" {
			fault("catalog %q lacks its name or namespace", c.Key)
		}
		if keys[c.Key] {
			fault("catalog %s occurs twice", c.Key)
		}
		keys[c.Key] = true
	}
	if len(errs) > 0 {
		return fmt.Errorf("%w: %w", ErrSnapshot, bounded.Errors(errs...))
	}
	return nil
}

// readCatalogs sorts the visible catalogs and returns the faults of the unreadable
// ones.
func (p *problem) readCatalogs() []*CatalogError {
	s := &p.snapshot
	global := s.GlobalNamespace
	if s.OperatorGroups[0].Annotations[olmapi.AnnotationExcludeGlobal] == "true" {
		global = ""
	}
	visible := make([]*SnapshotCatalog, 0, len(s.Catalogs))
	for i := range s.Catalogs {
		if c := &s.Catalogs[i]; c.Key.Namespace == s.Namespace || c.Key.Namespace == global {
			visible = append(visible, c)
		}
	}
	elsewhere := func(c *SnapshotCatalog) int {
		if c.Key.Namespace == s.Namespace {
			return 0
		}
		return 1
	}
	slices.SortFunc(visible, func(a, b *SnapshotCatalog) int {
		return cmp.Or(
			cmp.Compare(b.Priority, a.Priority),
			cmp.Compare(elsewhere(a), elsewhere(b)),
			strings.Compare(a.Key.Name, b.Key.Name),
			strings.Compare(a.Key.Namespace, b.Key.Namespace),
		)
	})
	var faults []*CatalogError
	for _, c := range visible {
		err := c.Err
		if err == nil && c.Contents == nil {
			err = fmt.Errorf("no registry client established for catalogsource %s", c.Key)
		}
		if err == nil {
			p.catalogs = append(p.catalogs, catalogView{c.Key, c.Contents})
			continue
		}
		fault := &CatalogError{c.Key.String(), err}
		if p.options.TolerateUnusedCatalogs && !p.subscribed(c.Key) {
			p.warnings = append(p.warnings, fault.Error())
			continue
		}
		faults = append(faults, fault)
	}
	return faults
}

// subscribed reports whether a Subscription may take operators from the
// catalog.
func (p *problem) subscribed(key types.NamespacedName) bool {
	return slices.ContainsFunc(p.snapshot.Subscriptions, func(s olmapi.Subscription) bool { return s.Spec.Takes(key) })
}

// checkInstalled returns the first reason why the needs of the installed operators
// cannot be determined.
func (p *problem) checkInstalled() error {
	all := make([]reached, len(p.installed))
	for i, b := range p.installed {
		if err := p.readable(b); err != nil {
			return err
		}
		all[i] = reached{none, b}
	}
	if p.options.AllOrNothing {
		return p.faults(all)
	}
	return nil
}

// readable returns why the needs of a bundle cannot be determined, nil if they can.
func (p *problem) readable(b *Bundle) error {
	if b.Err != nil {
		return b.Err
	}
	for i := range b.Requires {
		if err := b.Requires[i].Check(p.options.CEL); err != nil {
			return err
		}
	}
	return nil
}

// reached is a bundle of a catalog that a walk came to; none for an installed operator.
type reached struct {
	catalog int
	bundle  *Bundle
}

// faults walks over bundles and everything that they could ever need, from one after
// the other, and returns the first fault.
func (p *problem) faults(from []reached) error {
	type asked struct {
		catalog     int
		requirement string
	}
	seen := map[reached]bool{}
	checked := map[asked]bool{}
	for _, first := range from {
		for queue := []reached{first}; len(queue) > 0; queue = queue[1:] {
			r := queue[0]
			if seen[r] {
				continue
			}
			seen[r] = true
			if err := p.readable(r.bundle); err != nil {
				return err
			}
			for i := range r.bundle.Requires {
				req := &r.bundle.Requires[i]
				key := asked{r.catalog, req.key()}
				if checked[key] {
					continue
				}
				checked[key] = true
				needed, err := p.orderedProviders(r.catalog, req)
				if err != nil {
					return err
				}
				for catalog, e := range needed.all() {
					queue = append(queue, reached{catalog, e.Bundle})
				}
			}
		}
	}
	return nil
}

// orderedProviders returns what providers does. A channel without an order that holds
// such an entry is an error.
func (p *problem) orderedProviders(own int, r *Requirement) (entryList, error) {
	for _, c := range p.catalogs {
		bad, err := c.contents.disordered(r, p.options.CEL)
		if err != nil {
			return entryList{}, err
		}
		if len(bad) > 0 {
			return entryList{}, bad[0].Err
		}
	}
	return p.providers(own, r)
}

// providers returns the entries that satisfy a requirement of a bundle of a
// catalog (none: an installed operator), in order: its own catalog, then the
// the rest by preference.
func (p *problem) providers(own int, r *Requirement) (entryList, error) {
	var o entryList
	add := func(c int) error {
		entries, err := p.catalogs[c].contents.index.matching(r, p.options.CEL)
		o.add(c, entries)
		return err
	}
	if own != none {
		if err := add(own); err != nil {
			return entryList{}, err
		}
	}
	for c := range p.catalogs {
		if c != own {
			if err := add(c); err != nil {
				return entryList{}, err
			}
		}
	}
	return o, nil
}

// key distinguishes requirements. The text of a requirement does not: "not" is not
// shown where it comes first.
func (r *Requirement) key() string {
	switch c := &r.Constraint; c.Kind {
	case constraintGVK:
		return "api " + c.GVK.String()
	case constraintPackage, constraintLabel:
		return r.String()
	}
	return string(r.Property.Value)
}

// apiText is an API as OLM's messages show it.
func apiText(gvk schema.GroupVersionKind) string {
	return fmt.Sprintf("%s (%s/%s)", gvk.Kind, gvk.Group, gvk.Version)
}
