package preview

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// AccessChange is what a change of a role or of a binding gives and takes. It is
// plain data.
type AccessChange struct {
	Object Object `json:"object"`
	// Subjects are whom it is about, such as "ServiceAccount ns/name", sorted; of a
	// role those that it is bound to.
	Subjects []string `json:"subjects,omitempty"`
	// Gained and Lost are the rights in words, such as "get, list of pods".
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
				role := c.new
				if role == nil {
					role = c.old
				}
				a.Subjects = r.boundTo(ctx, c.Object, role.GetLabels())
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
// thing, and what before allows of that.
func rights(before, after []rbacv1.PolicyRule) []string {
	held := expand(before)
	kept := make(map[string][]rbacv1.PolicyRule)
	verbs := make(map[string][]string)
	for _, one := range expand(after) {
		parts, whole := shared(one, held)
		if whole {
			continue
		}
		what := wordsOf(one)
		verbs[what] = append(verbs[what], one.Verbs[0])
		kept[what] = append(kept[what], parts...)
	}
	var out []string
	for _, what := range slices.Sorted(maps.Keys(verbs)) {
		text := verbsOf(verbs[what]) + " of " + what
		if but := grouped(kept[what], what); len(but) > 0 {
			text += " but for " + strings.Join(but, "; ")
		}
		out = append(out, text)
	}
	return out
}

// grouped words rights: the verbs for each kind of thing, of the thing named what the
// verbs alone.
func grouped(list []rbacv1.PolicyRule, what string) []string {
	verbs := make(map[string][]string)
	for _, one := range list {
		verbs[wordsOf(one)] = append(verbs[wordsOf(one)], one.Verbs[0])
	}
	var out []string
	for _, of := range slices.Sorted(maps.Keys(verbs)) {
		text := verbsOf(verbs[of])
		if of != what {
			text += " of " + of
		}
		out = append(out, text)
	}
	return out
}

// verbsOf words verbs.
func verbsOf(list []string) string {
	if slices.Contains(list, rbacv1.VerbAll) {
		return "everything"
	}
	slices.Sort(list)
	return strings.Join(slices.Compact(list), ", ")
}

// shared returns what rights, each of expand's, allow of another, and reports
// whether that is the whole of it.
func shared(one rbacv1.PolicyRule, rights []rbacv1.PolicyRule) (parts []rbacv1.PolicyRule, whole bool) {
	for _, r := range rights {
		part, ok := common(one, r)
		switch {
		case ok && wordsOf(part) == wordsOf(one) && part.Verbs[0] == one.Verbs[0]:
			return nil, true
		case ok:
			parts = append(parts, part)
		}
	}
	return parts, false
}

// common returns what both of two rights of expand's allow.
func common(a, b rbacv1.PolicyRule) (part rbacv1.PolicyRule, ok bool) {
	verb, ok := narrower(a.Verbs[0], b.Verbs[0])
	if !ok || len(a.NonResourceURLs) != len(b.NonResourceURLs) {
		return part, false
	}
	part.Verbs = []string{verb}
	if len(a.NonResourceURLs) > 0 {
		url, ok := narrowerURL(a.NonResourceURLs[0], b.NonResourceURLs[0])
		part.NonResourceURLs = []string{url}
		return part, ok
	}
	group, sameGroup := narrower(a.APIGroups[0], b.APIGroups[0])
	resource, sameResource := narrowerResource(a.Resources[0], b.Resources[0])
	part.APIGroups, part.Resources = []string{group}, []string{resource}
	part.ResourceNames = a.ResourceNames
	if len(a.ResourceNames) == 0 {
		part.ResourceNames = b.ResourceNames
	}
	sameName := len(a.ResourceNames) == 0 || len(b.ResourceNames) == 0 || a.ResourceNames[0] == b.ResourceNames[0]
	return part, sameGroup && sameResource && sameName
}

// narrower returns the one of two names that the other one covers.
func narrower(a, b string) (name string, ok bool) {
	switch {
	case a == b || b == "*":
		return a, true
	case a == "*":
		return b, true
	}
	return "", false
}

// narrowerResource is narrower for resources: */scale covers deployments/scale.
func narrowerResource(a, b string) (name string, ok bool) {
	if name, ok := narrower(a, b); ok {
		return name, true
	}
	ofA, subA, isSubA := strings.Cut(a, "/")
	ofB, subB, isSubB := strings.Cut(b, "/")
	if !isSubA || !isSubB || subA != subB {
		return "", false
	}
	of, ok := narrower(ofA, ofB)
	return of + "/" + subA, ok
}

// narrowerURL is narrower for URLs: /healthz/* covers all that start with /healthz/.
func narrowerURL(a, b string) (url string, ok bool) {
	prefixA, openA := strings.CutSuffix(a, "*")
	prefixB, openB := strings.CutSuffix(b, "*")
	switch {
	case a == b || openB && strings.HasPrefix(prefixA, prefixB):
		return a, true
	case openA && strings.HasPrefix(prefixB, prefixA):
		return b, true
	}
	return "", false
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

// boundTo are the subjects of the bindings that name a role, or a ClusterRole that
// aggregates it, after the update.
func (r *run) boundTo(ctx context.Context, role Object, of map[string]string) []string {
	names := map[string]bool{role.Name: true}
	if role.Kind == "ClusterRole" {
		r.addAggregates(ctx, names, of)
	}
	var out []string
	for _, kind := range []string{"RoleBinding", "ClusterRoleBinding"} {
		o := clusterapi.ListOptions{Namespace: role.Namespace}
		list, err := clusterapi.ListShared(ctx, r.Cluster, rbacv1.SchemeGroupVersion.WithKind(kind), o)
		if err != nil && len(list) == 0 || role.Namespace != "" && kind == "ClusterRoleBinding" {
			continue // whom is not known then
		}
		for _, binding := range list {
			if b := bindingOf(binding.Unstructured()); b != nil && b.RoleRef.Kind == role.Kind && names[b.RoleRef.Name] {
				out = append(out, subjectsOf(binding.Unstructured())...)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// aggregateTo starts the labels by which a ClusterRole becomes part of another, whose
// name follows by convention.
const aggregateTo = rbacv1.GroupName + "/aggregate-to-"

// addAggregates adds the names of the ClusterRoles that aggregate one with the labels,
// at once or through others. If the ClusterRoles are not known those count that the
// labels name.
func (r *run) addAggregates(ctx context.Context, names map[string]bool, of map[string]string) {
	list, err := clusterapi.ListShared(ctx, r.Cluster, rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), clusterapi.ListOptions{})
	if err != nil {
		for label, value := range of {
			if name, ok := strings.CutPrefix(label, aggregateTo); ok && value == "true" {
				names[name] = true
			}
		}
	}
	var roles []*rbacv1.ClusterRole
	for _, o := range list {
		role, err := clusterapi.FromUnstructured[rbacv1.ClusterRole](o.Unstructured())
		if err == nil && role.AggregationRule != nil {
			roles = append(roles, role)
		}
	}
	for parts := []map[string]string{of}; len(parts) > 0; parts = parts[1:] {
		for _, role := range roles {
			if !names[role.Name] && aggregates(role, parts[0]) {
				names[role.Name] = true
				parts = append(parts, role.Labels)
			}
		}
	}
}

// aggregates reports whether a ClusterRole takes in the rules of one with the labels.
func aggregates(role *rbacv1.ClusterRole, of map[string]string) bool {
	return slices.ContainsFunc(role.AggregationRule.ClusterRoleSelectors, func(s metav1.LabelSelector) bool {
		selector, err := metav1.LabelSelectorAsSelector(&s)
		return err == nil && selector.Matches(labels.Set(of))
	})
}
