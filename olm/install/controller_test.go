package install_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/olm"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
	"github.com/clusterupdate/clusterupdate/olm/install"
)

func ptr[T any](v T) *T { return &v }

func expect(t *testing.T, what string, got, want []string) {
	t.Helper()
	checktest.SameIn(t, what, want, got)
}

// An operator with a dependency is installed and then updated; the new
// Subscription that the plan creates is taken up.
func TestControllerInstallsAndUpdates(t *testing.T) {
	w := manage(t, contents("a.v1 X -Y", "b.v1 Y"), ptr(sub("a", "")))
	r := w.sync()
	if !r.Changed || r.Plan == "" {
		t.Errorf("first pass: %+v", r)
	}
	expect(t, "plans", w.plans(), []string{"1 Automatic Installing [a.v1 b.v1]"})
	expect(t, "Subscriptions", w.states(), []string{"a UpgradePending /a.v1"})
	p := get[olmapi.InstallPlan](w, r.Plan)
	if len(p.OwnerReferences) != 1 || p.OwnerReferences[0].Name != "a" || p.OwnerReferences[0].UID == "" || !strings.HasPrefix(p.Name, "install-") {
		t.Errorf("the plan's metadata: %+v", p.ObjectMeta)
	}
	if len(p.Status.BundleLookups) != 2 || len(p.Status.Plan) != 1 || p.Status.Plan[0].Resource.Name != "b-stable-c-olm" {
		t.Errorf("the plan's status: %+v", p.Status)
	}
	if got := w.settle(); fmt.Sprint(got.Waiting) != "["+r.Plan+"]" || got.Plan != r.Plan {
		t.Errorf("while the plan is carried out: %+v", got)
	}
	expect(t, "Subscriptions", w.states(), []string{"a UpgradePending /a.v1: InstallPlanPending=True Installing"})

	w.put(ptr(sub("b", "", named("b-stable-c-olm"), generatedBy(r.Plan, "b.v1"))))
	w.install("a.v1 X -Y", "b.v1 Y")
	w.settle()
	expect(t, "Subscriptions", w.states(), []string{"a AtLatestKnown a.v1/a.v1", "b-stable-c-olm AtLatestKnown b.v1/b.v1"})

	w.catalogs[catalogKey] = contents("a.v1 X -Y", "b.v1 Y", "b.v2 Y >b.v1")
	w.settle()
	expect(t, "plans", w.plans(), []string{"1 Automatic Complete [a.v1 b.v1]", "2 Automatic Installing [b.v2]"})
	expect(t, "Subscriptions", w.states(), []string{"a AtLatestKnown a.v1/a.v1", "b-stable-c-olm UpgradePending b.v1/b.v2: InstallPlanPending=True Installing"})
	w.install("b.v2 Y >b.v1")
	if r := w.settle(); r.Plan != "" || r.Generation == nil || len(r.Generation.Operators) != 0 {
		t.Errorf("at the end: %+v", r)
	}
	expect(t, "Subscriptions", w.states(), []string{"a AtLatestKnown a.v1/a.v1", "b-stable-c-olm AtLatestKnown b.v2/b.v2"})
}

// What has settled is not written again, whatever the time.
func TestControllerWritesNothingTwice(t *testing.T) {
	for _, tc := range []struct {
		name    string
		catalog []string
		objects []any
	}{
		{"at the head", []string{"a.v1 X"}, []any{ptr(sub("a", "a.v1")), ptr(installed("a.v1 X")[0])}},
		{"waiting for a plan", []string{"a.v1 X"}, []any{ptr(sub("a", "", manual))}},
		{"one waits, one is there", []string{"a.v1 X", "b.v1 Y", "b.v2 Y >b.v1"}, []any{ptr(sub("a", "a.v1", manual)), ptr(installed("a.v1 X")[0]), ptr(sub("b", "b.v1")), ptr(installed("b.v1 Y")[0])}},
		{"failing", []string{"a.v1 X"}, []any{ptr(sub("a", "", channel("none")))}},
		{"held back", []string{"a.v1 X -Q"}, []any{ptr(sub("a", ""))}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := manage(t, contents(tc.catalog...), tc.objects...)
			w.settle()
			before := w.writes.Load()
			for range 3 {
				w.clock.Step(time.Hour)
				w.sync()
			}
			if n := w.writes.Load(); n != before {
				t.Errorf("%d further writes", n-before)
			}
		})
	}
}

func TestControllerManualApproval(t *testing.T) {
	w := manage(t, contents("a.v1 X", "b.v1 Y"), ptr(sub("a", "", manual)), ptr(sub("b", "")))
	name := w.sync().Plan
	r := w.settle()
	expect(t, "plans", w.plans(), []string{"1 Manual RequiresApproval [a.v1 b.v1]"})
	expect(t, "waiting", r.Waiting, []string{name})
	expect(t, "Subscriptions", w.states(), []string{
		"a UpgradePending /a.v1: InstallPlanPending=True RequiresApproval",
		"b UpgradePending /b.v1: InstallPlanPending=True RequiresApproval"})

	w.approve(name)
	w.settle()
	expect(t, "plans", w.plans(), []string{"1 Manual Installing [a.v1 b.v1]"})
	w.install("a.v1 X", "b.v1 Y")
	w.catalogs[catalogKey] = contents("a.v1 X", "a.v2 X >a.v1", "b.v1 Y")
	w.settle()
	expect(t, "plans", w.plans(), []string{"1 Manual Complete [a.v1 b.v1]", "2 Manual RequiresApproval [a.v2]"})

	// Deleting the plan makes another.
	for _, p := range list[olmapi.InstallPlan](w) {
		if p.Spec.Generation == 2 {
			checktest.OK(t, w.Delete(context.Background(), p.APIKind(), clusterapi.Key(ns, p.Name), clusterapi.DeleteOptions{}))
		}
	}
	w.settle()
	expect(t, "plans", w.plans(), []string{"1 Manual Complete [a.v1 b.v1]", "3 Manual RequiresApproval [a.v2]"})
	expect(t, "Subscriptions", w.states(), []string{
		"a UpgradePending a.v1/a.v2: InstallPlanPending=True RequiresApproval",
		"b AtLatestKnown b.v1/b.v1"})
}

// A plan that waits for approval begins once no Subscription asks for one.
func TestControllerApprovalChanges(t *testing.T) {
	w := manage(t, contents("a.v1 X", "b.v1 Y"), ptr(sub("a", "", manual)), ptr(sub("b", "", manual)))
	w.settle()
	for _, name := range []string{"a", "b"} {
		expect(t, "plans", w.plans(), []string{"1 Manual RequiresApproval [a.v1 b.v1]"})
		checktest.OK(t, change(w.Cluster, name, func(s *olmapi.Subscription) {
			s.Spec.InstallPlanApproval = olmapi.ApprovalAutomatic
		}))
		w.settle()
	}
	expect(t, "plans", w.plans(), []string{"1 Automatic Installing [a.v1 b.v1]"})
	approved := slices.ContainsFunc(w.events, func(e clusterapi.Event) bool { return e.Type == install.EventPlanApproved })
	checktest.Equal(t, true, approved, "an event reports the approval")
}

// A Subscription that is made again takes up the operator of its package that is
// there, and updates it.
func TestControllerAdoptsOperators(t *testing.T) {
	bare := func(name string) any { return ptr(newCSV(name)) }
	for _, tc := range []struct {
		name   string
		there  []any
		states []string
	}{
		{"by its properties", []any{ptr(installed("a.v1 X prop=olm.maxOpenShiftVersion:\"4.15\"")[0])},
			[]string{"a UpgradePending a.v1/a.v2: InstallPlanPending=True Installing"}},
		{"by the catalog", []any{bare("a.v1")}, []string{"a UpgradePending a.v1/a.v2: InstallPlanPending=True Installing"}},
		{"another package", []any{ptr(installed("b.v1 Y")[0])}, []string{"a UpgradePending /a.v2: InstallPlanPending=True Installing"}},
		{"the newest of a chain", []any{bare("a.v1"), ptr(newCSV("a.v2", func(c *olmapi.ClusterServiceVersion) { c.Spec.Replaces = "a.v1" }))},
			[]string{"a AtLatestKnown a.v2/a.v2"}},
		{"another Subscription has it", []any{bare("a.v1"), ptr(sub("a", "a.v1", named("other"), channel("beta")))},
			[]string{"a  /: ResolutionFailed=True ConstraintsNotSatisfiable held back: subscription a: not taken a.v2, a.v1; nothing instead: " +
				"a.v2 not taken; subscription other can have nothing but a.v1; a.v1 not taken; subscription other can have nothing but a.v1",
				"other AtLatestKnown a.v1/a.v1"}},
		{"a copy", []any{copyOf("a.v1", func(c *olmapi.ClusterServiceVersion) { c.Status.Reason = "Copied" })},
			[]string{"a UpgradePending /a.v2: InstallPlanPending=True Installing"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := manage(t, contents("a.v1 X @stable @beta", "a.v2 X >a.v1"), append(tc.there, ptr(sub("a", "")))...)
			w.settle()
			expect(t, "Subscriptions", w.states(), tc.states)
		})
	}
}

// A plan that nobody approves does not hide what is newer, and approving it
// later does nothing.
func TestControllerSupersedesPlans(t *testing.T) {
	w := manage(t, contents("a.v1 X", "b.v1 Y"), ptr(sub("a", "", manual)), ptr(sub("b", "")))
	w.options.Execute, w.options.Unpacker = true, bundles(t, []string{"a.v1 X", "a.v2 X >a.v1", "b.v1 Y"}, nil)
	first := w.sync().Plan
	w.settle()
	w.catalogs[catalogKey] = contents("a.v1 X", "a.v2 X >a.v1", "b.v1 Y")
	second := w.settle().Plan
	want := []string{"1 Manual Failed [a.v1 b.v1]", "2 Manual RequiresApproval [a.v2 b.v1]"}
	expect(t, "plans", w.plans(), want)
	expect(t, "Subscriptions", w.states(), []string{
		"a UpgradePending /a.v2: InstallPlanPending=True RequiresApproval",
		"b UpgradePending /b.v1: InstallPlanPending=True RequiresApproval"})
	for _, name := range []string{"a", "b"} {
		if ref := w.subscription(name).Status.InstallPlanRef; ref.Name != second {
			t.Errorf("%s refers to %+v", name, ref)
		}
	}
	p := get[olmapi.InstallPlan](w, first)
	c := p.Status.Conditions[0]
	if c.Type != "Installed" || c.Status != corev1.ConditionFalse || c.Reason != "PlanSuperseded" ||
		!strings.HasSuffix(c.Message, "but for a.v2, b.v1") || p.Status.Message != c.Message {
		t.Errorf("status %+v", p.Status)
	}
	w.approve(first)
	w.settle()
	expect(t, "plans", w.plans(), want)

	// The channel leads nowhere: nothing is asked for of a.
	checktest.OK(t, change(w.Cluster, "a", func(s *olmapi.Subscription) { s.Spec.Channel = "none" }))
	w.settle()
	expect(t, "plans", w.plans(), []string{want[0], "2 Manual Failed [a.v2 b.v1]", "3 Manual RequiresApproval [b.v1]"})
	expect(t, "Subscriptions", w.states(), []string{
		"a  /: ResolutionFailed=True ConstraintsNotSatisfiable no operators found in channel none of package a in the catalog referenced by subscription a",
		"b UpgradePending /b.v1: InstallPlanPending=True RequiresApproval"})

	// And back: what was asked for before is asked for again, by another plan.
	checktest.OK(t, change(w.Cluster, "a", func(s *olmapi.Subscription) { s.Spec.Channel = "stable" }))
	w.settle()
	expect(t, "plans", w.plans()[2:], []string{"3 Manual Failed [b.v1]", "4 Manual RequiresApproval [a.v2 b.v1]"})
	var superseded []string
	for _, e := range w.events {
		if e.Type == install.EventPlanSuperseded {
			superseded = append(superseded, strings.TrimPrefix(e.Subject, "installplan/"+ns+"/"))
		}
	}
	expect(t, "superseded", superseded, []string{"install-1", "install-2", "install-3"})
}

// An update that is given up leads back to what is installed.
func TestControllerGivesUpdatesUp(t *testing.T) {
	w := manage(t, contents("a.v1 X", "a.v2 X >a.v1"), ptr(sub("a", "a.v1", manual)), ptr(installed("a.v1 X")[0]))
	w.settle()
	expect(t, "Subscriptions", w.states(), []string{"a UpgradePending a.v1/a.v2: InstallPlanPending=True RequiresApproval"})
	w.catalogs[catalogKey] = contents("a.v1 X")
	w.settle()
	expect(t, "plans", w.plans(), []string{"1 Manual Failed [a.v2]"})
	expect(t, "Subscriptions", w.states(), []string{"a AtLatestKnown a.v1/a.v1"})
}

// A catalog that cannot be read fails the namespace, and is forgotten once it
// can.
func TestControllerUnreadableCatalog(t *testing.T) {
	w := manage(t, contents("a.v1 X", "a.v2 X >a.v1"), ptr(sub("a", "a.v1")), ptr(installed("a.v1 X")[0]), ptr(sub("b", "")))
	w.put(&olmapi.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "mine"}})
	_, err := w.controller().Sync(context.Background(), ns)
	var prevented *olm.Prevented
	if !errors.As(err, &prevented) {
		t.Fatalf("got %v", err)
	}
	const text = "error using catalogsource ops/mine: no registry client established for catalogsource ops/mine"
	expect(t, "Subscriptions", w.states(), []string{
		"a AtLatestKnown a.v1/a.v1: ResolutionFailed=True ErrorPreventedResolution " + text,
		"b  /: ResolutionFailed=True ErrorPreventedResolution " + text})
	var failures int
	for range 3 {
		if _, err := w.controller().Sync(context.Background(), ns); err == nil {
			t.Error("no error in the next pass")
		}
	}
	for _, e := range w.events {
		if e.Type == install.EventResolutionFailed {
			failures++
			if e.Subject != "namespace/"+ns || e.Message != text {
				t.Errorf("event %+v", e)
			}
		}
	}
	if failures != 1 {
		t.Errorf("%d events", failures)
	}

	w.options.Resolve.TolerateUnusedCatalogs = true
	w.settle()
	const gone = "ResolutionFailed=True ConstraintsNotSatisfiable no operators found in package b in the catalog referenced by subscription b"
	expect(t, "Subscriptions", w.states(), []string{"a UpgradePending a.v1/a.v2: InstallPlanPending=True Installing", "b  /: " + gone})

	w.options.Resolve.TolerateUnusedCatalogs = false
	w.catalogs[types.NamespacedName{Namespace: ns, Name: "mine"}] = contents("q.v1 Q")
	w.install("a.v2 X >a.v1")
	w.settle()
	expect(t, "Subscriptions", w.states(), []string{"a AtLatestKnown a.v2/a.v2", "b  /: " + gone})
	if h := w.subscription("a").Status.CatalogHealth; len(h) != 2 || !h[0].Healthy || !h[1].Healthy {
		t.Errorf("health %+v", h)
	}
}

func TestControllerAllOrNothing(t *testing.T) {
	w := manage(t, contents("a.v1 X", "a.v2 X >a.v1", "b.v1 Y -Q"), ptr(sub("a", "a.v1")), ptr(installed("a.v1 X")[0]), ptr(sub("b", "")))
	w.options.Resolve.AllOrNothing = true
	_, err := w.controller().Sync(context.Background(), ns)
	var no *olm.NotSatisfiable
	if !errors.As(err, &no) {
		t.Fatalf("got %v", err)
	}
	for _, s := range []string{"a", "b"} {
		c := w.subscription(s).Status.Conditions
		if len(c) != 2 || c[1].Reason != "ConstraintsNotSatisfiable" || c[1].Message != err.Error() {
			t.Errorf("%s: %+v", s, c)
		}
	}
	if len(w.plans()) != 0 {
		t.Errorf("plans %v", w.plans())
	}
	w.options.Resolve.AllOrNothing = false
	w.settle()
	expect(t, "Subscriptions", w.states(), []string{"a UpgradePending a.v1/a.v2: InstallPlanPending=True Installing",
		"b  /: ResolutionFailed=True ConstraintsNotSatisfiable held back: subscription b: not taken b.v1; nothing instead: " +
			"b.v1 not taken; b.v1 requires Q (g/v1), which nothing provides"})
}

// A Subscription that gets nothing new though there is something says why, and
// events do, of it and of the namespace.
func TestControllerSaysWhy(t *testing.T) {
	const failed, heldBack = "ResolutionFailed=True ConstraintsNotSatisfiable ", "held back: subscription a: not taken "
	freestanding := ptr(installed("b.v1 X")[0])
	many := []string{"a.v1"}
	for v := 2; v <= 9; v++ {
		many = append(many, fmt.Sprintf("a.v%d -Q >a.v%d ~a.v1", v, v-1))
	}
	for _, tc := range []struct {
		name    string
		catalog []string
		objects []any
		want    string // condition of a
		remarks string // of the namespace
	}{
		{"no package", []string{"b.v1"}, []any{ptr(sub("a", ""))},
			"no operators found in package a in the catalog referenced by subscription a", ""},
		{"no channel", []string{"a.v1 @beta"}, []any{ptr(sub("a", ""))},
			"no operators found in channel stable of package a in the catalog referenced by subscription a", ""},
		{"a requirement", []string{"a.v1 -Q"}, []any{ptr(sub("a", ""))},
			heldBack + "a.v1; nothing instead: a.v1 not taken; a.v1 requires Q (g/v1), which nothing provides", ""},
		{"a freestanding operator", []string{"a.v1 X"}, []any{ptr(sub("a", "")), freestanding},
			heldBack + "a.v1; nothing instead: a.v1 not taken; " +
				"there can be only one provider of X (g/v1): b.v1 and a.v1 exclude each other; b.v1 is installed and no subscription has it, so it stays", ""},
		{"an update", []string{"a.v1", "a.v2 -Q >a.v1"}, []any{ptr(sub("a", "a.v1")), ptr(installed("a.v1")[0])},
			heldBack + "a.v2; instead a.v1: a.v2 not taken; a.v2 requires Q (g/v1), which nothing provides", ""},
		{"many updates: the best are explained", many, []any{ptr(sub("a", "a.v1")), ptr(installed("a.v1")[0])},
			heldBack + "a.v9, a.v8, a.v7; instead a.v1: a.v9 not taken; a.v9 requires Q (g/v1), which nothing provides; " +
				"a.v8 not taken; a.v8 requires Q (g/v1), which nothing provides; a.v7 not taken; a.v7 requires Q (g/v1), which nothing provides",
			"held back: subscription a: not taken a.v9, a.v8, a.v7, a.v6, a.v5, a.v4, a.v3, a.v2; instead a.v1"},
		{"an older update is taken", []string{"a.v1", "a.v2 >a.v1", "a.v3 -Q >a.v2 ~a.v1"}, []any{ptr(sub("a", "a.v1")), ptr(installed("a.v1")[0])}, "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := manage(t, contents(tc.catalog...), tc.objects...)
			w.settle()
			w.sync()
			got, _, _ := strings.Cut(conditionsText(&w.subscription("a").Status), "; InstallPlan")
			var events, want []string
			for _, e := range w.events {
				if e.Type == install.EventResolutionFailed {
					events = append(events, e.Subject+" "+e.Message)
				}
			}
			if tc.want == "" {
				checktest.Equal(t, "InstallPlanPending=True Installing", got, "conditions")
			} else {
				checktest.Equal(t, failed+tc.want, got, "conditions")
				remarks, _, _ := strings.Cut(tc.want, ": a.v")
				if !strings.HasPrefix(tc.want, heldBack) {
					remarks = "held back: subscription a: " + tc.want + "; nothing instead"
				}
				if tc.remarks != "" {
					remarks = tc.remarks
				}
				want = []string{"subscription/ops/a " + tc.want, "namespace/ops " + remarks}
			}
			checktest.Same(t, want, events)
		})
	}
}

// A write that meets a conflict is made again on what is stored then.
func TestControllerKeepsUnknownFields(t *testing.T) {
	u := checktest.Get(clusterapi.ToUnstructured(ptr(sub("a", ""))))(t)
	checktest.OK(t, unstructured.SetNestedField(u.Object, "kept", "spec", "config", "x"))
	checktest.OK(t, unstructured.SetNestedField(u.Object, "kept", "status", "y"))
	w := manage(t, contents("a.v1 X"), u)
	w.settle()
	got := checktest.Get(w.Get(context.Background(), (&olmapi.Subscription{}).APIKind(), clusterapi.Key(ns, "a")))(t)
	x, _, _ := unstructured.NestedString(got.Object, "spec", "config", "x")
	y, _, _ := unstructured.NestedString(got.Object, "status", "y")
	if x != "kept" || y != "kept" {
		t.Errorf("config %q, status %q", x, y)
	}
}

func TestControllerDeletesOldPlans(t *testing.T) {
	for _, newest := range []olmapi.InstallPlanPhase{olmapi.PlanPhaseComplete, olmapi.PlanPhaseRequiresApproval} {
		s := sub("a", "a.v1")
		if newest == olmapi.PlanPhaseRequiresApproval {
			// This plan is superseded.
			s = sub("a", "a.v1", progressing("a.v2"), refersTo("p12"))
		}
		w := manage(t, contents("a.v1 X"), &s, ptr(installed("a.v1 X")[0]))
		for n := range 11 {
			w.put(ptr(plan(fmt.Sprintf("p%02d", n+1), int64(n+1), olmapi.PlanPhaseComplete)))
		}
		last := plan("p12", 12, newest)
		last.Spec.Approved = newest == olmapi.PlanPhaseComplete
		w.put(&last)
		w.sync()
		if n := len(w.plans()); n != 7 {
			t.Errorf("%s: %d plans after one pass", newest, n)
		}
		w.settle()
		if got := w.plans(); len(got) != 5 || !strings.HasPrefix(got[0], "8 ") {
			t.Errorf("%s: plans: %v", newest, got)
		}
	}
}

// unpacker serves the objects of one bundle.
type unpacker struct {
	objects []*unstructured.Unstructured
	err     error
	asked   []string
}

func (u *unpacker) Unpack(_ context.Context, r install.UnpackRequest) ([]*unstructured.Unstructured, error) {
	u.asked = append(u.asked, fmt.Sprintf("%s %s %s in %s", r.Namespace, r.Lookup.Path, r.Lookup.Identifier, r.Limits.Timeout))
	return u.objects, u.err
}

// With an unpacker and Execute, the controller does all of it.
func TestControllerExecutes(t *testing.T) {
	b := inline(t, "a.v1", fullCSV,
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}}`,
		`{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"pc"},"value":1}`)
	objects := checktest.Get(install.BundleObjects(b))(t)
	w := manage(t, contents("a.v1 X -Y", "b.v1 Y"), ptr(sub("a", "")), ptr(sub("b", "b.v1")), ptr(installed("b.v1 Y")[0]))
	u := &unpacker{err: install.ErrUnpacking}
	w.options.Unpacker, w.options.Execute = u, true
	w.settle()
	expect(t, "Subscriptions", w.states(), []string{
		"a  /: BundleUnpacking=True UnpackingInProgress",
		"b AtLatestKnown b.v1/b.v1: BundleUnpacking=True UnpackingInProgress"})
	expect(t, "asked", u.asked[:1], []string{"ops registry.example/a:1.0.0 a.v1 in 10m0s"})

	u.err = &install.UnpackError{Reason: "DeadlineExceeded", Message: "Job was active longer than specified deadline"}
	if _, err := w.controller().Sync(context.Background(), ns); !errors.Is(err, u.err) {
		t.Errorf("got %v", err)
	}
	const failed = "BundleUnpackFailed=True BundleUnpackFailed Bundle unpacking failed - DeadlineExceeded: Job was active longer than specified deadline"
	expect(t, "Subscriptions", w.states(), []string{"a  /: " + failed, "b AtLatestKnown b.v1/b.v1: " + failed})

	annotate := func(timeout string) {
		checktest.OK(t, change(w.Cluster, "og", func(g *olmapi.OperatorGroup) {
			g.Annotations = map[string]string{"operatorframework.io/bundle-unpack-timeout": timeout}
		}))
	}
	annotate("soon")
	if _, err := w.controller().Sync(context.Background(), ns); err == nil {
		t.Error("a limit that is none was taken")
	}
	if c := w.subscription("a").Status.Conditions; c[len(c)-1].Reason != "ErrorPreventedUnpacking" {
		t.Errorf("conditions %+v", c)
	}
	annotate("1m")
	u.err, u.objects = nil, objects
	w.settle()
	expect(t, "asked", u.asked[len(u.asked)-1:], []string{"ops registry.example/a:1.0.0 a.v1 in 1m0s"})
	expect(t, "plans", w.plans(), []string{"1 Automatic Complete [a.v1]"})
	expect(t, "Subscriptions", w.states(), []string{"a AtLatestKnown a.v1/a.v1", "b AtLatestKnown b.v1/b.v1"})
	installedCSV := get[olmapi.ClusterServiceVersion](w, "a.v1")
	sa := get[corev1.ServiceAccount](w, "sa")
	if len(sa.OwnerReferences) != 1 || sa.OwnerReferences[0].UID != installedCSV.UID || installedCSV.UID == "" {
		t.Errorf("owners of the account: %+v", sa.OwnerReferences)
	}
	get[corev1.Secret](w, "s")
	if _, err := w.Get(context.Background(), schema.GroupVersionKind{Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass"}, clusterapi.Key("", "pc")); err != nil {
		t.Error(err)
	}
	for _, s := range list[olmapi.InstallPlan](w)[0].Status.Plan {
		if s.Status != olmapi.StepCreated {
			t.Errorf("%s %s is %s", s.Resource.Kind, s.Resource.Name, s.Status)
		}
	}
}

// lacksKind is a cluster that does not serve a kind yet.
type lacksKind struct {
	clusterapi.ReadWriter
	kind string
}

func (l *lacksKind) Get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	if gvk.Kind == l.kind {
		return nil, &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
	}
	return l.ReadWriter.Get(ctx, gvk, key)
}

// What becomes of each kind of step: CSVs and Subscriptions that exist stay,
// other objects are brought to the state of the bundle, a new Subscription
// refers to the plan, and an object whose API is not there waits. The first
// attempt ended after it created a.v1.
func TestControllerCarriesOutSteps(t *testing.T) {
	object := func(apiVersion, kind, name, rest string) string {
		return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q}%s}`, apiVersion, kind, name, rest)
	}
	const olmVersion = "operators.coreos.com/v1alpha1"
	p := plan("p", 1, olmapi.PlanPhaseInstalling)
	p.Spec.ClusterServiceVersionNames = []string{"a.v1", "d.v1"}
	for _, x := range []struct{ of, kind, name, manifest string }{
		{"a.v1", "ClusterServiceVersion", "a.v1", object(olmVersion, "ClusterServiceVersion", "a.v1", `,"spec":{"version":"9.0.0"}`)},
		{"d.v1", "ClusterServiceVersion", "d.v1", object(olmVersion, "ClusterServiceVersion", "d.v1", `,"spec":{"version":"1.0.0"}`)},
		{"a.v1", "Subscription", "a", object(olmVersion, "Subscription", "a", `,"spec":{"name":"a","channel":"stable","source":"c","sourceNamespace":"olm","startingCSV":"a.v1"}`)},
		{"d.v1", "Subscription", "d-stable-c-olm", object(olmVersion, "Subscription", "d-stable-c-olm", `,"spec":{"name":"d","channel":"stable","source":"c","sourceNamespace":"olm","startingCSV":"d.v1"}`)},
		{"a.v1", "ConfigMap", "there", object("v1", "ConfigMap", "there", `,"data":{"k":"new"}`)},
		{"a.v1", "BundleSecret", "s", object("v1", "Secret", "s", ``)},
		{"a.v1", "ServiceMonitor", "m", object("monitoring.coreos.com/v1", "ServiceMonitor", "m", ``)},
		{"a.v1", "ConfigMap", "done", "broken"},
	} {
		s := step(x.of, olmapi.StepUnknown)
		s.Resource.Name, s.Resource.Kind, s.Resource.Manifest = x.name, x.kind, x.manifest
		if x.name == "done" {
			s.Status = olmapi.StepCreated
		}
		p.Status.Plan = append(p.Status.Plan, s)
	}
	w := manage(t, contents("a.v1 X -Y", "d.v1 Y"), ptr(sub("a", "", progressing("a.v1"), refersTo("p"))), ptr(installed("a.v1 X -Y")[0]), &p,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "there"}, Data: map[string]string{"k": "old"}})
	api := &lacksKind{w.Cluster, "ServiceMonitor"}
	c, err := install.New(install.Options{
		API: api, SnapshotOptions: install.SnapshotOptions{Catalogs: w.catalogs, GlobalNamespace: "olm"}, Execute: true, Clock: w.clock,
		Unpacker: unpackerOf(func(r install.UnpackRequest) ([]*unstructured.Unstructured, error) {
			return nil, install.ErrUnpacking // what else is asked for is not known yet
		}),
	})
	checktest.OK(t, err)
	statuses := func() []string {
		var out []string
		for _, s := range get[olmapi.InstallPlan](w, "p").Status.Plan {
			out = append(out, fmt.Sprintf("%s %s %s", s.Resource.Kind, s.Resource.Name, s.Status))
		}
		return out
	}
	want := []string{
		"ClusterServiceVersion a.v1 Present", "ClusterServiceVersion d.v1 Created", "Subscription a Present", "Subscription d-stable-c-olm Created",
		"ConfigMap there Present", "BundleSecret s Created", "ServiceMonitor m WaitingForApi", "ConfigMap done Created",
	}
	settle := func() (*install.SyncResult, error) {
		t.Helper()
		for range 10 {
			if r, err := c.Sync(context.Background(), ns); !r.Changed {
				return r, err
			}
		}
		t.Fatal("does not settle")
		return nil, nil
	}
	r, err := settle()
	if !r.Soon {
		t.Error("a step that waits is not looked at soon")
	}
	checktest.ErrorHas(t, "api-server resource not found installing ServiceMonitor m: GroupVersionKind monitoring.coreos.com/v1, Kind=ServiceMonitor not found", err)
	expect(t, "steps", statuses(), want)
	expect(t, "plans", w.plans(), []string{"1 Automatic Installing [a.v1 d.v1]"})
	checktest.SameIn(t, "the CSV that was there has now version", "1.0.0", get[olmapi.ClusterServiceVersion](w, "a.v1").Spec.Version)
	if s := w.subscription("a"); s.Spec.Package != "a" || len(s.Annotations) > 0 {
		t.Errorf("the Subscription that was there is now %+v", s)
	}
	checktest.SameIn(t, "the ConfigMap that was there holds", "new", get[corev1.ConfigMap](w, "there").Data["k"])
	d := w.subscription("d-stable-c-olm")
	checktest.SameIn(t, "the new Subscription is generated by", "p", d.Annotations["olm.generated-by"])
	if got := fmt.Sprintf("%s %s %s", d.Status.State, d.Status.CurrentCSV, d.Status.InstallPlanRef.Name); got != "AtLatestKnown d.v1 p" {
		t.Errorf("the new Subscription: %s", got)
	}
	api.kind = ""
	checktest.Get(settle())(t)
	want[6] = "ServiceMonitor m Created"
	expect(t, "steps", statuses(), want)
	expect(t, "plans", w.plans(), []string{"1 Automatic Complete [a.v1 d.v1]"})
}

// unpackerOf is a function that unpacks.
type unpackerOf func(install.UnpackRequest) ([]*unstructured.Unstructured, error)

func (f unpackerOf) Unpack(_ context.Context, r install.UnpackRequest) ([]*unstructured.Unstructured, error) {
	return f(r)
}

// A kind that the cluster does not serve fails the plan by name after a minute.
func TestControllerUnservedKind(t *testing.T) {
	w := manage(t, contents("a.v1 X"), ptr(sub("a", "")))
	w.options.Execute, w.options.Unpacker = true, bundles(t, []string{"a.v1 X"}, map[string][]string{"a.v1": {
		`{"apiVersion":"autoscaling.k8s.io/v1","kind":"VerticalPodAutoscaler","metadata":{"name":"v"}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}`}})
	const text = "api-server resource not found installing VerticalPodAutoscaler v: " +
		"GroupVersionKind autoscaling.k8s.io/v1, Kind=VerticalPodAutoscaler not found on the cluster. This API may have been deprecated and removed, " +
		"see https://kubernetes.io/docs/reference/using-api/deprecation-guide/ for more information."
	checktest.ErrorHas(t, text, w.settleFailing())
	expect(t, "plans", w.plans(), []string{"1 Automatic Installing [a.v1]"})
	checktest.Equal(t, "retrying execution due to error: "+text, get[olmapi.InstallPlan](w, "install-1").Status.Message, "message")
	get[corev1.ConfigMap](w, "c") // what can be written is
	w.clock.Step(time.Minute)
	w.settle()
	expect(t, "plans", w.plans(), []string{"1 Automatic Failed [a.v1]"})
	expect(t, "Subscriptions", w.states(), []string{"a AtLatestKnown a.v1/a.v1: InstallPlanFailed=True InstallComponentFailed " + text})
}

// A step that fails is tried again for a minute.
func TestControllerRetriesSteps(t *testing.T) {
	b := inline(t, "a.v1", fullCSV)
	objects := checktest.Get(install.BundleObjects(b))(t)
	w := manage(t, contents("a.v1 X"), ptr(sub("a", "")))
	w.options.Unpacker, w.options.Execute = &unpacker{objects: objects}, true
	w.sync()
	w.sync()
	first := int(w.writes.Load()) + 1
	w.fail = func(n int) bool { return n == first }
	if _, err := w.controller().Sync(context.Background(), ns); !errors.Is(err, errCrash) {
		t.Fatalf("got %v", err)
	}
	p := list[olmapi.InstallPlan](w)[0]
	if want := "retrying execution due to error: error creating ClusterServiceVersion a.v1: crash"; p.Status.Message != want || p.Status.StartTime == nil {
		t.Errorf("status: %q, %v", p.Status.Message, p.Status.StartTime)
	}
	w.clock.Step(2 * time.Minute)
	first = int(w.writes.Load()) + 1
	w.sync()
	w.fail = nil
	w.settle()
	expect(t, "plans", w.plans(), []string{"1 Automatic Failed [a.v1]"})
	expect(t, "Subscriptions", w.states(), []string{"a UpgradePending /a.v1: InstallPlanFailed=True InstallComponentFailed error creating ClusterServiceVersion a.v1: crash"})
}

func TestControllerWithoutSubscriptions(t *testing.T) {
	w := manage(t, contents("a.v1 X"))
	w.catalogs[catalogKey] = down{errors.New("down")}
	if r := w.sync(); r.Changed || r.Generation != nil || w.writes.Load() != 0 {
		t.Errorf("%+v, %d writes", r, w.writes.Load())
	}
}

// changing is a catalog that gets other contents while it is in use.
type changing struct{ c atomic.Pointer[olm.Contents] }

func (c *changing) put(contents *olm.Contents) { c.c.Store(contents) }

func (c *changing) Contents(context.Context) (*olm.Contents, error) { return c.c.Load(), nil }

// Run notices what changes, and ends with its context.
func TestControllerRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := manage(t, nil)
		shelf := &changing{}
		shelf.put(contents("a.v1 X"))
		w.catalogs[catalogKey] = shelf
		w.options.Clock = nil
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- w.controller().Run(ctx) }()
		synctest.Wait()
		s := sub("a", "")
		checktest.OK(t, checktest.Err(clusterapi.Create(ctx, w.Cluster, &s, clusterapi.CreateOptions{})))
		synctest.Wait()
		expect(t, "plans", w.plans(), []string{"1 Automatic Installing [a.v1]"})

		// Without an event the interval brings the next look.
		shelf.put(contents("b.v1 Y"))
		w.install("a.v1 X")
		synctest.Wait()
		expect(t, "Subscriptions", w.states()[:1], []string{"a AtLatestKnown a.v1/a.v1: ResolutionFailed=True ConstraintsNotSatisfiable no operators found in package a in the catalog referenced by subscription a"})
		shelf.put(contents("a.v1 X", "a.v2 X >a.v1"))
		time.Sleep(61 * time.Second)
		synctest.Wait()
		expect(t, "Subscriptions", w.states(), []string{"a UpgradePending a.v1/a.v2: InstallPlanPending=True Installing"})
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run ended with %v", err)
		}
	})
}

// Who watches hears of each step once.
func TestControllerEvents(t *testing.T) {
	objects := checktest.Get(install.BundleObjects(inline(t, "a.v1", fullCSV)))(t)
	w := manage(t, contents("a.v1 X"), ptr(sub("a", "", manual)), ptr(plan("old", 1, olmapi.PlanPhaseComplete)))
	for n := range 4 {
		w.put(ptr(plan(fmt.Sprintf("p%d", n), int64(n+2), olmapi.PlanPhaseComplete)))
	}
	w.options.Execute, w.options.Unpacker = true, &unpacker{objects: objects}
	w.settle()
	name := w.sync().Waiting[0]
	w.approve(name)
	w.settle()
	var got []string
	for _, e := range w.events {
		if !e.Time.Equal(statusNow.Time) {
			t.Errorf("event %+v", e)
		}
		got = append(got, strings.TrimSpace(strings.ReplaceAll(fmt.Sprintf("%s %s %s", e.Type, e.Subject, e.Message), name, "PLAN")))
	}
	expect(t, "events", got, []string{
		"PlanCreated installplan/ops/PLAN a.v1",
		"CatalogsChanged subscription/ops/a CatalogSourcesAdded",
		"Progressing subscription/ops/a a.v1",
		"PlanDeleted installplan/ops/old",
		"PlanApproved installplan/ops/PLAN",
		"PlanCompleted installplan/ops/PLAN",
	})
}

// What is under way is looked at every five seconds: a bundle that is being
// unpacked, then a step that failed.
func TestControllerRunLooksAgainSoon(t *testing.T) {
	objects := checktest.Get(install.BundleObjects(inline(t, "a.v1", fullCSV)))(t)
	synctest.Test(t, func(t *testing.T) {
		w := manage(t, contents("a.v1 X"), ptr(sub("a", "")))
		begin := time.Now()
		firstSteps := 0
		w.fail = func(int) bool {
			// Plan, its status and twice that of the Subscription come before the first step.
			if time.Since(begin) == 20*time.Second {
				firstSteps++
			}
			return firstSteps == 5
		}
		c, err := install.New(install.Options{
			API:             struct{ clusterapi.ReadWriter }{w.Cluster}, // without watches
			SnapshotOptions: install.SnapshotOptions{Catalogs: w.catalogs, GlobalNamespace: "olm"},
			Execute:         true,
			Unpacker: unpackerOf(func(install.UnpackRequest) ([]*unstructured.Unstructured, error) {
				if time.Since(begin) < 18*time.Second {
					return nil, install.ErrUnpacking
				}
				return objects, nil
			}),
		})
		checktest.OK(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx) }()
		at := func(since time.Duration, plans ...string) {
			t.Helper()
			time.Sleep(time.Until(begin.Add(since)))
			synctest.Wait()
			expect(t, "plans", w.plans(), plans)
		}
		at(19 * time.Second)
		at(21*time.Second, "1 Automatic Installing [a.v1]")
		if message := list[olmapi.InstallPlan](w)[0].Status.Message; !strings.HasPrefix(message, "retrying execution due to error: ") {
			t.Errorf("message %q", message)
		}
		at(26*time.Second, "1 Automatic Complete [a.v1]")
		cancel()
		<-done
	})
}

func TestNewRefuses(t *testing.T) {
	w := manage(t, nil)
	for _, o := range []install.Options{{}, {API: w.Cluster, Interval: -1}, {API: w.Cluster, Retry: -1}, {API: w.Cluster, Resolve: olm.Options{MaxConflicts: -1}}, {API: w.Cluster, Execute: true}} {
		if _, err := install.New(o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
}

// Where updates fail forward, a failed plan is not tried again, and the next
// version takes its place.
func TestControllerFailsForward(t *testing.T) {
	w := manage(t, contents("a.v1 X", "a.v2 X >a.v1"), ptr(sub("a", "a.v1")), ptr(installed("a.v1 X")[0]))
	checktest.OK(t, change(w.Cluster, "og", func(g *olmapi.OperatorGroup) {
		g.Spec.UpgradeStrategy = "TechPreviewUnsafeFailForward"
	}))
	name := w.sync().Plan
	checktest.OK(t, change(w.Cluster, name, func(p *olmapi.InstallPlan) {
		p.Status.Phase = olmapi.PlanPhaseFailed
	}, inStatus))
	w.settle()
	expect(t, "Subscriptions", w.states(), []string{"a UpgradeFailed a.v1/a.v2: InstallPlanFailed=True InstallPlanFailed"})
	expect(t, "plans", w.plans(), []string{"1 Automatic Failed [a.v2]"})
	w.catalogs[catalogKey] = contents("a.v1 X", "a.v2 X >a.v1", "a.v3 X >a.v2 ~a.v1")
	w.settle()
	expect(t, "Subscriptions", w.states(), []string{"a UpgradePending a.v1/a.v3: InstallPlanPending=True Installing"})
	expect(t, "plans", w.plans(), []string{"1 Automatic Failed [a.v2]", "2 Automatic Installing [a.v3]"})
}

// Whatever writes fail, and at whatever time somebody approves, the end is the same: one plan
// for each change, and no write after that.
func TestControllerConverges(t *testing.T) {
	lines := []string{"a.v1 X -Y", "b.v1 Y", "b.v2 Y >b.v1", "d.v1 Z", "d.v2 Z -Y >d.v1", "e.v1 E -Q"}
	c := contents(lines...)
	rapid.Check(t, func(r *rapid.T) {
		var objects []any
		for _, name := range []string{"a", "b", "d", "e"} {
			if !rapid.Bool().Draw(r, "subscribe "+name) {
				continue
			}
			s := sub(name, "")
			if rapid.Bool().Draw(r, "manual "+name) {
				manual(&s)
			}
			if (name == "b" || name == "d") && rapid.Bool().Draw(r, "installed "+name) {
				s = sub(name, name+".v1", func(x *olmapi.Subscription) { x.Spec.InstallPlanApproval = s.Spec.InstallPlanApproval })
				objects = append(objects, ptr(installed(map[string]string{"b": "b.v1 Y", "d": "d.v1 Z"}[name])[0]))
			}
			objects = append(objects, &s)
		}
		calm := manage(t, c, objects...)
		calm.settle()
		rough := manage(t, c, objects...)
		failing := rapid.SliceOfNDistinct(rapid.IntRange(1, 12), 0, 8, rapid.ID[int]).Draw(r, "failing writes")
		rough.fail = func(n int) bool { return slices.Contains(failing, n) }
		for range 13 {
			if _, err := rough.controller().Sync(context.Background(), ns); err != nil && !errors.Is(err, errCrash) {
				t.Fatal(err)
			}
			rough.clock.Step(time.Second)
		}
		rough.settle()
		checktest.SameIn(r, "plans", calm.plans(), rough.plans())
		checktest.SameIn(r, "Subscriptions", calm.states(), rough.states())
		for _, line := range rough.states() {
			if strings.Contains(line, "  /") && !strings.Contains(line, "ResolutionFailed=True") {
				r.Errorf("a Subscription has nothing and does not say why: %s", line)
			}
		}
		before := rough.writes.Load()
		rough.clock.Step(time.Hour)
		rough.sync()
		if n := rough.writes.Load(); n != before {
			r.Errorf("%d writes after it settled", n-before)
		}
	})
}
