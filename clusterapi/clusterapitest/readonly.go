package clusterapitest

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterapitest/internal/probe"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// recordedID is part of the names of [Objects].
const recordedID = "recorded"

// Objects returns what a backend that declares ReadOnly must contain: a new
// copy each time, with UIDs, resourceVersions and creation times, in no
// particular order. The backend may give them other resourceVersions, and may
// contain other objects as well.
func Objects() []*unstructured.Unstructured {
	s := recordedSuite(nil)
	var out []*unstructured.Unstructured
	add := func(format string, args ...any) {
		u := &unstructured.Unstructured{}
		if err := probe.Parse(fmt.Sprintf(format, args...), &u.Object); err != nil {
			panic(err) // the texts are constants
		}
		n := len(out) + 1
		u.SetUID(types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", n)))
		u.SetResourceVersion(fmt.Sprint(100 + n))
		u.Object["metadata"].(map[string]any)["creationTimestamp"] = "2001-01-01T00:00:00Z"
		if _, ok := u.Object["spec"]; ok {
			u.SetGeneration(1)
		}
		out = append(out, u)
	}
	add(definition, "widgets."+s.widgets.Group, s.widgets.Group)
	for _, ns := range []string{s.ns, s.other} {
		add(`{apiVersion: v1, kind: Namespace, metadata: {name: %s}, status: {phase: Active}}`, ns)
		for _, name := range []string{"get-it", "get-it-too"} {
			add(configMapText, name, ns)
		}
	}
	shared := []string{"shared-get", "shared-list-a", "shared-list-b"}
	for _, name := range append([]string{"get", "own-returned", "context", "context-mid"}, shared...) {
		add(configMapText, name, s.ns)
	}
	add(`{apiVersion: v1, kind: Secret, metadata: {name: get-it, namespace: %s}}`, s.ns)
	for _, o := range listed(s) {
		add(listedText, o.name, o.ns, s.id, o.color)
	}
	for _, p := range podsOnNodes(s) {
		add(podText, p.name, p.ns, p.color, p.node)
	}
	for _, name := range append([]string{"get-integers", "list-items"}, shared...) {
		add(deploymentText, name, s.ns)
		add(widgetText, s.widgets.GroupVersion(), name, s.ns)
		for _, u := range out[len(out)-2:] {
			if name == "list-items" {
				u.SetLabels(map[string]string{"list": s.id})
			}
		}
	}
	return out
}

// recordedSuite is the suite of a backend that has [Objects].
func recordedSuite(api clusterapi.ClusterAPI) *suite {
	s := newNames(recordedID)
	s.api, s.recorded = api, true
	return s
}

// testRecorded: every object is there as it was given.
func testRecorded(t *testing.T, s *suite) {
	for _, want := range Objects() {
		got := s.get(t, want)
		if want.GroupVersionKind() == probe.Definitions {
			wantAt(t, got, probe.At(want, "spec", "group"), "spec", "group")
			continue // a backend that serves its kinds may write to it
		}
		checktest.FailIf(t, got.GetResourceVersion() == "",
			"%s %s has no resourceVersion", want.GetKind(), want.GetName())
		got.SetResourceVersion(want.GetResourceVersion()) // which may be its own
		wantSame(t, "the object as given", want, got)
	}
}

// testWrites: nothing is written, and a write is an error.
func testWrites(t *testing.T, s *suite) {
	before := s.get(t, s.configMap(t, "get"))
	changed := before.DeepCopy()
	set(t, changed, "changed", "data", "a")
	fresh := s.configMap(t, "new")
	pod := object(t, `{apiVersion: v1, kind: Pod, metadata: {name: on-node, namespace: %s}}`, s.ns)
	for _, c := range []probe.Call{
		probe.Of("Create", fresh), probe.By("first", "Apply", s.configMap(t, "get")), probe.Of("Update", changed),
		probe.Of("UpdateStatus", changed), probe.Of("Delete", before), probe.Of("Evict", pod),
	} {
		t.Run(c.Verb, func(t *testing.T) {
			_, err := c.Do(s.ctx, s.api)
			checktest.FailIf(t, err == nil, "a backend that declares ReadOnly took it")
			wantSame(t, "after a write that was refused", before, s.get(t, before))
			checktest.FailIf(t, !s.gone(t, fresh), "the object was created")
			s.get(t, pod)
		})
	}
}

// testParallelReads: readers at the same time see the same.
func testParallelReads(t *testing.T, s *suite) {
	want := text(s.get(t, s.configMap(t, "get")).Object)
	all := names(s.list(t, pods, clusterapi.ListOptions{}))
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 5 {
				u, err := probe.Get(s.ctx, s.api, configMaps, clusterapi.Key(s.ns, "get"))
				if err != nil || text(u.Object) != want {
					t.Errorf("Get: %v, or another object", err)
					return
				}
				l, err := s.api.List(s.ctx, pods, clusterapi.ListOptions{})
				if err != nil || l == nil || !slices.Equal(names(l), all) {
					t.Errorf("List: %v, or other objects", err)
					return
				}
			}
		})
	}
	group.Wait()
}

// testWatchRecorded: what is there, then Synced, then nothing.
func testWatchRecorded(t *testing.T, s *suite, watcher clusterapi.Watcher) {
	for _, tc := range []struct {
		gvk  schema.GroupVersionKind
		opts clusterapi.ListOptions
	}{
		{configMaps, clusterapi.ListOptions{Namespace: s.ns, Labels: selector(t, "list=%s", s.id)}},
		{pods, clusterapi.ListOptions{NodeName: "node-" + s.id}},
		{s.widgets, clusterapi.ListOptions{}},
		{probe.Namespaces, clusterapi.ListOptions{}},
		{configMaps, clusterapi.ListOptions{Labels: selector(t, "nothing=here")}},
	} {
		want := names(s.list(t, tc.gvk, tc.opts))
		w := startKind(t, s, watcher, tc.gvk, tc.opts)
		var got []string
		for range want {
			if e := w.next(t); e.Type != clusterapi.Added || e.Object == nil {
				t.Errorf("%s: got %s, want Added", tc.gvk.Kind, e.Type)
			} else {
				got = append(got, clusterapi.KeyOf(e.Object).String())
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		checktest.FailIf(t, !slices.Equal(got, want), "%s: got %v, want %v", tc.gvk.Kind, got, want)
		w.want(t, "Synced ")
		w.stop(t)
	}
}
