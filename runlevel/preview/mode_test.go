package preview_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/runlevel"
	"github.com/clusterupdate/clusterupdate/runlevel/preview"
)

// updateIn previews a release over another one, in a mode.
func updateIn(tb testing.TB, mode runlevel.Mode, r clusterapi.Reader, running, target string) *preview.Preview {
	tb.Helper()
	from, to := payload(tb, "4.18.1", running), payload(tb, "4.19.0", target)
	p := checktest.Get(preview.Run(tb.Context(), to.Tasks(), preview.Options{Reader: r, Mode: mode, Running: from, Payload: to}))(tb)
	return p
}

// What somebody has added, and what the target no longer names, become another
// thing in each mode: the preview tells which.
func TestModes(t *testing.T) {
	deployment := func(containers string) string {
		return fmt.Sprintf("{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns, annotations: {note: x}}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [%s]}}}}", containers)
	}
	const one, sidecar = "{name: c, image: i}", ", {name: sidecar, image: theirs}"
	custom := func(labels, fields string) string {
		return thingDefinition + fmt.Sprintf("\n---\n{apiVersion: example.com/v1, kind: Thing, metadata: {name: t, namespace: ns, annotations: {note: x}, labels: {%s}}, spec: {%s}}", labels, fields)
	}
	type told struct {
		Action               preview.Action
		Fields, Stale, Drift []string
	}
	for _, tt := range []struct {
		name, cluster, running, target, object string
		want                                   map[runlevel.Mode]told
	}{
		{
			"container of somebody's", deployment(one + sidecar), deployment(one), deployment(one), "Deployment ns/d",
			map[runlevel.Mode]told{
				runlevel.ApplyServerSide: {Action: "Keep"},
				runlevel.ApplyMerge: {
					Action: preview.Update, Fields: []string{"spec.template.spec.containers[name=sidecar]"},
					Drift: []string{"spec.template.spec.containers[name=sidecar]"},
				},
			},
		},
		{
			"container that goes", deployment(one + ", {name: old, image: i}"), deployment(one + ", {name: old, image: i}"), deployment(one), "Deployment ns/d",
			map[runlevel.Mode]told{
				runlevel.ApplyServerSide: {Action: "Keep", Stale: []string{"spec.template.spec.containers[name=old]"}},
				runlevel.ApplyMerge:      {Action: preview.Update, Fields: []string{"spec.template.spec.containers[name=old]"}},
			},
		},
		{
			"label that goes", serviceOf("a: x, b: x", "app: one", "{name: p, port: 1}"), serviceOf("a: x, b: x", "app: one", "{name: p, port: 1}"), serviceOf("a: x", "app: one", "{name: p, port: 1}"), "Service ns/s",
			map[runlevel.Mode]told{
				runlevel.ApplyServerSide: {Action: "Keep", Stale: []string{"metadata.labels.b"}},
				runlevel.ApplyMerge:      {Action: "Keep", Stale: []string{"metadata.labels.b"}},
			},
		},
		{
			"label that goes, with what changes", serviceOf("a: x, b: x", "app: one", "{name: p, port: 1}"), serviceOf("a: x, b: x", "app: one", "{name: p, port: 1}"), serviceOf("a: x", "app: two", "{name: p, port: 1}"), "Service ns/s",
			map[runlevel.Mode]told{
				runlevel.ApplyServerSide: {Action: preview.Update, Fields: []string{"spec.selector"}, Stale: []string{"metadata.labels.b"}},
				runlevel.ApplyMerge:      {Action: preview.Update, Fields: []string{"spec.selector"}, Stale: []string{"metadata.labels.b"}},
			},
		},
		{
			"generic kind with a label of somebody's", custom("theirs: x", "size: 1"), custom("", "size: 1"), custom("", "size: 2"), "Thing ns/t",
			map[runlevel.Mode]told{
				runlevel.ApplyServerSide: {Action: preview.Update, Fields: []string{"spec.size"}},
				runlevel.ApplyMerge:      {Action: preview.Update, Fields: []string{"metadata.labels", "spec.size"}, Drift: []string{"metadata.labels"}},
			},
		},
	} {
		for mode, want := range tt.want {
			t.Run(tt.name+" "+mode.String(), func(t *testing.T) {
				p := updateIn(t, mode, cluster(t, tt.cluster), tt.running, tt.target)
				c := changeOf(t, p, tt.object)
				got := told{Action: c.Action, Fields: paths(c)}
				for _, s := range c.Stale {
					got.Stale = append(got.Stale, s.Path)
				}
				for _, d := range c.Drift {
					got.Drift = append(got.Drift, d.Path)
				}
				checktest.Same(t, want, got)
				merges := mode == runlevel.ApplyMerge
				assumed := strings.Join(p.Assumed, "\n")
				if p.Mode != mode || strings.Contains(assumed, "Objects are merged") != merges || strings.Contains(assumed, "Removals are not predicted") == merges {
					t.Errorf("mode %s, assumed %q", p.Mode, p.Assumed)
				}
				var text strings.Builder
				checktest.OK(t, p.Text(&text, preview.TextOptions{}))
				if got.Action == preview.Update && len(got.Stale) > 0 {
					why := map[bool]string{true: "a merge does not remove it", false: "not ours to remove"}[merges]
					if !strings.Contains(text.String(), "metadata.labels.b: \"x\" stays: "+why) {
						t.Error(text.String())
					}
				}
			})
		}
	}
}

// What was not collected is stored as if it were new, in this mode too.
func TestMergeUnknown(t *testing.T) {
	text := `{apiVersion: v1, kind: Namespace, metadata: {name: other}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: other}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: gone, namespace: ns, annotations: {release.openshift.io/delete: "true"}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: once, namespace: ns, annotations: {release.openshift.io/create-only: "true"}}}
---
{apiVersion: config.openshift.io/v1, kind: ClusterOperator, metadata: {name: o}, spec: {}, status: {versions: [{name: operator, version: "1"}]}}`
	notCollected := map[string]error{"Namespace": clusterapi.ErrNotCollected, "ConfigMap": clusterapi.ErrNotCollected, "ClusterOperator": clusterapi.ErrNotCollected}
	c := cluster(t, "")
	exists := apierrors.NewAlreadyExists(schema.GroupResource{Resource: "namespaces"}, "other")
	s := &server{Cluster: memory.New(memory.Options{Base: c}), dry: true, refuse: map[string]error{"other": exists}}
	actions := map[runlevel.Mode][]string{}
	for _, mode := range []runlevel.Mode{runlevel.ApplyServerSide, runlevel.ApplyMerge} {
		p := checktest.Get(preview.Run(t.Context(), manifest.NewTasks(manifestsOf(t, text)), preview.Options{Reader: reader{c, notCollected, nil}, Mode: mode, Server: s}))(t)
		for _, c := range p.Changes {
			actions[mode] = append(actions[mode], fmt.Sprint(c.Object, " ", c.Action, " ", c.After() != nil))
			if mode == runlevel.ApplyMerge && c.Server != nil && !c.Server.NeedsOther {
				t.Errorf("%s: the server %+v", c.Object, c.Server)
			}
		}
	}
	want := []string{"Namespace other Unknown true", "ConfigMap other/c Unknown true", "ConfigMap ns/gone Unknown false", "ConfigMap ns/once Unknown true", "ClusterOperator o Unknown false"}
	checktest.Same(t, want, actions[runlevel.ApplyMerge])
	checktest.Same(t, actions[runlevel.ApplyServerSide], actions[runlevel.ApplyMerge])
}

// updated is a server that takes updates of the states that the cluster has.
type updated struct {
	*server
	states *memory.Cluster
}

func (s updated) Update(ctx context.Context, obj *unstructured.Unstructured, o clusterapi.UpdateOptions) (*unstructured.Unstructured, error) {
	state, err := s.states.Get(ctx, obj.GroupVersionKind(), clusterapi.KeyOf(obj))
	if err != nil {
		return nil, err
	}
	if obj.GetResourceVersion() != state.GetResourceVersion() {
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: obj.GetKind()}, obj.GetName(), nil)
	}
	own, err := s.Cluster.Get(ctx, obj.GroupVersionKind(), clusterapi.KeyOf(obj))
	if err != nil {
		return nil, err
	}
	obj = obj.DeepCopy()
	obj.SetResourceVersion(own.GetResourceVersion()) // the fork's
	return s.answer(s.Cluster.Update(ctx, obj, o))
}

// A server that is asked too gets updates of the states that it has.
func TestMergeServer(t *testing.T) {
	c := cluster(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}, data: {a: old}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: k, namespace: ns}, data: {a: old}}")
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "k", nil)
	s := &server{Cluster: memory.New(memory.Options{Base: c}), dry: true, refuse: map[string]error{"k": refused}}
	text := "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}, data: {a: x}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: k, namespace: ns}, data: {a: x}}"
	p := checktest.Get(preview.Run(t.Context(), manifest.NewTasks(manifestsOf(t, text)), preview.Options{Reader: c, Mode: runlevel.ApplyMerge, Server: updated{s, c}}))(t)
	if got := changeOf(t, p, "ConfigMap ns/c"); got.Action != preview.Update || got.Server != nil {
		t.Errorf("%s, the server %+v", got.Action, got.Server)
	}
	if got := changeOf(t, p, "ConfigMap ns/k"); got.Action != preview.Update || got.Server == nil || got.Server.Error != refused.Error() {
		t.Errorf("%s, the server %+v", got.Action, got.Server)
	}
}

// What the operator wrote and the release drops is told to go, and a server that is
// asked is asked about that.
func TestAdoption(t *testing.T) {
	c := memory.NewOpenShift(memory.Options{})
	for _, u := range decoded(t, `{apiVersion: v1, kind: Namespace, metadata: {name: ns}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: ns}, data: {a: old, dropped: x}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: two, namespace: ns}, data: {a: old, dropped: x}}`) {
		checktest.Get(c.Create(t.Context(), u, clusterapi.CreateOptions{FieldManager: "cluster-version-operator"}))(t)
	}
	text := "{apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: ns}, data: {a: x}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: two, namespace: ns}, data: {a: x}}"
	for _, adopts := range []bool{true, false} {
		s := &server{Cluster: memory.New(memory.Options{Base: c}), dry: true}
		o := preview.Options{Reader: c, Server: updated{s, c}}
		want := []string{"data.a", "metadata.annotations", "data.dropped"}
		if !adopts {
			o.Adopt, want = []string{}, want[:2]
		}
		p := checktest.Get(preview.Run(t.Context(), manifest.NewTasks(manifestsOf(t, text)), o))(t)
		for _, name := range []string{"ConfigMap ns/one", "ConfigMap ns/two"} {
			got := changeOf(t, p, name)
			if diff := cmp.Diff(slices.Sorted(slices.Values(want)), paths(got)); diff != "" || got.Server != nil {
				t.Errorf("adopts %t: %s: %s, the server %+v", adopts, name, diff, got.Server)
			}
		}
		if assumed := strings.Join(p.Assumed, "\n"); strings.Contains(assumed, "Removals are not predicted") == adopts {
			t.Errorf("adopts %t: assumed %q", adopts, p.Assumed)
		}
	}
}
