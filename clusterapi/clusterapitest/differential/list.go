package differential

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterapitest/internal/probe"
)

// selection makes the options of a list or a watch.
func (r *run) selection(s step) clusterapi.ListOptions {
	text := "run=" + r.id
	if s.selector != "" {
		text += "," + s.selector
	}
	selector, err := labels.Parse(text)
	if err != nil {
		panic(err) // selectors are constants of the generator
	}
	return clusterapi.ListOptions{Namespace: r.namespace(s.namespace), Labels: selector, NodeName: s.node, Limit: s.limit}
}

// list compares two lists: the order, and each object that both have.
func (r *run) list(i int, s step) []found {
	var answers [2]fields
	var items [2]map[string]fields
	for n, side := range r.sides {
		ctx, cancel := context.WithCancel(r.ctx)
		if s.ended {
			cancel()
		}
		answers[n], items[n] = r.listOne(ctx, side, s)
		cancel()
	}
	out := diff(i, s.verb, s.kind.Name, answers[0], answers[1])
	if len(out) > 0 {
		return out
	}
	for name := range items[0] {
		out = append(out, diff(i, s.verb, s.kind.Name, items[0][name], items[1][name])...)
	}
	return out
}

func (r *run) listOne(ctx context.Context, side *side, s step) (fields, map[string]fields) {
	opts := r.selection(s)
	if r.anyRetired(s.kind.Name) {
		opts.Limit = 0 // the retired ones would count
	}
	l, err := side.api.List(ctx, s.kind.gvk, opts)
	f, items := fields{}, map[string]fields{}
	f.addError(r, err)
	if err != nil {
		return f, items
	}
	if l == nil {
		f["list"] = "nil"
		return f, items
	}
	var order []string
	for i := range l.Items {
		u := &l.Items[i]
		if r.retired[objectKey{s.kind.Name, clusterapi.KeyOf(u)}] {
			continue
		}
		name := r.plain(clusterapi.KeyOf(u).String())
		order = append(order, name)
		items[name] = fields{}
		items[name].addObject(r, side, s.kind, u)
		mutate(u)
	}
	f["order"] = strings.Join(order, " ")
	return f, items
}

func (r *run) anyRetired(kind string) bool {
	for key := range r.retired {
		if key.kind == kind {
			return true
		}
	}
	return false
}

// final compares all objects that the run has written.
func (r *run) final(i int) []found {
	var out []found
	for n, key := range r.keys {
		if r.retired[key] || key.Name == "" || r.kinds[n].Namespaced && key.Namespace == "" {
			continue
		}
		var answers [2]fields
		for m, side := range r.sides {
			u, err := side.api.Get(r.ctx, r.kinds[n].gvk, key.NamespacedName)
			f := fields{}
			f.addError(r, err)
			if err == nil {
				f.addObject(r, side, r.kinds[n], u)
				if key.kind == "CustomResourceDefinition" {
					f.addDefinitionStatus(r, u)
				}
			}
			answers[m] = f
		}
		out = append(out, diff(i, "Final", key.kind, answers[0], answers[1])...)
	}
	return out
}

// addDefinitionStatus adds the part of a definition's status that does not depend
// on when its controllers got to it.
func (f fields) addDefinitionStatus(r *run, u *unstructured.Unstructured) {
	if u.GetDeletionTimestamp() != nil {
		return
	}
	for _, condition := range []string{"Established", "NamesAccepted"} {
		f["status."+condition] = fmt.Sprint(probe.IsTrue(u, condition))
	}
	for _, name := range []string{"acceptedNames", "storedVersions"} {
		if v := probe.At(u, "status", name); v != nil {
			f.add("status."+name, r.hide(v))
		}
	}
}
