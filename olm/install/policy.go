package install

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/olm"
)

// Refusal is the error of an InstallPlan that holds what is not carried out.
// All steps are looked at before the first is written.
type Refusal struct {
	// Plan is the name of the InstallPlan, Operator the CSV that the step
	// belongs to, Object what the step writes as KIND NAMESPACE/NAME. The last
	// two are empty for RuleIdentity.
	Plan, Operator, Object string
	Rule                   Rule
	Text                   string
}

// Rule is a rule that a [Refusal] stands on.
type Rule string

// The rules of what a plan may write.
const (
	// RuleManifest: an object that cannot be read, or is not what its step
	// says.
	RuleManifest Rule = "Manifest"
	// RuleKind: kinds other than those that OLM supports in a bundle.
	RuleKind Rule = "Kind"
	// RuleNamespace: a namespace other than the plan's.
	RuleNamespace Rule = "Namespace"
	// RuleOperator: operators and Subscriptions that are not the plan's.
	RuleOperator Rule = "Operator"
	// RuleDefinition: a CustomResourceDefinition by which stored objects would
	// be lost or become invalid.
	RuleDefinition Rule = "Definition"
	// RuleIdentity: an OperatorGroup that names a service account whose rights
	// the controller cannot take.
	RuleIdentity Rule = "Identity"
)

// Error names plan, step, object and rule.
func (r *Refusal) Error() string {
	switch {
	case r.Rule == RuleIdentity:
		return "attenuated service account query failed - " + r.Text
	case r.final():
		return fmt.Sprintf("the InstallPlan contains invalid data: plan %s, step %s of %s, rule %s: %s", r.Plan, r.Object, r.Operator, r.Rule, r.Text)
	}
	return fmt.Sprintf("plan %s, step %s of %s, rule %s: %s", r.Plan, r.Object, r.Operator, r.Rule, r.Text)
}

// final reports whether nothing but another plan helps.
func (r *Refusal) final() bool { return r.Rule != RuleIdentity && r.Rule != RuleDefinition }

// scopeOf says whether a plan may write a kind, and whether its objects have a
// namespace: the kinds that OLM supports in a bundle, and Subscriptions.
func scopeOf(gk schema.GroupKind) (namespaced, allowed bool) {
	switch gk {
	case schema.GroupKind{Group: olm.Group, Kind: kindCSV},
		schema.GroupKind{Group: olm.Group, Kind: kindSubscription},
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
func stepObject(plan *olm.InstallPlan, s *olm.Step) (*unstructured.Unstructured, error) {
	refuse := func(u *unstructured.Unstructured, rule Rule, text string, args ...any) error {
		object := s.Resource.Kind + " " + s.Resource.Name
		if u != nil {
			object = objectText(u)
		}
		return &Refusal{Plan: plan.Namespace + "/" + plan.Name, Operator: s.Resolving, Object: object, Rule: rule, Text: fmt.Sprintf(text, args...)}
	}
	u, err := decodeObject([]byte(s.Resource.Manifest))
	if err != nil {
		return nil, refuse(nil, RuleManifest, "%v", err)
	}
	kind := s.Resource.Kind
	if kind == kindBundleSecret {
		kind = "Secret"
	}
	if u.GetKind() != kind || u.GetName() != s.Resource.Name && (u.GetName() != "" || u.GetGenerateName() != s.Resource.Name) {
		return nil, refuse(u, RuleManifest, "the step says %s %s", s.Resource.Kind, s.Resource.Name)
	}
	gk := u.GroupVersionKind().GroupKind()
	namespaced, allowed := scopeOf(gk)
	switch {
	case !allowed:
		return nil, refuse(u, RuleKind, "kind %s is not supported in a bundle", gk)
	case !namespaced:
		u.SetNamespace("")
	case u.GetNamespace() == "":
		u.SetNamespace(plan.Namespace)
	case u.GetNamespace() != plan.Namespace:
		return nil, refuse(u, RuleNamespace, "the plan writes to namespace %s alone", plan.Namespace)
	}
	if !slices.Contains(plan.Spec.ClusterServiceVersionNames, s.Resolving) {
		return nil, refuse(u, RuleOperator, "%s is not an operator of the plan", s.Resolving)
	}
	switch gk.Kind {
	case kindCSV:
		if u.GetName() != s.Resolving {
			return nil, refuse(u, RuleOperator, "the step is one of %s", s.Resolving)
		}
	case kindSubscription:
		if starting, _, _ := unstructured.NestedString(u.Object, "spec", "startingCSV"); starting != s.Resolving {
			return nil, refuse(u, RuleOperator, "it asks for %q, and the step is one of %s", starting, s.Resolving)
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
func (x *execution) identity(ctx context.Context, groups []olm.OperatorGroup) (clusterapi.ReadWriter, error) {
	for i := range groups {
		g := &groups[i]
		if g.Spec.ServiceAccountName == "" {
			continue
		}
		refusal := &Refusal{Plan: x.plan.Namespace + "/" + x.plan.Name, Rule: RuleIdentity}
		if x.o.Identity == nil {
			refusal.Text = fmt.Sprintf("operatorgroup %s/%s names service account %s, and no Options.Identity supplies its rights", g.Namespace, g.Name, g.Spec.ServiceAccountName)
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
