package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// Graph is an order of tasks. A node's tasks run one after another; a node may
// start when all nodes that lead to it are done. The nodes are listed in the order
// of their creation, not of their execution.
//
// A graph that nobody changes any more is safe for concurrent use.
type Graph struct {
	Nodes []Node

	tasks []*Task // all tasks in their order, for Validate
}

// Node is a list of tasks and its place in a [Graph]. It may be empty: such
// nodes are anchors that keep the number of edges small.
type Node struct {
	Tasks []*Task
	// In and Out are the indices of the nodes that lead to this one and to
	// which this one leads. They mirror each other and hold no index twice.
	In, Out []int
}

// UpdateGraph returns the order of an update: runlevels one after another, the
// components of one side by side, the manifests of each one after another.
// Jobs are barriers, as in the graphs below.
//
// Only neighbours in the list are grouped; rule component-split of [Lint] finds a
// list if that loses an order.
func UpdateGraph(tasks []*Task) *Graph { return newGraph(tasks, byNumberAndComponent) }

// FlatGraph returns the order of an installation: all components of all
// runlevels side by side, the manifests of each one after another.
func FlatGraph(tasks []*Task) *Graph { return newGraph(tasks, flattenByNumberAndComponent) }

// AttemptGraph returns the order of a reconciliation: as [FlatGraph], but the
// components start in an order that depends on the attempt, so that one that fails
// does not always block the same tasks. Attempts rotate the list, and every eighth
// one shuffles it. The same attempt gives the same order; a negative one counts as
// 0.
func AttemptGraph(tasks []*Task, attempt int) *Graph {
	const stride = 8
	attempt = max(attempt, 0)
	r := rand.New(rand.NewSource(int64(attempt / stride)))
	return newGraph(tasks, shiftOrder(permuteOrder(flattenByNumberAndComponent, r), attempt%stride, stride))
}

// newGraph returns a graph of one node with all tasks, also for none, cut at
// Jobs and made parallel by f.
func newGraph(tasks []*Task, f grouping) *Graph {
	g := &Graph{Nodes: []Node{{Tasks: tasks}}, tasks: tasks}
	g.splitJobs()
	g.parallelize(f)
	return g
}

// splitJobs makes each Job (batch/v1 exactly) a barrier: all tasks before it in its
// node are done before it, and none after it starts before it is done. A node with
// a Job is cut at the first one: the tasks before it become a new node that takes
// over the node's inputs, those after it one that takes over its outputs, and the
// node keeps the Job. New nodes are cut in the same way. A node of one task stays
// as it is.
func (g *Graph) splitJobs() {
	for i := 0; i < len(g.Nodes); i++ {
		tasks := g.Nodes[i].Tasks
		if len(tasks) < 2 {
			continue
		}
		at := slices.IndexFunc(tasks, isJob)
		if at < 0 {
			continue
		}
		g.Nodes[i].Tasks = tasks[at : at+1 : at+1]
		if at > 0 {
			before := g.add(Node{Tasks: tasks[:at:at], In: g.Nodes[i].In})
			for _, j := range g.Nodes[before].In {
				replace(g.Nodes[j].Out, i, before)
			}
			g.Nodes[i].In = nil
			g.connect(before, i)
		}
		if at+1 < len(tasks) {
			after := g.add(Node{Tasks: tasks[at+1:], Out: g.Nodes[i].Out})
			for _, j := range g.Nodes[after].Out {
				replace(g.Nodes[j].In, i, after)
			}
			g.Nodes[i].Out = nil
			g.connect(i, after)
		}
	}
}

// parallelize replaces each node by what f makes of its tasks, in the order of the
// nodes and including those that it adds. f returns buckets; the nodes of a bucket
// may run in parallel, and each of them follows all of the bucket before. No
// buckets, or one with one node, leave the node as it is. Otherwise the node
// becomes an empty anchor before the first bucket; if anything followed it, another
// follows the last bucket; and where two buckets of several nodes meet, an empty
// node between them makes n+m edges out of n·m.
func (g *Graph) parallelize(f grouping) {
	for i := 0; i < len(g.Nodes); i++ {
		buckets := f(g.Nodes[i].Tasks)
		if len(buckets) == 0 || len(buckets) == 1 && len(buckets[0]) <= 1 {
			continue
		}
		out := g.Nodes[i].Out
		g.Nodes[i].Tasks, g.Nodes[i].Out = nil, nil
		more := 1 + len(buckets) // anchors
		for _, bucket := range buckets {
			more += len(bucket)
		}
		g.Nodes = slices.Grow(g.Nodes, more)
		exits := []int{i}
		for _, bucket := range buckets {
			if len(bucket) == 0 {
				continue
			}
			if len(exits) > 1 && len(bucket) > 1 {
				exits = g.join(exits, nil)
			}
			entries := make([]int, len(bucket))
			for k, tasks := range bucket {
				entries[k] = g.add(Node{Tasks: tasks})
			}
			g.link(exits, entries)
			exits = entries
		}
		if len(out) == 0 {
			continue
		}
		right := g.join(exits, out)[0]
		for _, j := range out {
			replace(g.Nodes[j].In, i, right)
		}
	}
}

// Validate checks what must hold of every graph: inputs and outputs mirror
// each other without doubles, there is no cycle, no task is in two places, and
// a node's tasks keep their original order. For a graph that this
// package made, no task is missing or new. All that does not hold is returned
// together, as one joined error; nil if all holds.
func (g *Graph) Validate() error {
	return errors.Join(g.checkEdges(), g.checkCycles(), g.checkTasks())
}

func (g *Graph) checkEdges() error {
	var errs []error
	edges := make(map[[2]int]int) // +1 for each output, -1 for each input
	for i, n := range g.Nodes {
		seen := make(map[int]bool, len(n.Out))
		for _, j := range n.Out {
			switch {
			case j < 0 || j >= len(g.Nodes):
				errs = append(errs, fmt.Errorf("node %d: no node %d to lead to", i, j))
			case seen[j]:
				errs = append(errs, fmt.Errorf("node %d leads to node %d twice", i, j))
			}
			seen[j] = true
			edges[[2]int{i, j}]++
		}
	}
	for i, n := range g.Nodes {
		for _, j := range n.In {
			edges[[2]int{j, i}]--
			if edges[[2]int{j, i}] < 0 {
				errs = append(errs, fmt.Errorf("node %d has input %d, which does not lead to it", i, j))
			}
		}
	}
	for i, n := range g.Nodes {
		for _, j := range n.Out {
			if edges[[2]int{i, j}] > 0 {
				errs = append(errs, fmt.Errorf("node %d leads to node %d, which does not have it as an input", i, j))
			}
		}
	}
	return bounded.Errors(errs...)
}

func (g *Graph) checkCycles() error {
	if _, done := g.depths(); done < len(g.Nodes) {
		return fmt.Errorf("%d of %d nodes are in or after a cycle", len(g.Nodes)-done, len(g.Nodes))
	}
	return nil
}

// depths are how many nodes there are before each one, on the longest way. done
// counts the nodes that are neither in a cycle nor after one. An edge to a node
// that does not exist counts for nothing.
func (g *Graph) depths() (depths []int, done int) {
	exists := func(i int) bool { return i >= 0 && i < len(g.Nodes) }
	depths = make([]int, len(g.Nodes))
	waits := make([]int, len(g.Nodes))
	for _, n := range g.Nodes {
		for _, j := range n.Out {
			if exists(j) {
				waits[j]++
			}
		}
	}
	var ready []int
	for i, w := range waits {
		if w == 0 {
			ready = append(ready, i)
		}
	}
	for ; len(ready) > 0; done++ {
		i := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		for _, j := range g.Nodes[i].Out {
			if !exists(j) {
				continue
			}
			depths[j] = max(depths[j], depths[i]+1)
			waits[j]--
			if waits[j] == 0 {
				ready = append(ready, j)
			}
		}
	}
	return depths, done
}

func (g *Graph) checkTasks() error {
	var errs []error
	place := make(map[*Task]int, len(g.tasks))
	for i, t := range g.tasks {
		place[t] = i
	}
	home := make(map[*Task]int, len(g.tasks))
	for i, n := range g.Nodes {
		for j, t := range n.Tasks {
			if other, ok := home[t]; ok {
				errs = append(errs, fmt.Errorf("%s is in node %d and in node %d", t, other, i))
			}
			home[t] = i
			if g.tasks == nil {
				continue
			}
			if _, ok := place[t]; !ok {
				errs = append(errs, fmt.Errorf("node %d: %s is not one of the graph's tasks", i, t))
			} else if j > 0 && place[n.Tasks[j-1]] >= place[t] {
				errs = append(errs, fmt.Errorf("node %d: %s stands after %s", i, t, n.Tasks[j-1]))
			}
		}
	}
	for _, t := range g.tasks {
		if _, ok := home[t]; !ok {
			errs = append(errs, fmt.Errorf("%s is in no node", t))
		}
	}
	return bounded.Errors(errs...)
}

func (g *Graph) add(n Node) int {
	g.Nodes = append(g.Nodes, n)
	return len(g.Nodes) - 1
}

func (g *Graph) connect(from, to int) {
	g.Nodes[from].Out = append(g.Nodes[from].Out, to)
	g.Nodes[to].In = append(g.Nodes[to].In, from)
}

// link makes each node of to follow each of from. Those of from lead nowhere
// yet, and nothing leads to those of to: their lists share one array.
func (g *Graph) link(from, to []int) {
	ends := make([]int, 0, 2*len(from)*len(to))
	for _, i := range from {
		ends = append(ends, to...)
		g.Nodes[i].Out = ends[len(ends)-len(to) : len(ends) : len(ends)]
	}
	for _, i := range to {
		ends = append(ends, from...)
		g.Nodes[i].In = ends[len(ends)-len(from) : len(ends) : len(ends)]
	}
}

// join adds a node that follows all of exits and leads to out, and returns it
// as the only exit.
func (g *Graph) join(exits, out []int) []int {
	node := []int{g.add(Node{Out: out})}
	g.link(exits, node)
	return node
}

func replace(list []int, old, new int) {
	if i := slices.Index(list, old); i >= 0 {
		list[i] = new
	}
}

func isJob(t *Task) bool {
	gvk := t.Manifest.GVK()
	return gvk.Group == "batch" && gvk.Version == "v1" && gvk.Kind == "Job"
}

// Task is one manifest in its place among those that are to be applied.
type Task struct {
	Manifest *Manifest
	// Index is the place, from 1; Total is the number of all tasks.
	Index, Total int
}

// NewTasks returns one task for each manifest, in order.
func NewTasks(manifests []*Manifest) []*Task {
	tasks := make([]*Task, len(manifests))
	all := make([]Task, len(manifests))
	for i, m := range manifests {
		all[i] = Task{Manifest: m, Index: i + 1, Total: len(manifests)}
		tasks[i] = &all[i]
	}
	return tasks
}

// MarshalText returns the text of String, which is the task in JSON. It has no error.
func (t *Task) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// String returns the task's short text, such as
//
//	deployment "openshift-dns/dns" (3 of 806)
//
// without the namespace if there is none, and with the file's name in place of
// a missing name.
func (t *Task) String() string {
	id := t.Manifest.Identity()
	name := id.Name
	name = cmp.Or(name, t.Manifest.Filename)
	if id.Namespace != "" {
		name = id.Namespace + "/" + name
	}
	return fmt.Sprintf("%s \"%s\" (%d of %d)", strings.ToLower(id.Kind), name, t.Index, t.Total)
}

// split is a component whose tasks are in two places of a runlevel, with tasks of
// different components between them, as in a list that is not sorted by file name.
// Grouping makes two nodes of them, without an order between them.
type split struct {
	level, component string
	first, again     *Task // the last task before the gap, the first one after it
}

// splits returns each component that returns within a runlevel, in the order of the
// list. One that returns after a Job is in order, since Jobs are barriers.
func splits(tasks []*Task) []split {
	var out []split
	for len(tasks) > 0 {
		n := slices.IndexFunc(tasks, isJob)
		if n < 0 {
			n = len(tasks)
		}
		list := chunks(tasks[:n])
		for i := 0; i < len(list); {
			to := levelRun(list, i)
			last := make(map[string]*Task, to-i)
			for _, c := range list[i:to] {
				if first, ok := last[c.component]; ok && c.ok {
					out = append(out, split{c.level, c.component, first, c.tasks[0]})
				}
				last[c.component] = c.tasks[len(c.tasks)-1]
			}
			i = to
		}
		tasks = tasks[min(n+1, len(tasks)):]
	}
	return out
}
