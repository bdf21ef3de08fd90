package dump_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/dump"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// modelKind is a kind of the clusters that the properties are about.
type modelKind struct {
	gvk        schema.GroupVersionKind
	resource   string
	namespaced bool
	// gathered says that must-gather takes it whole, into single files.
	gathered bool
}

var modelKinds = []modelKind{
	{gvk("v1 Pod"), "pods", true, false},
	{gvk("v1 ConfigMap"), "configmaps", true, false},
	{gvk("policy/v1 PodDisruptionBudget"), "poddisruptionbudgets", true, false},
	{gvk("route.openshift.io/v1 Route"), "routes", true, false},
	{gvk("made.up.io/v1 Thing"), "things", true, false},
	{gvk("v1 Node"), "nodes", false, true},
	{gvk("machineconfiguration.openshift.io/v1 MachineConfigPool"), "machineconfigpools", false, true},
	{gvk("rbac.authorization.k8s.io/v1 ClusterRole"), "clusterroles", false, false},
	{gvk("config.openshift.io/v1 ClusterOperator"), "clusteroperators", false, true},
	{gvk("config.openshift.io/v1 ImagePolicy"), "imagepolicies", true, false},
}

var modelSpaces = []string{"a", "b", "c"}

// model is a cluster and what was collected of it.
type model struct {
	tree   fstest.MapFS
	all    map[schema.GroupVersionKind][]*unstructured.Unstructured
	unread map[string]bool // kinds that are not served
}

func groupFolder(group string) string {
	if group == "" {
		return "core"
	}
	return group
}

func asJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}

func listText(k modelKind, objects []*unstructured.Unstructured, next string, typed bool) string {
	items := []any{}
	for _, u := range objects {
		item := u.DeepCopy().Object
		if typed {
			delete(item, "kind")
			delete(item, "apiVersion")
		}
		items = append(items, item)
	}
	list := map[string]any{"apiVersion": "v1", "kind": "List", "items": items, "metadata": map[string]any{"continue": next}}
	if typed {
		list["apiVersion"], list["kind"] = k.gvk.GroupVersion().String(), k.gvk.Kind+"List"
	}
	return asJSON(list)
}

// drawCluster makes a cluster and a must-gather with coverage cut at random.
func drawCluster(rt *rapid.T) *model {
	m := &model{tree: fstest.MapFS{}, all: map[schema.GroupVersionKind][]*unstructured.Unstructured{}, unread: map[string]bool{}}
	root := "must-gather.local.1/image/"
	write := func(name, text string) { m.tree[root+name] = &fstest.MapFile{Data: []byte("---\n" + text + "\n")} }
	write("namespaces/a/a.yaml", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"}}`)
	if rapid.Bool().Draw(rt, "list of namespaces") {
		var objects []*unstructured.Unstructured
		for _, ns := range modelSpaces {
			u := &unstructured.Unstructured{Object: map[string]any{}}
			u.SetName(ns)
			objects = append(objects, u)
		}
		write("cluster-scoped-resources/core/namespaces.yaml", listText(modelKind{gvk: gvk("v1 Namespace")}, objects, "", true))
	}
	groups := map[string][]string{}
	for _, k := range modelKinds {
		served := rapid.IntRange(0, 5).Draw(rt, k.gvk.Kind+" is served") > 0
		if !served {
			m.unread[k.gvk.Kind] = true
			continue
		}
		entry := k.resource + " " + k.gvk.Kind
		if !k.namespaced {
			entry += " cluster"
		}
		groups[k.gvk.Group] = append(groups[k.gvk.Group], entry)
		spaces := []string{""}
		if k.namespaced {
			spaces = modelSpaces
		}
		var everywhere []*unstructured.Unstructured
		for _, ns := range spaces {
			for i := range rapid.IntRange(0, 3).Draw(rt, "objects") {
				u := &unstructured.Unstructured{Object: map[string]any{}}
				u.SetGroupVersionKind(k.gvk)
				u.SetNamespace(ns)
				u.SetName(fmt.Sprintf("x%d", i))
				everywhere = append(everywhere, u)
			}
		}
		m.all[k.gvk] = everywhere
		if k.gvk.Group == "config.openshift.io" {
			if rapid.Bool().Draw(rt, "listed") {
				write("cluster-scoped-resources/config.openshift.io/"+k.resource+".yaml", listText(k, everywhere, "", rapid.Bool().Draw(rt, "typed") || len(everywhere) == 0))
				continue
			}
		}
		for _, ns := range spaces {
			var here []*unstructured.Unstructured
			for _, u := range everywhere {
				if u.GetNamespace() == ns {
					here = append(here, u)
				}
			}
			folder := "cluster-scoped-resources/" + groupFolder(k.gvk.Group)
			if ns != "" {
				folder = "namespaces/" + ns + "/" + groupFolder(k.gvk.Group)
			}
			how := rapid.SampledFrom([]string{"list", "pages", "files", "nothing"}).Draw(rt, "how")
			if k.gathered {
				how = "all files"
			} else if ns == "" && how != "nothing" {
				how = "files"
			}
			keep := len(here)
			if how == "pages" || how == "files" {
				keep = rapid.IntRange(0, len(here)).Draw(rt, "keep")
			}
			switch how {
			case "list":
				write(folder+"/"+k.resource+".yaml", listText(k, here, "", rapid.Bool().Draw(rt, "typed")))
			case "pages":
				write(folder+"/"+k.resource+".yaml", listText(k, here[:keep], "more", true))
			case "files", "all files":
				for _, u := range here[:keep] {
					write(folder+"/"+k.resource+"/"+u.GetName()+".yaml", asJSON(u.Object))
				}
			}
		}
	}
	// Discovery tells the truth, as far as it is there.
	if rapid.Bool().Draw(rt, "discovery") {
		text := "apiVersion: apidiscovery.k8s.io/v2\nkind: APIGroupDiscoveryList\nitems:\n- metadata: {name: always}\n  versions: []\n"
		for _, k := range modelKinds {
			if entries := groups[k.gvk.Group]; k.gvk.Group != "" && len(entries) > 0 {
				one := group(k.gvk.Group, "v1", entries...)
				switch rapid.IntRange(0, 3).Draw(rt, "stale") {
				case 0:
					one = strings.Replace(one, "Current", "Stale", 1)
					one = one[:strings.LastIndex(one, "    - resource")]
				case 1:
					one = one[:strings.LastIndex(one, "      responseKind")]
				}
				text += one
				delete(groups, k.gvk.Group)
			}
		}
		write("aggregated-discovery-apis.yaml", text)
	}
	return m
}

// checkTruth asks for everything and compares with the cluster.
func checkTruth(rt *rapid.T, m *model, r *dump.Recording) {
	ctx := rt.Context()
	for _, k := range modelKinds {
		exists := map[string]bool{}
		for _, u := range m.all[k.gvk] {
			exists[clusterapi.KeyOf(u).String()] = true
		}
		spaces := []string{""}
		if k.namespaced {
			spaces = append(slices.Clone(modelSpaces), "d")
		}
		for _, ns := range spaces {
			for _, name := range []string{"x0", "x1", "x2", "x9"} {
				key := clusterapi.Key(ns, name)
				u, err := r.Get(ctx, k.gvk, key)
				switch {
				case err == nil && (clusterapi.KeyOf(u) != key || !exists[key.String()] || u.GroupVersionKind() != k.gvk):
					rt.Errorf("%s %s: got %s", k.gvk.Kind, key, asJSON(u.Object))
				case err == nil || errors.Is(err, clusterapi.ErrNotCollected):
				case apierrors.IsNotFound(err):
					checktest.FailIf(rt, exists[key.String()], "%s %s exists: %v", k.gvk.Kind, key, err)
				case meta.IsNoMatchError(err):
					checktest.FailIf(rt, !m.unread[k.gvk.Kind], "%s is served: %v", k.gvk.Kind, err)
				default:
					rt.Errorf("%s %s: %v", k.gvk.Kind, key, err)
				}
			}
		}
		for _, ns := range append(spaces, "") {
			list, err := r.List(ctx, k.gvk, clusterapi.ListOptions{Namespace: ns})
			if meta.IsNoMatchError(err) {
				checktest.FailIf(rt, !m.unread[k.gvk.Kind], "%s is served: %v", k.gvk.Kind, err)
				continue
			}
			got := map[string]bool{}
			if list != nil {
				for i := range list.Items {
					key := clusterapi.KeyOf(&list.Items[i])
					if got[key.String()] || !exists[key.String()] || ns != "" && key.Namespace != ns {
						rt.Errorf("list of %s %s has %s", k.gvk.Kind, ns, key)
					}
					got[key.String()] = true
				}
			}
			var partial *dump.PartialError
			checktest.FailIf(rt, err != nil && !errors.As(err, &partial), "list of %s: %v", k.gvk.Kind, err)
			for _, u := range m.all[k.gvk] {
				key := clusterapi.KeyOf(u)
				switch {
				case got[key.String()] || ns != "" && key.Namespace != ns:
				case partial == nil:
					rt.Errorf("a complete list of %s %q lacks %s", k.gvk.Kind, ns, key)
				case partial.AllKnown && !slices.Contains(partial.Namespaces, key.Namespace):
					rt.Errorf("list of %s %q lacks %s: %v", k.gvk.Kind, ns, key, partial)
				}
			}
			checktest.FailIf(rt, partial != nil && !slices.IsSorted(partial.Namespaces), "not sorted: %+v", partial)
		}
	}
}

// TestNothingIsDenied: whatever was collected of a cluster, no answer is wrong.
func TestNothingIsDenied(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := drawCluster(rt)
		r := checktest.Must(dump.Open(rt.Context(), m.tree, dump.Options{}))
		for _, p := range r.Problems() {
			if !strings.Contains(p.String(), "nothing says the kind") { // of Things there may be no trace
				rt.Errorf("problem: %s", p)
			}
		}
		checkTruth(rt, m, r)
	})
}

// TestOnlyWhatIsBrokenIsLost: files are cut off, or become something else. What is
// in the others is there, and what was in them is not denied.
func TestOnlyWhatIsBrokenIsLost(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := drawCluster(rt)
		before := checktest.Must(dump.Open(rt.Context(), m.tree, dump.Options{}))
		var names []string
		for name := range m.tree {
			names = append(names, name)
		}
		slices.Sort(names)
		lost := map[string]bool{}
		for range rapid.IntRange(1, 3).Draw(rt, "broken files") {
			name := rapid.SampledFrom(names).Draw(rt, "broken")
			old := m.tree[name].Data
			var data []byte
			switch rapid.IntRange(0, 3).Draw(rt, "how") {
			case 0: // cut off: all are JSON behind a marker
				data = old[:rapid.IntRange(0, max(len(old)-3, 0)).Draw(rt, "at")]
				if strings.Contains(name, "discovery") {
					data = old[:min(len(old), 20)]
				}
			case 1:
				data = append([]byte{0xff, 0xfe, 0}, rapid.SliceOf(rapid.Byte()).Draw(rt, "bytes")...)
			case 2:
				data = []byte("]")
			case 3:
				data = append(slices.Clone(old), "---\n\x00\xff\xff{{{"...)
			}
			m.tree[name] = &fstest.MapFile{Data: data}
			lost[name] = true
		}
		r, err := dump.Open(rt.Context(), m.tree, dump.Options{})
		if err != nil {
			if strings.Contains(err.Error(), "no object could be read") {
				return
			}
			rt.Fatal(err)
		}
		checkTruth(rt, m, r)
		checktest.FailIf(rt, len(r.Problems()) == 0, "no problem tells of %v", lost)
		for _, k := range modelKinds {
			for _, u := range m.all[k.gvk] {
				key := clusterapi.KeyOf(u)
				folder := "must-gather.local.1/image/cluster-scoped-resources/" + groupFolder(k.gvk.Group) + "/" + k.resource
				if key.Namespace != "" && k.gvk.Group != "config.openshift.io" {
					folder = "must-gather.local.1/image/namespaces/" + key.Namespace + "/" + groupFolder(k.gvk.Group) + "/" + k.resource
				}
				if lost[folder+".yaml"] || lost[folder+"/"+key.Name+".yaml"] || k.gvk.Group == "config.openshift.io" {
					continue
				}
				_, was := before.Get(rt.Context(), k.gvk, key)
				_, is := r.Get(rt.Context(), k.gvk, key)
				checktest.FailIf(rt, was == nil && is != nil, "%s %s is lost with %v: %v", k.gvk.Kind, key, lost, is)
			}
		}
	})
}

// TestArchivesAndTreesAgree on any cluster.
func TestArchivesAndTreesAgree(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := drawCluster(rt)
		archive := pack(t, m.tree, rapid.Bool().Draw(rt, "zip"), rapid.Bool().Draw(rt, "backwards"))
		r := checktest.Get(dump.OpenArchive(rt.Context(), bytes.NewReader(archive),
			dump.Options{Workers: rapid.IntRange(1, 3).Draw(rt, "workers")}))(rt)
		checkTruth(rt, m, r)
		other := checktest.Must(dump.Open(rt.Context(), m.tree, dump.Options{}))
		for _, k := range modelKinds {
			for _, question := range []string{"list " + k.gvk.GroupVersion().String() + " " + k.gvk.Kind, "get " + k.gvk.GroupVersion().String() + " " + k.gvk.Kind + " a/x9"} {
				a, b := answer(rt.Context(), r, question), answer(rt.Context(), other, question)
				checktest.FailIf(rt, a != b, "%s: the archive says %q, the tree %q", question, a, b)
			}
		}
	})
}

// TestRecordDeniesNothing: what was not collected of a cluster is not denied by a
// recording of the recording either.
func TestRecordDeniesNothing(t *testing.T) {
	var kinds []schema.GroupVersionKind
	for _, k := range modelKinds {
		kinds = append(kinds, k.gvk)
	}
	rapid.Check(t, func(rt *rapid.T) {
		m := drawCluster(rt)
		first := checktest.Must(dump.Open(rt.Context(), m.tree, dump.Options{}))
		dir := checktest.Must(os.MkdirTemp("", "record"))
		defer os.RemoveAll(dir)
		dir = filepath.Join(dir, "again")
		err := dump.Record(rt.Context(), first, dir, dump.RecordOptions{Kinds: kinds})
		if err != nil {
			checktest.ErrorHas(rt, "no kind could be read", err)
			return
		}
		r := checktest.Must(dump.Open(rt.Context(), os.DirFS(dir), dump.Options{}))
		checkTruth(rt, m, r)
		for _, k := range modelKinds { // nothing that was assumed became a fact
			if c := r.Coverage(k.gvk); first.Assumed(k.gvk) && c.Cluster == "whole" && !c.Assumed {
				rt.Errorf("%s is whole: that was assumed", k.gvk.Kind)
			}
		}
	})
}
