package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
)

// executePlan carries out the steps of a plan that belong to operators, and writes
// how far it got. cause is the error of a step: it is in the plan's status.
func (p *pass) executePlan(ctx context.Context, a *Action) (cause, err error) {
	key := clusterapi.Key(a.Plan.Namespace, a.Plan.Name)
	stored, err := clusterapi.Get[olmapi.InstallPlan](ctx, p.api, key)
	if err != nil {
		return nil, err
	}
	if err := unchanged(a.Plan, stored); err != nil {
		return nil, err
	}
	x := &execution{pass: p, plan: stored, uids: map[string]types.UID{}, warnings: map[*olmapi.Step]error{}}
	steps, cause := x.run(ctx, a.Operators)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	before := stored.Status
	stored, err = clusterapi.Modify(ctx, p.api, key, modifyStatus, func(stored *olmapi.InstallPlan) error {
		next := attemptedStatus(stored, steps, cause, p.state.Now, p.c.o.Retry)
		if !equality.Semantic.DeepEqual(stored.Status, next) {
			stored.Status = next
		}
		return nil
	})
	if err != nil {
		return cause, err
	}
	changed := !equality.Semantic.DeepEqual(before, stored.Status)
	p.res.Changed = p.res.Changed || changed
	e := clusterapi.Event{Subject: planSubject(stored), Err: cause}
	if refused := (*Refusal)(nil); errors.As(cause, &refused) && before.Message != stored.Status.Message {
		e.Type, e.Message = EventPlanRefused, stored.Status.Message
		p.observe(e)
	}
	switch stored.Status.Phase {
	case olmapi.PlanPhaseComplete:
		e.Type, e.Message = EventPlanCompleted, ""
		p.observe(e)
	case olmapi.PlanPhaseFailed:
		e.Type, e.Message = EventPlanFailed, stored.Status.Message
		p.observe(e)
		cause = nil
	default:
		p.res.Soon = true
	}
	if cause != nil {
		cause = fmt.Errorf("installplan %s: %w", planName(stored), cause)
	}
	return cause, nil
}

// unchanged is a conflict if an object is not the one decided from.
func unchanged(decided, stored metav1.Object) error {
	if decided.GetUID() == stored.GetUID() && decided.GetResourceVersion() == stored.GetResourceVersion() {
		return nil
	}
	cause := errors.New("it has changed since it was read")
	return apierrors.NewConflict(schema.GroupResource{Group: olmapi.Group}, stored.GetName(), cause)
}

// execution is one attempt to carry out a plan.
type execution struct {
	pass     *pass
	plan     *olmapi.InstallPlan
	as       clusterapi.ReadWriter  // whose rights bound what is written
	uids     map[string]types.UID   // of CSVs
	warnings map[*olmapi.Step]error // of definitions
}

// run carries out the steps that are not done, once all of the plan have been
// found fit. It returns all steps with their statuses, and the first error,
// which ends the attempt. A kind that is not served ends nothing: the other steps
// are carried out before the error is returned.
func (x *execution) run(ctx context.Context, operators []string) ([]*olmapi.Step, error) {
	steps := make([]*olmapi.Step, len(x.plan.Status.Plan))
	for i, s := range x.plan.Status.Plan {
		done := *s
		steps[i] = &done
	}
	var err error
	x.as, err = x.identity(ctx, x.pass.state.Snapshot.OperatorGroups)
	if err != nil {
		return steps, err
	}
	objects := make([]*unstructured.Unstructured, len(steps))
	var refused error
	for i, s := range steps {
		if isDone(s) {
			continue
		}
		objects[i], err = stepObject(x.plan, s)
		if err != nil {
			s.Status = olmapi.StepUnsupportedResource
			refused = cmp.Or(refused, err)
		}
	}
	if refused != nil {
		return steps, refused
	}
	for i, s := range steps {
		if objects[i] == nil {
			continue
		}
		if err := x.checkStored(ctx, s, objects[i]); err != nil {
			return steps, err
		}
	}
	var unserved error
	waiting := map[string]bool{} // operators that cannot own anything yet
	for i, s := range steps {
		if objects[i] == nil || !slices.Contains(operators, s.Resolving) || waiting[s.Resolving] {
			continue
		}
		status, err := x.carryOut(ctx, s, objects[i])
		switch {
		case meta.IsNoMatchError(err):
			status = olmapi.StepWaitingForAPI
			unserved = cmp.Or(unserved, error(&unservedError{objects[i]}))
		case err != nil:
			return steps, fmt.Errorf("error creating %s %s: %w", s.Resource.Kind, s.Resource.Name, err)
		}
		s.Status = status
		if objects[i].GetKind() == kindCSV && !isDone(s) {
			waiting[s.Resolving] = true
		}
	}
	return steps, unserved
}

// unservedError reports an object whose kind the cluster does not serve, in OLM's
// words.
type unservedError struct{ object *unstructured.Unstructured }

func (e *unservedError) Error() string {
	u := e.object
	return fmt.Sprintf("api-server resource not found installing %s %s: GroupVersionKind %s not found on the cluster. "+
		"This API may have been deprecated and removed, see https://kubernetes.io/docs/reference/using-api/deprecation-guide/ "+
		"for more information.", u.GetKind(), u.GetName(), u.GroupVersionKind())
}

// checkStored refuses a step that does not fit what is there: a definition by
// which objects would be lost, an operator or a Subscription that is not the
// plan's.
func (x *execution) checkStored(ctx context.Context, s *olmapi.Step, u *unstructured.Unstructured) error {
	switch u.GetKind() {
	case kindCRD:
		// The rights to read all objects of a kind are the controller's.
		warning, err := checkDefinition(ctx, x.pass.api, u)
		if wrong := (errDefinition{}); errors.As(err, &wrong) {
			return x.refusal(s, u, ruleDefinition, wrong.Error())
		}
		x.warnings[s] = warning
		return err
	case kindCSV, kindSubscription:
		stored, err := x.as.Get(ctx, u.GroupVersionKind(), clusterapi.KeyOf(u))
		if clusterapi.IsMissing(err) {
			return nil
		}
		if err != nil {
			return err
		}
		return x.checkOwn(s, u, stored)
	}
	return nil
}

// checkOwn refuses a step whose name something else has: OLM's copy of an
// operator of another namespace, or a Subscription to another operator.
func (x *execution) checkOwn(s *olmapi.Step, u, stored *unstructured.Unstructured) error {
	switch u.GetKind() {
	case kindCSV:
		csv, err := clusterapi.FromUnstructured[olmapi.ClusterServiceVersion](stored)
		if err != nil {
			return err
		}
		if csv.IsCopied() {
			home := cmp.Or(csv.Labels[olmapi.LabelCopiedFrom], "another namespace")
			return x.refusal(s, u, ruleExists, "it is there as the copy of an operator that is installed in "+home)
		}
	case kindSubscription:
		wanted, err := clusterapi.FromUnstructured[olmapi.Subscription](u)
		if err != nil {
			return err
		}
		there, err := clusterapi.FromUnstructured[olmapi.Subscription](stored)
		if err != nil {
			return err
		}
		w, t := &wanted.Spec, &there.Spec
		if !asksFor(t, w.Package, w.Channel, types.NamespacedName{Namespace: w.SourceNamespace, Name: w.Source}) {
			return x.refusal(s, u, ruleExists, fmt.Sprintf("it is there, and asks for package %q, channel %q of catalog %s/%s",
				t.Package, t.Channel, t.SourceNamespace, t.Source))
		}
	}
	return nil
}

func (x *execution) refusal(s *olmapi.Step, u *unstructured.Unstructured, rule, text string) *Refusal {
	return &Refusal{Plan: planName(x.plan), Operator: s.Resolving, Object: objectText(u), Rule: rule, Text: text}
}

func isDone(s *olmapi.Step) bool {
	return s.Status == olmapi.StepCreated || s.Status == olmapi.StepPresent
}

// carryOut writes the object of a step. A CSV or Subscription that exists stays
// as it is, and one that is being deleted is waited for; other objects are brought
// to the state of the bundle. Definitions are written with the controller's
// rights, as OLM does: who may write one may change all.
func (x *execution) carryOut(
	ctx context.Context, s *olmapi.Step, obj *unstructured.Unstructured,
) (olmapi.StepStatus, error) {
	kind, api := obj.GetKind(), x.as
	if kind == kindCRD {
		api = x.pass.api
	}
	stored, err := api.Get(ctx, obj.GroupVersionKind(), clusterapi.KeyOf(obj))
	if err != nil && !apierrors.IsNotFound(err) {
		return "", err
	}
	if err != nil {
		stored = nil
	}
	if stored != nil && (kind == kindCSV || kind == kindSubscription) {
		if stored.GetDeletionTimestamp() != nil {
			return olmapi.StepNotPresent, nil
		}
		return olmapi.StepPresent, x.checkOwn(s, obj, stored)
	}
	if err := x.prepare(ctx, s, obj, stored); err != nil {
		return "", err
	}
	switch {
	case kind == kindCRD && stored != nil:
		_, err = api.Update(ctx, obj, clusterapi.UpdateOptions{FieldManager: clusterapi.ManagerOLM})
	case kind == kindCSV || kind == kindSubscription || kind == kindCRD:
		_, err = api.Create(ctx, obj, clusterapi.CreateOptions{FieldManager: clusterapi.ManagerOLM})
		if apierrors.IsAlreadyExists(err) {
			return olmapi.StepNotPresent, nil // somebody else's: it is judged at the next attempt
		}
	default:
		_, err = api.Apply(ctx, obj, clusterapi.ApplyOptions{FieldManager: clusterapi.ManagerOLM})
	}
	if err != nil {
		return "", err
	}
	if warning := x.warnings[s]; warning != nil {
		x.pass.observe(clusterapi.Event{
			Type: EventCRDValidation, Subject: planSubject(x.plan), Message: warning.Error(), Err: warning,
		})
	}
	if stored != nil {
		return olmapi.StepPresent, nil
	}
	return olmapi.StepCreated, nil
}
