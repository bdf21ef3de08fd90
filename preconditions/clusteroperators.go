package preconditions

import (
	"context"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

func clusterOperatorsCheck() Check {
	return documented{Rule{
		Name: "ClusterOperators", Severities: []Severity{Warning, Blocking},
		Source: "Understanding cluster Operator condition types", Link: docsUnderstanding,
		Reads: []schema.GroupVersionKind{gvkOf[configv1.ClusterOperator]()},
	}, clusterOperators}
}

// clusterOperators: every operator is healthy, judged as the update itself will
// judge it: a condition that is missing or Unknown counts as bad.
func clusterOperators(ctx context.Context, in *Input) ([]Finding, error) {
	operators, err := list[configv1.ClusterOperator](ctx, in, clusterapi.ListOptions{})
	var down, degraded, held []Object
	for _, co := range operators {
		available := condition(co.Status.Conditions, configv1.OperatorAvailable)
		if !isTrue(available) {
			down = append(down, operatorObject(co.Name, configv1.OperatorAvailable, available))
		}
		d := condition(co.Status.Conditions, configv1.OperatorDegraded)
		if d == nil || d.Status != configv1.ConditionFalse {
			degraded = append(degraded, operatorObject(co.Name, configv1.OperatorDegraded, d))
		}
		u := condition(co.Status.Conditions, configv1.OperatorUpgradeable)
		if u != nil && u.Status == configv1.ConditionFalse {
			held = append(held, operatorObject(co.Name, configv1.OperatorUpgradeable, u))
		}
	}
	severity := blockMinor(in.Transition)
	if in.Kind == Multi {
		severity = Blocking
	}
	const remedy = "Look at the conditions with: oc describe clusteroperator NAME"
	var findings []Finding
	add := func(s Severity, reason, meaning string, objects []Object) {
		if len(objects) > 0 {
			sortObjects(objects)
			findings = append(findings, newFinding(s, reason, meaning, objects, remedy))
		}
	}
	add(severity, "ClusterOperatorNotAvailable", "Cluster operators are not available", down)
	add(severity, "ClusterOperatorDegraded", "Cluster operators are degraded", degraded)
	if in.LeavesMinor() {
		add(Blocking, "ClusterOperatorNotUpgradeable", "Cluster operators must not be updated to another minor version", held)
	}
	return findings, optionalAPI(err, "ClusterOperators")
}

func operatorObject(name string, t configv1.ClusterStatusConditionType, c *configv1.ClusterOperatorStatusCondition) Object {
	o := Object{GVK: configv1.GroupVersion.WithKind("ClusterOperator"), Name: name, FieldPath: "status.conditions", Note: fmt.Sprintf("no condition %s", t)}
	if c != nil {
		o.Value = string(c.Status)
		o.Note = fmt.Sprintf("%s=%s", t, c.Status)
		if c.Reason != "" {
			o.Note += " " + c.Reason
		}
		if c.Message != "" {
			o.Note += ": " + c.Message
		}
	}
	return o
}

func adminAcksCheck() Check {
	return documented{Rule{
		Name: "AdminAcks", Scope: minorStep(), Severities: []Severity{Blocking},
		Source: "Preparing to update a cluster, Providing the administrator acknowledgment", Link: docsPreparing,
		Reads: []schema.GroupVersionKind{gvkOf[corev1.ConfigMap](), gvkOf[configv1.ClusterVersion]()},
	}, adminAcks}
}

// adminAcks: gates of the current minor version are acknowledged.
func adminAcks(ctx context.Context, in *Input) ([]Finding, error) {
	current := in.Current
	if current == nil {
		cv, err := theClusterVersion(ctx, in)
		if err != nil {
			return nil, err
		}
		if current, err = parseVersion(cv.Status.Desired.Version); err != nil {
			return nil, fmt.Errorf("current version %q: %w", cv.Status.Desired.Version, err)
		}
	}
	gates, acks, err := readGates(ctx, in.Reader)
	if meta.IsNoMatchError(err) {
		return nil, &NotApplicableError{Why: "the cluster has no ConfigMaps"}
	}
	if err != nil {
		return nil, err
	}
	var findings []Finding
	for _, g := range OpenGates(gates, acks, fmt.Sprintf("%d.%d", current.Major(), current.Minor())) {
		text, remedy := g.Text, "Then acknowledge with: "+g.Acknowledge()
		if g.Problem != "" {
			text, remedy = g.Problem, "Correct or remove the entry; it cannot be acknowledged"
		}
		f := newFinding(Blocking, "AdminAckRequired", fmt.Sprintf("Gate %s is open: %s", g.Key, text), nil, remedy)
		f.Objects = []Object{{GVK: configMapKind, Namespace: gatesNamespace, Name: gatesName, FieldPath: "data." + g.Key, Value: g.Text, Note: g.URL}}
		findings = append(findings, f)
	}
	return findings, nil
}
