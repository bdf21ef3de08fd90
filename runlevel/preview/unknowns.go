package preview

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/objects"
	"github.com/clusterupdate/clusterupdate/internal/text"
	"github.com/clusterupdate/clusterupdate/runlevel"
)

// unknowns are the calls of oc adm inspect that would collect what is missing.
func (r *run) unknowns(p *Preview) []string {
	var out []string
	missing := func(gvk schema.GroupVersionKind, namespace string) {
		text := r.resource(gvk)
		if namespace != "" {
			text += " -n " + namespace
		}
		out = append(out, text)
	}
	for i := range p.Changes {
		c := &p.Changes[i]
		if c.Action == Unknown {
			missing(c.Object.GroupVersionKind, c.Object.Namespace)
			if _, known := objects.TypeOf(c.Object.GroupVersionKind); !known && r.schemas[c.Object.GroupVersionKind] == nil {
				missing(definitionKind, "")
			}
		}
		if c.Rolls != nil && c.Rolls.Unknown != "" {
			missing(podKind, c.Object.Namespace)
		}
	}
	if len(r.namespaces) > 0 {
		missing(namespaceKind, "")
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// resource names a kind as oc does: plural, then group.
func (r *run) resource(gvk schema.GroupVersionKind) string {
	plural := r.plurals[gvk.GroupKind()]
	if plural == "" {
		guess, _ := meta.UnsafeGuessKindToResource(gvk)
		plural = guess.Resource
	}
	return schema.GroupResource{Group: gvk.Group, Resource: plural}.String()
}

// assumed lists what the preview takes for granted.
func (r *run) assumed(p *Preview) []string {
	out := []string{
		"What the update waits for comes about: workloads roll out, definitions are established, operators report their versions.",
		"What operators change once they run is not part of it.",
		"Rules in CEL (x-kubernetes-validations) are not evaluated.",
	}
	if r.o.Server == nil {
		out = append(out, "Admission is not asked: webhooks and policies may change or refuse objects.")
	}
	if len(r.namespaces) > 0 {
		out = append(out, "Namespaces that were not collected exist: "+strings.Join(slices.Sorted(maps.Keys(r.namespaces)), ", ")+".")
	}
	if len(r.made) > 0 {
		out = append(out, "Operators of the release make these namespaces: "+strings.Join(r.made, ", ")+".")
	}
	if kinds := r.assumedKinds(p); len(kinds) > 0 {
		out = append(out, "All objects of these kinds were recorded: "+strings.Join(kinds, ", ")+".")
	}
	if kinds := r.shapeless(p); len(kinds) > 0 {
		out = append(out, "Lists are compared as one value each, since no definition says what their elements are known by: "+strings.Join(kinds, ", ")+".")
	}
	if r.o.Mode == runlevel.ApplyMerge {
		return append(out, "Objects are merged and updated, as the cluster-version operator does it.")
	}
	foreign := 0
	for i := range p.Changes {
		if c := &p.Changes[i]; c.old != nil && (c.Action == Update || c.Action == keep) && c.Object.GroupKind() != operatorGroup && !r.isOurs(c) {
			foreign++
		}
	}
	if foreign > 0 {
		out = append(out, fmt.Sprintf("Removals are not predicted for %s whose managedFields do not name %q: an apply takes away only what it has set itself.", text.Plural(foreign, "object"), clusterapi.ManagerPayload))
	}
	return out
}

// assumedKinds are the kinds of which objects count as absent on the word of the reader
// alone, sorted.
func (r *run) assumedKinds(p *Preview) []string {
	kinds := make(map[string]bool)
	for i := range p.Changes {
		c := &p.Changes[i]
		if c.old == nil && c.Action != Unknown && clusterapi.Assumed(r.o.Reader, c.Object.GroupVersionKind) {
			kinds[c.Object.Kind] = true
		}
	}
	return slices.Sorted(maps.Keys(kinds))
}

// shapeless are the kinds of objects that were compared without a Go type and
// without a schema, sorted.
func (r *run) shapeless(p *Preview) []string {
	var out []string
	for i := range p.Changes {
		c := &p.Changes[i]
		gvk := c.Object.GroupVersionKind
		if c.old == nil || c.new == nil || gvk.GroupKind() == definitionKind.GroupKind() || r.schemas[gvk] != nil {
			continue
		}
		if _, known := objects.TypeOf(gvk); !known {
			out = append(out, gvk.GroupKind().String())
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// isOurs reports that fields of an object are those of an earlier apply of ours, or
// become so.
func (r *run) isOurs(c *Change) bool {
	if n := r.objects[refOf(c.Object.GroupVersionKind, c.Object.NamespacedName)]; n != nil && n.adopted {
		return true
	}
	for _, e := range c.old.GetManagedFields() {
		if e.Manager == clusterapi.ManagerPayload && e.Operation == "Apply" {
			return true
		}
	}
	return false
}
