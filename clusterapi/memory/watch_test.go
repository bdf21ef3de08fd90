package memory_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// A consumer that never takes an event blocks no writer, and when it goes on
// it gets to the state that is stored.
func TestSlowWatcher(t *testing.T) {
	c := memory.New(memory.Options{})
	mustLoad(t, c, `{apiVersion: v1, kind: ConfigMap, metadata: {name: first, namespace: ns}}`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const objects, rounds = 10, 150
	seen := map[string]string{}
	events := 0
	for e, err := range c.Watch(ctx, cms, clusterapi.ListOptions{}) {
		checktest.OK(t, err)
		if e.Type == clusterapi.Synced {
			for round := range rounds {
				for i := range objects {
					u := object(t, fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: o%d, namespace: ns}, data: {count: "%d"}}`, i, round))
					checktest.Must(c.Apply(ctx, u, manager))
				}
			}
			checktest.OK(t, c.Delete(ctx, cms, clusterapi.Key("ns", "first"), clusterapi.DeleteOptions{}))
			continue
		}
		events++
		if e.Type == clusterapi.Deleted {
			delete(seen, e.Object.GetName())
			break
		}
		seen[e.Object.GetName()], _, _ = unstructured.NestedString(e.Object.Object, "data", "count")
	}
	want := map[string]string{}
	for i := range objects {
		want[fmt.Sprintf("o%d", i)] = fmt.Sprint(rounds - 1)
	}
	checktest.Same(t, want, seen)
	checktest.FailIf(t, events > 1100, "%d events waited; changes of one object were not merged", events)
}

// Whatever is written while a consumer sleeps, its events lead from what it
// knew to what is stored, and each fits what it knew.
func TestWatchLeadsToTheStoredState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		c := memory.New(memory.Options{})
		selected := clusterapi.ListOptions{Labels: labels.SelectorFromSet(labels.Set{"on": "yes"})}
		write := func() {
			name := rapid.StringMatching(`[abc]`).Draw(t, "name")
			switch rapid.SampledFrom([]string{"set", "set", "hide", "delete"}).Draw(t, "what") {
			case "delete":
				_ = c.Delete(ctx, cms, clusterapi.Key("ns", name), clusterapi.DeleteOptions{})
			case "hide":
				apply(t, c, name, "no", rapid.IntRange(0, 3).Draw(t, "n"))
			default:
				apply(t, c, name, "yes", rapid.IntRange(0, 3).Draw(t, "n"))
			}
		}
		for range rapid.IntRange(0, 3).Draw(t, "before") {
			write()
		}
		after := rapid.IntRange(0, 20).Draw(t, "after")
		seen := map[string]string{}
		for e, err := range c.Watch(ctx, cms, selected) {
			checktest.OK(t, err)
			name := ""
			if e.Object != nil {
				name = e.Object.GetName()
			}
			_, known := seen[name]
			switch e.Type {
			case clusterapi.Synced:
				for range after {
					write()
				}
				apply(t, c, "last", "yes", 0)
				continue
			case clusterapi.Added, clusterapi.Modified:
				checktest.FatalIf(t, known == (e.Type == clusterapi.Added),
					"%s %s, known before: %t", e.Type, name, known)
				seen[name] = e.Object.GetResourceVersion()
			case clusterapi.Deleted:
				checktest.FatalIf(t, !known, "Deleted %s, which was not known", name)
				delete(seen, name)
			}
			if name == "last" {
				break
			}
		}
		list := checktest.Must(c.List(ctx, cms, selected))
		want := map[string]string{}
		for i := range list.Items {
			want[list.Items[i].GetName()] = list.Items[i].GetResourceVersion()
		}
		checktest.SameIn(t, "(-stored +seen)", want, seen)
	})
}

func apply(t *rapid.T, c *memory.Cluster, name, on string, n int) {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": name, "namespace": "ns", "labels": map[string]any{"on": on}},
		"data":     map[string]any{"n": fmt.Sprint(n)},
	}}
	checktest.Must(c.Apply(context.Background(), u, manager))
}

// A watch that waits ends with its context, and a definition becomes
// Established by itself where the clock has timers.
func TestWatchEstablished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory.New(memory.Options{EstablishAfter: time.Minute})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		crd := mustApply(t, c, benchDefinition)
		start := time.Now()
		var at time.Duration
		for e, err := range c.Watch(ctx, crd.GroupVersionKind(), clusterapi.ListOptions{}) {
			checktest.Good(t, err)
			if e.Type == clusterapi.Modified {
				at = time.Since(start)
			}
		}
		checktest.Equal(t, time.Minute, at, "Established after")
		checktest.Equal(t, time.Hour, time.Since(start), "the watch ended after")
	})
}

func TestWatchFails(t *testing.T) {
	boom := errors.New("boom")
	c := memory.New(memory.Options{Intercept: func(context.Context, memory.Call, func(context.Context) error) error { return boom }})
	var errs []error
	for _, err := range c.Watch(t.Context(), cms, clusterapi.ListOptions{}) {
		errs = append(errs, err)
	}
	checktest.FailIf(t, len(errs) != 1 || errs[0] != boom, "got %v, want the one error of the interceptor", errs)
}
