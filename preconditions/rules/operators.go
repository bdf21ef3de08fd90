package rules

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/graph/risk"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
	"github.com/clusterupdate/clusterupdate/olm"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/internal/facts"
)

// clusterOperators: every operator is healthy, judged as the update itself will
// judge it: a condition that is missing or Unknown counts as bad.
func clusterOperators(ctx context.Context, in *preconditions.Input) ([]preconditions.Finding, error) {
	operators, err := facts.List[configv1.ClusterOperator](ctx, in.Reader, clusterapi.ListOptions{})
	bad := map[configv1.ClusterStatusConditionType][]preconditions.Object{}
	for _, co := range operators {
		look := func(t configv1.ClusterStatusConditionType, isBad func(*configv1.ClusterOperatorStatusCondition) bool) {
			if c := openshift.FindCondition(co.Status.Conditions, t); isBad(c) {
				bad[t] = append(bad[t], operatorObject(co.Name, t, c))
			}
		}
		look(configv1.OperatorAvailable, func(c *configv1.ClusterOperatorStatusCondition) bool { return !facts.IsTrue(c) })
		look(configv1.OperatorDegraded, func(c *configv1.ClusterOperatorStatusCondition) bool { return !facts.IsFalse(c) })
		look(configv1.OperatorUpgradeable, facts.IsFalse)
	}
	severity := blockMinor(in.Transition)
	if in.Kind == preconditions.Multi {
		severity = preconditions.Blocking
	}
	const remedy = "Look at the conditions with: oc describe clusteroperator NAME"
	var found findings
	found.add(
		severity, "ClusterOperatorNotAvailable", "Cluster operators are not available", bad[configv1.OperatorAvailable], remedy,
	)
	found.add(severity, "ClusterOperatorDegraded", "Cluster operators are degraded", bad[configv1.OperatorDegraded], remedy)
	if leavesMinor(in.Transition) {
		found.add(preconditions.Blocking, "ClusterOperatorNotUpgradeable", "Cluster operators must not be updated to another minor version", bad[configv1.OperatorUpgradeable], remedy)
	}
	return found, optionalAPI(err, "ClusterOperators")
}

func operatorObject(name string, t configv1.ClusterStatusConditionType, c *configv1.ClusterOperatorStatusCondition) preconditions.Object {
	o := object[configv1.ClusterOperator]("", name, "status.conditions", "", fmt.Sprintf("no condition %s", t))
	if c != nil {
		o.Value = string(c.Status)
		o.Note = withText(strings.TrimSuffix(fmt.Sprintf("%s=%s %s", t, c.Status, c.Reason), " "), c.Message)
	}
	return o
}

// criticalAlerts warns of alerts that fire: critical ones, and those that announce
// slow drains or ask for attention before an update.
func criticalAlerts(platform bool) judgeFunc {
	return func(ctx context.Context, in *preconditions.Input) ([]preconditions.Finding, error) {
		if in.Alerts == nil {
			return nil, &preconditions.NoSourceError{Source: "Alerts"}
		}
		alerts, err := in.Alerts.Firing(ctx)
		if err != nil {
			return nil, err
		}
		severity, namespaces := preconditions.Warning, regexp.MustCompile(``)
		if platform {
			severity, namespaces = preconditions.Blocking, regexp.MustCompile(`^(openshift.*|kube-.*|default)$`)
		}
		var critical, others []clusterapi.Alert
		for _, a := range alerts {
			switch {
			case len(risk.OfAlerts([]clusterapi.Alert{a})) == 0: // it does not bear on updates
			case a.Labels["severity"] != "critical":
				others = append(others, a)
			case namespaces.MatchString(a.Labels["namespace"]):
				critical = append(critical, a)
			}
		}
		var found findings
		found.add(severity, "CriticalAlert", "Critical alerts fire", alertObjects(critical), "Resolve what they tell of before the update")
		found.add(preconditions.Warning, "AlertBeforeUpdate", "Alerts fire that tell of slow drains, or that ask to be looked at before an update", alertObjects(others),
			"Look into them: each may make the update slow or stop it")
		return found, nil
	}
}

// alertObjects are the alerts, each name once a namespace.
func alertObjects(alerts []clusterapi.Alert) []preconditions.Object {
	type key struct{ name, namespace string }
	count := map[key]int{}
	var objects []preconditions.Object
	for _, a := range alerts {
		k := key{a.Labels["alertname"], a.Labels["namespace"]}
		if count[k]++; count[k] == 1 {
			objects = append(objects, preconditions.Object{GVK: schema.GroupVersionKind{Kind: "Alert"}, Namespace: k.namespace, Name: k.name, Value: a.State})
		}
	}
	for i, o := range objects {
		if n := count[key{o.Name, o.Namespace}]; n > 1 {
			objects[i].Note = fmt.Sprintf("%d times", n)
		}
	}
	return objects
}

// overridableKind is a kind of operator configuration that has
// spec.unsupportedConfigOverrides.
type overridableKind struct {
	gvk       schema.GroupVersionKind
	all       bool // all objects count, not only the one called cluster
	namespace string
}

func overridable() []overridableKind {
	operator := func(kind string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: "operator.openshift.io", Version: "v1", Kind: kind}
	}
	var kinds []overridableKind
	for _, kind := range []string{
		"Authentication", "CSISnapshotController", "CloudCredential", "Config", "Console", "Etcd", "InsightsOperator", "KubeAPIServer",
		"KubeControllerManager", "KubeScheduler", "KubeStorageVersionMigrator", "MachineConfiguration", "Network", "OLM",
		"OpenShiftAPIServer", "OpenShiftControllerManager", "ServiceCA", "Storage",
	} {
		kinds = append(kinds, overridableKind{gvk: operator(kind)})
	}
	return append(kinds,
		overridableKind{gvk: operator("ClusterCSIDriver"), all: true},
		overridableKind{gvk: operator("IngressController"), all: true, namespace: "openshift-ingress-operator"},
		overridableKind{gvk: schema.GroupVersionKind{Group: "imageregistry.operator.openshift.io", Version: "v1", Kind: "Config"}},
	)
}

// overridableGVKs are the kinds of overridable.
func overridableGVKs() []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for _, k := range overridable() {
		kinds = append(kinds, k.gvk)
	}
	return kinds
}

// unsupportedOverrides: no operator runs with settings that are not supported, and
// which the next version may read in another way.
func unsupportedOverrides(ctx context.Context, in *preconditions.Input) ([]preconditions.Finding, error) {
	var errs []error
	var objects []preconditions.Object
	for _, k := range overridable() {
		all, err := k.read(ctx, in.Reader)
		if err != nil {
			errs = append(errs, facts.About(k.gvk.Kind, err))
		}
		for _, o := range all {
			spec, _ := o.Unstructured().Object["spec"].(map[string]any)
			value := spec["unsupportedConfigOverrides"]
			if m, ok := value.(map[string]any); value == nil || ok && len(m) == 0 {
				continue
			}
			text, _ := json.Marshal(value)
			objects = append(objects, preconditions.Object{
				GVK: k.gvk, Namespace: o.Key().Namespace, Name: o.Name(), FieldPath: "spec.unsupportedConfigOverrides",
				Value: bounded.Text(string(text), 1<<10), Note: k.gvk.Kind,
			})
		}
	}
	if len(objects) == 0 {
		return nil, facts.JoinErrors(errs...)
	}
	slices.SortStableFunc(objects, func(a, b preconditions.Object) int {
		return cmp.Or(strings.Compare(a.GVK.Kind, b.GVK.Kind), strings.Compare(a.GVK.Group, b.GVK.Group), strings.Compare(a.Name, b.Name))
	})
	return []preconditions.Finding{newFinding(blockMinor(in.Transition), "UnsupportedConfigOverridesSet", "Operators have settings that are not supported", objects,
		"Remove spec.unsupportedConfigOverrides of these objects before the update")}, facts.JoinErrors(errs...)
}

// read returns the objects of the kind. There may be none, and no such kind.
func (k overridableKind) read(ctx context.Context, r clusterapi.Reader) ([]*clusterapi.Object, error) {
	if k.all {
		objects, err := clusterapi.ListShared(ctx, r, k.gvk, clusterapi.ListOptions{Namespace: k.namespace})
		return objects, facts.UnlessMissing(err)
	}
	o, err := clusterapi.GetShared(ctx, r, k.gvk, clusterapi.Key("", "cluster"))
	if err != nil {
		return nil, facts.UnlessMissing(err)
	}
	return []*clusterapi.Object{o}, nil
}

// operatorCompatibility: every operator that OLM installed may run on the target.
func operatorCompatibility(ctx context.Context, in *preconditions.Input) ([]preconditions.Finding, error) {
	csvs, err := facts.List[olmapi.ClusterServiceVersion](ctx, in.Reader, clusterapi.ListOptions{})
	err = optionalAPI(err, "ClusterServiceVersions")
	if err != nil && len(csvs) == 0 {
		return nil, err
	}
	meaning := "Operators do not support the target"
	target, targetErr := openShiftTarget(ctx, in)
	if targetErr == nil {
		meaning = fmt.Sprintf("Operators do not support OpenShift %s", target)
	}
	var held []preconditions.Object
	for _, csv := range csvs {
		if csv.IsCopied() {
			continue
		}
		highest, warning, err := olm.MaxOpenShiftVersion(csv)
		o := object[olmapi.ClusterServiceVersion](csv.Namespace, csv.Name, "metadata.annotations", "", "")
		switch {
		case err != nil:
			o.Note = "its olm.maxOpenShiftVersion is invalid: " + err.Error()
		case highest == nil || targetErr != nil || highest.Allows(target):
			continue
		default:
			o.Value, o.Note = highest.String(), "up to "+highest.String()
			if warning != "" {
				o.Note += " (" + warning + ")"
			}
		}
		held = append(held, o)
	}
	plans, plansErr := facts.List[olmapi.InstallPlan](ctx, in.Reader, clusterapi.ListOptions{})
	var pending []preconditions.Object
	for _, p := range plans {
		if !p.Spec.Approved && p.Status.Phase == olmapi.PlanPhaseRequiresApproval {
			pending = append(pending, object[olmapi.InstallPlan](p.Namespace, p.Name, "spec.approved", "false", strings.Join(p.Spec.ClusterServiceVersionNames, ", ")))
		}
	}
	var found findings
	found.add(
		preconditions.Blocking, "IncompatibleOperatorsInstalled", meaning, held, "Update these operators first, or remove them",
	)
	found.add(preconditions.Warning, "OperatorUpdatePending", "Updates of operators wait for approval", pending,
		"Approve them first: oc -n NAMESPACE patch installplan NAME --type=merge -p '{\"spec\":{\"approved\":true}}'")
	return found, facts.JoinErrors(err, plansErr, targetErr)
}

// openShiftTarget is the minor release of the target; if that is not known, the one
// after the current one.
func openShiftTarget(ctx context.Context, in *preconditions.Input) (olm.OpenShiftVersion, error) {
	if in.Target != nil {
		return olm.OpenShiftVersion{Major: in.Target.Major(), Minor: in.Target.Minor()}, nil
	}
	current, err := currentVersion(ctx, in)
	if err != nil {
		return olm.OpenShiftVersion{}, err
	}
	return olm.OpenShiftVersion{Major: current.Major(), Minor: current.Minor()}.Next(), nil
}
