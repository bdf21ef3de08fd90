package mcp

import (
	"maps"
	"slices"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Apply takes in a change and returns the pools to look at again, sorted, as
// the machine-config controller would queue them. That can be fewer than those
// whose answers changed: the events of a node on which no daemon has run queue
// none, nor do those of a node that has just lost its pool. The answers
// themselves are always those of a new State. Changes of one object must
// come in their order.
func (s *State) Apply(c Change) (changed []string) {
	switch o := c.Object.(type) {
	case *mcfgv1.MachineConfigPool:
		return s.applyPool(o, c.Deleted)
	case *corev1.Node:
		return s.applyNode(o, c.Deleted)
	case *mcfgv1.MachineConfigNode:
		return s.applyMachineConfigNode(o, c.Deleted)
	case *mcfgv1.MachineOSConfig:
		return s.applyMachineOSConfig(o, c.Deleted)
	case *mcfgv1.MachineOSBuild:
		return s.applyMachineOSBuild(o, c.Deleted)
	case *mcfgv1.ControllerConfig:
		return s.applyControllerConfig(o, c.Deleted)
	case *mcfgv1.MachineConfig:
		return s.applyMachineConfig(o, c.Deleted)
	case *corev1.Pod:
		if s.readPod(o, c.Deleted) && s.pools[PoolMaster] != nil {
			return []string{PoolMaster}
		}
	}
	return nil
}

func (s *State) applyPool(o *mcfgv1.MachineConfigPool, deleted bool) []string {
	p := s.pools[o.Name]
	switch {
	case deleted:
		if p == nil {
			return nil
		}
		delete(s.pools, o.Name)
		s.readMembership()
		s.rejudgeBoots(o.Name)
	case p == nil:
		s.pools[o.Name] = newPoolRecord(o.DeepCopy())
		s.readMembership()
		s.readBuilds()
		s.rejudgeBoots(o.Name)
	default:
		old := p.pool
		p.pool = o.DeepCopy()
		if !equality.Semantic.DeepEqual(old.Spec.NodeSelector, o.Spec.NodeSelector) {
			s.readMembership()
		}
		if old.Spec.Configuration.Name != o.Spec.Configuration.Name {
			s.readBuilds()
		}
	}
	return []string{o.Name}
}

func (s *State) applyNode(o *corev1.Node, deleted bool) []string {
	old := s.nodes[o.Name]
	if deleted {
		if old == nil {
			return nil
		}
		state, assign := old.state, old.assign
		s.dropNode(o.Name)
		if !state.Managed() {
			return nil
		}
		return s.existing(assign.Pools)
	}
	if old == nil {
		n := s.putNode(o)
		if !n.state.Managed() {
			return nil
		}
		return s.existing(n.assign.Pools)
	}
	before := *old // labels are replaced, never changed
	n := s.putNode(o)
	switch {
	case !n.state.Managed():
		return nil
	case n.assign.Primary == "" && s.o.Compat:
		return nil // the old pools keep their counts until their next sync
	case n.assign.Primary == "":
		return s.existing(before.assign.Pools)
	}
	pinning := n.pool != nil && n.pool.n.pinning > 0
	if !pinning && !matters(&before, n) {
		return nil
	}
	queue := slices.Clone(n.assign.Pools)
	if before.assign.Err != nil {
		queue = append(queue, before.assign.matched...)
	} else if before.assign.Primary != n.assign.Primary {
		queue = append(queue, before.assign.Pools...)
	}
	return s.existing(queue)
}

// matters reports whether the change of a node is one that pools are synced for.
func matters(a, b *nodeRecord) bool {
	x, y := &a.state, &b.state
	return x.NotReadyText() != y.NotReadyText() ||
		x.CurrentConfig != y.CurrentConfig || x.DesiredConfig != y.DesiredConfig ||
		x.CurrentImage != y.CurrentImage || x.HasCurrentImage != y.HasCurrentImage ||
		x.DesiredImage != y.DesiredImage || x.HasDesiredImage != y.HasDesiredImage ||
		x.State != y.State || x.Reason != y.Reason ||
		x.Taints != y.Taints || !maps.Equal(a.labels, b.labels)
}

// replace puts an object into a map, or deletes what has its name, and returns what
// was there.
func replace[T any](m map[string]*T, name string, o *T, deleted bool) *T {
	old := m[name]
	if deleted {
		delete(m, name)
	} else {
		m[name] = o
	}
	return old
}

func (s *State) applyMachineConfigNode(o *mcfgv1.MachineConfigNode, deleted bool) []string {
	old := replace(s.mcns, o.Name, o.DeepCopy(), deleted)
	n := s.nodes[o.Name]
	if n == nil || n.pool == nil {
		return nil
	}
	s.rejudge(n)
	if old != nil && !deleted && old.Spec.Pool == o.Spec.Pool && old.Spec.ConfigVersion == o.Spec.ConfigVersion &&
		equality.Semantic.DeepEqual(old.Status.Conditions, o.Status.Conditions) {
		return nil
	}
	return []string{n.pool.name}
}

func (s *State) applyMachineOSConfig(o *mcfgv1.MachineOSConfig, deleted bool) []string {
	old := replace(s.configs, o.Name, o.DeepCopy(), deleted)
	s.readBuilds()
	queue := []string{o.Spec.MachineConfigPool.Name}
	if old != nil {
		queue = append(queue, old.Spec.MachineConfigPool.Name)
		if !deleted && old.Status.CurrentImagePullSpec == o.Status.CurrentImagePullSpec &&
			old.Spec.MachineConfigPool == o.Spec.MachineConfigPool && maps.Equal(old.Annotations, o.Annotations) {
			return nil
		}
	}
	return s.existing(queue)
}

func (s *State) applyMachineOSBuild(o *mcfgv1.MachineOSBuild, deleted bool) []string {
	old := replace(s.builds, o.Name, o.DeepCopy(), deleted)
	changed := s.readBuilds()
	if old != nil && !deleted && equality.Semantic.DeepEqual(old.Spec, o.Spec) &&
		equality.Semantic.DeepEqual(buildEvents(old), buildEvents(o)) {
		return nil
	}
	return changed
}

// buildEvents is what pools are synced for when a build changes.
func buildEvents(b *mcfgv1.MachineOSBuild) any {
	return struct {
		Conditions []metav1.Condition
		Start, End *metav1.Time
	}{b.Status.Conditions, b.Status.BuildStart, b.Status.BuildEnd}
}

func (s *State) applyControllerConfig(o *mcfgv1.ControllerConfig, deleted bool) []string {
	if o.Name != "" && o.Name != ControllerConfigName {
		return nil
	}
	had, topology := s.hasControllerConfig, s.topology
	if deleted {
		s.hasControllerConfig, s.topology, s.certificates = false, "", nil
	} else {
		s.readControllerConfig(o)
	}
	if s.topology != topology {
		for _, p := range s.pools {
			s.reclassify(p)
		}
	} else if had == s.hasControllerConfig {
		return nil
	}
	return s.Pools()
}

func (s *State) applyMachineConfig(o *mcfgv1.MachineConfig, deleted bool) []string {
	if !s.readOwner(o, deleted) {
		return nil
	}
	queue := sets.New[string]()
	for _, n := range s.nodes {
		if n.pool != nil && n.state.FirstPivotConfig == o.Name {
			s.rejudge(n)
			queue.Insert(n.pool.name)
		}
	}
	return sets.List(queue)
}

// rejudge classifies one node again.
func (s *State) rejudge(n *nodeRecord) {
	s.leave(n)
	s.join(n)
}

// rejudgeBoots classifies again the nodes that booted into a pool that has
// just come or gone.
func (s *State) rejudgeBoots(pool string) {
	for _, n := range s.nodes {
		if n.pool != nil && n.state.FirstPivotConfig != "" && s.owners[n.state.FirstPivotConfig] == pool {
			s.rejudge(n)
		}
	}
}

// existing sorts names of pools and drops repetitions and what is gone.
func (s *State) existing(pools []string) []string {
	queue := sets.New[string]()
	for _, name := range pools {
		if s.pools[name] != nil {
			queue.Insert(name)
		}
	}
	if queue.Len() == 0 {
		return nil
	}
	return sets.List(queue)
}
