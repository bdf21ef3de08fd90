package install_test

import (
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/olm"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
)

// looking is a CEL evaluator that counts how often a resolution asks it.
type looking struct{ n int }

func (l *looking) Compile(string) (func([]olm.Property) bool, error) {
	l.n++
	return func([]olm.Property) bool { return false }, nil
}

// A pass resolves and explains again if something has changed that a resolver looks at, and
// only then.
func TestResolvesWhatHasChanged(t *testing.T) {
	const needs = ` prop=olm.constraint:{"failureMessage":"m","cel":{"rule":"r"}}`
	old := contents("a.v1 A", "a.v2 A >a.v1"+needs)
	w := manage(t, old, ptr(installed("a.v1 A")[0]), ptr(sub("a", "a.v1")))
	seen := &looking{}
	w.options.Resolve.CEL = seen
	c := w.controller()
	pass := func() int {
		t.Helper()
		before := seen.n
		for range 5 {
			if r := checktest.Get(c.Sync(t.Context(), ns))(t); !r.Changed {
				return seen.n - before
			}
		}
		t.Fatal("does not settle")
		return 0
	}
	if pass() == 0 {
		t.Fatal("the first passes do not ask")
	}
	checktest.Equal(t, true, strings.Contains(conditionsText(&w.subscription("a").Status), "ResolutionFailed"), "it is held back")
	for _, tt := range []struct {
		name   string
		change func()
		asks   bool
	}{
		{"nothing", func() {}, false},
		{"time", func() { w.clock.Step(1e12) }, false},
		{"what a pass writes", func() {
			checktest.OK(t, change(w, "a", func(s *olmapi.Subscription) { s.Status.Conditions = nil }, inStatus))
		}, false},
		{"other contents", func() {
			w.catalogs[catalogKey] = contents("a.v1 A", "a.v2 A >a.v1"+needs)
		}, true},
		{"an operator", func() { w.put(ptr(installed("b.v1 B")[0])) }, true},
		{"a Subscription", func() { w.put(ptr(sub("b", "b.v1"))) }, true},
		{"a group", func() {
			checktest.OK(t, change(w, "og", func(g *olmapi.OperatorGroup) { g.Annotations = map[string]string{"x": "y"} }))
		}, true},
		{"a priority", func() {
			checktest.OK(t, change(w, "olm/c", func(c *olmapi.CatalogSource) { c.Spec.Priority = 7 }))
		}, true},
	} {
		tt.change()
		asked := pass()
		checktest.Equal(t, tt.asks, asked > 0, "%s: it asked %d times", tt.name, asked)
	}
}
