package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/limit"
)

// The JSON of a plan has long lists of nodes as ranges, so that the record holds a rollout
// of 10,000 nodes: worker-{0-3,7}.example is the nodes worker-0.example to
// worker-3.example and worker-7.example.

const (
	// plainNodes is the longest list that is written name by name.
	plainNodes = 50
	// maxNodes is the most names that the ranges of a plan stand for.
	maxNodes = 100_000
)

// mapNodes returns a copy of a plan in which f has replaced each list of nodes.
func (p Plan) mapNodes(f func([]string) ([]string, error)) (Plan, error) {
	p.Steps = slices.Clone(p.Steps)
	for i := range p.Steps {
		s := &p.Steps[i]
		s.Needs = slices.Clone(s.Needs)
		s.Args.Checks = slices.Clone(s.Args.Checks)
		lists := []*[]string{&s.Args.Nodes, &s.Done.Nodes}
		for _, checks := range [][]Check{s.Needs, s.Args.Checks} {
			for j := range checks {
				lists = append(lists, &checks[j].Nodes)
			}
		}
		for _, list := range lists {
			nodes, err := f(*list)
			if err != nil {
				return p, fmt.Errorf("steps[%d] (%s): nodes: %w", i, s.ID, err)
			}
			*list = nodes
		}
	}
	return p, nil
}

// foldNodes writes a long list of names as ranges. The order stays.
func foldNodes(nodes []string) ([]string, error) {
	if len(nodes) <= plainNodes {
		return nodes, nil
	}
	return foldNames(nodes), nil
}

func foldNames(nodes []string) []string {
	var out []string
	for len(nodes) > 0 {
		prefix, _, suffix := cutNode(nodes[0])
		n := 0
		var middles []string
		for n < len(nodes) {
			p, middle, s := cutNode(nodes[n])
			if p != prefix || s != suffix || middle == "" {
				break
			}
			middles = append(middles, middle)
			n++
		}
		if n < 2 {
			out = append(out, nodes[0])
			nodes = nodes[1:]
			continue
		}
		out = append(out, prefix+"{"+strings.Join(foldNumbers(middles), ",")+"}"+suffix)
		nodes = nodes[n:]
	}
	return out
}

// cutNode cuts a name: the middle is what differs between nodes of one kind, the last part
// of the host's name, or its digits.
func cutNode(name string) (prefix, middle, suffix string) {
	host, domain, dotted := strings.Cut(name, ".")
	if dotted {
		suffix = "." + domain
	}
	at := strings.LastIndexByte(host, '-') + 1
	if at == 0 {
		at = len(strings.TrimRight(host, "0123456789"))
	}
	return host[:at], host[at:], suffix
}

// foldNumbers writes runs of numbers as their first and last one.
func foldNumbers(items []string) []string {
	var out []string
	for i := 0; i < len(items); {
		end := i + 1
		first, ok := number(items[i])
		for ok && end < len(items) && items[end] == padded(first+end-i, items[i]) {
			end++
		}
		if end-i < 2 {
			out = append(out, items[i])
		} else {
			out = append(out, items[i]+"-"+items[end-1])
		}
		i = end
	}
	return out
}

// compareNodes orders names so that ranges are long: those of one kind together, numbers by
// their value.
func compareNodes(a, b string) int {
	prefixA, middleA, suffixA := cutNode(a)
	prefixB, middleB, suffixB := cutNode(b)
	return cmp.Or(strings.Compare(prefixA, prefixB), strings.Compare(suffixA, suffixB),
		cmp.Compare(len(middleA), len(middleB)), strings.Compare(middleA, middleB))
}

// number reads decimal digits.
func number(text string) (int, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && strings.Trim(text, "0123456789") == ""
}

// padded writes a number of a range with at least as many digits as the range's first one.
func padded(n int, first string) string { return fmt.Sprintf("%0*d", len(first), n) }

// unfolder is the opposite of foldNodes, for the lists of one plan.
type unfolder struct{ total int }

func (u *unfolder) unfold(nodes []string) ([]string, error) {
	if !slices.ContainsFunc(nodes, func(n string) bool { return strings.Contains(n, "{") }) {
		return nodes, nil
	}
	var out []string
	for _, text := range nodes {
		prefix, rest, _ := strings.Cut(text, "{")
		items, suffix, folded := strings.Cut(rest, "}")
		if !folded {
			out = append(out, text) // which Validate judges
			continue
		}
		for item := range strings.SplitSeq(items, ",") {
			from, to, ok := numbers(item)
			switch {
			case !ok && strings.Contains(item, "-"):
				return nil, fmt.Errorf("%s: %s is not a range of numbers", bounded.Quote(text), bounded.Quote(item))
			case !ok:
				out = append(out, prefix+item+suffix)
				continue
			}
			u.total += min(to-from, maxNodes) + 1
			if u.total > maxNodes {
				return nil, &limit.LimitError{Where: "ranges", Max: maxNodes, What: "nodes"}
			}
			for n := from; n <= to; n++ {
				out = append(out, prefix+padded(n, item[:strings.IndexByte(item, '-')])+suffix)
			}
		}
	}
	return out, nil
}

// numbers reads a range, as in 3-7.
func numbers(item string) (from, to int, ok bool) {
	first, last, _ := strings.Cut(item, "-")
	from, ok = number(first)
	to, ok2 := number(last)
	return from, to, ok && ok2 && from <= to
}
