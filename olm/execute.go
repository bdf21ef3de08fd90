package olm

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// advancePlans starts approved plans, and carries out those that may be, oldest
// first.
func (p *pass) advancePlans(ctx context.Context) error {
	var errs []error
	order := make([]int, len(p.plans))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return int(p.plans[a].Spec.Generation - p.plans[b].Spec.Generation)
	})
	for _, i := range order {
		plan := &p.plans[i]
		status := ApprovedStatus(plan)
		if status.Phase != plan.Status.Phase {
			if err := p.writePlan(ctx, i, func(stored *InstallPlan) InstallPlanStatus { return ApprovedStatus(stored) }); err != nil {
				errs = append(errs, err)
				continue
			}
			p.c.observe(Event{Type: EventPlanApproved, Namespace: plan.Namespace, Plan: plan.Name})
		}
		if !p.c.o.Execute || plan.Status.Phase != PlanPhaseInstalling || lookupsPending(plan.Status.BundleLookups) {
			continue
		}
		steps, execErr := p.execute(ctx, plan)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		now := p.c.clock.Now()
		err := p.writePlan(ctx, i, func(stored *InstallPlan) InstallPlanStatus {
			return AttemptedStatus(stored, steps, execErr, now, p.c.o.Retry)
		})
		if err != nil {
			errs = append(errs, err)
			continue
		}
		switch plan.Status.Phase {
		case PlanPhaseComplete:
			p.c.observe(Event{Type: EventPlanCompleted, Namespace: plan.Namespace, Plan: plan.Name})
		case PlanPhaseFailed:
			p.c.observe(Event{Type: EventPlanFailed, Namespace: plan.Namespace, Plan: plan.Name, Text: plan.Status.Message, Err: execErr})
		default:
			p.res.Soon = true
			if execErr != nil {
				errs = append(errs, fmt.Errorf("installplan %s/%s: %w", plan.Namespace, plan.Name, execErr))
			}
		}
	}
	return errors.Join(errs...)
}

// writePlan writes the status of a plan if it differs, and keeps the plan as
// stored.
func (p *pass) writePlan(ctx context.Context, i int, status func(*InstallPlan) InstallPlanStatus) error {
	plan := &p.plans[i]
	if next := status(plan); equality.Semantic.DeepEqual(plan.Status, next) {
		return nil
	}
	stored, err := clusterapi.Modify(ctx, p.c.o.API, clusterapi.Key(plan.Namespace, plan.Name), modifyStatus, func(stored *InstallPlan) error {
		stored.Status = status(stored)
		return nil
	})
	if err != nil {
		return fmt.Errorf("installplan %s/%s: %w", plan.Namespace, plan.Name, err)
	}
	p.plans[i] = *stored
	p.res.Changed = true
	return nil
}

// execute carries out the steps of a plan that are not done. It returns all
// steps with their statuses, and the first error, which ends the attempt.
func (p *pass) execute(ctx context.Context, plan *InstallPlan) ([]*Step, error) {
	steps := make([]*Step, len(plan.Status.Plan))
	for i, s := range plan.Status.Plan {
		done := *s
		steps[i] = &done
	}
	for _, s := range steps {
		if s.Status == StepCreated || s.Status == StepPresent {
			continue
		}
		status, err := p.carryOut(ctx, plan, s)
		if err != nil {
			return steps, fmt.Errorf("error creating %s %s: %w", s.Resource.Kind, s.Resource.Name, err)
		}
		s.Status = status
	}
	return steps, nil
}

// carryOut writes the object of a step. A CSV or Subscription that exists stays
// as it is; other objects are brought to the state of the bundle.
func (p *pass) carryOut(ctx context.Context, plan *InstallPlan, s *Step) (StepStatus, error) {
	obj, err := decodeObject([]byte(s.Resource.Manifest))
	if err != nil {
		return "", err
	}
	if obj.GetNamespace() == "" && !clusterScoped(obj.GetKind()) {
		obj.SetNamespace(plan.Namespace)
	}
	api := p.c.o.API
	_, err = api.Get(ctx, obj.GroupVersionKind(), clusterapi.KeyOf(obj))
	switch {
	case meta.IsNoMatchError(err):
		return StepWaitingForAPI, nil
	case err != nil && !apierrors.IsNotFound(err):
		return "", err
	}
	there := err == nil
	kind := s.Resource.Kind
	if kind == kindCSV || kind == (&Subscription{}).APIKind().Kind {
		if there {
			return StepPresent, nil
		}
		if kind != kindCSV {
			annotations := obj.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[annotationGeneratedBy] = plan.Name
			obj.SetAnnotations(annotations)
		}
		_, err = api.Create(ctx, obj, clusterapi.CreateOptions{FieldManager: clusterapi.ManagerOLM})
		if apierrors.IsAlreadyExists(err) {
			return StepPresent, nil
		}
		return StepCreated, err
	}
	if err := p.nameOwners(ctx, plan.Namespace, obj); err != nil {
		return "", err
	}
	if _, err := api.Apply(ctx, obj, clusterapi.ApplyOptions{FieldManager: clusterapi.ManagerOLM}); err != nil {
		return "", err
	}
	if there {
		return StepPresent, nil
	}
	return StepCreated, nil
}

// nameOwners adds the UID of the CSV to references to it: it is known only now.
func (p *pass) nameOwners(ctx context.Context, namespace string, obj *unstructured.Unstructured) error {
	refs := obj.GetOwnerReferences()
	for i := range refs {
		if refs[i].Kind != kindCSV || refs[i].UID != "" {
			continue
		}
		csv, err := p.c.o.API.Get(ctx, (&ClusterServiceVersion{}).APIKind(), clusterapi.Key(namespace, refs[i].Name))
		if err != nil {
			return err
		}
		refs[i].UID = csv.GetUID()
	}
	if len(refs) > 0 {
		obj.SetOwnerReferences(refs)
	}
	return nil
}

// clusterScoped reports whether a kind that bundles may hold has no namespace.
func clusterScoped(kind string) bool {
	switch kind {
	case kindCRD, "ClusterRole", "ClusterRoleBinding", "PriorityClass",
		"ConsoleYAMLSample", "ConsoleQuickStart", "ConsoleCLIDownload", "ConsoleLink", "ConsolePlugin":
		return true
	}
	return false
}
