package preview_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/runlevel/preview"
)

const configured = `
{apiVersion: config.openshift.io/v1, kind: Proxy, metadata: {name: cluster}, status: {httpProxy: "http://proxy"}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: kept, namespace: ns, annotations: {note: x}}, data: {a: b}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: changes, namespace: ns, annotations: {note: x}}, data: {a: b}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: foreign, namespace: ns, annotations: {note: x}}, data: {a: b}}`

const configuredRelease = `
{apiVersion: v1, kind: ConfigMap, metadata: {name: kept, namespace: ns}, data: {a: b}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: changes, namespace: ns}, data: {a: c}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: created, namespace: ns}, data: {a: b}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns, annotations: {config.openshift.io/inject-proxy: c}}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}`

// A preview holds until one of its objects, or the configuration that went into
// them, is another one; also after it was kept as JSON.
func TestCheck(t *testing.T) {
	configMap := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	proxy := schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: "Proxy"}
	edit := func(gvk schema.GroupVersionKind, name string, change func(*unstructured.Unstructured)) func(*testing.T, *memory.Cluster) {
		return func(t *testing.T, c *memory.Cluster) {
			key := clusterapi.Key("ns", name)
			if gvk == proxy {
				key = clusterapi.Key("", name)
			}
			live := checktest.Get(c.Get(t.Context(), gvk, key))(t)
			change(live)
			checktest.Get(c.Update(t.Context(), live, clusterapi.UpdateOptions{}))(t)
		}
	}
	set := func(path ...string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) { _ = unstructured.SetNestedField(u.Object, "new", path...) }
	}
	remove := func(name string) func(*testing.T, *memory.Cluster) {
		return func(t *testing.T, c *memory.Cluster) {
			checktest.OK(t, c.Delete(t.Context(), configMap, clusterapi.Key("ns", name), clusterapi.DeleteOptions{}))
		}
	}
	create := func(name string) func(*testing.T, *memory.Cluster) {
		return func(t *testing.T, c *memory.Cluster) {
			u := decoded(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+name+", namespace: ns, annotations: {note: x}}, data: {a: b}}")[0]
			checktest.Get(c.Create(t.Context(), u, clusterapi.CreateOptions{}))(t)
		}
	}
	for _, tt := range []struct {
		name  string
		do    []func(*testing.T, *memory.Cluster)
		moved []string
	}{
		{"nothing", nil, nil},
		{"an object that is not of the release", []func(*testing.T, *memory.Cluster){edit(configMap, "foreign", set("data", "a"))}, nil},
		{"a kept one", []func(*testing.T, *memory.Cluster){edit(configMap, "kept", set("data", "z"))}, []string{"ConfigMap ns/kept it was changed"}},
		{"changed and back", []func(*testing.T, *memory.Cluster){edit(configMap, "kept", set("data", "z")), edit(configMap, "kept", func(u *unstructured.Unstructured) { unstructured.RemoveNestedField(u.Object, "data", "z") })}, nil},
		{"deleted", []func(*testing.T, *memory.Cluster){remove("changes")}, []string{"ConfigMap ns/changes it was deleted"}},
		{"created", []func(*testing.T, *memory.Cluster){create("created")}, []string{"ConfigMap ns/created it was created"}},
		{"created again", []func(*testing.T, *memory.Cluster){remove("kept"), create("kept")}, []string{"ConfigMap ns/kept it was deleted and created again"}},
		{"the proxy", []func(*testing.T, *memory.Cluster){edit(proxy, "cluster", set("spec", "httpProxy"))}, []string{"Proxy cluster it was changed"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := cluster(t, configured)
			p := run(t, c, configuredRelease)
			raw := checktest.Get(json.Marshal(p))(t)
			kept := &preview.Preview{}
			checktest.OK(t, json.Unmarshal(raw, kept))
			for _, do := range tt.do {
				do(t, c)
			}
			for _, p := range []*preview.Preview{p, kept} {
				moved := checktest.Get(p.Check(t.Context(), c))(t)
				var got []string
				for _, m := range moved {
					got = append(got, m.Object.String()+" "+m.Reason)
				}
				checktest.Same(t, tt.moved, got)
			}
		})
	}
	c := cluster(t, configured)
	p := run(t, c, configuredRelease)
	if _, err := p.Check(t.Context(), reader{c, map[string]error{"ConfigMap": errors.New("refused")}, nil}); err == nil {
		t.Error("a failure to read is no error")
	}
	moved, err := p.Check(t.Context(), reader{c, map[string]error{"ConfigMap": clusterapi.ErrNotCollected}, nil})
	if err != nil || len(moved) != 3 {
		t.Errorf("not collected: %v, %v", moved, err)
	}
}

// A preview of JSON is what it was, but for the objects that Diff writes.
func TestJSON(t *testing.T) {
	p := run(t, cluster(t, configured), configuredRelease)
	raw := checktest.Get(json.Marshal(p))(t)
	again := &preview.Preview{}
	checktest.OK(t, json.Unmarshal(raw, again))
	second := checktest.Get(json.Marshal(again))(t)
	checktest.Same(t, string(raw), string(second))
	if err := json.Unmarshal([]byte(`{"changes": [{"object": {"apiVersion": "a/b/c"}}]}`), again); err == nil {
		t.Error("an apiVersion that is none")
	}
}

// server answers writes as a cluster with admission would: by a fork of its own.
type server struct {
	*memory.Cluster
	dry    bool
	refuse map[string]error
	mutate func(*unstructured.Unstructured)
}

func (s *server) DryRun() bool { return s.dry }

func (s *server) answer(u *unstructured.Unstructured, err error) (*unstructured.Unstructured, error) {
	if u != nil && s.refuse[u.GetName()] != nil {
		return nil, s.refuse[u.GetName()]
	}
	if err == nil && s.mutate != nil {
		s.mutate(u)
	}
	return u, err
}

func (s *server) Create(ctx context.Context, obj *unstructured.Unstructured, o clusterapi.CreateOptions) (*unstructured.Unstructured, error) {
	return s.answer(s.Cluster.Create(ctx, obj, o))
}

func (s *server) Apply(ctx context.Context, obj *unstructured.Unstructured, o clusterapi.ApplyOptions) (*unstructured.Unstructured, error) {
	return s.answer(s.Cluster.Apply(ctx, obj, o))
}

func (s *server) Delete(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName, o clusterapi.DeleteOptions) error {
	if err := s.refuse[key.Name]; err != nil {
		return err
	}
	return s.Cluster.Delete(ctx, gvk, key, o)
}

// A server that is asked too is heard where it says something else.
func TestServer(t *testing.T) {
	c := cluster(t, configured)
	tasks := manifest.NewTasks(manifestsOf(t, configuredRelease+`
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: foreign, namespace: ns, annotations: {release.openshift.io/delete: 'true'}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: later}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: within, namespace: later}}`))
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "changes", errors.New("admission webhook \"w\" denied the request"))
	s := &server{
		Cluster: memory.New(memory.Options{Base: c, CheckNamespaces: true}), dry: true,
		refuse: map[string]error{"changes": refused, "foreign": refused, "within": apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "later")},
		mutate: func(u *unstructured.Unstructured) {
			if u.GetName() == "created" {
				u.SetLabels(map[string]string{"injected": "yes"})
			}
		},
	}
	p := checktest.Get(preview.Run(t.Context(), tasks, preview.Options{Reader: c, Server: s}))(t)
	got := make(map[string]*preview.Answer)
	for _, change := range p.Changes {
		if change.Server != nil {
			got[change.Object.String()] = change.Server
		}
	}
	want := map[string]*preview.Answer{
		"ConfigMap ns/changes":   {Error: refused.Error()},
		"ConfigMap ns/foreign":   {Error: refused.Error()},
		"ConfigMap ns/created":   {Fields: []clusterapi.FieldChange{{Path: "metadata.labels", New: map[string]any{"injected": "yes"}}}},
		"ConfigMap later/within": {NeedsOther: true, Error: `namespaces "later" not found`},
	}
	checktest.Same(t, want, got)
	if strings.Contains(strings.Join(p.Assumed, " "), "Admission") {
		t.Error("admission was asked")
	}
	s.dry = false
	if _, err := preview.Run(t.Context(), tasks, preview.Options{Reader: c, Server: s}); err == nil {
		t.Error("a server that stores what it is sent")
	}
}
