package preconditions

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/preconditions/internal/operators"
)

// kernelModules: out-of-tree kernel modules have been built and verified for the
// kernel of the target.
func kernelModules(ctx context.Context, in *Input) ([]Finding, error) {
	modules, err := list[operators.KernelModule](ctx, in, clusterapi.ListOptions{})
	err = optionalAPI(err, "out-of-tree kernel modules")
	if err != nil && len(modules) == 0 {
		return nil, err
	}
	if len(modules) == 0 {
		return nil, &NotApplicableError{Why: "the cluster has no out-of-tree kernel modules"}
	}
	var found findings
	preflights, preflightErr := readPreflights(ctx, in)
	mine := operators.PreflightOf(preflights, in.TargetImage, in.TargetKernel)
	if mine == nil {
		if preflightErr != nil {
			return nil, joinErrors(err, preflightErr)
		}
		if in.TargetKernel == "" && slices.ContainsFunc(preflights, func(p *operators.PreflightValidation) bool { return p.Spec.KernelVersion != "" }) {
			return nil, joinErrors(err, &UnknownError{Reason: "KernelVersionUnknown", Why: "the kernel version of the target is not given, by which preflight validations are told apart here"})
		}
		var objects []Object
		for _, m := range modules {
			objects = append(objects, object[operators.KernelModule](m.Namespace, m.Name, "", "", ""))
		}
		found.add(Warning, "PreflightNotRun", "Out-of-tree kernel modules have not been verified for the target", objects, "Verify them with:\n"+preflightManifest(in))
		return found, err
	}
	var failed []Object
	var pending []string
	for _, m := range modules {
		r, ok := mine.Status.Result(m.Namespace, m.Name)
		o := object[operators.KernelModule](m.Namespace, m.Name, "", r.Status, withText("stage "+r.Stage, r.Reason))
		switch {
		case !ok:
			pending = append(pending, o.fullName()+" (not reported)")
		case r.State() == operators.PreflightFailed:
			failed = append(failed, o)
		case r.State() == operators.PreflightPending:
			pending = append(pending, fmt.Sprintf("%s (%s, stage %s)", o.fullName(), cmp.Or(r.Status, "no status"), r.Stage))
		}
	}
	if len(pending) > 0 {
		err = joinErrors(err, &UnknownError{Reason: "PreflightPending", Why: fmt.Sprintf("preflight validation %s has not verified yet: %s", mine.Name, strings.Join(pending, ", "))})
	}
	found.add(Blocking, "ModuleNotVerified", "Out-of-tree kernel modules failed to verify for the target", failed,
		"Correct these modules, and run the preflight validation "+mine.Name+" again")
	if len(failed) == 0 {
		found.addAt(Info, "PreflightDone", "Out-of-tree kernel modules are verified for the target",
			"Delete the preflight validation after use: oc delete preflightvalidationocp "+mine.Name, Object{GVK: mine.GroupVersionKind(), Name: mine.Name})
	}
	return found, err
}

// readPreflights reads the preflight validations, in whichever version is served.
func readPreflights(ctx context.Context, in *Input) ([]*operators.PreflightValidation, error) {
	all, err := list[operators.PreflightValidation](ctx, in, clusterapi.ListOptions{})
	if !meta.IsNoMatchError(err) {
		return all, err
	}
	older, err := list[operators.PreflightV1beta1](ctx, in, clusterapi.ListOptions{})
	for _, p := range older {
		all = append(all, &p.PreflightValidation)
	}
	return all, unlessMissing(err)
}

// preflightManifest is what to create.
func preflightManifest(in *Input) string {
	target := "releaseImage: " + cmp.Or(in.TargetImage, "IMAGE")
	if in.TargetKernel != "" {
		target = "kernelVersion: " + in.TargetKernel
	}
	return fmt.Sprintf("apiVersion: %s/v1beta2\nkind: PreflightValidationOCP\nmetadata:\n  name: preflight\nspec:\n  %s\n", operators.KMMGroup, target)
}
