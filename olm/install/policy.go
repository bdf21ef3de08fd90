package install

import (
	"context"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
	"github.com/clusterupdate/clusterupdate/olm/internal/objects"
)

// Refusal is the error of an InstallPlan that holds what is not carried out.
// All steps are looked at before the first is written.
type Refusal struct {
	// Plan is the name of the InstallPlan, Operator the CSV that the step
	// belongs to, Object what the step writes as KIND NAMESPACE/NAME. The last
	// two are empty for Identity.
	Plan, Operator, Object string
	// Rule is the rule that is broken:
	//
	//	Manifest    an object cannot be read, or is not what its step says
	//	Kind        OLM does not support the kind in a bundle
	//	Operator    the operator or Subscription is not the plan's
	//	Definition  stored objects would be lost or become invalid by a
	//	            CustomResourceDefinition
	//	Exists      an operator or a Subscription of the name is there, and is not
	//	            the plan's: a copy of an operator of another namespace, or a
	//	            Subscription to something else; the plan waits until it is gone
	//	Identity    an OperatorGroup names a service account whose rights the
	//	            controller cannot take
	Rule string
	Text string
}

// The rules for what a plan may write: see [Refusal].
const (
	ruleManifest   = "Manifest"
	ruleKind       = "Kind"
	ruleOperator   = "Operator"
	ruleDefinition = "Definition"
	ruleExists     = "Exists"
	ruleIdentity   = "Identity"
)

// Error names plan, step, object and rule.
func (r *Refusal) Error() string {
	if r.Rule == ruleIdentity {
		return "attenuated service account query failed - " + r.Text
	}
	text := fmt.Sprintf("plan %s, step %s of %s, rule %s: %s", r.Plan, r.Object, r.Operator, r.Rule, r.Text)
	if r.final() {
		return "the InstallPlan contains invalid data: " + text
	}
	return text
}

// final reports whether nothing but another plan helps.
func (r *Refusal) final() bool { return !r.waits() && r.Rule != ruleDefinition }

// waits reports whether the plan stays in phase Installing until somebody has
// changed the cluster.
func (r *Refusal) waits() bool { return r.Rule == ruleIdentity || r.Rule == ruleExists }

// scopes are the kinds that a plan may write, those that OLM supports in a bundle
// and Subscriptions: true if their objects have a namespace.
var scopes = map[schema.GroupKind]bool{
	{Group: olmapi.Group, Kind: kindCSV}:          true,
	{Group: olmapi.Group, Kind: kindSubscription}: true,
	{Kind: "Secret"}:                                             true,
	{Kind: "ConfigMap"}:                                          true,
	{Kind: "Service"}:                                            true,
	{Kind: "ServiceAccount"}:                                     true,
	{Group: rbacv1.GroupName, Kind: "Role"}:                      true,
	{Group: rbacv1.GroupName, Kind: "RoleBinding"}:               true,
	{Group: "policy", Kind: "PodDisruptionBudget"}:               true,
	{Group: "monitoring.coreos.com", Kind: "PrometheusRule"}:     true,
	{Group: "monitoring.coreos.com", Kind: "ServiceMonitor"}:     true,
	{Group: "autoscaling.k8s.io", Kind: "VerticalPodAutoscaler"}: true,
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}:          true,
	{Group: groupCRD, Kind: kindCRD}:                             false,
	{Group: rbacv1.GroupName, Kind: "ClusterRole"}:               false,
	{Group: rbacv1.GroupName, Kind: "ClusterRoleBinding"}:        false,
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:          false,
	{Group: "console.openshift.io", Kind: "ConsoleCLIDownload"}:  false,
	{Group: "console.openshift.io", Kind: "ConsoleLink"}:         false,
	{Group: "console.openshift.io", Kind: "ConsolePlugin"}:       false,
	{Group: "console.openshift.io", Kind: "ConsoleQuickStart"}:   false,
	{Group: "console.openshift.io", Kind: "ConsoleYAMLSample"}:   false,
}

// stepObject reads the object of a step and judges it by all rules that need
// nothing but the plan.
func stepObject(plan *olmapi.InstallPlan, s *olmapi.Step) (*unstructured.Unstructured, error) {
	refuse := func(u *unstructured.Unstructured, rule string, text string, args ...any) error {
		object := s.Resource.Kind + " " + s.Resource.Name
		if u != nil {
			object = objectText(u)
		}
		return &Refusal{
			Plan: planName(plan), Operator: s.Resolving, Object: object, Rule: rule, Text: fmt.Sprintf(text, args...),
		}
	}
	u, err := objects.Decode([]byte(s.Resource.Manifest))
	if err != nil {
		return nil, refuse(nil, ruleManifest, "%v", err)
	}
	kind := s.Resource.Kind
	if kind == kindBundleSecret {
		kind = "Secret"
	}
	name := u.GetName()
	if name == "" {
		name = u.GetGenerateName()
	}
	if u.GetKind() != kind || name != s.Resource.Name {
		return nil, refuse(u, ruleManifest, "the step says %s %s", s.Resource.Kind, s.Resource.Name)
	}
	gk := u.GroupVersionKind().GroupKind()
	namespaced, allowed := scopes[gk]
	switch {
	case !allowed:
		return nil, refuse(u, ruleKind, "kind %s is not supported in a bundle", gk)
	case namespaced:
		u.SetNamespace(plan.Namespace) // whatever the manifest says
	default:
		u.SetNamespace("")
	}
	if !slices.Contains(plan.Spec.ClusterServiceVersionNames, s.Resolving) {
		return nil, refuse(u, ruleOperator, "%s is not an operator of the plan", s.Resolving)
	}
	switch gk.Kind {
	case kindCSV:
		if u.GetName() != s.Resolving {
			return nil, refuse(u, ruleOperator, "the step is one of %s", s.Resolving)
		}
	case kindSubscription:
		if starting, _, _ := unstructured.NestedString(u.Object, "spec", "startingCSV"); starting != s.Resolving {
			return nil, refuse(u, ruleOperator, "it asks for %q, and the step is one of %s", starting, s.Resolving)
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
func (x *execution) identity(ctx context.Context, groups []olmapi.OperatorGroup) (clusterapi.ReadWriter, error) {
	for i := range groups {
		g := &groups[i]
		account := g.Spec.ServiceAccountName
		if account == "" {
			continue
		}
		refusal := &Refusal{Plan: x.plan.Namespace + "/" + x.plan.Name, Rule: ruleIdentity}
		if x.pass.c.o.Identity == nil {
			refusal.Text = fmt.Sprintf("operatorgroup %s/%s names service account %s, "+
				"and no Options.Identity supplies its rights", g.Namespace, g.Name, account)
			return nil, refusal
		}
		api, err := x.pass.c.o.Identity(ctx, g.Namespace, account)
		if err != nil {
			refusal.Text = fmt.Sprintf("service account %s/%s of operatorgroup %s: %v", g.Namespace, account, g.Name, err)
			return nil, refusal
		}
		return api, nil
	}
	return x.pass.api, nil
}
