package graphdata

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata/internal/inside"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// matcher is an expression over the nodes, each of which is matched once.
type matcher struct {
	re   *regexp.Regexp // nil: every version
	memo []int8         // of each node: 0 not known, 1 matches, -1 does not; nil: none is kept
}

// matcher compiles an expression once for all that have it.
func (b *builder) matcher(text string) (*matcher, error) {
	if m := b.expressions[text]; m != nil {
		return m, nil
	}
	m := &matcher{}
	if text != ".*" {
		re, err := CompileFrom(text)
		if err != nil {
			return nil, err
		}
		m.re, m.memo = re, make([]int8, len(b.nodes))
	}
	b.expressions[text] = m
	return m, nil
}

func (b *builder) matches(m *matcher, i int32) bool {
	if m.re == nil {
		return true
	}
	if m.memo == nil {
		return m.re.MatchString(b.nodes[i].version)
	}
	if m.memo[i] == 0 {
		m.memo[i] = -1
		if m.re.MatchString(b.nodes[i].version) {
			m.memo[i] = 1
		}
	}
	return m.memo[i] > 0
}

// items returns the nodes that an edit of a node's metadata names, each once. A
// name that is not a version, or not a node, is a problem.
func (b *builder) items(i int, key string) ([]int32, error) {
	n := &b.nodes[i]
	value, ok := n.metadata[key]
	if !ok {
		return nil, nil
	}
	items := inside.SplitList(value)
	arch, ofArch := n.metadata[graph.MetadataArch]
	if b.opts.Compat && ofArch {
		items = strings.Split(value, ",")
	}
	var nodes []int32
	for _, item := range items {
		item = strings.TrimSpace(item)
		text, build, _ := strings.Cut(item, "+")
		if ofArch {
			build = arch
		}
		if _, ok := b.base(item); !ok {
			if b.opts.Compat && ofArch {
				return nil, fmt.Errorf("%s: %s: %s is not a valid semver", n.version, key, bounded.Quote(item))
			}
			b.problem(n.version, key, ruleReleaseVersion, "%s is not a valid semver", bounded.Quote(item))
			continue
		}
		at, ok := b.byArch[build][text]
		if !ok {
			if !b.opts.Partial {
				b.problem(n.version, key, ruleUnknownEdit, "there is no node of version %s", bounded.Quote(item))
			}
			continue
		}
		nodes = append(nodes, at)
	}
	slices.Sort(nodes)
	return slices.Compact(nodes), nil
}

// editAdd adds the edges that metadata ask for.
func (b *builder) editAdd() error {
	for i := range b.nodes {
		previous, err := b.items(i, graph.MetadataPreviousAdd)
		if err != nil {
			return err
		}
		next, err := b.items(i, graph.MetadataNextAdd)
		if err != nil {
			return err
		}
		b.count(graph.MetadataPreviousAdd, len(previous))
		b.count(graph.MetadataNextAdd, len(next))
		b.in[i] = append(b.in[i], previous...)
		for _, to := range next {
			b.in[to] = append(b.in[to], int32(i))
		}
	}
	return b.tidyEdges()
}

// list numbers a list of risks.
func (b *builder) list(ids []int32) int32 {
	if !b.opts.Compat {
		slices.Sort(ids)
		ids = slices.Compact(ids)
	}
	var key []byte
	for _, id := range ids {
		key = binary.BigEndian.AppendUint32(key, uint32(id))
	}
	number, ok := b.listIDs[string(key)]
	if !ok {
		number = int32(len(b.lists))
		b.listIDs[string(key)] = number
		b.lists = append(b.lists, slices.Clone(ids))
	}
	return number
}
