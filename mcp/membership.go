package mcp

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Membership answers which pools a node belongs to. It is made from the pools'
// selectors, remembers its answer for every distinct set of labels that
// matters, never changes, and is safe for concurrent use.
type Membership struct {
	pools  []poolSelector // by name
	keys   []string       // label keys that any selector mentions, sorted
	compat bool
	err    error // the first invalid selector

	mu    sync.Mutex
	cache map[string]Assignment // by projected labels
	key   []byte
}

type poolSelector struct {
	name     string
	selector labels.Selector // nil: invalid
	empty    bool            // selects nothing
	err      error
}

// Assignment is a node's place among the pools. The zero value belongs to a node
// that no pool takes.
type Assignment struct {
	// Primary is the one pool that decides the node's config and counts it; empty
	// if absent.
	Primary string
	// Pools are all pools that are looked at when the node changes, the
	// primary one first.
	Pools []string
	// Alert reports that a custom role on a control plane node is ignored.
	Alert bool
	// Err explains why the node counts in no pool although some want it: a
	// [*PoolConflictError] without the node's name, or a [*SelectorError].
	Err error
	// matched are all pools whose selector matches, whatever the outcome.
	matched []string
}

// Issue is a fault of a pool that decisions work around.
type Issue struct {
	Pool string
	Err  error
}

// maxCachedAssignments bounds the memory that a selector on a label that
// differs on every node could take.
const maxCachedAssignments = 10_000

// NewMembership compiles the pools' node selectors. A pool whose selector is
// invalid is reported, and matches nothing, and does not affect the rest.
func NewMembership(pools []mcfgv1.MachineConfigPool) (*Membership, []Issue) {
	m := &Membership{cache: map[string]Assignment{}}
	keys := sets.New(LabelOS)
	var issues []Issue
	for i := range pools {
		p := &pools[i]
		s := poolSelector{name: p.Name, selector: labels.Nothing(), empty: emptySelector(p.Spec.NodeSelector)}
		if !s.empty {
			selector, err := metav1.LabelSelectorAsSelector(p.Spec.NodeSelector)
			if err != nil {
				s.selector, s.err = nil, &SelectorError{Pool: p.Name, Err: err}
				issues = append(issues, Issue{Pool: p.Name, Err: s.err})
			} else {
				s.selector = selector
				requirements, _ := selector.Requirements()
				for _, r := range requirements {
					keys.Insert(r.Key())
				}
			}
		}
		m.pools = append(m.pools, s)
	}
	slices.SortFunc(m.pools, func(a, b poolSelector) int { return strings.Compare(a.name, b.name) })
	slices.SortFunc(issues, func(a, b Issue) int { return strings.Compare(a.Pool, b.Pool) })
	if len(issues) > 0 {
		m.err = issues[0].Err
	}
	m.keys = sets.List(keys)
	return m, issues
}

// Compat returns a Membership of the same pools in which, as in the
// machine-config controller, one invalid selector is an error for every node.
func (m *Membership) Compat() *Membership {
	return &Membership{pools: m.pools, keys: m.keys, err: m.err, compat: true, cache: map[string]Assignment{}}
}

// Of returns the place of a node with these labels. The result is shared: do
// not change its slices.
func (m *Membership) Of(nodeLabels map[string]string) Assignment {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.project(nodeLabels)
	a, ok := m.cache[string(m.key)]
	if !ok {
		a = m.assign(nodeLabels)
		if len(m.cache) >= maxCachedAssignments {
			clear(m.cache)
		}
		m.cache[string(m.key)] = a
	}
	return a
}

// project writes the values of the labels that selectors mention to m.key.
func (m *Membership) project(nodeLabels map[string]string) {
	m.key = m.key[:0]
	for _, k := range m.keys {
		if v, ok := nodeLabels[k]; ok {
			m.key = append(append(m.key, '='), v...)
		}
		m.key = append(m.key, 0)
	}
}

func (m *Membership) assign(nodeLabels map[string]string) Assignment {
	if nodeLabels[LabelOS] == "windows" {
		return Assignment{}
	}
	if m.compat && m.err != nil {
		return Assignment{Err: m.err}
	}
	var a Assignment
	var master, worker bool
	var custom []string
	for _, p := range m.pools {
		if p.selector == nil || !p.selector.Matches(labels.Set(nodeLabels)) {
			continue
		}
		a.matched = append(a.matched, p.name)
		switch p.name {
		case PoolMaster:
			master = true
		case PoolWorker:
			worker = true
		default:
			custom = append(custom, p.name)
		}
	}
	switch {
	case len(custom) > 1:
		a.Err = &PoolConflictError{Pools: custom}
	case master:
		a.Pools = []string{PoolMaster}
		if len(custom) == 1 {
			// Not supported: a control plane node keeps its config.
			a.Alert = true
			if worker {
				a.Pools = append(a.Pools, PoolWorker)
			}
		}
	case len(custom) == 1:
		a.Pools = custom
		if worker {
			a.Pools = append(a.Pools, PoolWorker)
		}
	case worker:
		a.Pools = []string{PoolWorker}
	}
	if len(a.Pools) > 0 {
		a.Primary = a.Pools[0]
	}
	return a
}

// Match is one pool's part in the explanation of a node's place.
type Match struct {
	Pool    string
	Matched bool
	Primary bool
	// Why names the requirement that the labels do not meet, or the selector
	// that they do; and for a pool that matches, why it is not the primary one.
	Why string
}

// Explain says for every pool, by name, whether it matches these labels and
// why it is or is not the node's primary pool.
func (m *Membership) Explain(nodeLabels map[string]string) []Match {
	a := m.Of(nodeLabels)
	matches := make([]Match, 0, len(m.pools))
	for _, p := range m.pools {
		matches = append(matches, m.explain(p, a, nodeLabels))
	}
	return matches
}

func (m *Membership) explain(p poolSelector, a Assignment, nodeLabels map[string]string) Match {
	x := Match{Pool: p.name}
	switch {
	case nodeLabels[LabelOS] == "windows":
		x.Why = "a Windows node belongs to no pool"
		return x
	case p.err != nil:
		x.Why = p.err.Error()
		return x
	case m.compat && m.err != nil:
		x.Why = "another pool's selector is not valid: " + m.err.Error()
		return x
	case p.empty:
		x.Why = "the pool has no nodeSelector or an empty one, which selects no node"
		return x
	}
	if r, ok := firstUnmet(p.selector, nodeLabels); ok {
		x.Why = fmt.Sprintf("the node's labels do not meet %s", r)
		return x
	}
	x.Matched = true
	x.Primary = a.Primary == p.name
	matches := fmt.Sprintf("the node's labels meet %s", p.selector)
	switch {
	case x.Primary:
		x.Why = matches
	case a.Err != nil:
		x.Why = fmt.Sprintf("%s, but more than one custom pool matches (%s), so the node counts in none",
			matches, strings.Join(conflicting(a.Err), ", "))
	case a.Primary == PoolMaster && p.name == PoolWorker:
		x.Why = matches + ", but pool master goes before worker"
	case a.Primary == PoolMaster:
		x.Why = matches + ", but pool master goes before a custom pool: custom roles on control plane nodes are not supported"
	default:
		x.Why = fmt.Sprintf("%s, but custom pool %s goes before worker", matches, a.Primary)
	}
	return x
}

func conflicting(err error) []string {
	if c, ok := err.(*PoolConflictError); ok {
		return c.Pools
	}
	return nil
}

func firstUnmet(s labels.Selector, nodeLabels map[string]string) (string, bool) {
	requirements, selectable := s.Requirements()
	if !selectable {
		return s.String(), true
	}
	for _, r := range requirements {
		if !r.Matches(labels.Set(nodeLabels)) {
			return r.String(), true
		}
	}
	return "", false
}

func emptySelector(s *metav1.LabelSelector) bool {
	return s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0
}

// SelectsAll reports that a selector is exactly {}, which an admin may have meant
// to select every node. It selects none, and is worth a warning.
func SelectsAll(s *metav1.LabelSelector) bool {
	return s != nil && s.MatchLabels == nil && s.MatchExpressions == nil
}
