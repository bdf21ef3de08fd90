package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/clusterupdate/clusterupdate/internal/text"
)

const (
	masterPool = "master"
	workerPool = "worker"
)

// Pool is how far the nodes of a machine config pool are. It is plain data.
type Pool struct {
	Name   string `json:"name"`
	Paused bool   `json:"paused,omitempty"`
	// Assessment is Completed, Progressing, Pending, Degraded or Excluded.
	Assessment string `json:"assessment"`
	// Completion is Updated of Total, in percent; 100 of an empty pool.
	Completion float64 `json:"completion"`

	// These count nodes. Those that are not Updated are Outdated, and may be
	// Progressing, Draining, Excluded or Pending as well.
	Total       int `json:"total"`
	Available   int `json:"available"`
	Updated     int `json:"updated"`
	Outdated    int `json:"outdated"`
	Progressing int `json:"progressing"`
	Draining    int `json:"draining"`
	Excluded    int `json:"excluded"`
	Pending     int `json:"pending"`
	Degraded    int `json:"degraded"`

	// Nodes start with those that need attention.
	Nodes []Node `json:"nodes"`
}

// complete reports that all nodes of the pool are updated.
func (p *Pool) complete() bool { return p.Updated == p.Total }

// count adds a node.
func (p *Pool) count(n *Node) {
	p.Total++
	if !n.Unavailable {
		p.Available++
	}
	if n.Degraded {
		p.Degraded++
	}
	switch n.Phase {
	case phaseUpdated:
		p.Updated++
		return
	case phasePaused:
		p.Excluded++
	case phasePending:
		p.Pending++
	case phaseDraining:
		p.Draining++
		fallthrough
	default:
		if !n.Degraded {
			p.Progressing++
		}
	}
	p.Outdated++
}

// assess sums up what was counted.
func (p *Pool) assess() {
	p.Completion = 100
	if p.Total > 0 {
		p.Completion = 100 * float64(p.Updated) / float64(p.Total)
	}
	switch {
	case p.complete():
		p.Assessment = assessmentCompleted
	case p.Pending == p.Total:
		p.Assessment = assessmentPending
	case p.Degraded > 0:
		p.Assessment = assessmentDegraded
	case p.Excluded > 0:
		p.Assessment = assessmentExcluded
	default:
		p.Assessment = assessmentProgressing
	}
}

// selectorError reports that the nodes of a pool cannot be determined.
type selectorError struct {
	pool string
	err  error
}

func (e *selectorError) Error() string {
	return "failed to get label selector from the pool: " + e.pool
}
func (e *selectorError) Unwrap() error { return e.err }

// poolNodes is a pool with its nodes.
type poolNodes struct {
	pool     *mcfgv1.MachineConfigPool
	selector labels.Selector
	nodes    []*corev1.Node
}

// poolsOf sorts nodes into pools, both in the order given: a node is of master if
// that selects it, else of the first custom pool by name that does, else of worker.
// A node that none selects is left out.
func poolsOf(o *Objects) ([]poolNodes, error) {
	var pools []poolNodes
	for _, p := range o.MachineConfigPools {
		if p == nil {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(p.Spec.NodeSelector)
		if err != nil {
			return nil, &selectorError{p.Name, err}
		}
		pools = append(pools, poolNodes{pool: p, selector: selector})
	}
	order := make([]*poolNodes, len(pools))
	for i := range pools {
		order[i] = &pools[i]
	}
	slices.SortStableFunc(order, func(a, b *poolNodes) int {
		return cmp.Or(poolRank(a.pool.Name)-poolRank(b.pool.Name), strings.Compare(a.pool.Name, b.pool.Name))
	})
	for _, n := range o.Nodes {
		if n == nil {
			continue
		}
		if i := slices.IndexFunc(order, func(p *poolNodes) bool { return p.selector.Matches(labels.Set(n.Labels)) }); i >= 0 {
			order[i].nodes = append(order[i].nodes, n)
		}
	}
	return pools, nil
}

// poolRank orders pools by who is asked first for a node.
func poolRank(name string) int {
	switch name {
	case masterPool:
		return 0
	case workerPool:
		return 2
	}
	return 1
}

// assessPools describes how far all pools are, and what is wrong with them.
func assessPools(o *Objects, in insightInput) ([]Pool, []Insight, error) {
	members, err := poolsOf(o)
	if err != nil {
		return nil, nil, err
	}
	r := newRollout(o)
	pools := make([]Pool, len(members))
	var insights []Insight
	for i, m := range members {
		p := &pools[i]
		p.Name, p.Paused = m.pool.Name, m.pool.Spec.Paused
		p.Nodes = make([]Node, len(m.nodes))
		for j, node := range m.nodes {
			n, reasons := r.assessNode(node, m.pool)
			p.Nodes[j] = n
			p.count(&n)
			insights = append(insights, in.ofNode(&n, reasons, node, p.Name)...)
		}
		p.assess()
		sortNodes(p.Nodes)
		insights = append(insights, in.ofPool(p)...)
	}
	return pools, insights, nil
}

// writePools writes the section of the worker pools, unless none has a node.
func writePools(out *text.Writer, pools []Pool, o StatusText) {
	workers := slices.DeleteFunc(slices.Clone(pools), func(p Pool) bool { return p.Name == masterPool })
	if !slices.ContainsFunc(workers, func(p Pool) bool { return p.Total > 0 }) {
		return
	}
	out.Print("\n= Worker Upgrade =\n\n")
	t := text.NewTable(out, 0, 3)
	t.Row("WORKER POOL", "ASSESSMENT", "COMPLETION", "STATUS")
	for _, p := range workers {
		if p.Total == 0 {
			t.Row(p.Name, "Empty", "", "0 Total")
			continue
		}
		status := fmt.Sprintf("%d Available, %d Progressing, %d Draining", p.Available, p.Progressing, p.Draining)
		if p.Excluded > 0 {
			status += fmt.Sprintf(", %d Excluded", p.Excluded)
		}
		if p.Degraded > 0 {
			status += fmt.Sprintf(", %d Degraded", p.Degraded)
		}
		t.Row(p.Name, p.Assessment, fmt.Sprintf("%.0f%% (%d/%d)", p.Completion, p.Total-p.Outdated, p.Total), status)
	}
	t.Flush()
	for i := range workers {
		writeNodes(out, &workers[i], o)
	}
}
