package graphdata_test

import (
	"cmp"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
)

// plain is a graph built slowly, in the steps and words of the update service,
// by code that shares nothing with the package's. peer says to do as the service
// does where this package differs.
type plain struct {
	peer  bool
	nodes map[string]*plainNode
	edges map[[2]string]bool
	pairs map[[2]string][]plainRisk
}

type plainNode struct {
	payload     string
	metadata    map[string]string // nil: abstract
	expressions []string          // that remove predecessors, each on its own
}

type plainRisk struct{ name, text string }

func plainBase(version string) string { return strings.SplitN(version, "+", 2)[0] }
func plainBuild(version string) string {
	return strings.TrimPrefix(version[len(plainBase(version)):], "+")
}

func plainWith(version, build string) string {
	if build == "" {
		return plainBase(version)
	}
	return plainBase(version) + "+" + build
}

// readPlainly builds a graph; nil where the build fails.
func readPlainly(tree *graphdata.Tree, releases []graphdata.Release, peer bool) *plain {
	p := &plain{peer, map[string]*plainNode{}, map[[2]string]bool{}, map[[2]string][]plainRisk{}}
	releases = slices.Clone(releases)
	slices.SortStableFunc(releases, func(x, y graphdata.Release) int { return cmp.Compare(x.Source, y.Source) })
	var full []string
	for _, r := range releases {
		version, metadata := r.Version, map[string]string{}
		maps.Copy(metadata, r.Metadata)
		if r.Arch != "" {
			version = plainWith(version, r.Arch)
			metadata[graph.MetadataArch], metadata[graph.MetadataManifestRef] = r.Arch, r.Digest
		}
		full = append(full, version)
		p.nodes[version] = &plainNode{payload: r.Image, metadata: metadata}
	}
	edge := func(from, to string) {
		for _, v := range []string{from, to} {
			if p.nodes[v] == nil {
				p.nodes[v] = &plainNode{}
			}
		}
		p.edges[[2]string{from, to}] = true
	}
	for i, r := range releases {
		for _, v := range r.Previous {
			edge(plainWith(v, plainBuild(full[i])), full[i])
		}
		for _, v := range r.Next {
			edge(full[i], plainWith(v, plainBuild(full[i])))
		}
	}
	p.raw(tree)
	p.drops(tree)
	p.risks(tree)
	if !p.channels(tree) || !p.edit(graph.MetadataPreviousAdd, graph.MetadataNextAdd, edge) || p.cycle() {
		return nil
	}
	p.conditional(tree)
	if !p.remove() {
		return nil
	}
	return p
}

func (p *plain) raw(tree *graphdata.Tree) {
	for _, e := range tree.Raw {
		for version, n := range p.nodes {
			if n.metadata == nil || plainBase(version) != plainBase(e.Version) || !p.peer && e.Version != plainBase(e.Version) && e.Version != version {
				continue
			}
			if old, ok := n.metadata[e.Key]; ok {
				n.metadata[e.Key] = old + "," + e.Value
			} else {
				n.metadata[e.Key] = e.Value
			}
		}
	}
	for _, n := range p.nodes {
		if own, ok := n.metadata[graph.MetadataPreviousRemoveRegex]; ok {
			n.expressions = []string{own}
		}
	}
}

// all returns a version with each build that there is.
func (p *plain) all(version string) (versions []string) {
	builds := map[string]bool{}
	for v := range p.nodes {
		builds[plainBuild(v)] = true
	}
	for build := range builds {
		versions = append(versions, plainWith(version, build))
	}
	return versions
}

func (p *plain) drops(tree *graphdata.Tree) {
	for _, b := range tree.Drops {
		targets := p.all(b.To)
		if b.To != plainBase(b.To) {
			targets = []string{b.To}
		} else if strings.HasSuffix(b.To, "-s390x") {
			targets = []string{b.To + "+s390x"}
		}
		for _, t := range targets {
			n := p.nodes[t]
			if n == nil || n.metadata == nil {
				continue
			}
			n.expressions = append(n.expressions, b.From)
			old, ok := n.metadata[graph.MetadataPreviousRemoveRegex]
			if ok && !p.peer {
				n.metadata[graph.MetadataPreviousRemoveRegex] = old + "|" + b.From
			} else {
				n.metadata[graph.MetadataPreviousRemoveRegex] = b.From
			}
		}
	}
}

func (p *plain) risks(tree *graphdata.Tree) {
	for _, b := range tree.Risks {
		targets := p.all(b.To)
		if b.To != plainBase(b.To) && !p.peer {
			targets = []string{b.To}
		}
		for _, t := range targets {
			n := p.nodes[t]
			if n == nil || n.metadata == nil {
				continue
			}
			if old, ok := n.metadata[graph.MetadataPreviousRemoveRegex]; ok {
				n.metadata[graph.MetadataPreviousRemoveRegex] = old + "|" + b.From
			} else {
				n.metadata[graph.MetadataPreviousRemoveRegex] = b.From
			}
		}
	}
}

func plainList(value string) (items []string) {
	for _, item := range strings.Split(value, ",") {
		items = append(items, strings.TrimSpace(item))
	}
	return items
}

func (p *plain) channels(tree *graphdata.Tree) bool {
	for _, c := range tree.Channels {
		for version, n := range p.nodes {
			if n.metadata == nil {
				continue
			}
			in := slices.ContainsFunc(c.Versions, func(e graphdata.Entry) bool { return e.Version == version || e.Version == plainBase(version) })
			if old, ok := n.metadata[graph.MetadataChannels]; in && ok {
				n.metadata[graph.MetadataChannels] = old + "," + c.Name
			} else if in {
				n.metadata[graph.MetadataChannels] = c.Name
			}
		}
	}
	key := func(name string) string {
		if _, after, ok := strings.Cut(name, "-"); ok {
			return after
		}
		return name
	}
	for _, n := range p.nodes {
		value, ok := n.metadata[graph.MetadataChannels]
		if !ok {
			continue
		}
		names := plainList(value)
		for _, name := range names {
			if len(names) > 1 && p.peer && !strings.Contains(name, "-") {
				return false
			}
		}
		slices.SortFunc(names, func(x, y string) int { return cmp.Or(cmp.Compare(key(x), key(y)), cmp.Compare(x, y)) })
		if !p.peer {
			names = slices.Compact(names)
		}
		n.metadata[graph.MetadataChannels] = strings.Join(names, ",")
	}
	return true
}

// edit calls change for the edges that two keys name, if there are such nodes. It
// reports whether the build goes on.
func (p *plain) edit(previous, next string, change func(from, to string)) bool {
	for _, key := range []string{previous, next} {
		for version, n := range p.nodes {
			value, ok := n.metadata[key]
			if !ok || key == graph.MetadataPreviousRemove && strings.TrimSpace(value) == "*" {
				continue
			}
			for _, item := range plainList(value) {
				if arch, ok := n.metadata[graph.MetadataArch]; ok {
					if _, err := graph.ParseVersion(item); err != nil {
						if p.peer {
							return false
						}
						continue
					}
					item = plainWith(item, arch)
				}
				if p.nodes[item] == nil {
					continue
				}
				if key == previous {
					change(item, version)
				} else {
					change(version, item)
				}
			}
		}
	}
	return true
}

// cycle takes away nodes that nothing leads to until there are none.
func (p *plain) cycle() bool {
	left := maps.Clone(p.edges)
	for again := true; again; {
		again = false
		to := map[string]bool{}
		for e := range left {
			to[e[1]] = true
		}
		for e := range left {
			if !to[e[0]] {
				delete(left, e)
				again = true
			}
		}
	}
	return len(left) > 0
}

func (p *plain) conditional(tree *graphdata.Tree) {
	into := map[string][][2]string{} // version without build → edges to it
	for e := range p.edges {
		into[plainBase(e[1])] = append(into[plainBase(e[1])], e)
	}
	for _, b := range tree.Risks {
		re := regexp.MustCompile(b.From)
		text, err := json.Marshal(b.Risk)
		if err != nil {
			panic(err)
		}
		for _, e := range into[plainBase(b.To)] {
			if (b.To == e[1] || b.To == plainBase(e[1])) && re.MatchString(e[0]) {
				p.pairs[e] = append(p.pairs[e], plainRisk{b.Risk.Name, string(text)})
			}
		}
	}
	if p.peer {
		return
	}
	for e, risks := range p.pairs {
		slices.SortFunc(risks, func(x, y plainRisk) int { return cmp.Or(cmp.Compare(x.name, y.name), cmp.Compare(x.text, y.text)) })
		p.pairs[e] = slices.Compact(risks)
	}
}

func (p *plain) remove() bool {
	gone := map[[2]string]bool{}
	into := func(version string, matches func(from string) bool) {
		for e := range p.edges {
			if e[1] == version && matches(e[0]) {
				gone[e] = true
			}
		}
	}
	if !p.edit(graph.MetadataPreviousRemove, graph.MetadataNextRemove, func(from, to string) { gone[[2]string{from, to}] = true }) {
		return false
	}
	for version, n := range p.nodes {
		if strings.TrimSpace(n.metadata[graph.MetadataPreviousRemove]) == "*" {
			into(version, func(string) bool { return true })
		}
		expressions := n.expressions
		if joined, ok := n.metadata[graph.MetadataPreviousRemoveRegex]; ok && p.peer {
			expressions = []string{joined}
		}
		for _, text := range expressions {
			re, err := regexp.Compile(text)
			if err != nil && p.peer {
				return false
			}
			if err == nil {
				into(version, re.MatchString)
			}
		}
	}
	for e := range gone {
		delete(p.edges, e)
		if !p.peer {
			delete(p.pairs, e)
		}
	}
	for e := range p.pairs {
		if p.nodes[e[1]].metadata != nil {
			delete(p.edges, e)
		}
	}
	return true
}

// lines are the nodes and edges of the whole graph.
func (p *plain) lines() []string {
	var all []string
	for version, n := range p.nodes {
		all = append(all, plainLine(version, n.payload, n.metadata))
	}
	for e := range p.edges {
		all = append(all, e[0]+" → "+e[1])
	}
	for e, risks := range p.pairs {
		all = append(all, plainPair(e[0], e[1], risks))
	}
	slices.Sort(all)
	return all
}

func plainLine(version, payload string, metadata map[string]string) string {
	text, err := json.Marshal(metadata)
	if err != nil {
		panic(err)
	}
	return version + " " + payload + " " + string(text)
}

func plainPair(from, to string, risks []plainRisk) string {
	text := from + " → " + to
	for _, r := range risks {
		text += " " + r.text
	}
	return text
}

// served are the nodes and edges of a channel for an architecture.
func (p *plain) served(channel, arch string) []string {
	short := func(version string) string {
		if plainBuild(version) == arch {
			return plainBase(version)
		}
		return version
	}
	var all []string
	in, stays := map[string]bool{}, map[string]bool{}
	for version, n := range p.nodes {
		if n.metadata == nil || !slices.Contains(plainList(n.metadata[graph.MetadataChannels]), channel) {
			continue
		}
		stays[version] = plainBuild(version) == arch
		if p.peer {
			stays[version] = strings.Contains(version, arch)
		}
		if slices.Contains(plainList(n.metadata[graph.MetadataArch]), arch) {
			in[version] = true
			metadata := maps.Clone(n.metadata)
			delete(metadata, graph.MetadataArch)
			all = append(all, plainLine(short(version), n.payload, metadata))
		}
	}
	for e := range p.edges {
		if in[e[0]] && in[e[1]] {
			all = append(all, short(e[0])+" → "+short(e[1]))
		}
	}
	for e, risks := range p.pairs {
		if stays[e[0]] && stays[e[1]] {
			all = append(all, plainPair(short(e[0]), short(e[1]), risks))
		}
	}
	slices.Sort(all)
	return all
}
