package graphdata

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata/internal/inside"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// node is a version on an architecture.
type node struct {
	version  string // with its build
	base     string // without
	build    string
	semver   *semver.Version
	image    string
	arch     string            // as the metadata had it, once they are served without
	metadata map[string]string // nil: an abstract node, which only others name
}

// base is a version as edges name it: their build is the naming release's.
type base struct {
	text string
	ok   bool
}

// addNodes makes a node of each release, and of each version that they name.
func (b *builder) addNodes() error {
	b.bases = map[string]base{}
	b.byArch = map[string]archNode{}
	b.sortReleases()
	if err := b.concrete(); err != nil {
		return err
	}
	for _, i := range b.order {
		r := &b.releases[i]
		_, build, _ := strings.Cut(b.full[i], "+")
		for _, version := range r.Previous {
			b.abstract(r, "previous", version, build)
		}
		for _, version := range r.Next {
			b.abstract(r, "next", version, build)
		}
		if len(b.nodes) > b.opts.MaxNodes {
			return &LimitError{What: limitNodes, Max: int64(b.opts.MaxNodes)}
		}
	}
	slices.SortFunc(b.nodes, func(x, y node) int {
		return cmp.Or(x.semver.Compare(y.semver), cmp.Compare(x.version, y.version))
	})
	b.byBase = map[string][]int32{}
	for i, n := range b.nodes {
		b.byArch[n.build][n.base] = int32(i)
		b.byBase[n.base] = append(b.byBase[n.base], int32(i))
		if n.metadata == nil {
			b.report.Abstract = append(b.report.Abstract, n.version)
		}
	}
	n := len(b.nodes)
	b.in, b.pairs = make([][]int32, n), make([][]inside.Pair, n)
	b.drops, b.risks = make([][]*edgeRule, n), make([][]*edgeRule, n)
	b.reasons = reasons{drops: make([][]BlockedEdge, n), risks: make([][]BlockedEdge, n), previous: make([][]naming, n), next: make([][]naming, n),
		raw: make([][]RawEntry, n), own: make([]string, n), cycles: map[[2]string]bool{}}
	return nil
}

// sortReleases finds the versions of releases and an order that does not depend on
// the order of the input.
func (b *builder) sortReleases() {
	b.full = make([]string, len(b.releases))
	for i := range b.releases {
		r := &b.releases[i]
		if r.Arch != "" && r.Arch != "multi" && r.Metadata[graph.MetadataArchitecture] == "multi" {
			continue // a part of a release for several architectures
		}
		full := r.Version
		if r.Arch != "" {
			full = inside.WithoutBuild(r.Version) + "+" + r.Arch
		}
		if _, err := graph.ParseVersion(full); err != nil {
			b.problem(r.Source, "version", ruleReleaseVersion, "%s is not a valid semver: %v", bounded.Quote(full), err)
			continue
		}
		b.full[i] = full
		b.order = append(b.order, i)
	}
	slices.SortStableFunc(b.order, func(i, j int) int {
		if c := cmp.Compare(b.full[i], b.full[j]); c != 0 {
			return c
		}
		return compareReleases(&b.releases[i], &b.releases[j])
	})
}

// compareReleases orders releases of one version.
func compareReleases(x, y *Release) int {
	return cmp.Or(cmp.Compare(x.Source, y.Source), cmp.Compare(x.Image, y.Image), cmp.Compare(x.Digest, y.Digest), cmp.Compare(x.Version, y.Version),
		cmp.Compare(fmt.Sprint(x.Metadata), fmt.Sprint(y.Metadata)), // maps are printed by key
		slices.Compare(x.Previous, y.Previous), slices.Compare(x.Next, y.Next))
}

// concrete makes the nodes that have a release.
func (b *builder) concrete() error {
	var errs []error
	for at := 0; at < len(b.order); {
		end := at + 1
		for end < len(b.order) && b.full[b.order[end]] == b.full[b.order[at]] {
			end++
		}
		same := b.order[at:end]
		first, last := &b.releases[same[0]], &b.releases[same[len(same)-1]]
		full := b.full[same[0]]
		mismatch := slices.IndexFunc(same, func(i int) bool { return b.releases[i].Digest != first.Digest })
		if mismatch > 0 {
			err := &MismatchError{Version: full, A: *first, B: b.releases[same[mismatch]]}
			if !b.opts.DropMismatched {
				errs = append(errs, err)
			}
			b.problem(first.Source, "", ruleMismatch, "%v", err)
			for _, i := range same {
				b.full[i] = ""
			}
		} else {
			metadata := b.metadata(last)
			if metadata[graph.MetadataArch] == "" {
				b.problem(last.Source, "arch", ruleRequired, "%s has no architecture: it is in no graph that is served", full)
			}
			b.node(full, metadata, b.image(last))
		}
		at = end
	}
	b.order = slices.DeleteFunc(b.order, func(i int) bool { return b.full[i] == "" })
	return bounded.Errors(errs...)
}

func (b *builder) image(r *Release) string {
	if b.opts.Image == nil {
		return r.Image
	}
	return b.opts.Image(*r)
}

// metadata returns what a release says, with what its image says.
func (b *builder) metadata(r *Release) map[string]string {
	m := maps.Clone(r.Metadata)
	if m == nil {
		m = map[string]string{}
	}
	if r.Arch != "" {
		m[graph.MetadataArch] = r.Arch
		if r.Digest != "" {
			m[graph.MetadataManifestRef] = r.Digest
		}
	}
	return m
}

func (b *builder) node(full string, metadata map[string]string, image string) {
	v, err := graph.ParseVersion(full)
	if err != nil {
		return // cannot happen: it was parsed before
	}
	text, build, _ := strings.Cut(full, "+")
	if b.byArch[build] == nil {
		b.byArch[build] = archNode{}
	}
	b.byArch[build][text] = int32(len(b.nodes))
	b.nodes = append(b.nodes, node{version: full, base: text, build: build, semver: v, image: image, metadata: metadata})
}

// abstract makes a node of a version that a release names, unless there is one.
func (b *builder) abstract(r *Release, field, version, build string) {
	text, ok := b.base(version)
	if !ok {
		b.problem(r.Source, field, ruleReleaseVersion, "%s is not a valid semver", bounded.Quote(version))
		return
	}
	if _, ok := b.byArch[build][text]; ok {
		return
	}
	if build != "" {
		text += "+" + build
	}
	b.node(text, nil, "")
}

// base returns a version without its build, if it is one.
func (b *builder) base(version string) (text string, ok bool) {
	if known, done := b.bases[version]; done {
		return known.text, known.ok
	}
	_, err := graph.ParseVersion(version)
	known := base{inside.WithoutBuild(version), err == nil}
	b.bases[version] = known
	return known.text, known.ok
}

// addEdges makes an edge of each predecessor and successor that a release names.
func (b *builder) addEdges() error {
	var next [][2]int32 // to a node, from another
	for _, i := range b.order {
		r := &b.releases[i]
		text, build, _ := strings.Cut(b.full[i], "+")
		nodes := b.byArch[build]
		own := nodes[text]
		b.reasons.previous[own] = append(b.reasons.previous[own], naming{r.Source, r.Previous})
		b.reasons.next[own] = append(b.reasons.next[own], naming{r.Source, r.Next})
		for _, version := range r.Previous {
			if text, ok := b.base(version); ok {
				b.in[own] = append(b.in[own], nodes[text])
			}
		}
		for _, version := range r.Next {
			if text, ok := b.base(version); ok {
				next = append(next, [2]int32{nodes[text], own})
			}
		}
	}
	if err := b.tidyEdges(); err != nil {
		return err
	}
	for i := range b.in {
		b.count("previous", len(b.in[i]))
	}
	slices.SortFunc(next, func(x, y [2]int32) int { return cmp.Or(cmp.Compare(x[0], y[0]), cmp.Compare(x[1], y[1])) })
	next = slices.Compact(next)
	b.count("next", len(next))
	for _, e := range next {
		b.in[e[0]] = append(b.in[e[0]], e[1])
	}
	return b.tidyEdges()
}

// tidyEdges sorts the predecessors, each once.
func (b *builder) tidyEdges() error {
	edges := 0
	for i := range b.in {
		slices.Sort(b.in[i])
		b.in[i] = slices.Compact(b.in[i])
		edges += len(b.in[i])
	}
	if edges > b.opts.MaxEdges {
		return &LimitError{What: limitEdges, Max: int64(b.opts.MaxEdges)}
	}
	return nil
}
