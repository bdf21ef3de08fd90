package preview_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/runlevel/preview"
)

const release = `
{apiVersion: v1, kind: Namespace, metadata: {name: new}}
---
` + thingDefinition + `
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: known, namespace: ns}, data: {a: b}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: new}, data: {a: b}}
---
` + thing + `
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: new}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: gone, namespace: ns, annotations: {release.openshift.io/delete: 'true'}}}
`

// What was not collected is unknown, and the preview goes on as if it were new:
// what follows has its namespace and its definition.
func TestUnknown(t *testing.T) {
	text := strings.ReplaceAll(release, "SPEC", "{size: 1}")
	missing := clusterapi.ErrNotCollected
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "", errors.New("no"))
	actions := func(p *preview.Preview) map[string]preview.Action {
		out := make(map[string]preview.Action)
		for _, c := range p.Changes {
			out[c.Object.String()] = c.Action
		}
		return out
	}
	known := "{apiVersion: v1, kind: ConfigMap, metadata: {name: known, namespace: ns, annotations: {note: x}}, data: {a: b}}"
	all := map[string]preview.Action{
		"Namespace new": "Create", "CustomResourceDefinition things.example.com": "Create", "ConfigMap ns/known": "Keep", "ConfigMap new/c": "Create",
		"Thing ns/t": "Create", "Deployment new/d": "Create", "ConfigMap ns/gone": "Absent",
	}
	with := func(changes map[string]preview.Action) map[string]preview.Action {
		out := make(map[string]preview.Action)
		for k, v := range all {
			out[k] = v
			if a, ok := changes[k]; ok {
				out[k] = a
			}
		}
		return out
	}
	for _, tt := range []struct {
		name     string
		errs     map[string]error
		some     map[string]bool
		want     map[string]preview.Action
		unknowns []string
	}{
		{"all is known", nil, nil, all, nil},
		{"namespaces", map[string]error{"Namespace": missing}, nil, with(map[string]preview.Action{"Namespace new": "Unknown"}), []string{"namespaces"}},
		{"definitions", map[string]error{"CustomResourceDefinition": missing}, nil, with(map[string]preview.Action{"CustomResourceDefinition things.example.com": "Unknown"}),
			[]string{"customresourcedefinitions.apiextensions.k8s.io"}},
		{"forbidden", map[string]error{"Deployment": forbidden}, nil, with(map[string]preview.Action{"Deployment new/d": "Unknown"}), []string{"deployments.apps -n new"}},
		{"some of a kind", map[string]error{"ConfigMap": missing}, map[string]bool{"ConfigMap": true},
			with(map[string]preview.Action{"ConfigMap new/c": "Unknown", "ConfigMap ns/gone": "Unknown"}), []string{"configmaps -n new", "configmaps -n ns"}},
		{"wrapped", map[string]error{"ConfigMap": fmt.Errorf("maps: %w", missing)}, nil,
			with(map[string]preview.Action{"ConfigMap new/c": "Unknown", "ConfigMap ns/gone": "Unknown", "ConfigMap ns/known": "Unknown"}), []string{"configmaps -n new", "configmaps -n ns"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := run(t, reader{cluster(t, known), tt.errs, tt.some}, text)
			if diff := cmp.Diff(tt.want, actions(p)); diff != "" {
				t.Error(diff)
				for _, c := range p.Changes {
					t.Log(c.Object, c.Action, c.Reason)
				}
			}
			checktest.Same(t, tt.unknowns, p.Unknowns)
			for _, c := range p.Changes {
				if c.Action == preview.Unknown && c.Reason == "" {
					t.Errorf("%s: why?", c.Object)
				}
			}
		})
	}
}

// A custom resource whose kind is not known needs its definition too.
func TestUnknownKind(t *testing.T) {
	r := reader{cluster(t, ""), map[string]error{"CustomResourceDefinition": clusterapi.ErrNotCollected, "Thing": clusterapi.ErrNotCollected}, nil}
	p := run(t, r, strings.Replace(thing, "SPEC", "{size: 1}", 1))
	if p.Changes[0].Action != preview.Unknown {
		t.Errorf("%s: %s", p.Changes[0].Action, p.Changes[0].Reason)
	}
	checktest.Same(t, []string{"customresourcedefinitions.apiextensions.k8s.io", "things.example.com -n ns"}, p.Unknowns)
}

// Without a definition a list is one value, and the preview says so.
func TestWithoutDefinition(t *testing.T) {
	live := thingDefinition + "\n---\n" + strings.Replace(thing, "SPEC", "{size: 1, parts: [{name: a, count: 1}, {name: b, count: 2}]}", 1)
	next := strings.Replace(thing, "SPEC", "{size: 1, parts: [{name: a, count: 1}, {name: b, count: 3}]}", 1)
	const said = "Lists are compared as one value each, since no definition says what their elements are known by: Thing.example.com."
	for _, tt := range []struct {
		name string
		errs map[string]error
		path string
		says bool
	}{
		{"with it", nil, "spec.parts[name=b].count", false},
		{"without it", map[string]error{"CustomResourceDefinition": clusterapi.ErrNotCollected}, "spec.parts", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := run(t, reader{cluster(t, live), tt.errs, nil}, next)
			if diff := cmp.Diff([]string{tt.path}, paths(p.Changes[0])); diff != "" || slices.Contains(p.Assumed, said) != tt.says {
				t.Errorf("%s, assumed %q", diff, p.Assumed)
			}
		})
	}
}

// A namespace that was not collected, and that the release does not make, is
// taken to be there; one that is known not to exist is not.
func TestUnknownNamespace(t *testing.T) {
	text := "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: theirs}, data: {a: b}}"
	p := run(t, cluster(t, ""), text)
	if c := p.Changes[0]; c.Action != preview.Fail || c.Reason != `namespaces "theirs" not found` || len(p.Unknowns) > 0 {
		t.Errorf("%s: %s; unknown %q", c.Action, c.Reason, p.Unknowns)
	}
	p = run(t, reader{cluster(t, ""), map[string]error{"Namespace": clusterapi.ErrNotCollected}, nil}, text)
	if c := p.Changes[0]; c.Action != preview.Create {
		t.Errorf("%s: %s", c.Action, c.Reason)
	}
	checktest.Same(t, []string{"namespaces"}, p.Unknowns)
	if want := "Namespaces that were not collected exist: theirs."; !slices.Contains(p.Assumed, want) {
		t.Errorf("assumed %q", p.Assumed)
	}
}

// A namespace that an operator of the release makes, and none of the running release, comes
// about once it runs.
func TestNewNamespace(t *testing.T) {
	const operator = "{apiVersion: config.openshift.io/v1, kind: ClusterOperator, metadata: {name: o}, spec: {}, " +
		"status: {relatedObjects: [{group: '', resource: namespaces, name: RELATED}]}}\n---\n"
	const text = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: operand}, data: {a: b}}"
	related := strings.Replace(operator, "RELATED", "operand", 1)
	other := strings.Replace(operator, "RELATED", "other", 1)
	for _, tt := range []struct {
		name, running, target string
		want                  preview.Action
	}{
		{"new", other, related + text, preview.Create},
		{"not related", other, other + text, preview.Fail},
		{"related before", related, related + text, preview.Fail},
		{"used before", other + text, related + text, preview.Fail},
		{"made before", "{apiVersion: v1, kind: Namespace, metadata: {name: operand}}", related + text, preview.Fail},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := preview.Options{Reader: cluster(t, ""), Running: payload(t, "1", tt.running), Payload: payload(t, "2", tt.target)}
			p := checktest.Get(preview.Run(t.Context(), o.Payload.Tasks(), o))(t)
			checktest.Equal(t, tt.want, changeOf(t, p, "ConfigMap operand/c").Action, "action")
			noted := slices.Contains(p.Assumed, "Operators of the release make these namespaces: operand.")
			checktest.Equal(t, tt.want == preview.Create, noted, "assumed %q", p.Assumed)
		})
	}
}

// A failure that says nothing about the cluster is the preview's error.
func TestReadFails(t *testing.T) {
	text := strings.ReplaceAll(release, "SPEC", "{size: 1}")
	tasks := manifest.NewTasks(manifestsOf(t, text))
	broken := errors.New("connection refused")
	for _, kind := range []string{"Namespace", "CustomResourceDefinition", "ConfigMap", "Thing", "Deployment", "APIRequestCount"} {
		o := preview.Options{Reader: reader{cluster(t, thingDefinition), map[string]error{kind: broken}, nil}}
		p, err := preview.Run(t.Context(), tasks, o)
		if !errors.Is(err, broken) || !strings.Contains(err.Error(), kind) || p != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := preview.Run(ctx, tasks, preview.Options{Reader: cluster(t, "")}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
	if _, err := preview.Run(t.Context(), tasks, preview.Options{}); err == nil {
		t.Error("without a Reader")
	}
	if _, err := preview.Run(t.Context(), []*manifest.Task{nil}, preview.Options{Reader: cluster(t, "")}); err == nil {
		t.Error("with a nil task")
	}
}

// assuming takes all ConfigMaps for recorded, at a time.
type assuming struct{ clusterapi.Reader }

func (assuming) Assumed(gvk schema.GroupVersionKind) bool { return gvk.Kind == "ConfigMap" }

func (assuming) Time() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// What is created since the reader assumes that it is absent is named, and the time is
// that of the reader.
func TestAssumedKinds(t *testing.T) {
	const there = "{apiVersion: v1, kind: ConfigMap, metadata: {name: there, namespace: ns}}\n"
	const missing = "{apiVersion: v1, kind: ConfigMap, metadata: {name: missing, namespace: ns}}\n"
	const assumed = "All objects of these kinds were recorded: ConfigMap."
	for _, tt := range []struct {
		name   string
		reader clusterapi.Reader
		text   string
		says   bool
	}{
		{"one is missing", assuming{cluster(t, there)}, missing, true},
		{"read only", clusterapi.ReadOnly(assuming{cluster(t, there)}), missing, true},
		{"none is missing", assuming{cluster(t, there)}, there, false},
		{"nothing is assumed", cluster(t, there), missing, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := run(t, tt.reader, tt.text)
			checktest.Equal(t, tt.says, slices.Contains(p.Assumed, assumed), "%q", p.Assumed)
			if want := clusterapi.TimeOf(tt.reader); !want.IsZero() && !p.Time.Equal(want) {
				t.Errorf("time %s, want %s", p.Time, want)
			}
		})
	}
}
