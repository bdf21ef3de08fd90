package preview

import (
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// AccessChange is what a change of a role or of a binding gives and takes. It is
// plain data.
type AccessChange struct {
	Object Object `json:"object"`
	// Subjects are whom it is about, such as "ServiceAccount ns/name", sorted; of a
	// role those that it is bound to.
	Subjects []string `json:"subjects,omitempty"`
	// Gained and Lost are the rights in words, such as "get, list of pods in ns".
	Gained []string `json:"gained,omitempty"`
	Lost   []string `json:"lost,omitempty"`
}

// access finds the rights that change.
func (r *run) access(ctx context.Context, p *Preview) []AccessChange {
	var out []AccessChange
	for i := range p.Changes {
		c := &p.Changes[i]
		if c.Object.Group != rbacv1.GroupName || c.Action != Create && c.Action != Update && c.Action != Delete {
			continue
		}
		switch c.Object.Kind {
		case "Role", "ClusterRole":
			old, new := rulesOf(c.old), rulesOf(c.new)
			a := AccessChange{Object: c.Object, Gained: rights(old, new), Lost: rights(new, old)}
			if len(a.Gained)+len(a.Lost) > 0 {
				a.Subjects = r.boundTo(ctx, c.Object)
				out = append(out, a)
			}
		case "RoleBinding", "ClusterRoleBinding":
			old, new := subjectsOf(c.old), subjectsOf(c.new)
			if s := without(new, old); len(s) > 0 {
				out = append(out, AccessChange{Object: c.Object, Subjects: s, Gained: []string{grantOf(c.new, c.Object)}})
			}
			if s := without(old, new); len(s) > 0 {
				out = append(out, AccessChange{Object: c.Object, Subjects: s, Lost: []string{grantOf(c.old, c.Object)}})
			}
		}
	}
	return out
}

// rulesOf are the rules of a role; none of one that is not there.
func rulesOf(role *unstructured.Unstructured) []rbacv1.PolicyRule {
	if role == nil {
		return nil
	}
	r, err := clusterapi.FromUnstructured[rbacv1.ClusterRole](role) // a Role has the same rules
	if err != nil {
		return nil
	}
	return r.Rules
}

// rights words what after allows and before does not: the verbs for each kind of
// thing.
func rights(before, after []rbacv1.PolicyRule) []string {
	verbs := make(map[string][]string)
	var order []string
	for _, one := range expand(after) {
		if slices.ContainsFunc(before, func(r rbacv1.PolicyRule) bool { return allows(r, one) }) {
			continue
		}
		what := wordsOf(one)
		if verbs[what] == nil {
			order = append(order, what)
		}
		verbs[what] = append(verbs[what], one.Verbs[0])
	}
	slices.Sort(order)
	out := make([]string, len(order))
	for i, what := range order {
		list := verbs[what]
		slices.Sort(list)
		text := strings.Join(slices.Compact(list), ", ")
		if slices.Contains(list, rbacv1.VerbAll) {
			text = "everything"
		}
		out[i] = text + " of " + what
	}
	return out
}

// expand returns rules with one verb, and one thing each.
func expand(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, r := range rules {
		for _, verb := range r.Verbs {
			for _, url := range r.NonResourceURLs {
				out = append(out, rbacv1.PolicyRule{Verbs: []string{verb}, NonResourceURLs: []string{url}})
			}
			for _, group := range r.APIGroups {
				for _, resource := range r.Resources {
					one := rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{group}, Resources: []string{resource}}
					if len(r.ResourceNames) == 0 {
						out = append(out, one)
					}
					for _, name := range r.ResourceNames {
						one.ResourceNames = []string{name}
						out = append(out, one)
					}
				}
			}
		}
	}
	return out
}

// allows reports that a rule allows what one of expand's does.
func allows(r, one rbacv1.PolicyRule) bool {
	if !matches(r.Verbs, one.Verbs[0]) {
		return false
	}
	if len(one.NonResourceURLs) > 0 {
		return slices.ContainsFunc(r.NonResourceURLs, func(url string) bool {
			prefix, open := strings.CutSuffix(url, "*")
			return url == one.NonResourceURLs[0] || open && strings.HasPrefix(one.NonResourceURLs[0], prefix)
		})
	}
	resource := one.Resources[0]
	_, sub, isSub := strings.Cut(resource, "/")
	return matches(r.APIGroups, one.APIGroups[0]) &&
		(matches(r.Resources, resource) || isSub && slices.Contains(r.Resources, "*/"+sub)) &&
		(len(r.ResourceNames) == 0 || len(one.ResourceNames) > 0 && slices.Contains(r.ResourceNames, one.ResourceNames[0]))
}

func matches(list []string, one string) bool {
	return slices.Contains(list, one) || slices.Contains(list, "*")
}

// wordsOf names the thing of a rule of expand's.
func wordsOf(one rbacv1.PolicyRule) string {
	if len(one.NonResourceURLs) > 0 {
		return "the URL " + one.NonResourceURLs[0]
	}
	resource, group := one.Resources[0], one.APIGroups[0]
	text := resource
	switch {
	case resource == "*" && group == "*":
		text = "all resources"
	case resource == "*":
		text = "all resources of the group " + fmt.Sprintf("%q", group)
	case group == "*":
		text += " of all groups"
	case group != "":
		name, sub, isSub := strings.Cut(resource, "/")
		text = name + "." + group
		if isSub {
			text += "/" + sub
		}
	}
	if len(one.ResourceNames) > 0 {
		text += fmt.Sprintf(" %q", one.ResourceNames[0])
	}
	return text
}

// binding is what both kinds of bindings have.
func bindingOf(obj *unstructured.Unstructured) *rbacv1.RoleBinding {
	if obj == nil {
		return nil
	}
	b, err := clusterapi.FromUnstructured[rbacv1.RoleBinding](obj)
	if err != nil {
		return nil
	}
	return b
}

// subjectsOf are the subjects of a binding, in words, sorted.
func subjectsOf(obj *unstructured.Unstructured) []string {
	b := bindingOf(obj)
	if b == nil {
		return nil
	}
	var out []string
	for _, s := range b.Subjects {
		name := s.Name
		if s.Namespace != "" {
			name = s.Namespace + "/" + name
		}
		out = append(out, s.Kind+" "+name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func without(list, others []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(others, s) })
}

// grantOf words what a binding gives.
func grantOf(obj *unstructured.Unstructured, o Object) string {
	b := bindingOf(obj)
	where := "in all namespaces"
	if o.Namespace != "" {
		where = "in " + o.Namespace
	}
	return fmt.Sprintf("what %s %s allows, %s", b.RoleRef.Kind, b.RoleRef.Name, where)
}

// boundTo are the subjects of the bindings that name a role, after the update.
func (r *run) boundTo(ctx context.Context, role Object) []string {
	var out []string
	for _, kind := range []string{"RoleBinding", "ClusterRoleBinding"} {
		o := clusterapi.ListOptions{Namespace: role.Namespace}
		list, err := clusterapi.ListShared(ctx, r.Cluster, rbacv1.SchemeGroupVersion.WithKind(kind), o)
		if err != nil && len(list) == 0 || role.Namespace != "" && kind == "ClusterRoleBinding" {
			continue // whom is not known then
		}
		for _, binding := range list {
			if b := bindingOf(binding.Unstructured()); b != nil && b.RoleRef.Kind == role.Kind && b.RoleRef.Name == role.Name {
				out = append(out, subjectsOf(binding.Unstructured())...)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
