package olm

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// Refusal is the error of an InstallPlan that holds what is not carried out.
// All steps are looked at before the first is written.
type Refusal struct {
	// Plan is the name of the InstallPlan, Operator the CSV that the step
	// belongs to, Object what the step writes as KIND NAMESPACE/NAME. The last
	// two are empty for PlanRuleIdentity.
	Plan, Operator, Object string
	Rule                   PlanRule
	Text                   string
}

// PlanRule is a rule that a [Refusal] stands on.
type PlanRule string

// The rules of what a plan may write.
const (
	// PlanRuleManifest: an object that cannot be read, or is not what its step
	// says.
	PlanRuleManifest PlanRule = "Manifest"
	// PlanRuleKind: kinds other than those that OLM supports in a bundle.
	PlanRuleKind PlanRule = "Kind"
	// PlanRuleNamespace: a namespace other than the plan's.
	PlanRuleNamespace PlanRule = "Namespace"
	// PlanRuleOperator: operators and Subscriptions that are not the plan's.
	PlanRuleOperator PlanRule = "Operator"
	// PlanRuleDefinition: a CustomResourceDefinition by which stored objects would
	// be lost or become invalid.
	PlanRuleDefinition PlanRule = "Definition"
	// PlanRuleIdentity: an OperatorGroup that names a service account whose rights
	// the controller cannot take.
	PlanRuleIdentity PlanRule = "Identity"
)

// Error names plan, step, object and rule.
func (r *Refusal) Error() string {
	switch {
	case r.Rule == PlanRuleIdentity:
		return "attenuated service account query failed - " + r.Text
	case r.final():
		return fmt.Sprintf("the InstallPlan contains invalid data: plan %s, step %s of %s, rule %s: %s", r.Plan, r.Object, r.Operator, r.Rule, r.Text)
	}
	return fmt.Sprintf("plan %s, step %s of %s, rule %s: %s", r.Plan, r.Object, r.Operator, r.Rule, r.Text)
}

// final reports whether nothing but another plan helps.
func (r *Refusal) final() bool { return r.Rule != PlanRuleIdentity && r.Rule != PlanRuleDefinition }

// scopeOf says whether a plan may write a kind, and whether its objects have a
// namespace: the kinds that OLM supports in a bundle, and Subscriptions.
func scopeOf(gk schema.GroupKind) (namespaced, allowed bool) {
	switch gk {
	case schema.GroupKind{Group: Group, Kind: kindCSV},
		schema.GroupKind{Group: Group, Kind: kindSubscription},
		schema.GroupKind{Kind: "Secret"},
		schema.GroupKind{Kind: "ConfigMap"},
		schema.GroupKind{Kind: "Service"},
		schema.GroupKind{Kind: "ServiceAccount"},
		schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "Role"},
		schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"},
		schema.GroupKind{Group: "policy", Kind: "PodDisruptionBudget"},
		schema.GroupKind{Group: "monitoring.coreos.com", Kind: "PrometheusRule"},
		schema.GroupKind{Group: "monitoring.coreos.com", Kind: "ServiceMonitor"},
		schema.GroupKind{Group: "autoscaling.k8s.io", Kind: "VerticalPodAutoscaler"}:
		return true, true
	case schema.GroupKind{Group: groupCRD, Kind: kindCRD},
		schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"},
		schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"},
		schema.GroupKind{Group: "scheduling.k8s.io", Kind: "PriorityClass"},
		schema.GroupKind{Group: "console.openshift.io", Kind: "ConsoleCLIDownload"},
		schema.GroupKind{Group: "console.openshift.io", Kind: "ConsoleLink"},
		schema.GroupKind{Group: "console.openshift.io", Kind: "ConsoleQuickStart"},
		schema.GroupKind{Group: "console.openshift.io", Kind: "ConsoleYAMLSample"}:
		return false, true
	}
	return false, false
}

// stepObject reads the object of a step and judges it by all rules that need
// nothing but the plan.
func stepObject(plan *InstallPlan, s *Step) (*unstructured.Unstructured, error) {
	refuse := func(u *unstructured.Unstructured, rule PlanRule, text string, args ...any) error {
		object := s.Resource.Kind + " " + s.Resource.Name
		if u != nil {
			object = objectText(u)
		}
		return &Refusal{Plan: plan.Namespace + "/" + plan.Name, Operator: s.Resolving, Object: object, Rule: rule, Text: fmt.Sprintf(text, args...)}
	}
	u, err := decodeObject([]byte(s.Resource.Manifest))
	if err != nil {
		return nil, refuse(nil, PlanRuleManifest, "%v", err)
	}
	kind := s.Resource.Kind
	if kind == kindBundleSecret {
		kind = "Secret"
	}
	if u.GetKind() != kind || u.GetName() != s.Resource.Name && (u.GetName() != "" || u.GetGenerateName() != s.Resource.Name) {
		return nil, refuse(u, PlanRuleManifest, "the step says %s %s", s.Resource.Kind, s.Resource.Name)
	}
	gk := u.GroupVersionKind().GroupKind()
	namespaced, allowed := scopeOf(gk)
	switch {
	case !allowed:
		return nil, refuse(u, PlanRuleKind, "kind %s is not supported in a bundle", gk)
	case !namespaced:
		u.SetNamespace("")
	case u.GetNamespace() == "":
		u.SetNamespace(plan.Namespace)
	case u.GetNamespace() != plan.Namespace:
		return nil, refuse(u, PlanRuleNamespace, "the plan writes to namespace %s alone", plan.Namespace)
	}
	if !slices.Contains(plan.Spec.ClusterServiceVersionNames, s.Resolving) {
		return nil, refuse(u, PlanRuleOperator, "%s is not an operator of the plan", s.Resolving)
	}
	switch gk.Kind {
	case kindCSV:
		if u.GetName() != s.Resolving {
			return nil, refuse(u, PlanRuleOperator, "the step is one of %s", s.Resolving)
		}
	case kindSubscription:
		if starting, _, _ := unstructured.NestedString(u.Object, "spec", "startingCSV"); starting != s.Resolving {
			return nil, refuse(u, PlanRuleOperator, "it asks for %q, and the step is one of %s", starting, s.Resolving)
		}
	}
	return u, nil
}

// objectText is KIND NAMESPACE/NAME.
func objectText(u *unstructured.Unstructured) string {
	if u.GetNamespace() == "" {
		return u.GetKind() + " " + u.GetName()
	}
	return u.GetKind() + " " + u.GetNamespace() + "/" + u.GetName()
}

// identity returns the API that carries out plans of a namespace: the caller's
// own, or the one that has the rights of the OperatorGroup's service account.
func (x *execution) identity(ctx context.Context, groups []OperatorGroup) (clusterapi.ReadWriter, error) {
	for i := range groups {
		g := &groups[i]
		if g.Spec.ServiceAccountName == "" {
			continue
		}
		refusal := &Refusal{Plan: x.plan.Namespace + "/" + x.plan.Name, Rule: PlanRuleIdentity}
		if x.o.Identity == nil {
			refusal.Text = fmt.Sprintf("operatorgroup %s/%s names service account %s, and no ControllerOptions.Identity supplies its rights", g.Namespace, g.Name, g.Spec.ServiceAccountName)
			return nil, refusal
		}
		api, err := x.o.Identity(ctx, g.Namespace, g.Spec.ServiceAccountName)
		if err != nil {
			refusal.Text = fmt.Sprintf("service account %s/%s of operatorgroup %s: %v", g.Namespace, g.Spec.ServiceAccountName, g.Name, err)
			return nil, refusal
		}
		return api, nil
	}
	return x.api, nil
}
