package preconditions

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/mcp"
)

// DisruptionBudgets predicts the drain of every node of every pool that is not
// paused, as many nodes together as the pool's maxUnavailable lets go down, and
// finds the PodDisruptionBudgets that do not let it end. Of DaemonSets it takes for
// granted that they exist.
type DisruptionBudgets struct {
	// BlockWorkers makes what keeps a drain of other nodes than those of the control
	// plane from ending Blocking, too. Without it that is a Warning: it delays
	// nodes, not the update of the cluster.
	BlockWorkers bool
}

func disruptionBudgetsCheck() Check { return DisruptionBudgets{} }

// Name returns DisruptionBudgets.
func (DisruptionBudgets) Name() string { return "DisruptionBudgets" }

// Rule describes the check.
func (DisruptionBudgets) Rule() Rule {
	return Rule{
		Name: "DisruptionBudgets", Severities: []Severity{Info, Warning, Blocking},
		Source: "Preparing to update a cluster", Link: docsPreparing,
		Reads: []schema.GroupVersionKind{gvkOf[corev1.Node](), gvkOf[corev1.Pod](), gvkOf[mcfgv1.MachineConfigPool](),
			gvkOf[policyv1.PodDisruptionBudget](), gvkOf[configv1.Infrastructure](), virtualMachineKind},
	}
}

// Applies is always true.
func (c DisruptionBudgets) Applies(t Transition) bool { return c.Rule().Scope.Covers(t) }

// Run judges. It fails where pods, nodes, pools or budgets cannot be read, and where
// a budget's status does not say what it allows.
func (c DisruptionBudgets) Run(ctx context.Context, in *Input) ([]Finding, error) {
	return documented{c.Rule(), c.judge}.Run(ctx, in)
}

func (c DisruptionBudgets) judge(ctx context.Context, in *Input) ([]Finding, error) {
	pools, err := readPools(ctx, in)
	if pools == nil {
		return nil, err
	}
	size, sizeErr := clusterSize(ctx, in)
	if size.single() {
		return nil, size.notDrained()
	}
	objects, objectsErr := readDrainObjects(ctx, in)
	r := drainReport{ctx: ctx, in: in, budgets: make(map[types.NamespacedName]*policyv1.PodDisruptionBudget, len(objects.Budgets))}
	for _, b := range objects.Budgets {
		r.budgets[clusterapi.Key(b.Namespace, b.Name)] = b
	}
	view := mcp.NewDrainView(objects)
	for _, p := range pools {
		if p.Spec.Paused {
			continue
		}
		r.pool, r.severity = p.Name, Warning
		if p.Name == controlPlanePool || c.BlockWorkers {
			r.severity = Blocking
		}
		limit, _, limitErr := mcp.MaxUnavailable(p.MachineConfigPool, len(p.nodes))
		if limitErr != nil {
			limit = 1 // once it is put right
		}
		for together := range slices.Chunk(updateOrder(p, objects.Pods), limit) {
			for _, d := range mcp.DrainPlans(together, view) {
				r.add(d)
			}
		}
	}
	return r.findings(), joinErrors(err, sizeErr, objectsErr, r.machinesErr, r.unknown())
}

// daemonSetsOf are those that pods belong to. They exist, almost always; where one
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

// drainReport turns predicted drains into findings.
type drainReport struct {
	ctx      context.Context
	in       *Input
	budgets  map[types.NamespacedName]*policyv1.PodDisruptionBudget
	pool     string
	severity Severity // of what keeps a drain of the pool from ending

	entries []drainEntry
	stale   map[string]string // budgets whose status is not known, and why

	machines    map[types.NamespacedName]*unstructured.Unstructured // nil: not read yet
	machinesErr error
}

// drainEntry is what is found about one pod.
type drainEntry struct {
	severity   Severity
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

// drainSubjects say, by subject, the reason, what it means and the remedy.
var drainSubjects = [...]struct{ reason, meaning, remedy string }{
	twoBudgets: {"MultipleBudgets", "More than one PodDisruptionBudget selects a pod, so the API server refuses to evict it and the node is never drained",
		"Merge the budgets into one, or narrow their selectors so that one selects the pod"},
	noDisruption: {"BudgetAllowsNoDisruption", "PodDisruptionBudgets never allow a disruption, so the nodes of their pods are never drained",
		"Raise the replicas of the workload, or relax its budget: lower minAvailable or raise maxUnavailable"},
	fixedMachine: {"BudgetAllowsNoDisruption", "Virtual machines cannot be migrated to another node, so the nodes that they run on are never drained",
		"Make the virtual machine live-migratable, or stop it before its node is updated"},
	exhausted: {"BudgetExhausted", "PodDisruptionBudgets allow no disruption now, since pods of theirs are not healthy",
		"Repair the unhealthy pods, or set unhealthyPodEvictionPolicy: AlwaysAllow in the budget"},
	migrates: {"VirtualMachineMigrates", "Virtual machines are migrated to other nodes when theirs are drained",
		"Nothing is to be done: the eviction of such a pod starts a live migration"},
	terminating: {"Terminating", "Pods should have ended, and a drain waits for them",
		"Look at their finalizers and their kubelet: oc describe pod NAME"},
	slow: {"Slow", "Pods may take longer to end than an attempt to drain lasts, so attempts fail before one succeeds",
		"Wait, or lower their terminationGracePeriodSeconds"},
	dataLoss: {"DataLoss", "Pods lose what they keep in emptyDir volumes when they are evicted",
		"Keep what must last in persistent volumes"},
	notRecreated: {"NotRecreated", "Pods have no controller, so nobody creates them again after they are evicted",
		"Create them again afterwards, or let a controller do it"},
}

// add takes in what is predicted for one node.
func (r *drainReport) add(d mcp.Drain) {
	for i := range d.Pods {
		p := &d.Pods[i]
		if p.Verdict == mcp.DrainStays {
			continue
		}
		if p.Verdict == mcp.DrainBlocked {
			r.addBlocked(d.Node, p)
		} else if b := r.budgetOf(p); syncFailed(b) && machineOf(b) == "" {
			r.addStale(p, "its status could not be worked out")
		}
		for _, n := range p.Notes {
			switch n.Kind {
			case mcp.DrainSlow:
				r.note(Info, slow, d.Node, p, "up to "+n.Expected.String())
			case mcp.DrainDataLoss:
				r.note(Info, dataLoss, d.Node, p, "")
			case mcp.DrainNotRecreated:
				r.note(Info, notRecreated, d.Node, p, "")
			}
		}
	}
}

func (r *drainReport) note(s Severity, subject drainSubject, node string, p *mcp.PodDrain, text string) {
	r.entries = append(r.entries, drainEntry{severity: s, subject: subject, pool: r.pool, node: node, pod: p, text: text})
}

func (r *drainReport) addBlocked(node string, p *mcp.PodDrain) {
	switch p.Kind {
	case mcp.DrainTwoBudgets:
		r.note(r.severity, twoBudgets, node, p, "")
		return
	case mcp.DrainTerminating:
		r.note(Info, terminating, node, p, p.Text)
		return
	}
	if machine := machineOf(r.budgetOf(p)); machine != "" {
		switch migratable, known := r.migratable(clusterapi.Key(p.Pod.Namespace, machine)); {
		case !known: // machinesErr says why
		case migratable:
			r.note(Info, migrates, node, p, "virtual machine "+machine)
		default:
			r.note(r.severity, fixedMachine, node, p, "virtual machine "+machine+" is not LiveMigratable")
		}
		return
	}
	switch p.Kind {
	case mcp.DrainNeverAllows:
		r.note(r.severity, noDisruption, node, p, p.Text)
	case mcp.DrainUnhealthy:
		text := p.Text
		if len(p.Unhealthy) > 0 {
			names := make([]string, len(p.Unhealthy))
			for i, u := range p.Unhealthy {
				names[i] = u.Name
			}
			text += "; not healthy: " + strings.Join(names, ", ")
		}
		r.note(Warning, exhausted, node, p, text)
	case mcp.DrainStale:
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
	if r.stale == nil {
		r.stale = map[string]string{}
	}
	r.stale[p.Pod.Namespace+"/"+p.Budgets[0]] = why
}

// unknown is the error for budgets whose status does not say what they allow.
func (r *drainReport) unknown() error {
	if len(r.stale) == 0 {
		return nil
	}
	var names []string
	for name, why := range r.stale {
		names = append(names, name+" ("+why+")")
	}
	slices.Sort(names)
	return fmt.Errorf("what PodDisruptionBudgets allow is not known, see to it that the disruption controller runs: %s", strings.Join(names, ", "))
}

var virtualMachineKind = schema.GroupVersionKind{Group: "kubevirt.io", Version: "v1", Kind: "VirtualMachineInstance"}

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

// migratable reports whether an eviction starts a live migration of a virtual
// machine, and whether that is known. The machines are read when the first is
// asked for.
func (r *drainReport) migratable(key types.NamespacedName) (is, known bool) {
	if r.machines == nil {
		r.machines = map[types.NamespacedName]*unstructured.Unstructured{}
		var objects []*clusterapi.Object
		objects, r.machinesErr = clusterapi.ListShared(r.ctx, r.in.Reader, virtualMachineKind, clusterapi.ListOptions{})
		for _, o := range objects {
			r.machines[o.Key()] = o.Unstructured()
		}
	}
	machine := r.machines[key]
	if machine == nil {
		return false, r.machinesErr == nil
	}
	conditions, _, err := unstructured.NestedSlice(machine.Object, "status", "conditions")
	if err != nil {
		r.machinesErr = joinErrors(r.machinesErr, fmt.Errorf("VirtualMachineInstance %s: %w", key, err))
		return false, false
	}
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == "LiveMigratable" {
			return m["status"] == string(metav1.ConditionTrue), true
		}
	}
	return false, true
}

// compare orders by severity, subject, node, namespace, budget and pod.
func (e drainEntry) compare(other drainEntry) int {
	if c := cmp.Or(cmp.Compare(other.severity, e.severity), cmp.Compare(e.subject, other.subject), strings.Compare(e.node, other.node)); c != 0 {
		return c
	}
	a, b := e.pod, other.pod
	if c := cmp.Or(strings.Compare(a.Pod.Namespace, b.Pod.Namespace), slices.Compare(a.Budgets, b.Budgets)); c != 0 {
		return c
	}
	return cmp.Or(strings.Compare(e.text, other.text), strings.Compare(a.Pod.Name, b.Pod.Name))
}

// findings puts together what was found: one finding for each subject and severity,
// which lists nodes, their budgets and the pods of these.
func (r *drainReport) findings() []Finding {
	slices.SortFunc(r.entries, drainEntry.compare)
	var findings []Finding
	same := func(a, b drainEntry) bool { return a.severity == b.severity && a.subject == b.subject }
	for of := range chunkBy(r.entries, same) {
		findings = append(findings, r.finding(of))
	}
	return findings
}

// finding words the entries of one subject.
func (r *drainReport) finding(entries []drainEntry) Finding {
	subject := drainSubjects[entries[0].subject]
	// Almost every pod may lose scratch data: the text counts those.
	count := entries[0].subject == dataLoss || entries[0].subject == notRecreated
	objects := make([]Object, 0, 2*len(entries))
	var nodes []string
	for of := range chunkBy(entries, func(a, b drainEntry) bool { return a.node == b.node }) {
		objects = append(objects, Object{GVK: nodeKind, Name: of[0].node, Note: "pool " + of[0].pool})
		var said []string
		for of := range chunkBy(of, drainEntry.sameBudget) {
			objects = r.appendObjects(objects, of)
			if !count {
				said = append(said, podsText(of))
			}
		}
		if count {
			said = append(said, strconv.Itoa(len(of))+" pods")
		}
		nodes = append(nodes, fmt.Sprintf("node %s (%s)", of[0].node, strings.Join(said, "; ")))
	}
	return Finding{
		Severity: entries[0].severity, Reason: subject.reason, Remedy: subject.remedy, Objects: objects,
		Message: subject.meaning + ": " + strings.Join(nodes, ", ") + ". " + subject.remedy,
	}
}

// The kinds of the objects of findings.
var (
	nodeKind   = corev1.SchemeGroupVersion.WithKind("Node")
	podKind    = corev1.SchemeGroupVersion.WithKind("Pod")
	budgetKind = policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget")
)

func (e drainEntry) sameBudget(other drainEntry) bool {
	return e.pod.Pod.Namespace == other.pod.Pod.Namespace && slices.Equal(e.pod.Budgets, other.pod.Budgets) && e.text == other.text
}

// appendObjects adds the budgets of some pods, and these.
func (r *drainReport) appendObjects(objects []Object, entries []drainEntry) []Object {
	namespace, budgets := entries[0].pod.Pod.Namespace, entries[0].pod.Budgets
	for _, name := range budgets {
		o := Object{GVK: budgetKind, Namespace: namespace, Name: name, FieldPath: "status.disruptionsAllowed", Note: entries[0].text}
		if b := r.budgets[clusterapi.Key(namespace, name)]; b != nil {
			o.Value = strconv.Itoa(int(b.Status.DisruptionsAllowed))
		}
		objects = append(objects, o)
	}
	for _, e := range entries {
		o := Object{GVK: podKind, Namespace: namespace, Name: e.pod.Pod.Name}
		if len(budgets) == 0 {
			o.Note = e.text
		}
		objects = append(objects, o)
	}
	return objects
}

// podsText names pods of the same budgets, of which the same is said.
func podsText(entries []drainEntry) string {
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.pod.Pod.String()
	}
	text := "pods " + strings.Join(names, ", ")
	if budgets := slices.Clone(entries[0].pod.Budgets); len(budgets) > 0 {
		for i := range budgets {
			budgets[i] = entries[0].pod.Pod.Namespace + "/" + budgets[i]
		}
		text = "budget " + strings.Join(budgets, " and ") + " of " + text
	}
	if entries[0].text != "" {
		text += ": " + entries[0].text
	}
	return text
}

// chunkBy yields the runs of neighbours that are the same.
func chunkBy[T any](all []T, same func(a, b T) bool) func(yield func([]T) bool) {
	return func(yield func([]T) bool) {
		for start := 0; start < len(all); {
			end := start + 1
			for end < len(all) && same(all[start], all[end]) {
				end++
			}
			if !yield(all[start:end]) {
				return
			}
			start = end
		}
	}
}
