package mcp

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/internal/disruption"
)

// DrainPlan predicts the drain of one node that is drained alone. An unknown node has
// no pods.
func DrainPlan(node string, v DrainView) Drain {
	return DrainPlans([]string{node}, v)[0]
}

// DrainPlans predicts the drains of several nodes at the same time, which share what
// budgets allow and the room on the nodes that stay: pods of one budget go by name, whatever
// their nodes, and what replaces all pods is placed together, on none of the nodes. It
// returns a Drain for each node, in the order given.
func DrainPlans(nodes []string, v DrainView) []Drain {
	plan := newDrainPlanner(v)
	for _, node := range nodes {
		plan.leaving[node] = true
	}
	judged := make(map[string][]*drainPod, len(nodes))
	var all []*drainPod
	for _, node := range nodes {
		if judged[node] == nil {
			judged[node] = plan.judge(node)
			all = append(all, judged[node]...)
		}
	}
	plan.share()
	plan.place(all)
	drains := make([]Drain, len(nodes))
	for i, node := range nodes {
		drains[i] = plan.drain(node, judged[node])
	}
	return drains
}

// drainPlanner predicts drains that share the budgets of a view.
type drainPlanner struct {
	view    *drainIndex
	leaving map[string]bool // nodes that are drained
	queues  map[*drainBudget][]*drainPod
	blocked map[*drainBudget]PodDrain // what a budget that allows nothing says
}

func newDrainPlanner(v DrainView) drainPlanner {
	if v.index == nil {
		v = NewDrainView(DrainObjects{})
	}
	return drainPlanner{view: v.index, leaving: map[string]bool{}, queues: map[*drainBudget][]*drainPod{}, blocked: map[*drainBudget]PodDrain{}}
}

// drainPod is a pod under judgement.
type drainPod struct {
	PodDrain
	pod  *corev1.Pod
	wave int
}

// judge applies, to each pod of a node, the filters of the drain and the answer of
// the API server. Pods that take a disruption from a budget are queued for it.
func (d *drainPlanner) judge(node string) []*drainPod {
	pods := d.view.byNode[node]
	all, out := make([]drainPod, len(pods)), make([]*drainPod, len(pods))
	unknown := ""
	for i, p := range pods {
		out[i] = &all[i]
		out[i].pod, out[i].Pod = p, types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
		if d.filter(out[i]); out[i].Kind == DrainDaemonSetUnknown && unknown == "" {
			unknown = out[i].Pod.String()
		}
	}
	for _, p := range out {
		if p.Verdict != "" {
			continue
		}
		b := d.ask(p)
		if p.Verdict == DrainBlocked {
			continue
		}
		if unknown != "" {
			p.block(DrainDaemonSetUnknown, "nothing is evicted before it is known whether the DaemonSet of pod "+unknown+" exists", fixDaemonSet)
			continue
		}
		d.note(p)
		if b != nil {
			d.queues[b] = append(d.queues[b], p)
		}
	}
	return out
}

// What to do about what blocks a pod.
const (
	fixDaemonSet  = "make DaemonSets readable for what drains"
	fixTwo        = "merge the budgets into one, or narrow their selectors so that one selects the pod"
	fixStale      = "see to it that the disruption controller of kube-controller-manager runs and can work out the status of the budget"
	fixFinalizers = "find out why its finalizers are not removed"
	fixKubelet    = "find out why its kubelet does not end it"
)

// filter decides which pods the drain leaves alone or cannot judge; what it does
// not decide goes.
func (d *drainPlanner) filter(p *drainPod) {
	if d.view.topology == TopologySingleReplica {
		p.Verdict, p.Text = DrainStays, "Drain not required, skipping"
		return
	}
	stays, err := disruption.Stays(p.pod, d.view.hasDaemonSet)
	_, mirror := p.pod.Annotations[corev1.MirrorPodAnnotationKey]
	switch {
	case err != nil:
		p.block(DrainDaemonSetUnknown, fmt.Sprintf("it is not known whether DaemonSet %s/%s exists: %v", p.pod.Namespace, metav1.GetControllerOfNoCopy(p.pod).Name, err), fixDaemonSet)
	case stays && mirror && !ofDaemonSet(p.pod):
		p.Verdict, p.Text = DrainStays, "a static pod of the node"
	case stays:
		p.Verdict, p.Text = DrainStays, "ignoring DaemonSet-managed Pods"
	}
}

func ofDaemonSet(p *corev1.Pod) bool {
	c := metav1.GetControllerOfNoCopy(p)
	return c != nil && c.Kind == "DaemonSet"
}

// ask predicts what the API server answers to the eviction. It returns the budget
// that the pod takes a disruption from.
func (d *drainPlanner) ask(p *drainPod) *drainBudget {
	p.Verdict = DrainEvicts
	if at := p.pod.DeletionTimestamp; at != nil {
		p.Text = "it is terminating already"
		if d.view.now.Sub(at.Time) > drainAttempt {
			d.blockTerminating(p)
		}
		return nil
	}
	if disruption.Free(p.pod) {
		p.Text = "it is " + string(p.pod.Status.Phase)
		return nil
	}
	found := d.view.budgetsOf(p.pod)
	for _, b := range found {
		p.Budgets = append(p.Budgets, b.Name)
	}
	switch len(found) {
	case 0:
		p.Text = "no disruption budget selects it"
		return nil
	case 1:
		spends, err := disruption.Answer(p.pod, []*policyv1.PodDisruptionBudget{found[0].PodDisruptionBudget})
		switch {
		case err != nil:
			d.blockByBudget(p, found[0], err)
		case spends == nil:
			p.Text = "it is not Ready, and budget " + found[0].Name + " lets such pods go"
		default:
			p.Text = "budget " + found[0].Name + " allows it"
			return found[0]
		}
		return nil
	}
	_, err := disruption.Answer(p.pod, []*policyv1.PodDisruptionBudget{found[0].PodDisruptionBudget, found[1].PodDisruptionBudget})
	p.block(DrainTwoBudgets, fmt.Sprintf("budgets %s select it: %v", strings.Join(p.Budgets, ", "), err), fixTwo)
	return nil
}

// drainAttempt is how long one attempt to drain a node lasts.
const drainAttempt = 90 * time.Second

func (d *drainPlanner) blockTerminating(p *drainPod) {
	text := fmt.Sprintf("it should have ended at %s", p.pod.DeletionTimestamp.UTC().Format(time.RFC3339))
	fix := fixKubelet
	if len(p.pod.Finalizers) > 0 {
		text += ", and has the finalizers " + strings.Join(slices.Sorted(slices.Values(p.pod.Finalizers)), ", ")
		fix = fixFinalizers
	}
	p.block(DrainTerminating, text, fix)
}

func (p *drainPod) block(kind DrainKind, text, fix string) {
	p.Verdict, p.Kind, p.Text, p.Fix = DrainBlocked, kind, text, fix
}

// blockByBudget explains why a budget refuses; it says so once for all of its pods.
func (d *drainPlanner) blockByBudget(p *drainPod, b *drainBudget, refusal error) {
	said, ok := d.blocked[b]
	if !ok {
		said = d.explain(b, refusal)
		d.blocked[b] = said
	}
	p.block(said.Kind, said.Text, said.Fix)
	p.Unhealthy = slices.Clone(said.Unhealthy)
}

func (d *drainPlanner) explain(b *drainBudget, refusal error) (said PodDrain) {
	_, said.Text = disruption.Refusal(refusal)
	failed := meta.FindStatusCondition(b.Status.Conditions, policyv1.DisruptionAllowedCondition)
	switch {
	case disruption.Stale(b.PodDisruptionBudget):
		said.Kind, said.Fix = DrainStale, fixStale
		return said
	case failed != nil && failed.Reason == policyv1.SyncFailedReason:
		said.Kind, said.Fix = DrainStale, fixStale
		said.Text += ", and its status could not be worked out: " + failed.Message
		return said
	}
	pods := d.view.selected(b)
	expected, desired, healthy := d.view.numbers(b, pods)
	numbers := fmt.Sprintf("%d pods expected, %d must be healthy, %d are", expected, desired, healthy)
	if expected-desired <= 0 {
		said.Kind = DrainNeverAllows
		said.Fix = fmt.Sprintf("raise the replicas of its workload, or relax budget %s: %s", b.Name, numbers)
		return said
	}
	said.Kind = DrainUnhealthy
	for _, p := range pods {
		if !disruption.Ready(p) || p.DeletionTimestamp != nil {
			said.Unhealthy = append(said.Unhealthy, types.NamespacedName{Namespace: p.Namespace, Name: p.Name})
		}
	}
	said.Fix = fmt.Sprintf("repair the unhealthy pods of budget %s, or set its unhealthyPodEvictionPolicy: AlwaysAllow: %s", b.Name, numbers)
	return said
}

// share gives the pods of each budget their places: as many go together as it
// allows, the next ones once these are replaced.
func (d *drainPlanner) share() {
	for b, queue := range d.queues {
		slices.SortFunc(queue, func(x, y *drainPod) int { return strings.Compare(x.Pod.Name, y.Pod.Name) })
		together := max(disruption.AtOnce(b.PodDisruptionBudget), 1)
		for i, p := range queue {
			p.wave = i / together
			if p.wave > 0 {
				p.Verdict, p.Before = DrainEvictsAfter, i
				p.Text = fmt.Sprintf("budget %s allows %d at a time, and %d go before it", b.Name, together, i)
			}
		}
	}
}

// place looks for places for what replaces the pods that leave, all of them together.
// Those that take some nodes only choose first, then the largest.
func (d *drainPlanner) place(pods []*drainPod) {
	if d.view.places == nil {
		return
	}
	type candidate struct {
		*wants
		of *drainPod
	}
	var candidates []candidate
	for _, p := range pods {
		goes := p.Verdict == DrainEvicts || p.Verdict == DrainEvictsAfter
		ended := p.pod.DeletionTimestamp != nil || p.pod.Status.Phase == corev1.PodSucceeded || p.pod.Status.Phase == corev1.PodFailed
		if goes && !ended && metav1.GetControllerOfNoCopy(p.pod) != nil {
			candidates = append(candidates, candidate{newWants(p.pod), p})
		}
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		if a.choosy() != b.choosy() {
			if a.choosy() {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(b.ask(corev1.ResourceCPU), a.ask(corev1.ResourceCPU)), cmp.Compare(b.ask(corev1.ResourceMemory), a.ask(corev1.ResourceMemory)),
			strings.Compare(a.pod.Namespace, b.pod.Namespace), strings.Compare(a.pod.Name, b.pod.Name))
	})
	placing := newPlacing(d.view.places, d.leaving)
	for _, c := range candidates {
		if !placing.put(c.wants) {
			c.of.Notes = slices.Insert(c.of.Notes, 0, DrainNote{Kind: DrainNowhereToGo,
				Text: "what replaces it fits no other schedulable Linux node beside what leaves with it, by node selector, node affinity, taints and requests",
				Fix:  "add capacity, or lower maxUnavailable of the pool"})
		}
	}
}

// note adds what else is to be known about a pod that goes.
func (d *drainPlanner) note(p *drainPod) {
	if p.pod.Status.Phase == corev1.PodSucceeded || p.pod.Status.Phase == corev1.PodFailed {
		return
	}
	if left := d.ends(p.pod); left > drainAttempt {
		expected, failed := slowDrain(left)
		p.Notes = append(p.Notes, DrainNote{Kind: DrainSlow, Expected: expected,
			Text: fmt.Sprintf("it may take %s to end, and an attempt to drain lasts %s: %d fail before one succeeds, after %s at the latest", left, drainAttempt, failed, expected),
			Fix:  "wait, or lower its terminationGracePeriodSeconds"})
	}
	if at := slices.IndexFunc(p.pod.Spec.Volumes, func(v corev1.Volume) bool { return v.EmptyDir != nil }); at >= 0 {
		p.Notes = append(p.Notes, DrainNote{Kind: DrainDataLoss,
			Text: "deleting Pods with local storage: what is in volume " + p.pod.Spec.Volumes[at].Name + " is lost",
			Fix:  "keep what must last in a persistent volume"})
	}
	if metav1.GetControllerOfNoCopy(p.pod) == nil {
		p.Notes = append(p.Notes, DrainNote{Kind: DrainNotRecreated,
			Text: "deleting Pods that declare no controller: nobody creates it again",
			Fix:  "create it again afterwards, or let a controller do it"})
	}
}

// ends is how long a pod may take to end.
func (d *drainPlanner) ends(p *corev1.Pod) time.Duration {
	if at := p.DeletionTimestamp; at != nil {
		if d.view.now.IsZero() {
			return 0 // unknown
		}
		return min(at.Sub(d.view.now), maxGrace)
	}
	seconds := p.Spec.TerminationGracePeriodSeconds
	if seconds == nil {
		return corev1.DefaultTerminationGracePeriodSeconds * time.Second
	}
	return time.Duration(min(max(*seconds, 0), int64(maxGrace/time.Second))) * time.Second
}

// maxGrace is a bound below which durations can be added.
const maxGrace = 100 * 365 * 24 * time.Hour

// slowDrain says when a drain ends that waits for one pod to end, and how many
// attempts fail before. Nine attempts follow one another at once, from the beginning
// to 13:30 minutes; the next starts at 17:00, since its delay of 5 minutes began
// before the ninth, and each later one 5 minutes after the one before has ended.
func slowDrain(grace time.Duration) (expected time.Duration, failed int) {
	const inRow = 9
	attempt, pause := drainAttempt, 5*time.Minute
	if n := int((grace - 1) / attempt); n < inRow {
		return grace, n
	}
	start := (inRow-1)*attempt + pause
	n := 0
	if over := grace - start - attempt; over > 0 {
		n = int((over + attempt + pause - 1) / (attempt + pause))
	}
	start += time.Duration(n) * (attempt + pause)
	return max(start, grace), inRow + n
}

// drain puts together what is predicted for one node.
func (d *drainPlanner) drain(node string, pods []*drainPod) Drain {
	out := Drain{Node: node, NotRequired: d.view.topology == TopologySingleReplica}
	if len(pods) > 0 {
		out.Pods = make([]PodDrain, len(pods))
	}
	for i, p := range pods {
		out.Pods[i] = p.PodDrain
		if p.Verdict != DrainEvicts && p.Verdict != DrainEvictsAfter {
			continue
		}
		for len(out.Waves) <= p.wave {
			out.Waves = append(out.Waves, nil)
		}
		out.Waves[p.wave] = append(out.Waves[p.wave], p.Pod)
	}
	return out
}
