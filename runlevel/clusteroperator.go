package runlevel

import (
	"context"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// clusterOperator does what a ClusterOperator's manifest asks for: it stands for an
// operator that reports by itself, so the manifest mainly reports what to wait for.
// Spec and status are never written, but for the related objects of a new one.
func (a *applier) clusterOperator(ctx context.Context, t *manifest.Task, state State) error {
	m := t.Manifest
	name := m.Identity().Name
	var stored *clusterapi.Object
	switch state {
	case Precreating:
		if a.exists(t) {
			return nil
		}
		return a.precreate(ctx, t)
	case Reconciling:
		var err error
		stored, err = a.applyOnce(ctx, t, true) // labels, annotations and owners
		if err != nil {
			return err
		}
	}
	if a.skipChecks {
		return nil
	}
	wanted, err := wantedOperator(m)
	if err != nil {
		return fmt.Errorf("%s: %w", m, err)
	}
	if len(wanted.Status.Versions) == 0 {
		return operatorError(EffectFail, ReasonOperatorNoVersions, name, &Wait{Operator: name}, nil)
	}
	if stored == nil {
		stored, err = clusterapi.GetShared(ctx, a.api, clusterOperatorKind, clusterapi.KeyOf(m.Object()))
		if err != nil {
			return err
		}
	}
	actual, err := clusterapi.As[configv1.ClusterOperator](stored)
	if err != nil {
		return err
	}
	return checkOperator(actual, wanted.Status.Versions, state)
}

// precreate creates a ClusterOperator that does not exist, with the related
// objects of the manifest, so that must-gather finds them when the operator
// never starts.
func (a *applier) precreate(ctx context.Context, t *manifest.Task) error {
	m := t.Manifest
	_, err := clusterapi.GetShared(ctx, a.api, clusterOperatorKind, clusterapi.KeyOf(m.Object()))
	if !apierrors.IsNotFound(err) {
		return err
	}
	a.reportGone(t, a.drifted(t))
	obj := bare(m.Object())
	if obj.Object["spec"] == nil {
		obj.Object["spec"] = map[string]any{} // which the definition requires
	}
	created, err := a.api.Create(ctx, a.owned(obj), clusterapi.CreateOptions{FieldManager: clusterapi.ManagerPayload})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return err
	}
	wanted, err := wantedOperator(m)
	if err != nil || len(wanted.Status.RelatedObjects) == 0 {
		return err
	}
	var related []any
	for i := range wanted.Status.RelatedObjects {
		// All of it is written, as the definition requires: a name may be empty.
		ref, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&wanted.Status.RelatedObjects[i])
		if err != nil {
			return err
		}
		related = append(related, ref)
	}
	if err := unstructured.SetNestedSlice(created.Object, related, "status", "relatedObjects"); err != nil {
		return err
	}
	_, err = a.api.UpdateStatus(ctx, created, clusterapi.UpdateOptions{FieldManager: clusterapi.ManagerPayload})
	if apierrors.IsConflict(err) {
		return nil // the operator was faster, and knows better
	}
	return err
}

// checkOperator returns nil when a ClusterOperator is good: available, not degraded
// and, except while Initializing, at the wanted versions. Otherwise it returns a
// [*TaskError] for the first version that it lacks. Progressing is not looked at,
// versions are compared as text, one that is not reported is the empty text, and
// versions of operands that were not asked for do not matter.
//
// Wanting no version at all is an error too: nothing could be awaited.
func checkOperator(actual *configv1.ClusterOperator, wanted []configv1.OperandVersion, state State) error {
	name := actual.Name
	w := waitOf(actual, wanted)
	if len(wanted) == 0 {
		return operatorError(EffectFail, ReasonOperatorNoVersions, name, w, nil)
	}
	general := fmt.Errorf("cluster operator %s: available=%t, progressing=%t, degraded=%t, undone=%s", name,
		w.Available == configv1.ConditionTrue, w.Progressing != configv1.ConditionFalse,
		w.Degraded != configv1.ConditionFalse, list(w.Undone))

	if w.Available != configv1.ConditionTrue {
		nested := general
		if c := condition(actual, configv1.OperatorAvailable); c != nil {
			w.Reason, w.Message = quote(c.Reason), quote(c.Message)
			if c.Message != "" {
				nested = fmt.Errorf("cluster operator %s is %s=%s: %s: %s", name, c.Type, c.Status, w.Reason, w.Message)
			}
		}
		return operatorError(EffectFail, ReasonOperatorNotAvailable, name, w, nested)
	}
	if w.Degraded != configv1.ConditionFalse {
		nested := general
		if c := condition(actual, configv1.OperatorDegraded); c != nil {
			w.Reason, w.Message = quote(c.Reason), quote(c.Message)
			if c.Message != "" {
				nested = fmt.Errorf("cluster operator %s is %s=%s: %s, %s", name, c.Type, c.Status, w.Reason, w.Message)
			}
		}
		effect := EffectFailAfterInterval
		if state == Initializing {
			effect = EffectReport
		}
		return operatorError(effect, ReasonOperatorDegraded, name, w, nested)
	}
	if len(w.Undone) > 0 && state != Initializing {
		nested := fmt.Errorf("cluster operator %s is available and not degraded but has not finished updating to target version", name)
		return operatorError(EffectNone, ReasonOperatorUpdating, name, w, nested)
	}
	return nil
}

// operatorTexts word the reasons, for one operator and for several.
var operatorTexts = map[string]struct{ plural, text string }{
	ReasonOperatorNoVersions:   {"ClusterOperatorsNoVersions", "%s not declare expected versions"},
	ReasonOperatorNotAvailable: {"ClusterOperatorsNotAvailable", "%s not available"},
	ReasonOperatorDegraded:     {"ClusterOperatorsDegraded", "%s degraded"},
	ReasonOperatorUpdating:     {"ClusterOperatorsUpdating", "%s updating versions"},
}

func operatorError(effect Effect, reason, name string, w *Wait, nested error) *TaskError {
	one, many := "is", "are"
	if reason == ReasonOperatorNoVersions {
		one, many = "does", "do"
	}
	texts := operatorTexts[reason]
	message := "Cluster operator " + name + " " + fmt.Sprintf(texts.text, one)
	if nested == nil {
		nested = fmt.Errorf("cluster operator %s does not declare expected versions", name)
	}
	return &TaskError{
		Effect: effect, Reason: reason, PluralReason: texts.plural,
		Message: message, PluralFormat: "Cluster operators %s " + fmt.Sprintf(texts.text, many),
		Name: name, Wait: w, Err: nested,
	}
}

// waitOf gathers what an operator shows and which versions it lacks.
func waitOf(actual *configv1.ClusterOperator, wanted []configv1.OperandVersion) *Wait {
	w := &Wait{Operator: actual.Name}
	for _, c := range actual.Status.Conditions {
		switch c.Type {
		case configv1.OperatorAvailable:
			w.Available = c.Status
		case configv1.OperatorProgressing:
			w.Progressing = c.Status
		case configv1.OperatorDegraded:
			w.Degraded = c.Status
		}
	}
	for _, want := range wanted {
		current := "" // an operand that is not reported has no version
		if i := slices.IndexFunc(actual.Status.Versions, func(v configv1.OperandVersion) bool { return v.Name == want.Name }); i >= 0 {
			current = actual.Status.Versions[i].Version
		}
		switch current {
		case want.Version:
		case "":
			w.Undone = append(w.Undone, fmt.Sprintf("%s to %s", want.Name, want.Version))
		default:
			w.Undone = append(w.Undone, fmt.Sprintf("%s from %s to %s", want.Name, bounded.Text(current, maxVersion), want.Version))
		}
	}
	slices.Sort(w.Undone)
	return w
}

func condition(co *configv1.ClusterOperator, kind configv1.ClusterStatusConditionType) *configv1.ClusterOperatorStatusCondition {
	for i := range co.Status.Conditions {
		if co.Status.Conditions[i].Type == kind {
			return &co.Status.Conditions[i]
		}
	}
	return nil
}

// wantedOperator is the ClusterOperator of a manifest, which must not be changed.
func wantedOperator(m *manifest.Manifest) (*configv1.ClusterOperator, error) {
	type key struct{}
	return manifest.Derived(m, key{}, func() (*configv1.ClusterOperator, error) {
		return clusterapi.FromUnstructured[configv1.ClusterOperator](m.Object())
	})
}
