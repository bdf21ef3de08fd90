package differential

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterapitest/internal/probe"
)

// fields maps the paths of an answer to their values, as [Difference] shows
// both.
type fields map[string]string

const absent = "absent"

// errorText is a path that is shown, and not compared: the texts of errors
// differ from backend to backend.
const errorText = "error text"

// diff lists the paths at which two answers differ, sorted. Where they differ
// in the class of the error, that is all.
func diff(step int, verb, kind string, a, b fields) []found {
	if a["error"] != b["error"] {
		text := func(f fields) string {
			if f[errorText] == "" {
				return f["error"]
			}
			return f["error"] + ": " + f[errorText]
		}
		return []found{{step, verb, kind, "error", text(a), text(b)}}
	}
	paths := maps.Clone(a)
	maps.Copy(paths, b)
	var out []found
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		va, ok := a[path]
		if !ok {
			va = absent
		}
		vb, ok := b[path]
		if !ok {
			vb = absent
		}
		if va != vb && path != errorText {
			out = append(out, found{step, verb, kind, path, va, vb})
		}
	}
	return out
}

// causesOf names the fields that an Invalid error is about.
func causesOf(err error) string {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return ""
	}
	var out []string
	for _, c := range status.Status().Details.Causes {
		out = append(out, c.Field)
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), " ")
}

// addError adds what an error says.
func (f fields) addError(r *run, err error) {
	f["error"] = probe.Class(err)
	if err != nil {
		f[errorText] = r.plain(err.Error())
	}
	if causes := causesOf(err); causes != "" {
		f["error.causes"] = causes
	}
}

// addObject adds the fields of an object as one side of a run shows it: what
// depends on the time, on counters or on chance is made comparable.
func (f fields) addObject(r *run, s *side, kind *kind, u *unstructured.Unstructured) {
	if u == nil || u.Object == nil {
		f["object"] = "nil"
		return
	}
	content := u.DeepCopy().Object
	if kind.Name == "CustomResourceDefinition" {
		settleDefinition(content)
	}
	m, _ := content["metadata"].(map[string]any)
	if m != nil {
		if v, ok := m["managedFields"]; ok {
			f.addManaged(r, v)
		}
		delete(m, "managedFields")
		version := u.GetResourceVersion()
		delete(m, "resourceVersion")
		if version != "" && kind.Name != "CustomResourceDefinition" { // which its controllers write, too
			f["metadata.resourceVersion"] = s.moved(objectKey{kind.Name, clusterapi.KeyOf(u)}, version)
		}
		if uid := u.GetUID(); uid != "" {
			m["uid"] = s.uid(string(uid))
		}
	}
	if kind.Name == "Service" {
		hideAllocated(content)
	}
	f.add("", r.hide(content))
}

// settleDefinition leaves out what the controllers of definitions write when they
// get to it: all of the status, which is compared in the end, and the finalizer
// that waits for the objects of the kind.
func settleDefinition(content map[string]any) {
	delete(content, "status")
	m, _ := content["metadata"].(map[string]any)
	list, _ := m["finalizers"].([]any)
	list = slices.DeleteFunc(list, func(v any) bool { return v == definitionFinalizer })
	if len(list) == 0 {
		delete(m, "finalizers")
	} else if m != nil {
		m["finalizers"] = list
	}
	managed, _ := m["managedFields"].([]any)
	managed = slices.DeleteFunc(managed, func(v any) bool {
		e, _ := v.(map[string]any)
		return e["subresource"] == "status"
	})
	if m != nil && len(managed) == 0 {
		delete(m, "managedFields")
	} else if m != nil {
		m["managedFields"] = managed
	}
}

const definitionFinalizer = "customresourcecleanup.apiextensions.k8s.io"

// hideAllocated hides the addresses and ports that a server draws.
func hideAllocated(content map[string]any) {
	spec, _ := content["spec"].(map[string]any)
	if ip, ok := spec["clusterIP"].(string); ok && ip != "None" && ip != "" {
		spec["clusterIP"] = "IP"
	}
	ips, _ := spec["clusterIPs"].([]any)
	for i := range ips {
		if ips[i] != "None" {
			ips[i] = "IP"
		}
	}
	ports, _ := spec["ports"].([]any)
	for _, p := range ports {
		if m, ok := p.(map[string]any); ok && m["nodePort"] != nil {
			m["nodePort"] = "PORT"
		}
	}
}

// hide makes strings comparable: the names of the run, and times that are not
// among the sequences' own.
func (r *run) hide(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, e := range v {
			out[r.plain(name)] = r.hide(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = r.hide(e)
		}
		return out
	case string:
		if t, err := time.Parse(time.RFC3339, v); err == nil && t.Year() != 2001 {
			return "TIME"
		}
		return r.plain(v)
	}
	return v
}

// plain puts RUN in the place of the run's own name.
func (r *run) plain(s string) string { return strings.ReplaceAll(s, r.id, "RUN") }

// add adds a tree.
func (f fields) add(path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 && path != "" {
			f[path] = "{}"
		}
		for name, e := range v {
			f.add(join(path, name), e)
		}
	case []any:
		if len(v) == 0 {
			f[path] = "[]"
		}
		for i, e := range v {
			f.add(fmt.Sprintf("%s[%d]", path, i), e)
		}
	default:
		f[path] = compact(v)
	}
}

func join(path, name string) string {
	switch {
	case strings.ContainsAny(name, ".[]"):
		return fmt.Sprintf("%s[%q]", path, name)
	case path == "":
		return name
	}
	return path + "." + name
}

// addManaged adds the fields that managers own; their times do not count.
func (f fields) addManaged(r *run, v any) {
	list, ok := v.([]any)
	if !ok {
		f["metadata.managedFields"] = compact(v)
	}
	for _, e := range list {
		m, _ := e.(map[string]any)
		who := fmt.Sprintf("%v/%v", m["manager"], m["operation"])
		if sub, ok := m["subresource"]; ok {
			who += fmt.Sprintf("/%v", sub)
		}
		path := "metadata.managedFields[" + who + "]"
		f[path] = r.plain(fmt.Sprint(m["apiVersion"]))
		if owned, ok := m["fieldsV1"].(map[string]any); ok {
			f.addOwned(path, r.hide(owned))
		}
	}
}

func (f fields) addOwned(path string, v any) {
	m, _ := v.(map[string]any)
	for name, e := range m {
		below := join(path, name)
		f[below] = "owned"
		f.addOwned(below, e)
	}
}
