package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/internal/disruption"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
	"github.com/clusterupdate/clusterupdate/internal/text"
)

// Chain is what an update waits on, from the whole to the part: runlevel,
// component, object, and what the last object's condition says. It is plain data.
type Chain []Link

// Link is one step of a [Chain]. It is plain data.
type Link struct {
	// Runlevel and Component place the cause in the release. They are empty in
	// links of objects.
	Runlevel  string `json:"runlevel,omitempty"`
	Component string `json:"component,omitempty"`
	// Object is what the update waits on.
	Object *Resource `json:"object,omitempty"`
	// State is what the object says of itself: a condition as Degraded=True, or
	// the phase of a node. Reason, Message and Since belong to it. Since is nil
	// if it is unknown.
	State   string     `json:"state,omitempty"`
	Reason  string     `json:"reason,omitempty"`
	Message string     `json:"message,omitempty"`
	Since   *time.Time `json:"since,omitempty"`
}

// findWaits returns what an update waits on: a request that was not accepted, then
// the operators and workloads of the first runlevel that is not done, else nodes,
// else what the ClusterVersion says itself.
func findWaits(o *Objects, ops operators, s *Status) []Chain {
	waits := waitsForRequest(o.ClusterVersion)
	if len(waits) > 0 || !s.Updating {
		return append([]Chain{}, waits...)
	}
	progressing := openshift.FindCondition(o.ClusterVersion.Status.Conditions, configv1.OperatorProgressing)
	if progressing.Status == configv1.ConditionTrue {
		waits = waitsForComponents(o, ops, s)
		if len(waits) == 0 && len(o.Components) == 0 {
			waits = waitsForOperators(o, ops, s)
		}
	} else {
		for i := range s.Pools {
			if p := &s.Pools[i]; p.Name != masterPool {
				waits = append(waits, waitsForPool(o, p)...)
			}
		}
	}
	if len(waits) == 0 {
		waits = waitsForVersion(o.ClusterVersion)
	}
	return append([]Chain{}, waits...)
}

// waitsForRequest is why a requested update has not started.
func waitsForRequest(cv *configv1.ClusterVersion) []Chain {
	want, accepted := cv.Spec.DesiredUpdate, openshift.FindCondition(cv.Status.Conditions, "ReleaseAccepted")
	if want == nil || want.Mode != "" || accepted == nil || accepted.Status == configv1.ConditionTrue {
		return nil
	}
	desired := cv.Status.Desired
	if (want.Image == "" || want.Image == desired.Image) && (want.Version == "" || want.Version == desired.Version) && (want.Architecture == "" || want.Architecture == desired.Architecture) {
		return nil
	}
	return []Chain{{conditionLink(versionResource(cv), accepted)}}
}

// waitsForVersion is what the ClusterVersion says, where no part of it explains
// that.
func waitsForVersion(cv *configv1.ClusterVersion) []Chain {
	for _, t := range []configv1.ClusterStatusConditionType{"Failing", configv1.OperatorProgressing} {
		if c := openshift.FindCondition(cv.Status.Conditions, t); c != nil && c.Status != configv1.ConditionFalse {
			return []Chain{{conditionLink(versionResource(cv), c)}}
		}
	}
	return nil
}

// waitsForComponents are the causes in the first runlevel that has any.
func waitsForComponents(o *Objects, ops operators, s *Status) []Chain {
	components := slices.Clone(o.Components)
	slices.SortStableFunc(components, func(a, b Component) int {
		return cmp.Or(cmp.Compare(a.Runlevel, b.Runlevel), cmp.Compare(a.Name, b.Name))
	})
	operators := byName(ops.platform)
	deployments, daemons := workloads(o.Deployments), workloads(o.DaemonSets)
	var waits []Chain
	for i, c := range components {
		if len(waits) > 0 && c.Runlevel != components[i-1].Runlevel {
			break
		}
		head := Chain{{Runlevel: c.Runlevel}, {Component: c.Name}}
		for _, object := range c.Objects {
			var tails []Chain
			switch object.Kind {
			case kindOperator:
				if co := operators[object.Name]; co == nil {
					if object.Group == configv1.GroupName && o.missing(kindOperator) == "" {
						tails = []Chain{{{Object: &object, State: "missing"}}}
					}
				} else if ops.blocks(co) {
					tails = waitsForOperator(o, ops, s, co)
				}
			case kindDeploy:
				if d := deployments[object.path()]; d != nil {
					tails = waitsForDeployment(object, d)
				}
			case kindDaemon:
				if d := daemons[object.path()]; d != nil {
					tails = waitsForDaemonSet(object, d)
				}
			}
			for _, tail := range tails {
				waits = append(waits, append(slices.Clone(head), tail...))
			}
		}
	}
	return waits
}

// waitsForOperators are the causes if it is not known which operators the update
// has reached: those that the version operator names and those that are being
// updated, else those that are not well, else those that are left.
func waitsForOperators(o *Objects, ops operators, s *Status) []Chain {
	names := named(o.ClusterVersion)
	left := func(co *configv1.ClusterOperator) bool { return !ops.updated[co.Name] }
	for _, is := range []func(*configv1.ClusterOperator) bool{
		func(co *configv1.ClusterOperator) bool {
			return ops.blocks(co) && names[co.Name] || left(co) && hasCondition(co, configv1.OperatorProgressing, configv1.ConditionTrue)
		},
		func(co *configv1.ClusterOperator) bool { return ops.blocks(co) && !left(co) },
		left,
	} {
		var waits []Chain
		for _, co := range ops.platform {
			if is(co) {
				waits = append(waits, waitsForOperator(o, ops, s, co)...)
			}
		}
		if len(waits) > 0 {
			return waits
		}
	}
	return nil
}

// named are the words of the version operator's messages about what it waits on or
// fails for, among them the names of operators.
func named(cv *configv1.ClusterVersion) map[string]bool {
	names := map[string]bool{}
	for _, t := range []configv1.ClusterStatusConditionType{configv1.OperatorProgressing, "Failing"} {
		c := openshift.FindCondition(cv.Status.Conditions, t)
		if c == nil || c.Status == configv1.ConditionFalse {
			continue
		}
		for _, word := range strings.FieldsFunc(c.Message, func(r rune) bool { return r != '-' && (r < 'a' || r > 'z') && (r < '0' || r > '9') }) {
			names[word] = true
		}
	}
	return names
}

// blocks reports that an update does not continue beyond an operator: it has
// another version, or is not well.
func (ops *operators) blocks(co *configv1.ClusterOperator) bool {
	return !ops.updated[co.Name] || !hasCondition(co, configv1.OperatorAvailable, configv1.ConditionTrue) ||
		hasCondition(co, configv1.OperatorDegraded, configv1.ConditionTrue)
}

func hasCondition(co *configv1.ClusterOperator, t configv1.ClusterStatusConditionType, status configv1.ConditionStatus) bool {
	c := openshift.FindCondition(co.Status.Conditions, t)
	return c != nil && c.Status == status
}

// waitsForOperator is what is wrong with an operator, or what it does. For the
// machine-config operator it continues to the pools that it waits for.
func waitsForOperator(o *Objects, ops operators, s *Status, co *configv1.ClusterOperator) []Chain {
	link := operatorLink(o, ops, co)
	if co.Name != machineConfigOperator {
		return []Chain{{link}}
	}
	var waits []Chain
	for i := range s.Pools {
		if p := &s.Pools[i]; isRequired(o, p.Name) {
			for _, tail := range waitsForPool(o, p) {
				waits = append(waits, append(Chain{link}, tail...))
			}
		}
	}
	if len(waits) == 0 {
		return []Chain{{link}}
	}
	return waits
}

// operatorLink is the condition of an operator that explains most.
func operatorLink(o *Objects, ops operators, co *configv1.ClusterOperator) Link {
	object := operatorResource(co.Name)
	available := openshift.FindCondition(co.Status.Conditions, configv1.OperatorAvailable)
	switch {
	case available != nil && available.Status != configv1.ConditionTrue:
		return conditionLink(object, available)
	case hasCondition(co, configv1.OperatorDegraded, configv1.ConditionTrue):
		return conditionLink(object, openshift.FindCondition(co.Status.Conditions, configv1.OperatorDegraded))
	case !ops.updated[co.Name] && hasCondition(co, configv1.OperatorProgressing, configv1.ConditionTrue):
		return conditionLink(object, openshift.FindCondition(co.Status.Conditions, configv1.OperatorProgressing))
	case available == nil:
		return Link{Object: &object, State: "Available is unknown"}
	}
	for _, v := range co.Status.Versions {
		if v.Name == "operator" {
			wanted := o.ClusterVersion.Status.Desired.Version
			if v.Version == wanted && needsDeployment(o, ops) && o.missing(kindDeploy) != "" {
				return Link{Object: &object, State: "whether its image is that of version " + wanted + " is unknown"}
			}
			if v.Version == wanted {
				return Link{Object: &object, State: "its image is not yet that of version " + wanted}
			}
			return Link{Object: &object, State: fmt.Sprintf("version %s, not %s", v.Version, wanted)}
		}
	}
	return Link{Object: &object, State: "no version reported"}
}

func conditionLink(object Resource, c *configv1.ClusterOperatorStatusCondition) Link {
	return Link{Object: &object, State: fmt.Sprintf("%s=%s", c.Type, c.Status), Reason: c.Reason, Message: c.Message, Since: known(c.LastTransitionTime.Time)}
}

// isRequired reports that the control plane waits for a pool.
func isRequired(o *Objects, name string) bool {
	if name == masterPool {
		return true
	}
	pool := poolNamed(o, name)
	if pool == nil {
		return false
	}
	_, required := pool.Labels["operator.machineconfiguration.openshift.io/required-for-upgrade"]
	return required
}

func poolNamed(o *Objects, name string) *mcfgv1.MachineConfigPool {
	for _, p := range o.MachineConfigPools {
		if p != nil && p.Name == name {
			return p
		}
	}
	return nil
}

// waitsForPool is why a pool is not complete: it is paused, it is degraded
// itself, or its first node is not done.
func waitsForPool(o *Objects, p *Pool) []Chain {
	object := poolResource(p.Name)
	link := Link{Object: &object, State: fmt.Sprintf("%d of %d nodes updated", p.Updated, p.Total)}
	if slices.ContainsFunc(p.Nodes, func(n Node) bool { return n.isUnknown(o) }) {
		link.State = "how many of its nodes are updated is unknown"
	}
	switch pool := poolNamed(o, p.Name); {
	case p.complete():
		return nil
	case p.Paused:
		link.State += ", paused"
		return []Chain{{link}}
	case pool != nil:
		for _, c := range pool.Status.Conditions {
			if c.Type == mcfgv1.MachineConfigPoolRenderDegraded && c.Status == corev1.ConditionTrue {
				return []Chain{{{Object: &object, State: "RenderDegraded=True", Reason: c.Reason, Message: c.Message, Since: known(c.LastTransitionTime.Time)}}}
			}
		}
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Phase == phaseUpdated {
			continue
		}
		if n.Assessment == assessmentOutdated && n.isUnknown(o) {
			continue
		}
		object := nodeResource(n.Name)
		state := n.Phase
		switch {
		case n.isUnknown(o):
			state = n.Assessment
		case n.Assessment == assessmentDegraded || n.Assessment == assessmentUnavailable:
			state += ", " + n.Assessment
		}
		chain := Chain{link, {Object: &object, State: state, Message: n.Message, Since: n.Since}}
		if n.Phase != phaseDraining {
			return []Chain{chain}
		}
		return extended(chain, waitsForDrain(o, n.Name))
	}
	return []Chain{{link}}
}

// extended returns a chain with each of the tails; without any the chain alone.
func extended(chain Chain, tails []Chain) []Chain {
	if len(tails) == 0 {
		return []Chain{chain}
	}
	var all []Chain
	for _, tail := range tails {
		all = append(all, slices.Concat(chain, tail))
	}
	return all
}

// waitsForDrain are the pods of a node that no budget lets go, each with its budget, by
// namespace and name.
func waitsForDrain(o *Objects, node string) []Chain {
	var waits []Chain
	for _, p := range o.Pods {
		if p == nil || p.Spec.NodeName != node {
			continue
		}
		stays, err := disruption.Stays(p, func(types.NamespacedName) (bool, error) { return true, nil })
		if stays || err != nil {
			continue
		}
		var budgets []*policyv1.PodDisruptionBudget
		for _, b := range o.PodDisruptionBudgets {
			if b != nil && b.Namespace == p.Namespace {
				budgets = append(budgets, b)
			}
		}
		_, refused := disruption.Decide(p, budgets)
		if refused == nil {
			continue
		}
		pod := Resource{Kind: kindPod, Namespace: p.Namespace, Name: p.Name}
		name, message := disruption.Refusal(refused)
		chain := Chain{{Object: &pod, State: "not evicted"}}
		if name == "" {
			chain[0].Message = message
		} else {
			budget := Resource{Group: policyv1.GroupName, Kind: kindBudget, Namespace: p.Namespace, Name: name}
			chain = append(chain, Link{Object: &budget, State: "refuses", Message: message})
		}
		waits = append(waits, chain)
	}
	slices.SortStableFunc(waits, func(a, b Chain) int { return cmp.Compare(a[0].Object.path(), b[0].Object.path()) })
	return waits
}

// waitsForDeployment is what keeps a deployment from being rolled out.
func waitsForDeployment(object Resource, d *appsv1.Deployment) []Chain {
	wanted := int32(1)
	if d.Spec.Replicas != nil {
		wanted = *d.Spec.Replicas
	}
	st := d.Status
	if st.ObservedGeneration >= d.Generation && st.UpdatedReplicas >= wanted && st.UnavailableReplicas == 0 && st.AvailableReplicas >= wanted {
		return nil
	}
	link := Link{Object: &object, State: fmt.Sprintf("%d of %d replicas updated, %d available", st.UpdatedReplicas, wanted, st.AvailableReplicas)}
	for _, t := range []appsv1.DeploymentConditionType{appsv1.DeploymentReplicaFailure, appsv1.DeploymentAvailable, appsv1.DeploymentProgressing} {
		for _, c := range st.Conditions {
			bad := corev1.ConditionFalse
			if t == appsv1.DeploymentReplicaFailure {
				bad = corev1.ConditionTrue
			}
			if c.Type == t && c.Status == bad {
				link.State += fmt.Sprintf(", %s=%s", c.Type, c.Status)
				link.Reason, link.Message, link.Since = c.Reason, c.Message, known(c.LastTransitionTime.Time)
				return []Chain{{link}}
			}
		}
	}
	return []Chain{{link}}
}

// waitsForDaemonSet is what keeps a daemon set from being rolled out.
func waitsForDaemonSet(object Resource, d *appsv1.DaemonSet) []Chain {
	st := d.Status
	if st.ObservedGeneration >= d.Generation && st.UpdatedNumberScheduled >= st.DesiredNumberScheduled && st.NumberUnavailable == 0 {
		return nil
	}
	return []Chain{{{Object: &object, State: fmt.Sprintf("%d of %d pods updated, %d unavailable", st.UpdatedNumberScheduled, st.DesiredNumberScheduled, st.NumberUnavailable)}}}
}

// byName finds operators by their names.
func byName(all []*configv1.ClusterOperator) map[string]*configv1.ClusterOperator {
	m := make(map[string]*configv1.ClusterOperator, len(all))
	for _, co := range all {
		m[co.Name] = co
	}
	return m
}

// workloads finds workloads by namespace and name.
func workloads[T any, P interface {
	*T
	GetNamespace() string
	GetName() string
}](all []P) map[string]P {
	m := make(map[string]P, len(all))
	for _, w := range all {
		if w != nil {
			m[w.GetNamespace()+"/"+w.GetName()] = w
		}
	}
	return m
}

// String is the chain in one line, without messages and times. It can be called
// concurrently.
func (c Chain) String() string {
	texts := make([]string, len(c))
	for i := range c {
		texts[i] = c[i].String()
	}
	return strings.Join(texts, " > ")
}

// writeWaits writes the chains, the cause that has lasted longest first, links that
// several start with once, and a cause that several have once. Lines are cut to a width.
func writeWaits(out *text.Writer, s *Status, width int) {
	if len(s.Waits) == 0 {
		return
	}
	if s.Updating {
		out.Print("\nThe update waits on:\n")
	} else {
		out.Print("\nThe requested update waits on:\n")
	}
	line := func(pad, text string) { out.Print(cut(pad+text, width), "\n") }
	var above []string
	for _, c := range causes(s.Waits) {
		texts := make([]string, len(c.chain))
		for i := range c.chain {
			texts[i] = c.chain[i].text(s.Now)
		}
		same := 0
		for same < len(texts) && same < len(above) && texts[same] == above[same] {
			same++
		}
		for i := same; i < len(texts); i++ {
			pad := strings.Repeat("  ", i+1)
			line(pad, texts[i])
			if m := c.chain[i].Message; m != "" {
				for _, l := range strings.Split(m, "\n") {
					line(pad+"  ", l)
				}
			}
		}
		if len(c.also) > 0 {
			line(strings.Repeat("  ", len(texts)+1), "and so "+strings.Join(c.also, ", "))
		}
		above = texts
	}
}

// cause is a chain, with the other objects that wait for the same.
type cause struct {
	chain Chain
	also  []string
}

// causes puts chains in the order of their times, and those that say the same of
// another object together.
func causes(waits []Chain) []*cause {
	waits = slices.Clone(waits)
	slices.SortStableFunc(waits, func(a, b Chain) int { return compareSince(a.since(), b.since()) })
	var all []*cause
	for _, chain := range waits {
		i := slices.IndexFunc(all, func(c *cause) bool { return c.chain.says(chain) })
		if i < 0 {
			all = append(all, &cause{chain: chain})
			continue
		}
		all[i].also = append(all[i].also, chain[len(chain)-1].Object.String())
	}
	return all
}

// since is since when the last link that has a time is so; nil: none has.
func (c Chain) since() *time.Time {
	for i := len(c) - 1; i >= 0; i-- {
		if c[i].Since != nil {
			return c[i].Since
		}
	}
	return nil
}

// compareSince orders times, the unknown last.
func compareSince(a, b *time.Time) int {
	switch {
	case a != nil && b != nil:
		return a.Compare(*b)
	case a != nil:
		return -1
	case b != nil:
		return 1
	}
	return 0
}

// says reports whether two chains end with the same cause of two objects, and nothing
// but a runlevel and a component precedes these.
func (c Chain) says(other Chain) bool {
	a, b := c[len(c)-1], other[len(other)-1]
	if a.Object == nil || b.Object == nil || *a.Object == *b.Object || a.Message == "" && a.Reason == "" {
		return false
	}
	return c.objects() == 1 && other.objects() == 1 &&
		a.State == b.State && a.Reason == b.Reason && a.Message == b.Message
}

// objects counts the links of objects.
func (c Chain) objects() int {
	n := 0
	for i := range c {
		if c[i].Object != nil {
			n++
		}
	}
	return n
}

// cut shortens a line to a width in characters, with an ellipsis; 0: any width.
func cut(line string, width int) string {
	runes := []rune(line)
	if width <= 0 || len(runes) <= width {
		return line
	}
	return string(runes[:width-1]) + "…"
}

// String returns what the link is about, and its state and reason.
func (l Link) String() string {
	text := ""
	switch {
	case l.Runlevel != "":
		text = "runlevel " + l.Runlevel
	case l.Component != "":
		text = "component " + l.Component
	case l.Object != nil:
		text = l.Object.String() + ": " + l.State
	}
	if l.Reason != "" {
		text += " (" + l.Reason + ")"
	}
	return text
}

// text is a link with how long it has been so.
func (l Link) text(now time.Time) string {
	if l.Since == nil {
		return l.String()
	}
	if d := text.Short(max(now.Sub(*l.Since), 0)); d != "now" {
		return l.String() + ", for " + d
	}
	return l.String() + ", just now"
}
