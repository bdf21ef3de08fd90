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
	"github.com/clusterupdate/clusterupdate/olm"
)

// executePlan carries out the steps of a plan that belong to operators, and
// writes how far it came. told is the error of a step: it is in the plan's
// status.
func (p *pass) executePlan(ctx context.Context, a *Action) (told, err error) {
	stored, err := clusterapi.Get[olm.InstallPlan](ctx, p.api, clusterapi.Key(a.Plan.Namespace, a.Plan.Name))
	if err != nil {
		return nil, err
	}
	if err := unchanged(a.Plan, stored); err != nil {
		return nil, err
	}
	x := &execution{pass: p, plan: stored, uids: map[string]types.UID{}}
	steps, told := x.run(ctx, a.Operators)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	before := stored.Status
	stored, err = clusterapi.Modify(ctx, p.api, clusterapi.Key(a.Plan.Namespace, a.Plan.Name), modifyStatus, func(stored *olm.InstallPlan) error {
		next := attemptedStatus(stored, steps, told, p.state.Now, p.o.Retry)
		if !equality.Semantic.DeepEqual(stored.Status, next) {
			stored.Status = next
		}
		return nil
	})
	if err != nil {
		return told, err
	}
	changed := !equality.Semantic.DeepEqual(before, stored.Status)
	p.res.Changed = p.res.Changed || changed
	e := clusterapi.Event{Subject: planSubject(stored), Err: told}
	if refused := (*Refusal)(nil); errors.As(told, &refused) && before.Message != stored.Status.Message {
		e.Type, e.Message = EventPlanRefused, stored.Status.Message
		p.observe(e)
	}
	switch stored.Status.Phase {
	case olm.PlanPhaseComplete:
		e.Type, e.Message = EventPlanCompleted, ""
		p.observe(e)
	case olm.PlanPhaseFailed:
		e.Type, e.Message = EventPlanFailed, stored.Status.Message
		p.observe(e)
		told = nil
	default:
		p.res.Soon = true
	}
	if told != nil {
		told = fmt.Errorf("installplan %s/%s: %w", stored.Namespace, stored.Name, told)
	}
	return told, nil
}

// unchanged is a conflict if an object is not the one decided from.
func unchanged(decided, stored metav1.Object) error {
	if decided.GetUID() == stored.GetUID() && decided.GetResourceVersion() == stored.GetResourceVersion() {
		return nil
	}
	return apierrors.NewConflict(schema.GroupResource{Group: olm.Group}, stored.GetName(), errors.New("it has changed since it was read"))
}

// execution is one attempt to carry out a plan.
type execution struct {
	*pass
	plan *olm.InstallPlan
	as   clusterapi.ReadWriter // whose rights bound what is written
	uids map[string]types.UID  // of CSVs
}

// run carries out the steps that are not done, once all of the plan have been
// found fit. It returns all steps with their statuses, and the first error,
// which ends the attempt.
func (x *execution) run(ctx context.Context, operators []string) ([]*olm.Step, error) {
	steps := make([]*olm.Step, len(x.plan.Status.Plan))
	for i, s := range x.plan.Status.Plan {
		done := *s
		steps[i] = &done
	}
	var err error
	x.as, err = x.identity(ctx, x.state.Snapshot.OperatorGroups)
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
			s.Status = olm.StepUnsupportedResource
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
	waiting := map[string]bool{} // operators that cannot own anything yet
	for i, s := range steps {
		if objects[i] == nil || !slices.Contains(operators, s.Resolving) || waiting[s.Resolving] {
			continue
		}
		status, err := x.carryOut(ctx, s, objects[i])
		if err != nil {
			return steps, fmt.Errorf("error creating %s %s: %w", s.Resource.Kind, s.Resource.Name, err)
		}
		s.Status = status
		if objects[i].GetKind() == kindCSV && !isDone(s) {
			waiting[s.Resolving] = true
		}
	}
	return steps, nil
}

// checkStored refuses a step that does not fit what is there: a definition by
// which objects would be lost, an operator or a Subscription that is not the
// plan's.
func (x *execution) checkStored(ctx context.Context, s *olm.Step, u *unstructured.Unstructured) error {
	switch u.GetKind() {
	case kindCRD:
		// The rights to read all objects of a kind are the controller's.
		err := checkDefinition(ctx, x.api, u)
		if wrong := (errDefinition{}); errors.As(err, &wrong) {
			return x.refusal(s, u, ruleDefinition, wrong.Error())
		}
		return err
	case kindCSV, kindSubscription:
		stored, err := x.as.Get(ctx, u.GroupVersionKind(), clusterapi.KeyOf(u))
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
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
func (x *execution) checkOwn(s *olm.Step, u, stored *unstructured.Unstructured) error {
	switch u.GetKind() {
	case kindCSV:
		csv, err := clusterapi.FromUnstructured[olm.ClusterServiceVersion](stored)
		if err != nil {
			return err
		}
		if csv.IsCopied() {
			home := cmp.Or(csv.Labels[olm.LabelCopiedFrom], "another namespace")
			return x.refusal(s, u, ruleExists, "it is there as the copy of an operator that is installed in "+home)
		}
	case kindSubscription:
		wanted, err := clusterapi.FromUnstructured[olm.Subscription](u)
		if err != nil {
			return err
		}
		there, err := clusterapi.FromUnstructured[olm.Subscription](stored)
		if err != nil {
			return err
		}
		w, t := &wanted.Spec, &there.Spec
		if !asksFor(t, w.Package, w.Channel, types.NamespacedName{Namespace: w.SourceNamespace, Name: w.Source}) {
			return x.refusal(s, u, ruleExists, fmt.Sprintf("it is there, and asks for package %q, channel %q of catalog %s/%s", t.Package, t.Channel, t.SourceNamespace, t.Source))
		}
	}
	return nil
}

func (x *execution) refusal(s *olm.Step, u *unstructured.Unstructured, rule string, text string) *Refusal {
	return &Refusal{Plan: x.plan.Namespace + "/" + x.plan.Name, Operator: s.Resolving, Object: objectText(u), Rule: rule, Text: text}
}

func isDone(s *olm.Step) bool { return s.Status == olm.StepCreated || s.Status == olm.StepPresent }

// carryOut writes the object of a step. A CSV or Subscription that exists stays
// as it is, and one that is being deleted is waited for; other objects are brought to the state of the bundle. Definitions
// are written with the controller's rights, as OLM does: who could write
// them could change those of others.
func (x *execution) carryOut(ctx context.Context, s *olm.Step, obj *unstructured.Unstructured) (olm.StepStatus, error) {
	api := x.as
	if obj.GetKind() == kindCRD {
		api = x.api
	}
	stored, err := api.Get(ctx, obj.GroupVersionKind(), clusterapi.KeyOf(obj))
	switch {
	case meta.IsNoMatchError(err):
		return olm.StepWaitingForAPI, nil
	case err != nil && !apierrors.IsNotFound(err):
		return "", err
	}
	there := err == nil
	if kind := obj.GetKind(); kind == kindCSV || kind == kindSubscription {
		switch {
		case there && stored.GetDeletionTimestamp() != nil:
			return olm.StepNotPresent, nil
		case there:
			return olm.StepPresent, x.checkOwn(s, obj, stored)
		}
		if kind == kindSubscription {
			annotations := obj.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[annotationGeneratedBy] = x.plan.Name
			obj.SetAnnotations(annotations)
		}
		_, err = api.Create(ctx, obj, clusterapi.CreateOptions{FieldManager: clusterapi.ManagerOLM})
		if apierrors.IsAlreadyExists(err) {
			return olm.StepNotPresent, nil // somebody else's: it is judged at the next attempt
		}
		return olm.StepCreated, err
	}
	if err := x.nameOwners(ctx, obj); err != nil {
		return "", err
	}
	if there && obj.GetKind() == kindServiceAccount {
		keepOwners(obj, stored)
	}
	if _, err := api.Apply(ctx, obj, clusterapi.ApplyOptions{FieldManager: clusterapi.ManagerOLM}); err != nil {
		return "", err
	}
	if there {
		return olm.StepPresent, nil
	}
	return olm.StepCreated, nil
}

// nameOwners adds the UID of the CSV to references to it: it is known only now.
func (x *execution) nameOwners(ctx context.Context, obj *unstructured.Unstructured) error {
	refs := obj.GetOwnerReferences()
	for i := range refs {
		if refs[i].Kind != kindCSV || refs[i].UID != "" {
			continue
		}
		name := refs[i].Name
		if x.uids[name] == "" {
			csv, err := clusterapi.GetShared(ctx, x.api, (&olm.ClusterServiceVersion{}).APIKind(), clusterapi.Key(x.plan.Namespace, name))
			if err != nil {
				return err
			}
			x.uids[name] = csv.UID()
		}
		refs[i].UID = x.uids[name]
	}
	if len(refs) > 0 {
		obj.SetOwnerReferences(refs)
	}
	return nil
}

// keepOwners adds the operators that own the stored account to those of the new
// one: until an update is over, the operator that it replaces runs under the
// account, and a ClusterServiceVersion whose account is another's fails.
func keepOwners(obj, stored *unstructured.Unstructured) {
	refs := obj.GetOwnerReferences()
	for _, ref := range stored.GetOwnerReferences() {
		same := func(r metav1.OwnerReference) bool { return r.UID == ref.UID }
		if ref.Kind == kindCSV && !slices.ContainsFunc(refs, same) {
			refs = append(refs, ref)
		}
	}
	obj.SetOwnerReferences(refs)
}
