package mcp

import (
	"maps"
	"slices"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
)

// Objects are what decisions are made from. Only Pools and Nodes are needed;
// kinds that a cluster does not have stay empty.
type Objects struct {
	Pools              []mcfgv1.MachineConfigPool
	Nodes              []corev1.Node
	MachineConfigNodes []mcfgv1.MachineConfigNode
	MachineOSConfigs   []mcfgv1.MachineOSConfig
	MachineOSBuilds    []mcfgv1.MachineOSBuild
	// MachineConfigs matter for nodes that booted into a custom pool; only
	// their metadata is read.
	MachineConfigs []mcfgv1.MachineConfig
	// ControllerConfig has the topology and the certificates.
	ControllerConfig *mcfgv1.ControllerConfig
	// Pods are read for the machine-config operator's one alone.
	Pods []corev1.Pod
}

// Change is an object that was added, changed or deleted.
type Change struct {
	// Object is a pointer to one of the element types of [Objects]; anything
	// else is ignored. It is not kept.
	Object  any
	Deleted bool
}

// State follows a cluster's objects and answers what [Candidates] and
// [PoolStatus] answer, without looking at all objects each time: a change of a
// node costs O(log n). It is not safe for concurrent use.
type State struct {
	o          Options
	last       map[string]bool // Options.Order.Last
	membership *Membership
	issues     []Issue

	pools   map[string]*poolRecord
	nodes   map[string]*nodeRecord
	mcns    map[string]*mcfgv1.MachineConfigNode
	configs map[string]*mcfgv1.MachineOSConfig
	builds  map[string]*mcfgv1.MachineOSBuild
	owners  map[string]string // rendered config → its first owner
	pods    map[string]string // namespace/name of the operator's pods → node

	hasControllerConfig bool
	topology            string
	certificates        []mcfgv1.CertExpiry
}

type nodeRecord struct {
	state  NodeState
	labels map[string]string
	assign Assignment
	pool   *poolRecord // of assign.Primary
	class  class
}

type poolRecord struct {
	name  string
	pool  *mcfgv1.MachineConfigPool
	build build
	goal  Goal

	nodes    map[string]*nodeRecord
	n        counts
	eligible *treap[*nodeRecord] // Candidate and Ready, not held, in the order of updates
	held     *treap[*nodeRecord] // those that go first, likewise
	boots    *treap[*nodeRecord] // of both: booted into a custom pool
	degraded *treap[*nodeRecord] // by name
	mcnBad   *treap[*nodeRecord] // MachineConfigNode says NodeDegraded, by name
	holders  *treap[*nodeRecord] // take a unit of capacity, by name
	taints   *treap[*nodeRecord] // taint is not as it should be, by name
	topology *treap[*nodeRecord] // topology annotation is not as it should be, by name
}

// NewState starts from the objects of a cluster.
func NewState(objs Objects, o Options) *State {
	s := &State{
		o:       o,
		last:    map[string]bool{},
		pools:   map[string]*poolRecord{},
		nodes:   map[string]*nodeRecord{},
		mcns:    map[string]*mcfgv1.MachineConfigNode{},
		configs: map[string]*mcfgv1.MachineOSConfig{},
		builds:  map[string]*mcfgv1.MachineOSBuild{},
		owners:  map[string]string{},
		pods:    map[string]string{},
	}
	for _, name := range o.Order.Last {
		s.last[name] = true
	}
	if objs.ControllerConfig != nil {
		s.readControllerConfig(objs.ControllerConfig)
	}
	for i := range objs.MachineConfigNodes {
		s.mcns[objs.MachineConfigNodes[i].Name] = objs.MachineConfigNodes[i].DeepCopy()
	}
	for i := range objs.MachineOSConfigs {
		s.configs[objs.MachineOSConfigs[i].Name] = objs.MachineOSConfigs[i].DeepCopy()
	}
	for i := range objs.MachineOSBuilds {
		s.builds[objs.MachineOSBuilds[i].Name] = objs.MachineOSBuilds[i].DeepCopy()
	}
	for i := range objs.MachineConfigs {
		s.readOwner(&objs.MachineConfigs[i], false)
	}
	for i := range objs.Pods {
		s.readPod(&objs.Pods[i], false)
	}
	for i := range objs.Pools {
		p := newPoolRecord(objs.Pools[i].DeepCopy())
		s.pools[p.name] = p
	}
	s.readBuilds()
	s.readMembership()
	for i := range objs.Nodes {
		s.putNode(&objs.Nodes[i])
	}
	return s
}

func newPoolRecord(p *mcfgv1.MachineConfigPool) *poolRecord {
	r := &poolRecord{name: p.Name, pool: p}
	r.clear()
	return r
}

func (p *poolRecord) clear() {
	p.nodes = map[string]*nodeRecord{}
	p.n = counts{}
	p.eligible, p.held, p.boots = newTreap(byOrder), newTreap(byOrder), newTreap(byOrder)
	p.degraded, p.mcnBad, p.holders = newTreap(byName), newTreap(byName), newTreap(byName)
	p.taints, p.topology = newTreap(byName), newTreap(byName)
}

// Membership returns the membership that the present pools define.
func (s *State) Membership() *Membership { return s.membership }

// Issues returns the pools whose selector is not valid, by name.
func (s *State) Issues() []Issue { return slices.Clone(s.issues) }

// Pools returns the names of all pools, sorted.
func (s *State) Pools() []string { return slices.Sorted(maps.Keys(s.pools)) }

// Pool returns a pool as it was last seen, or nil. Do not change it.
func (s *State) Pool(name string) *mcfgv1.MachineConfigPool {
	if p := s.pools[name]; p != nil {
		return p.pool
	}
	return nil
}

// HasControllerConfig reports whether the cluster has a ControllerConfig.
func (s *State) HasControllerConfig() bool { return s.hasControllerConfig }

// ControlPlaneTopology returns the topology of the control plane as the
// ControllerConfig names it, "" if it does not.
func (s *State) ControlPlaneTopology() string { return s.topology }

// HasMachineConfigNode reports whether a node has a MachineConfigNode.
func (s *State) HasMachineConfigNode(node string) bool { return s.mcns[node] != nil }

// IsCandidate reports whether a node may get its pool's target once it is Ready.
func (s *State) IsCandidate(node string) bool {
	n := s.nodes[node]
	return n != nil && n.class.candidate
}

// Nodes returns the names of the nodes that a pool counts, sorted; "" stands
// for all nodes of the cluster.
func (s *State) Nodes(pool string) []string {
	if pool == "" {
		return slices.Sorted(maps.Keys(s.nodes))
	}
	if p := s.pools[pool]; p != nil {
		return slices.Sorted(maps.Keys(p.nodes))
	}
	return nil
}

// Node returns the state of a node, its place among the pools, and whether it
// exists. A conflict between pools names the node.
func (s *State) Node(name string) (NodeState, Assignment, bool) {
	n := s.nodes[name]
	if n == nil {
		return NodeState{}, Assignment{}, false
	}
	a := n.assign
	if c, ok := a.Err.(*PoolConflictError); ok {
		a.Err = &PoolConflictError{Node: name, Pools: c.Pools}
	}
	return n.state, a, true
}

// Goal returns what a pool wants of its nodes.
func (s *State) Goal(pool string) Goal {
	if p := s.pools[pool]; p != nil {
		return p.goal
	}
	return Goal{}
}

// putNode stores a node that is new or changed and moves it to its pool.
func (s *State) putNode(o *corev1.Node) *nodeRecord {
	n := s.nodes[o.Name]
	if n == nil {
		n = &nodeRecord{}
		s.nodes[o.Name] = n
	}
	state := NodeStateOf(o)
	assign := n.assign
	if n.state.Name == "" || !maps.Equal(n.labels, o.Labels) {
		n.labels = maps.Clone(o.Labels)
		assign = s.membership.Of(n.labels)
	}
	pool := s.pools[assign.Primary]
	if n.pool == pool && n.state == state {
		n.assign = assign
		return n
	}
	s.leave(n)
	n.state, n.assign = state, assign
	s.join(n)
	return n
}

func (s *State) dropNode(name string) {
	if n := s.nodes[name]; n != nil {
		s.leave(n)
		delete(s.nodes, name)
	}
}

// leave takes a node out of its pool's counters and sets. It must come before
// the node's state changes, since that is what the sets are sorted by.
func (s *State) leave(n *nodeRecord) {
	if n.pool == nil {
		return
	}
	delete(n.pool.nodes, n.state.Name)
	n.pool.count(n, -1)
	n.pool = nil
}

func (s *State) join(n *nodeRecord) {
	p := s.pools[n.assign.Primary]
	if p == nil {
		return
	}
	n.pool = p
	p.nodes[n.state.Name] = n
	n.class = s.classify(n.state, p)
	p.count(n, 1)
}

// reclassify judges all nodes of a pool again, after its goal changed.
func (s *State) reclassify(p *poolRecord) {
	nodes := p.nodes
	p.clear()
	for _, n := range nodes {
		n.pool = p
		p.nodes[n.state.Name] = n
		n.class = s.classify(n.state, p)
		p.count(n, 1)
	}
}

// readMembership compiles the pools' selectors again and gives every node its
// place.
func (s *State) readMembership() {
	pools := make([]mcfgv1.MachineConfigPool, 0, len(s.pools))
	for _, p := range sortedValues(s.pools) {
		pools = append(pools, *p.pool)
	}
	s.membership, s.issues = NewMembership(pools)
	if s.o.Compat {
		s.membership = s.membership.Compat()
	}
	for _, n := range s.nodes {
		assign := s.membership.Of(n.labels)
		if n.pool != s.pools[assign.Primary] {
			s.leave(n)
			n.assign = assign
			s.join(n)
		}
		n.assign = assign
	}
}

// readBuilds finds each pool's image build again and returns the pools where
// something about it changed.
func (s *State) readBuilds() (changed []string) {
	configs, builds := sortedValues(s.configs), sortedValues(s.builds)
	for _, p := range sortedValues(s.pools) {
		b := findBuild(p.name, p.pool.Spec.Configuration.Name, configs, builds)
		if b != p.build {
			changed = append(changed, p.name)
		}
		p.build = b
		if goal := b.goal(p.pool.Spec.Configuration.Name); goal != p.goal {
			p.goal = goal
			s.reclassify(p)
		}
	}
	return changed
}

func (s *State) readControllerConfig(c *mcfgv1.ControllerConfig) {
	s.hasControllerConfig = true
	s.topology = ""
	if c.Spec.Infra != nil {
		s.topology = string(c.Spec.Infra.Status.ControlPlaneTopology)
	}
	s.certificates = nil
	for _, cert := range c.Status.ControllerCertificates {
		if cert.BundleFile == certificateBundle {
			s.certificates = append(s.certificates, mcfgv1.CertExpiry{
				Bundle: cert.BundleFile, Subject: cert.Subject, Expiry: cert.NotAfter.DeepCopy(),
			})
		}
	}
}

// certificateBundle is the one bundle whose certificates pools report.
const certificateBundle = "KubeAPIServerServingCAData"

// readOwner remembers which pool a config was rendered for.
func (s *State) readOwner(c *mcfgv1.MachineConfig, deleted bool) (changed bool) {
	owner := ""
	if !deleted && len(c.OwnerReferences) > 0 {
		owner = c.OwnerReferences[0].Name
	}
	if s.owners[c.Name] == owner {
		return false
	}
	if owner == "" {
		delete(s.owners, c.Name)
	} else {
		s.owners[c.Name] = owner
	}
	return true
}

func (s *State) readPod(p *corev1.Pod, deleted bool) (changed bool) {
	key := p.Namespace + "/" + p.Name
	old, had := s.pods[key]
	if deleted || p.Namespace != OperatorNamespace || p.Labels[LabelApp] != AppOperator {
		delete(s.pods, key)
		return had
	}
	s.pods[key] = p.Spec.NodeName
	return !had || old != p.Spec.NodeName
}

// operatorNode is the node of the operator's one pod; "" if there is not
// exactly one.
func (s *State) operatorNode() string {
	if len(s.pods) != 1 {
		return ""
	}
	for _, node := range s.pods {
		return node
	}
	return ""
}
