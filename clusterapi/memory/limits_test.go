package memory_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/limittest"
)

func TestLimits(t *testing.T) {
	filled := func(size int) *unstructured.Unstructured {
		u := object(t, configMap("name: c, namespace: ns", ""))
		u.Object["data"] = map[string]any{"a": strings.Repeat("x", size)}
		return u
	}
	data, whole := filled(1<<20+1), filled(1536<<10)
	annotated := object(t, configMap("name: c, namespace: ns", ""))
	annotated.SetAnnotations(map[string]string{"a": strings.Repeat("x", 256<<10)})
	deep := object(t, configMap("name: c, namespace: ns", ""))
	tree := map[string]any{}
	for range 1001 {
		tree = map[string]any{"a": tree}
	}
	deep.Object["data"] = tree
	refused := func(u *unstructured.Unstructured, want func(error) bool) func(*testing.T) int64 {
		c := memory.New(memory.Options{})
		return func(t *testing.T) int64 {
			checktest.ErrorBy(t, want, checktest.Err(c.Create(t.Context(), u, clusterapi.CreateOptions{})))
			return 0
		}
	}
	limittest.Walk(t, []limittest.Case{
		{Limit: "size of an object", Default: 1536 << 10, Bytes: 64 << 10, Run: refused(whole, apierrors.IsRequestEntityTooLargeError)},
		{Limit: "depth of an object", Default: 1000, Bytes: 64 << 10, Run: refused(deep, apierrors.IsBadRequest)},
		{Limit: "annotations of an object", Default: 256 << 10, Bytes: 1 << 20, Run: refused(annotated, apierrors.IsInvalid)},
		{Limit: "data of a ConfigMap or Secret", Default: 1 << 20, Bytes: 4 << 20, Run: refused(data, apierrors.IsInvalid)},
		{Limit: "changes that wait for a watch", Default: 1024, Bytes: 64 << 20, Steps: 1025, Run: func(t *testing.T) int64 { return slowWatch(t) }},
	})
}

// slowWatch changes one object 1,100 times before its watcher looks again, and
// returns how many changes that sees.
func slowWatch(t *testing.T) int64 {
	c := memory.New(memory.Options{})
	u := mustApply(t, c, configMap("name: c, namespace: ns", ""))
	seen := int64(0)
	for event, err := range c.Watch(t.Context(), cms, clusterapi.ListOptions{}) {
		checktest.OK(t, err)
		if event.Type == clusterapi.Synced {
			for i := range 1100 {
				u = mustApply(t, c, configMap("name: c, namespace: ns", fmt.Sprintf(`, data: {a: "%d"}`, i)))
			}
			continue
		}
		if seen++; event.Object != nil && event.Object.GetResourceVersion() == u.GetResourceVersion() && seen > 1 {
			break
		}
	}
	return seen
}

// Writes that change nothing move nothing, though two managers take turns and
// time goes on.
func TestManagersInTurn(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	c := memory.New(memory.Options{Clock: clock})
	apply := func(manager, key string) string {
		clock.SetTime(clock.Now().Add(time.Second))
		u := checktest.Get(c.Apply(t.Context(),
			object(t,
				configMap("name: c, namespace: ns", ", data: {"+key+": x}")), clusterapi.ApplyOptions{FieldManager: manager}))(t)
		return u.GetResourceVersion()
	}
	update := func(manager string) string {
		clock.SetTime(clock.Now().Add(time.Second))
		u := mustGet(t, c, cms, "ns", "c")
		u = checktest.Must(c.Update(t.Context(), u, clusterapi.UpdateOptions{FieldManager: manager}))
		return u.GetResourceVersion()
	}
	apply("one", "a")
	apply("two", "b")
	mustLabel := mustGet(t, c, cms, "ns", "c")
	mustLabel.SetLabels(map[string]string{"a": "b"})
	checktest.Must(c.Update(t.Context(), mustLabel, clusterapi.UpdateOptions{FieldManager: "three"}))
	want := mustGet(t, c, cms, "ns", "c").GetResourceVersion()
	for range 3 {
		for _, got := range []string{apply("one", "a"), apply("two", "b"), update("one"), update("three")} {
			checktest.FatalIf(t, got != want, "the resourceVersion moved from %s to %s", want, got)
		}
	}
}

// A namespace goes in time that grows with what is in it, and no faster.
func TestNamespaceGoesInLinearTime(t *testing.T) {
	small, large := deleteNamespace(t, 500), deleteNamespace(t, 4000)
	checktest.FailIf(t, large > 12*small, "500 objects cost %d bytes, 4000 cost %d", small, large)
}

func deleteNamespace(t *testing.T, n int) uint64 {
	c := memory.New(memory.Options{})
	mustLoad(t, c, `{apiVersion: v1, kind: Namespace, metadata: {name: ns}}`)
	u := object(t, configMap("name: c, namespace: ns", ""))
	for i := range n {
		u.SetName(fmt.Sprintf("c%d", i))
		checktest.OK(t, c.Load(u))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	checktest.OK(t,
		c.Delete(t.Context(), object(t, `{apiVersion: v1, kind: Namespace}`).GroupVersionKind(),
			clusterapi.Key("", "ns"), clusterapi.DeleteOptions{}))
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
