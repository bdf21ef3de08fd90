package rules

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/internal/facts"
)

// drains is what drains are predicted from.
type drains struct {
	pools   []*poolNodes // none: nothing is to be predicted
	objects mcp.DrainObjects
	known   bool // these are all
}

func readDrains(ctx context.Context, in *preconditions.Input) (drains, error) {
	pools, err := readPools(ctx, in)
	if pools == nil {
		return drains{}, err
	}
	size, sizeErr := clusterSize(ctx, in)
	if size.single() {
		return drains{}, size.notDrained()
	}
	pods, podsErr := listPods(ctx, in)
	budgets, budgetsErr := facts.List[policyv1.PodDisruptionBudget](ctx, in.Reader, clusterapi.ListOptions{})
	objects := mcp.DrainObjects{Pods: pods, Budgets: budgets, DaemonSets: daemonSetsOf(pods), Now: in.Now}
	return drains{pools, objects, podsErr == nil && budgetsErr == nil}, facts.JoinErrors(err, sizeErr, podsErr, budgetsErr)
}

// daemonSetsOf are those that pods belong to. They exist, almost always; if one
// does not, its pods are about to be deleted.
func daemonSetsOf(pods []*corev1.Pod) []types.NamespacedName {
	var keys []types.NamespacedName
	for _, p := range pods {
		if c := metav1.GetControllerOfNoCopy(p); c != nil && c.Kind == "DaemonSet" {
			keys = append(keys, clusterapi.Key(p.Namespace, c.Name))
		}
	}
	return keys
}

// updateOrder are the names of a pool's nodes in the order in which they are
// updated. In the control plane the node of the machine-config operator is last.
func updateOrder(p *poolNodes, pods []*corev1.Pod) []string {
	states := make([]mcp.NodeState, len(p.nodes))
	for i, n := range p.nodes {
		states[i] = mcp.NodeStateOf(n)
	}
	slices.SortFunc(states, mcp.CompareNodes)
	names := make([]string, len(states))
	for i, s := range states {
		names[i] = s.Name
	}
	if p.Name != controlPlanePool {
		return names
	}
	var runs []string
	for _, pod := range pods {
		if pod.Namespace == mcp.OperatorNamespace && pod.Labels[mcp.LabelApp] == mcp.AppOperator {
			runs = append(runs, pod.Spec.NodeName)
		}
	}
	if len(runs) == 1 {
		if i := slices.Index(names, runs[0]); i >= 0 {
			names = append(slices.Delete(names, i, i+1), runs[0])
		}
	}
	return names
}

// disruptionBudgets predicts the drain of every node of every pool that is not
// paused, as many nodes together as the pool's maxUnavailable lets go down, and
// finds the PodDisruptionBudgets that do not let it end. Of DaemonSets it takes for
// granted that they exist. What keeps drains of other nodes than those of the control
// plane from ending is a Warning: it delays nodes, not the update of the cluster.
func disruptionBudgets(ctx context.Context, in *preconditions.Input) ([]preconditions.Finding, error) {
	d, err := readDrains(ctx, in)
	if d.pools == nil {
		return nil, err
	}
	r := drainReport{
		budgets:  make(map[types.NamespacedName]*policyv1.PodDisruptionBudget, len(d.objects.Budgets)),
		machines: readMachines(ctx, in.Reader, d.objects.Budgets),
		stale:    map[string]string{},
	}
	for _, b := range d.objects.Budgets {
		r.budgets[clusterapi.Key(b.Namespace, b.Name)] = b
	}
	view := mcp.NewDrainView(d.objects)
	for _, p := range d.pools {
		if p.Spec.Paused {
			continue
		}
		limit, _, limitErr := mcp.MaxUnavailable(p.MachineConfigPool, len(p.nodes))
		if limitErr != nil {
			limit = 1 // once it is put right
		}
		for together := range slices.Chunk(updateOrder(p, d.objects.Pods), limit) {
			for _, plan := range mcp.DrainPlans(together, view) {
				r.addNode(p.Name, plan)
			}
		}
	}
	return r.findings(), facts.JoinErrors(err, r.machines.err, r.unknown())
}

// drainReport turns predicted drains into findings.
type drainReport struct {
	budgets  map[types.NamespacedName]*policyv1.PodDisruptionBudget
	machines machines
	entries  []drainEntry
	stale    map[string]string // budgets whose status is not known, and why
}

// drainEntry is what is found about one pod.
type drainEntry struct {
	severity   preconditions.Severity
	subject    drainSubject
	pool, node string
	pod        *mcp.PodDrain
	text       string
}

// drainSubject is what a finding is about.
type drainSubject int

const (
	twoBudgets drainSubject = iota
	noDisruption
	fixedMachine
	exhausted
	migrates
	terminating
	slow
	dataLoss
	notRecreated
)

// drainSubjects are, by subject, the severity, the reason, what it means and the remedy.
// What is Blocking is so in the control plane alone.
var drainSubjects = [...]struct {
	severity                preconditions.Severity
	reason, meaning, remedy string
}{
	twoBudgets: {preconditions.Blocking, "MultipleBudgets", "More than one PodDisruptionBudget selects a pod, so the API server refuses to evict it and the node is never drained",
		"Merge the budgets into one, or narrow their selectors so that one selects the pod"},
	noDisruption: {preconditions.Blocking, "BudgetAllowsNoDisruption", "PodDisruptionBudgets never allow a disruption, so the nodes of their pods are never drained",
		"Raise the replicas of the workload, or relax its budget: lower minAvailable or raise maxUnavailable"},
	fixedMachine: {preconditions.Blocking, "BudgetAllowsNoDisruption", "Virtual machines cannot be migrated to another node, so the nodes that they run on are never drained",
		"Make the virtual machine live-migratable, or stop it before its node is updated"},
	exhausted: {preconditions.Warning, "BudgetExhausted", "PodDisruptionBudgets allow no disruption now, since pods of theirs are not healthy",
		"Repair the unhealthy pods, or set unhealthyPodEvictionPolicy: AlwaysAllow in the budget"},
	migrates: {preconditions.Info, "VirtualMachineMigrates", "Virtual machines are migrated to other nodes when theirs are drained",
		"Nothing is to be done: the eviction of such a pod starts a live migration"},
	terminating: {preconditions.Info, "Terminating", "Pods should have ended, and a drain waits for them",
		"Look at their finalizers and their kubelet: oc describe pod NAME"},
	slow: {preconditions.Info, "Slow", "Pods may take longer to end than an attempt to drain lasts, so attempts fail before one succeeds",
		"Wait, or lower their terminationGracePeriodSeconds"},
	dataLoss: {preconditions.Info, "DataLoss", "Pods lose what they keep in emptyDir volumes when they are evicted",
		"Keep what must last in persistent volumes"},
	notRecreated: {preconditions.Info, "NotRecreated", "Pods have no controller, so nobody creates them again after they are evicted",
		"Create them again afterwards, or let a controller do it"},
}

// addNode takes in what is predicted for one node.
func (r *drainReport) addNode(pool string, d mcp.Drain) {
	for i := range d.Pods {
		p := &d.Pods[i]
		if p.Verdict == mcp.DrainStays {
			continue
		}
		note := func(subject drainSubject, text string) {
			severity := drainSubjects[subject].severity
			if severity == preconditions.Blocking && pool != controlPlanePool {
				severity = preconditions.Warning
			}
			r.entries = append(r.entries, drainEntry{severity: severity, subject: subject, pool: pool, node: d.Node, pod: p, text: text})
		}
		if p.Verdict == mcp.DrainBlocked {
			r.addBlocked(p, note)
		} else if b := r.budgetOf(p); syncFailed(b) && machineOf(b) == "" {
			r.addStale(p, "its status could not be worked out")
		}
		for _, n := range p.Notes {
			switch n.Kind {
			case mcp.DrainSlow:
				note(slow, "up to "+n.Expected.String())
			case mcp.DrainDataLoss:
				note(dataLoss, "")
			case mcp.DrainNotRecreated:
				note(notRecreated, "")
			}
		}
	}
}

func (r *drainReport) addBlocked(p *mcp.PodDrain, note func(drainSubject, string)) {
	machine := machineOf(r.budgetOf(p))
	switch {
	case p.Kind == mcp.DrainTwoBudgets:
		note(twoBudgets, "")
	case p.Kind == mcp.DrainTerminating:
		note(terminating, p.Text)
	case machine != "":
		switch migratable, known := r.machines.migratable(clusterapi.Key(p.Pod.Namespace, machine)); {
		case !known: // the error of the machines explains why
		case migratable:
			note(migrates, "virtual machine "+machine)
		default:
			note(fixedMachine, "virtual machine "+machine+" is not LiveMigratable")
		}
	case p.Kind == mcp.DrainNeverAllows:
		note(noDisruption, p.Text)
	case p.Kind == mcp.DrainUnhealthy:
		var names []string
		for _, u := range p.Unhealthy {
			names = append(names, u.Name)
		}
		text := p.Text
		if len(names) > 0 {
			text += "; not healthy: " + strings.Join(names, ", ")
		}
		note(exhausted, text)
	case p.Kind == mcp.DrainStale:
		r.addStale(p, p.Text)
	}
}

// budgetOf is the first budget that decides on a pod.
func (r *drainReport) budgetOf(p *mcp.PodDrain) *policyv1.PodDisruptionBudget {
	if len(p.Budgets) == 0 {
		return nil
	}
	return r.budgets[clusterapi.Key(p.Pod.Namespace, p.Budgets[0])]
}

func syncFailed(b *policyv1.PodDisruptionBudget) bool {
	return b != nil && slices.ContainsFunc(b.Status.Conditions, func(c metav1.Condition) bool {
		return c.Type == policyv1.DisruptionAllowedCondition && c.Reason == policyv1.SyncFailedReason
	})
}

func (r *drainReport) addStale(p *mcp.PodDrain, why string) {
	name := p.Pod.Namespace + "/" + p.Budgets[0]
	r.stale[name] = name + " (" + why + ")"
}

// unknown is the error for budgets whose status does not say what they allow.
func (r *drainReport) unknown() error {
	if len(r.stale) == 0 {
		return nil
	}
	names := slices.Sorted(maps.Values(r.stale))
	return fmt.Errorf("what PodDisruptionBudgets allow is not known, see to it that the disruption controller runs: %s", strings.Join(names, ", "))
}

// machineOf is the name of the virtual machine instance that owns a budget.
func machineOf(b *policyv1.PodDisruptionBudget) string {
	if b == nil {
		return ""
	}
	for _, o := range b.OwnerReferences {
		if group, _, _ := strings.Cut(o.APIVersion, "/"); group == virtualMachineKind.Group && o.Kind == virtualMachineKind.Kind {
			return o.Name
		}
	}
	return ""
}

// machines reports for virtual machine instances whether an eviction starts a live
// migration.
type machines struct {
	migrate map[types.NamespacedName]bool
	err     error // why there may be more
}

// readMachines reads those that own budgets.
func readMachines(ctx context.Context, r clusterapi.Reader, budgets []*policyv1.PodDisruptionBudget) machines {
	m := machines{migrate: map[types.NamespacedName]bool{}}
	owners := map[types.NamespacedName]bool{}
	for _, b := range budgets {
		if name := machineOf(b); name != "" {
			owners[clusterapi.Key(b.Namespace, name)] = true
		}
	}
	if len(owners) == 0 {
		return m
	}
	objects, err := clusterapi.ListShared(ctx, r, virtualMachineKind, clusterapi.ListOptions{})
	m.err = err
	for _, o := range objects {
		if !owners[o.Key()] {
			continue
		}
		conditions, _, err := unstructured.NestedSlice(o.Unstructured().Object, "status", "conditions")
		if err != nil {
			m.err = facts.JoinErrors(m.err, fmt.Errorf("VirtualMachineInstance %s: %w", o.Key(), err))
			continue
		}
		m.migrate[o.Key()] = slices.ContainsFunc(conditions, func(c any) bool {
			fields, _ := c.(map[string]any)
			return fields["type"] == "LiveMigratable" && fields["status"] == string(metav1.ConditionTrue)
		})
	}
	return m
}

// migratable reports whether an eviction starts a live migration of a machine, and whether
// that is known. One that does not exist does not migrate.
func (m machines) migratable(key types.NamespacedName) (is, known bool) {
	is, read := m.migrate[key]
	return is, read || m.err == nil
}

// compare orders by severity, subject, node, namespace, budget and pod.
func (e drainEntry) compare(other drainEntry) int {
	a, b := e.pod, other.pod
	return cmp.Or(
		cmp.Compare(other.severity, e.severity), cmp.Compare(e.subject, other.subject), strings.Compare(e.node, other.node),
		strings.Compare(a.Pod.Namespace, b.Pod.Namespace), slices.Compare(a.Budgets, b.Budgets),
		strings.Compare(e.text, other.text), strings.Compare(a.Pod.Name, b.Pod.Name))
}

// findings returns one finding for each subject and severity, which lists nodes,
// their budgets and the budgets' pods.
func (r *drainReport) findings() []preconditions.Finding {
	slices.SortFunc(r.entries, drainEntry.compare)
	var found []preconditions.Finding
	for of := range chunkBy(r.entries, func(a, b drainEntry) bool { return a.severity == b.severity && a.subject == b.subject }) {
		found = append(found, r.finding(of))
	}
	return found
}

// finding words the entries of one subject.
func (r *drainReport) finding(entries []drainEntry) preconditions.Finding {
	subject := drainSubjects[entries[0].subject]
	// Almost every pod may lose scratch data: the text counts those.
	count := entries[0].subject == dataLoss || entries[0].subject == notRecreated
	objects := make([]preconditions.Object, 0, 2*len(entries))
	var nodes []string
	for of := range chunkBy(entries, func(a, b drainEntry) bool { return a.node == b.node }) {
		objects = append(objects, object[corev1.Node]("", of[0].node, "", "", "pool "+of[0].pool))
		var texts []string
		for same := range chunkBy(of, drainEntry.sameBudget) {
			objects = r.appendObjects(objects, same)
			if !count {
				texts = append(texts, podsText(same))
			}
		}
		if count {
			texts = append(texts, strconv.Itoa(len(of))+" pods")
		}
		nodes = append(nodes, fmt.Sprintf("node %s (%s)", of[0].node, strings.Join(texts, "; ")))
	}
	return findingAt(entries[0].severity, subject.reason, subject.meaning+": "+strings.Join(nodes, ", "), subject.remedy, objects...)
}

func (e drainEntry) sameBudget(other drainEntry) bool {
	return e.pod.Pod.Namespace == other.pod.Pod.Namespace && slices.Equal(e.pod.Budgets, other.pod.Budgets) && e.text == other.text
}

// appendObjects adds the budgets of some pods, and these.
func (r *drainReport) appendObjects(objects []preconditions.Object, entries []drainEntry) []preconditions.Object {
	namespace, budgets := entries[0].pod.Pod.Namespace, entries[0].pod.Budgets
	for _, name := range budgets {
		o := object[policyv1.PodDisruptionBudget](namespace, name, "status.disruptionsAllowed", "", entries[0].text)
		if b := r.budgets[clusterapi.Key(namespace, name)]; b != nil {
			o.Value = strconv.Itoa(int(b.Status.DisruptionsAllowed))
		}
		objects = append(objects, o)
	}
	for _, e := range entries {
		o := object[corev1.Pod](namespace, e.pod.Pod.Name, "", "", "")
		if len(budgets) == 0 {
			o.Note = e.text
		}
		objects = append(objects, o)
	}
	return objects
}

// podsText names pods of the same budgets, with the same text.
func podsText(entries []drainEntry) string {
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.pod.Pod.String()
	}
	text := "pods " + strings.Join(names, ", ")
	var budgets []string
	for _, name := range entries[0].pod.Budgets {
		budgets = append(budgets, entries[0].pod.Pod.Namespace+"/"+name)
	}
	if len(budgets) > 0 {
		text = "budget " + strings.Join(budgets, " and ") + " of " + text
	}
	return withText(text, entries[0].text)
}

// chunkBy yields the runs of neighbours that are the same.
func chunkBy[T any](all []T, same func(a, b T) bool) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		for len(all) > 0 {
			end := 1
			for end < len(all) && same(all[0], all[end]) {
				end++
			}
			if !yield(all[:end]) {
				return
			}
			all = all[end:]
		}
	}
}

// spareCapacity places what replaces the pods of the nodes that are drained together on
// the other nodes, as a scheduler would: by node selectors, node affinity, taints and
// requests. Affinity between pods, topology spread and volumes are not modelled.
func spareCapacity(ctx context.Context, in *preconditions.Input) ([]preconditions.Finding, error) {
	d, err := readDrains(ctx, in)
	if d.pools == nil {
		return nil, err
	}
	nodes, nodesErr := facts.List[corev1.Node](ctx, in.Reader, clusterapi.ListOptions{})
	if !d.known || nodesErr != nil {
		return nil, err // what is not known changes the room either way
	}
	d.objects.Nodes = nodes
	view := mcp.NewDrainView(d.objects)
	var found findings
	for _, p := range d.pools {
		limit, _, limitErr := mcp.MaxUnavailable(p.MachineConfigPool, len(p.nodes))
		if !p.Spec.Paused && limitErr == nil && p.known {
			addNoSpare(&found, p, limit, d.objects.Pods, view)
		}
	}
	return found, err
}

// addNoSpare judges one pool: its nodes in the order of updates, and those that have the
// most pods, as many together as may be unavailable.
func addNoSpare(found *findings, p *poolNodes, limit int, pods []*corev1.Pod, view mcp.DrainView) {
	order := updateOrder(p, pods)
	groups := slices.Collect(slices.Chunk(order, limit))
	if limit > 1 && len(order) > limit {
		groups = append(groups, fullest(order, pods)[:limit])
	}
	homeless := map[string][]string{} // pods by node
	for _, together := range groups {
		for _, d := range mcp.DrainPlans(together, view) {
			for _, pod := range d.Pods {
				name := pod.Pod.String()
				if nowhereToGo(pod) && !slices.Contains(homeless[d.Node], name) {
					homeless[d.Node] = append(homeless[d.Node], name)
				}
			}
		}
	}
	if len(homeless) == 0 {
		return
	}
	var objects []preconditions.Object
	for node, names := range homeless {
		slices.Sort(names)
		objects = append(objects, object[corev1.Node]("", node, "", "", "pods "+strings.Join(names, ", ")))
	}
	sortObjects(objects)
	f := newFinding(preconditions.Warning, "NoSpareCapacity", fmt.Sprintf(
		"What replaces the pods of nodes of pool %s, of which %d may be drained together, does not all fit the other schedulable nodes, by node selectors, node affinity, taints and requests. "+
			"Affinity between pods, topology spread and volumes are not looked at, and may leave less room. The nodes", p.Name, limit),
		objects, "Add nodes, lower requests, or lower spec.maxUnavailable of the pool")
	f.Objects = append(f.Objects, poolObject(p.Name, "spec.maxUnavailable", strconv.Itoa(limit), ""))
	*found = append(*found, f)
}

func nowhereToGo(p mcp.PodDrain) bool {
	return slices.ContainsFunc(p.Notes, func(n mcp.DrainNote) bool { return n.Kind == mcp.DrainNowhereToGo })
}

// fullest sorts nodes by the CPU that their pods request, the most first.
func fullest(nodes []string, pods []*corev1.Pod) []string {
	cpu := map[string]float64{}
	for _, p := range pods {
		for _, c := range p.Spec.Containers {
			cpu[p.Spec.NodeName] += c.Resources.Requests.Cpu().AsApproximateFloat64()
		}
	}
	sorted := slices.Clone(nodes)
	slices.SortStableFunc(sorted, func(a, b string) int { return cmp.Compare(cpu[b], cpu[a]) })
	return sorted
}
