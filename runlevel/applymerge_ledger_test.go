package runlevel

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// What a merge would change is drift: it is told with who did it, and repaired at
// the next pass. Everything else that happens to an object costs one look.
func TestApplyMergeDrift(t *testing.T) {
	update := []FieldOwner{{Manager: "someone", Operation: "Update"}}
	apply := []FieldOwner{{Manager: "kubectl", Operation: "Apply"}}
	for _, tt := range []struct {
		name   string
		happen func(w *watched)
		calls  []string
		text   string
		fields []DriftedField
	}{
		{name: "nothing", happen: func(*watched) {}},
		{
			name: "a value of ours",
			happen: func(w *watched) {
				w.change(configMaps1, "ns", "c", func(u *unstructured.Unstructured) { set(t, u, "z", "data", "a") })
			},
			calls: []string{"Get ConfigMap ns/c", "Update ConfigMap ns/c"},
			text:  "ConfigMap ns/c was changed: data.a by someone (Update)", fields: []DriftedField{{Path: "data.a", Wanted: "x", Found: "z", Owners: update}},
		},
		{
			name: "a value removed",
			happen: func(w *watched) {
				w.change(configMaps1, "ns", "c", func(u *unstructured.Unstructured) { unstructured.RemoveNestedField(u.Object, "data", "a") })
			},
			calls: []string{"Get ConfigMap ns/c", "Update ConfigMap ns/c"},
			text:  "ConfigMap ns/c was changed: data.a removed", fields: []DriftedField{{Path: "data.a", Wanted: "x"}},
		},
		{
			name: "a container of somebody's",
			happen: func(w *watched) {
				w.apply(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns}, spec: {template: {spec: {initContainers: [{name: sidecar, image: x, env: [{name: API_TOKEN, value: hidden}]}]}}}}`)
			},
			calls:  []string{"Get Deployment ns/d", "Update Deployment ns/d"},
			text:   "Deployment ns/d was changed: spec.template.spec.initContainers[name=sidecar] by kubectl (Apply)",
			fields: []DriftedField{{Path: "spec.template.spec.initContainers[name=sidecar]", Owners: apply}},
		},
		{
			name: "a Secret",
			happen: func(w *watched) {
				w.change(secrets1, "ns", "s", func(u *unstructured.Unstructured) { set(t, u, "dGhlaXJz", "data", "a") })
			},
			calls:  []string{"Get Secret ns/s", "Update Secret ns/s"},
			text:   "Secret ns/s was changed: data.a by someone (Update)",
			fields: []DriftedField{{Path: "data.a", Wanted: "(redacted)", Found: "(redacted)", Owners: update}},
		},
		{
			name:   "gone",
			happen: func(w *watched) { w.remove(configMaps1, "ns", "c") },
			calls:  []string{"Get ConfigMap ns/c", "Create ConfigMap ns/c"}, text: "ConfigMap ns/c was deleted",
		},
		{
			name:   "created only, gone",
			happen: func(w *watched) { w.remove(configMaps1, "ns", "once") },
			calls:  []string{"Get ConfigMap ns/once", "Create ConfigMap ns/once"}, text: "ConfigMap ns/once was deleted",
		},
		{
			name: "created again by somebody",
			happen: func(w *watched) {
				w.remove(configMaps1, "ns", "c")
				w.apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}, data: {a: z}}`)
			},
			calls: []string{"Get ConfigMap ns/c", "Update ConfigMap ns/c"},
			text:  "ConfigMap ns/c was deleted and created again: data.a by kubectl (Apply), data.b removed, metadata.ownerReferences[uid=uid] removed",
			fields: []DriftedField{
				{Path: "data.a", Wanted: "x", Found: "z", Owners: apply}, {Path: "data.b", Wanted: "w"}, {Path: "metadata.ownerReferences[uid=uid]"},
			},
		},
		{
			name: "a label of somebody's",
			happen: func(w *watched) {
				w.change(configMaps1, "ns", "c", func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"theirs": "x"}) })
			},
			calls: []string{"Get ConfigMap ns/c"},
		},
		{
			name: "what is only created",
			happen: func(w *watched) {
				w.change(configMaps1, "ns", "once", func(u *unstructured.Unstructured) { set(t, u, "z", "data", "a") })
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newDriftIn(t, ApplyMerge)
			tt.happen(w)
			w.tell()
			if diff := cmp.Diff(tt.calls, w.pass(Reconciling)); diff != "" {
				t.Errorf("calls: %s", diff)
			}
			told := w.told()
			switch {
			case tt.text == "" && len(told) > 0:
				t.Errorf("told %+v", told)
			case tt.text != "" && (len(told) != 1 || told[0].Text() != tt.text):
				t.Errorf("told %+v", told)
			case tt.text != "":
				opts := cmp.Options{cmpopts.IgnoreFields(FieldOwner{}, "Time"), cmp.FilterPath(func(p cmp.Path) bool {
					return strings.HasSuffix(p.String(), "Wanted") || strings.HasSuffix(p.String(), "Found")
				}, cmp.FilterValues(func(a, b any) bool { return !isText(a) && !isText(b) }, cmp.Ignore()))}
				checktest.Same(t, tt.fields, withoutDigits(t, told[0].Fields), opts)
				if text := fmt.Sprint(told); strings.Contains(text, "hidden") {
					t.Errorf("shows a credential: %s", text)
				}
			}
			w.tell()
			if calls := w.pass(Reconciling); len(calls) > 0 {
				t.Errorf("calls of the next pass: %v", calls)
			}
		})
	}
}

func isText(v any) bool { _, ok := v.(string); return ok }

// Where there is nothing to go by, each object is looked at, and nothing written
// that is as it should be.
func TestApplyMergeNotTrusted(t *testing.T) {
	for name, change := range map[string]func(w *watched){
		"after an hour": func(w *watched) { w.clock.Step(time.Hour) },
		"watches ended": func(w *watched) { w.tracker.Unwatched() },
		"apply always":  func(w *watched) { w.always = true },
	} {
		t.Run(name, func(t *testing.T) {
			w := newDriftIn(t, ApplyMerge)
			change(w)
			calls := w.pass(Reconciling)
			if len(updatesOf(calls)) > 0 || len(calls) < len(w.tasks) || len(w.told()) > 0 {
				t.Errorf("calls %v, told %v", calls, w.told())
			}
		})
	}
}

// An object in which the server writes a default that a merge clears again is written
// when everything is looked at, and when something has changed it, but is no drift.
func TestApplyMergeWrittenForEver(t *testing.T) {
	w := watchIn(t, ApplyMerge, tasksOf(t, driftJob))
	w.api = defaulting{w.c}
	w.settled()
	round := func(what string, want ...string) {
		t.Helper()
		w.tell()
		if diff := cmp.Diff(want, w.pass(Reconciling)); diff != "" || len(w.told()) > 0 {
			t.Errorf("%s: calls %s, told %+v", what, diff, w.told())
		}
		w.tell()
	}
	round("as it was")
	w.change(jobs1, "ns", "j", func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"theirs": "x"}) })
	round("another label", "Get Job ns/j", "Update Job ns/j")
	round("as it was")
	w.clock.Step(time.Hour)
	round("after an hour", "Get Job ns/j", "Update Job ns/j")
}
