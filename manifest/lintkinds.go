package manifest

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterupdate/clusterupdate/clusterapi/fieldchange"
	"github.com/clusterupdate/clusterupdate/internal/apiserver"
	"github.com/clusterupdate/clusterupdate/internal/text"
)

// servedGroups are the API groups that a cluster serves without a definition in
// the release: those of Kubernetes, of OpenShift's API servers, and of the API
// servers that its operators run.
var servedGroups = sets.New(
	"", "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "apps", "authentication.k8s.io",
	"authorization.k8s.io", "autoscaling", "batch", "certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io",
	"events.k8s.io", "flowcontrol.apiserver.k8s.io", "internal.apiserver.k8s.io", "networking.k8s.io", "node.k8s.io", "policy",
	"rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io", "storagemigration.k8s.io",

	"apps.openshift.io", "authorization.openshift.io", "build.openshift.io", "image.openshift.io", "oauth.openshift.io",
	"project.openshift.io", "quota.openshift.io", "route.openshift.io", "security.openshift.io", "template.openshift.io",
	"user.openshift.io",

	"custom.metrics.k8s.io", "external.metrics.k8s.io", "metrics.k8s.io", "packages.operators.coreos.com",
)

// definitions are the applied CustomResourceDefinitions by what they define.
func (l *linter) definitions() map[schema.GroupKind][]*Manifest {
	out := make(map[schema.GroupKind][]*Manifest)
	for _, m := range l.applied {
		if m.GVK().GroupKind() == crdKind {
			gk := apiserver.Kind(m.Object().Object)
			out[gk] = append(out[gk], m)
		}
	}
	return out
}

func (l *linter) checkDefinitions() {
	defined := l.definitions()
	objects := make(map[schema.GroupKind][]*Manifest)
	var kinds []schema.GroupKind
	for _, m := range l.applied {
		gk := m.GVK().GroupKind()
		if servedGroups.Has(gk.Group) || len(defined[gk]) > 0 {
			continue
		}
		if len(objects[gk]) == 0 {
			kinds = append(kinds, gk)
		}
		objects[gk] = append(objects[gk], m)
	}
	if len(kinds) == 0 {
		return
	}
	excluded := make(map[schema.GroupKind]string)
	for _, e := range l.excluded {
		if e.Manifest.GVK().GroupKind() == crdKind {
			gk := apiserver.Kind(e.Manifest.Object().Object)
			if _, ok := excluded[gk]; !ok {
				excluded[gk] = e.Reason
			}
		}
	}
	for _, gk := range kinds {
		note := ""
		if reason, ok := excluded[gk]; ok {
			note = ", the definition is excluded: " + reason
		}
		l.report(objects[gk][0], "nothing defines %s (%s)%s", gk, text.Plural(len(objects[gk]), "object"), note)
	}
}

func (l *linter) checkVersions() {
	defined := l.definitions()
	for _, m := range l.applied {
		gvk := m.GVK()
		definitions := defined[gvk.GroupKind()]
		served := len(definitions) == 0
		for _, d := range definitions {
			served = served || fieldchange.ServedVersions(d.Object())[gvk.Version]
		}
		if !served {
			l.report(m, "%s of the same release does not serve version %q", definitions[0].Filename, gvk.Version)
		}
	}
}

func (l *linter) checkDefinitionOrder() {
	defined := l.definitions()
	places := l.places()
	for _, m := range l.applied {
		places.check(l, m, defined[m.GVK().GroupKind()])
	}
}

func (l *linter) checkNamespaceOrder() {
	made := make(map[string][]*Manifest)
	for _, m := range l.applied {
		if m.GVK().GroupKind() == (schema.GroupKind{Kind: "Namespace"}) {
			name := m.Identity().Name
			made[name] = append(made[name], m)
		}
	}
	places := l.places()
	for _, m := range l.applied {
		if name := m.Identity().Namespace; name != "" {
			places.check(l, m, made[name])
		}
	}
}
