package olm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/limit"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
	"github.com/clusterupdate/clusterupdate/olm/internal/objects"
)

// A generation as JSON: its input, and its result as text. The catalogs hold only
// the packages that the resolution may have looked at.
type generationJSON struct {
	Namespace       string                         `json:"namespace"`
	GlobalNamespace string                         `json:"globalNamespace,omitempty"`
	Options         optionsJSON                    `json:"options"`
	Subscriptions   []olmapi.Subscription          `json:"subscriptions,omitempty"`
	Installed       []olmapi.ClusterServiceVersion `json:"installed,omitempty"`
	OperatorGroups  []olmapi.OperatorGroup         `json:"operatorGroups,omitempty"`
	Catalogs        []catalogJSON                  `json:"catalogs,omitempty"`
	Generation      string                         `json:"generation"` // as String has it
}

type optionsJSON struct {
	AllOrNothing           bool `json:"allOrNothing,omitempty"`
	TolerateUnusedCatalogs bool `json:"tolerateUnusedCatalogs,omitempty"`
	// Greedy is read from older generations, and ignored: there is one engine.
	Greedy bool `json:"greedy,omitempty"`
}

type catalogJSON struct {
	Namespace string     `json:"namespace"`
	Name      string     `json:"name"`
	Priority  int        `json:"priority,omitempty"`
	Error     string     `json:"error,omitempty"`
	Packages  []*Package `json:"packages,omitempty"`
}

// MarshalJSON writes all that [ReadGeneration] needs to make the generation
// again: its Subscriptions, installed operators and OperatorGroups, and of the
// catalogs what a resolution of them looks at. The same generation gives the
// same text. The error is about a generation that [Resolve] did not make, or a
// property that is not JSON.
func (g *Generation) MarshalJSON() ([]byte, error) {
	if g.problem == nil {
		return nil, errors.New("olm: only a generation that Resolve made can be written as JSON")
	}
	s, o := &g.problem.snapshot, g.problem.options
	out := generationJSON{
		Namespace: s.Namespace, GlobalNamespace: s.GlobalNamespace,
		Options:       optionsJSON{AllOrNothing: o.AllOrNothing, TolerateUnusedCatalogs: o.TolerateUnusedCatalogs},
		Subscriptions: s.Subscriptions, OperatorGroups: s.OperatorGroups, Generation: g.String(),
	}
	for _, csv := range s.PresentCSVs() {
		out.Installed = append(out.Installed, *csv)
	}
	needed := neededPackages(g.problem)
	for i := range s.Catalogs {
		c := &s.Catalogs[i]
		written := catalogJSON{Namespace: c.Key.Namespace, Name: c.Key.Name, Priority: c.Priority}
		if c.Err != nil {
			written.Error = c.Err.Error()
		} else if c.Contents != nil {
			for _, p := range c.Contents.Packages() {
				if needed[i][p] {
					written.Packages = append(written.Packages, p)
				}
			}
		}
		out.Catalogs = append(out.Catalogs, written)
	}
	return json.Marshal(out)
}

// neededPackages are, for each catalog of the snapshot, the packages that
// Subscriptions name and those that hold what their operators, or installed
// ones, require, and so on.
func neededPackages(p *problem) []map[*Package]bool {
	catalogs := p.snapshot.Catalogs
	needed := make([]map[*Package]bool, len(catalogs))
	var queue []*Bundle
	need := func(i int, pkg *Package) {
		if pkg != nil && !needed[i][pkg] {
			needed[i][pkg] = true
			queue = append(queue, pkg.Bundles...)
		}
	}
	for i := range catalogs {
		needed[i] = map[*Package]bool{}
		c := catalogs[i].Contents
		if c == nil {
			continue
		}
		for _, sub := range objects.In(p.snapshot.Namespace, p.snapshot.Subscriptions) {
			need(i, c.Package(sub.Spec.Package))
		}
		// A catalog with entries differs from an empty one.
		if at := slices.IndexFunc(c.Packages(), func(pkg *Package) bool {
			return slices.ContainsFunc(pkg.Channels, (*Channel).holdsEntries)
		}); at >= 0 {
			need(i, c.Packages()[at])
		}
	}
	queue = append(queue, p.installed...)
	seen := map[string]bool{}
	for ; len(queue) > 0; queue = queue[1:] {
		for j := range queue[0].Requires {
			r := &queue[0].Requires[j]
			key := r.Property.Type + " " + string(r.Property.Value)
			if seen[key] {
				continue
			}
			seen[key] = true
			for i := range catalogs {
				c := catalogs[i].Contents
				if c == nil {
					continue
				}
				for _, x := range []*index{&c.index, &c.bad} {
					entries, err := x.matching(r, p.options.CEL)
					if err != nil {
						entries = x.all // whatever it may match
					}
					for _, e := range entries {
						need(i, e.Package)
					}
				}
			}
		}
	}
	return needed
}

// generationShare is how many times the memory that its JSON takes a generation
// takes in all.
const generationShare = 4

// ReadGeneration makes a generation of the JSON that [Generation.MarshalJSON]
// wrote. It resolves again from what the JSON holds, so the result can be explained
// as the original could. eval evaluates cel constraints; it may be nil if absent.
//
// It is strict: names are case-sensitive, and fields that are not known or come
// twice are errors. JSON that would make more than 256 MiB is one too.
//
// The error is about JSON of another form, one of [Resolve], or reports that the
// resolution comes to something else than what was written, as it may after a
// change of this package or of eval.
func ReadGeneration(ctx context.Context, data []byte, eval CELEvaluator) (*Generation, error) {
	var in generationJSON
	// Putting the catalogs together and resolving take as much again.
	if limit.Cost(data, &in) > limit.Heap/generationShare {
		return nil, fmt.Errorf("olm: generation: %w",
			&limit.LimitError{Max: limit.Heap, What: "bytes of memory for a document"})
	}
	strict, err := kjson.UnmarshalStrict(data, &in)
	if err := bounded.Errors(append([]error{err}, strict...)...); err != nil {
		return nil, fmt.Errorf("olm: generation: %w", err)
	}
	s := Snapshot{
		Namespace: in.Namespace, GlobalNamespace: in.GlobalNamespace,
		Subscriptions: in.Subscriptions, Installed: in.Installed, OperatorGroups: in.OperatorGroups,
	}
	r := new(BundleReader)
	for _, c := range in.Catalogs {
		catalog := SnapshotCatalog{Key: types.NamespacedName{Namespace: c.Namespace, Name: c.Name}, Priority: c.Priority}
		if c.Error != "" {
			catalog.Err = errors.New(c.Error)
		} else {
			catalog.Contents = linkPackages(r, c.Packages)
		}
		s.Catalogs = append(s.Catalogs, catalog)
	}
	o := Options{AllOrNothing: in.Options.AllOrNothing, TolerateUnusedCatalogs: in.Options.TolerateUnusedCatalogs,
		CEL: eval}
	g, err := Resolve(ctx, s, o)
	if err != nil {
		return nil, err
	}
	if got := g.String(); got != in.Generation {
		return nil, fmt.Errorf("olm: the generation was written as %s, and comes to %s now", bounded.Quote(in.Generation),
			bounded.Quote(got))
	}
	return g, nil
}

// linkPackages makes contents of packages as their JSON has them.
func linkPackages(r *BundleReader, packages []*Package) *Contents {
	packages = withoutNil(packages)
	for _, p := range packages {
		p.Bundles, p.Channels = withoutNil(p.Bundles), withoutNil(p.Channels)
		bundles := map[string]*Bundle{}
		for _, b := range p.Bundles {
			b.Package = p.Name
			r.Read(b)
			bundles[b.Name] = b
		}
		for _, ch := range p.Channels {
			ch.Entries = withoutNil(ch.Entries)
			for _, e := range ch.Entries {
				e.Bundle = bundles[e.Name]
			}
		}
	}
	return NewContents(packages)
}

func withoutNil[T any](list []*T) []*T {
	return slices.DeleteFunc(list, func(p *T) bool { return p == nil })
}

// UnmarshalJSON does what [ReadGeneration] does, without an evaluator of cel
// constraints and without a deadline. The errors are the same.
func (g *Generation) UnmarshalJSON(data []byte) error {
	read, err := ReadGeneration(context.Background(), data, nil)
	if err != nil {
		return err
	}
	*g = *read
	return nil
}
