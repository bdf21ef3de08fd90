package preconditions

import (
	"context"
	"fmt"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/olm"
)

func operatorCompatibilityCheck() Check {
	return documented{Rule{
		Name: "OperatorCompatibility", Scope: minorStep(), Severities: []Severity{Warning, Blocking},
		Source: "Performing a cluster update, Before updating", Link: docsPerforming,
		Reads: []schema.GroupVersionKind{gvkOf[configv1.ClusterVersion](), gvkOf[olm.ClusterServiceVersion](), gvkOf[olm.InstallPlan]()},
	}, operatorCompatibility}
}

// operatorCompatibility: every operator that OLM installed may run on the target.
func operatorCompatibility(ctx context.Context, in *Input) ([]Finding, error) {
	csvs, err := list[olm.ClusterServiceVersion](ctx, in, clusterapi.ListOptions{})
	if err = optionalAPI(err, "ClusterServiceVersions"); err != nil && len(csvs) == 0 {
		return nil, err
	}
	target, targetErr := in.openShiftTarget(ctx)
	var held []Object
	for _, csv := range csvs {
		if csv.IsCopied() {
			continue
		}
		highest, warning, err := csv.MaxOpenShiftVersion()
		o := Object{GVK: gvkOf[olm.ClusterServiceVersion](), Namespace: csv.Namespace, Name: csv.Name, FieldPath: "metadata.annotations"}
		switch {
		case err != nil:
			o.Note = "its olm.maxOpenShiftVersion is invalid: " + err.Error()
		case highest == nil || targetErr != nil || highest.Allows(target):
			continue
		default:
			o.Value, o.Note = highest.String(), strings.TrimSpace("up to "+highest.String()+" "+parenthesis(warning))
		}
		held = append(held, o)
	}
	plans, plansErr := list[olm.InstallPlan](ctx, in, clusterapi.ListOptions{})
	var pending []Object
	for _, p := range plans {
		if !p.Spec.Approved && p.Status.Phase == olm.PlanPhaseRequiresApproval {
			pending = append(pending, Object{GVK: gvkOf[olm.InstallPlan](), Namespace: p.Namespace, Name: p.Name, FieldPath: "spec.approved", Value: "false",
				Note: strings.Join(p.Spec.ClusterServiceVersionNames, ", ")})
		}
	}
	var findings []Finding
	if len(held) > 0 {
		sortObjects(held)
		meaning := "Operators do not support the target"
		if targetErr == nil {
			meaning = fmt.Sprintf("Operators do not support OpenShift %s", target)
		}
		findings = append(findings, newFinding(Blocking, "IncompatibleOperatorsInstalled", meaning, held, "Update these operators first, or remove them"))
	}
	if len(pending) > 0 {
		sortObjects(pending)
		findings = append(findings, newFinding(Warning, "OperatorUpdatePending", "Updates of operators wait for approval", pending,
			"Approve them first: oc -n NAMESPACE patch installplan NAME --type=merge -p '{\"spec\":{\"approved\":true}}'"))
	}
	return findings, joinErrors(err, plansErr, targetErr)
}

func parenthesis(text string) string {
	if text == "" {
		return ""
	}
	return "(" + text + ")"
}

// openShiftTarget is the minor release of the target; where that is not known, the
// one after the current one.
func (in *Input) openShiftTarget(ctx context.Context) (olm.OpenShiftVersion, error) {
	if in.Target != nil {
		return olm.OpenShiftVersion{Major: in.Target.Major(), Minor: in.Target.Minor()}, nil
	}
	current, err := in.currentVersion(ctx)
	if err != nil {
		return olm.OpenShiftVersion{}, err
	}
	return olm.OpenShiftVersion{Major: current.Major(), Minor: current.Minor()}.Next(), nil
}
