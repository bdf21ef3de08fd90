package runlevel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/apiserver"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// calledCluster is a cluster that knows what was asked of it.
type calledCluster struct {
	*memory.Cluster
	t    testing.TB
	fail func(memory.Call) error

	mu    sync.Mutex
	calls []string
}

func newCalled(t testing.TB, loaded ...string) *calledCluster {
	t.Helper()
	c := &calledCluster{t: t}
	c.Cluster = memory.NewOpenShift(memory.Options{Intercept: func(ctx context.Context, call memory.Call, do func(context.Context) error) error {
		c.mu.Lock()
		c.calls = append(c.calls, call.Verb+" "+call.GVK.Kind+" "+shortName(call.Key))
		c.mu.Unlock()
		if c.fail != nil {
			if err := c.fail(call); err != nil {
				return err
			}
		}
		return do(ctx)
	}})
	for _, text := range loaded {
		checktest.OK(t, c.Load(object(t, text)))
	}
	return c
}

// pass makes a pass in mode ApplyMerge, with one attempt unless o says how many, and
// returns its calls.
func (c *calledCluster) pass(o Options, texts ...string) ([]string, error) {
	c.t.Helper()
	c.mu.Lock()
	c.calls = nil
	c.mu.Unlock()
	if o.Backoff == nil {
		o.Backoff = &Backoff{Steps: 1}
	}
	o.API, o.Mode, o.Workers = c, ApplyMerge, 1
	_, err := Run(c.t.Context(), tasksOf(c.t, texts...), o)
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.calls), err
}

// defaulting fills in defaults as an API server does, which one in memory does not.
type defaulting struct{ *memory.Cluster }

func (c defaulting) Create(ctx context.Context, obj *unstructured.Unstructured, o clusterapi.CreateOptions) (*unstructured.Unstructured, error) {
	return c.Cluster.Create(ctx, apiserver.Fill(obj), o)
}

func (c defaulting) Update(ctx context.Context, obj *unstructured.Unstructured, o clusterapi.UpdateOptions) (*unstructured.Unstructured, error) {
	return c.Cluster.Update(ctx, apiserver.Fill(obj), o)
}

// updatesOf are the calls that update.
func updatesOf(calls []string) []string {
	return slices.DeleteFunc(slices.Clone(calls), func(call string) bool { return !strings.HasPrefix(call, "Update") })
}

func (c *calledCluster) get(text string) *unstructured.Unstructured {
	c.t.Helper()
	o := object(c.t, text)
	u, err := c.Get(c.t.Context(), o.GroupVersionKind(), clusterapi.KeyOf(o))
	if err != nil {
		c.t.Fatal(err)
	}
	return u
}

const (
	mergeConfigMap = `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns, labels: {ours: x}}, data: {a: x}}`
)

// What a pass asks of a cluster for one object, and what becomes of it.
func TestApplyMergeCalls(t *testing.T) {
	const createOnly = `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns, annotations: {release.openshift.io/create-only: %q}}, data: {a: x}}`
	deleted := strings.Replace(mergeConfigMap, "labels: {ours: x}", `annotations: {release.openshift.io/delete: "true"}`, 1)
	for _, tt := range []struct {
		name, manifest string
		loaded         []string
		o              Options
		want           []string
		data           map[string]any // of ConfigMaps, afterwards
	}{
		{
			name: "absent", manifest: mergeConfigMap,
			want: []string{"Get ConfigMap ns/c", "Create ConfigMap ns/c"}, data: map[string]any{"a": "x"},
		},
		{
			name: "unchanged", manifest: mergeConfigMap, loaded: []string{mergeConfigMap},
			want: []string{"Get ConfigMap ns/c"}, data: map[string]any{"a": "x"},
		},
		{
			name: "others have added", manifest: mergeConfigMap, loaded: []string{strings.Replace(mergeConfigMap, "a: x", "a: x, theirs: z", 1)},
			want: []string{"Get ConfigMap ns/c"}, data: map[string]any{"a": "x", "theirs": "z"},
		},
		{
			name: "changed", manifest: mergeConfigMap, loaded: []string{strings.Replace(mergeConfigMap, "a: x", "a: old, theirs: z", 1)},
			want: []string{"Get ConfigMap ns/c", "Update ConfigMap ns/c"}, data: map[string]any{"a": "x", "theirs": "z"},
		},
		{
			name: "create-only, absent", manifest: fmt.Sprintf(createOnly, "true"),
			want: []string{"Get ConfigMap ns/c", "Create ConfigMap ns/c"}, data: map[string]any{"a": "x"},
		},
		{
			name: "create-only, there", manifest: fmt.Sprintf(createOnly, "True"), loaded: []string{strings.Replace(mergeConfigMap, "a: x", "a: old", 1)},
			want: []string{"Get ConfigMap ns/c"}, data: map[string]any{"a": "old"},
		},
		{
			name: "not create-only", manifest: fmt.Sprintf(createOnly, "yes"), loaded: []string{strings.Replace(mergeConfigMap, "a: x", "a: old", 1)},
			want: []string{"Get ConfigMap ns/c", "Update ConfigMap ns/c"}, data: map[string]any{"a": "x"},
		},
		{
			name: "deleted", manifest: deleted, loaded: []string{mergeConfigMap},
			want: []string{"Get ConfigMap ns/c", "Delete ConfigMap ns/c"},
		},
		{
			name: "overridden", manifest: mergeConfigMap, loaded: []string{strings.Replace(mergeConfigMap, "a: x", "a: old", 1)},
			o:    Options{Filter: manifest.Filter{Overrides: []configv1.ComponentOverride{{Kind: "ConfigMap", Namespace: "ns", Name: "c", Unmanaged: true}}}},
			data: map[string]any{"a": "old"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCalled(t, tt.loaded...)
			before := ""
			if len(tt.loaded) > 0 {
				before = c.get(mergeConfigMap).GetResourceVersion()
			}
			c.fail = func(call memory.Call) error {
				if call.Verb == "Update" && (before == "" || call.Object.GetResourceVersion() != before) {
					return fmt.Errorf("an update of %q, not of the state that was read", call.Object.GetResourceVersion())
				}
				return nil
			}
			calls, err := c.pass(tt.o, tt.manifest)
			if err != nil {
				t.Fatal(causeOf(err))
			}
			checktest.Same(t, tt.want, calls)
			if tt.data != nil {
				checktest.Same(t, tt.data, c.get(mergeConfigMap).Object["data"])
			}
		})
	}
}

// A conflict is tried again by the task, over what the cluster has then.
func TestApplyMergeConflict(t *testing.T) {
	changed := strings.Replace(mergeConfigMap, "a: x", "a: old", 1)
	for _, steps := range []int{1, 2} {
		c := newCalled(t, changed)
		conflicts := 0
		c.fail = func(call memory.Call) error {
			if call.Verb != "Update" || conflicts > 0 {
				return nil
			}
			conflicts++ // somebody is faster
			c.fail = nil
			u := c.get(mergeConfigMap)
			set(t, u, "z", "data", "theirs")
			_, err := c.Update(t.Context(), u, someoneUpdate)
			return err
		}
		var retries []string
		calls, err := c.pass(Options{Backoff: &Backoff{Steps: steps}, Observe: func(e clusterapi.Event) {
			if e.Type == EventTaskRetry {
				retries = append(retries, e.Message)
			}
		}}, mergeConfigMap)
		te, _ := errors.AsType[*TaskError](err)
		switch steps {
		case 1:
			if te == nil || te.Reason != ReasonResourceConflict || !apierrors.IsConflict(te.Err) {
				t.Errorf("error %v", err)
			}
		case 2:
			if err != nil || len(retries) != 1 {
				t.Errorf("error %v after retries %q", err, retries)
			}
			checktest.Same(t, map[string]any{"a": "x", "theirs": "z"}, c.get(mergeConfigMap).Object["data"])
		}
		updates := updatesOf(calls)
		if len(updates) != steps+1 { // one of them somebody's
			t.Errorf("%d attempts: %v", steps, calls)
		}
	}
}
