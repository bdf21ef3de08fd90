package memory

import (
	"cmp"

	"k8s.io/apimachinery/pkg/util/validation"
)

const rbacGroup = "rbac.authorization.k8s.io"

func validRole(n node, namespaced bool) {
	for _, r := range n.get("rules").items() {
		if r.get("verbs").size() == 0 {
			r.get("verbs").required("verbs must contain at least one value")
		}
		if urls := r.get("nonResourceURLs"); urls.size() > 0 {
			if namespaced {
				urls.invalid("namespaced rules cannot apply to non-resource URLs")
			}
			if r.get("apiGroups").size()+r.get("resources").size()+r.get("resourceNames").size() > 0 {
				urls.invalid("rules cannot apply to both regular resources and non-resource URLs")
			}
			continue
		}
		if r.get("apiGroups").size() == 0 {
			r.get("apiGroups").required("resource rules must supply at least one api group")
		}
		if r.get("resources").size() == 0 {
			r.get("resources").required("resource rules must supply at least one resource")
		}
	}
	if a := n.get("aggregationRule"); a.set() {
		selectors := a.get("clusterRoleSelectors")
		if selectors.size() == 0 {
			selectors.required("at least one clusterRoleSelector required if aggregationRule is non-nil")
		}
		for _, s := range selectors.items() {
			s.selector()
		}
	}
}

func validBinding(n node, namespaced bool) {
	ref := n.get("roleRef")
	if g := ref.get("apiGroup"); cmp.Or(g.text(), rbacGroup) != rbacGroup { // the group is the default
		g.notSupported(rbacGroup)
	}
	kinds := []string{"ClusterRole"}
	if namespaced {
		kinds = []string{"Role", "ClusterRole"}
	}
	ref.get("kind").needsOneOf(kinds...)
	if name := ref.get("name"); name.filled() {
		name.each(segment(name.text(), false))
	}
	for _, s := range n.get("subjects").items() {
		name, group := s.get("name"), s.get("apiGroup")
		there := name.filled()
		switch s.get("kind").text() {
		case "ServiceAccount":
			if there {
				name.each(validation.IsDNS1123Subdomain(name.text()))
			}
			if group.text() != "" {
				group.notSupported("")
			}
			if !namespaced && s.get("namespace").text() == "" {
				s.get("namespace").required("")
			}
		case "User", "Group":
			if cmp.Or(group.text(), rbacGroup) != rbacGroup {
				group.notSupported(rbacGroup)
			}
		default:
			s.get("kind").notSupported("ServiceAccount", "User", "Group")
		}
	}
}

func updatedBinding(old, n node) {
	a, b := old.get("roleRef"), n.get("roleRef")
	for _, name := range []string{"kind", "name"} {
		if a.get(name).text() != b.get(name).text() {
			b.invalid("cannot change roleRef")
			return
		}
	}
}
