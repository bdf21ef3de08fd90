package install_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/olm"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
	"github.com/clusterupdate/clusterupdate/olm/install"
	"github.com/clusterupdate/clusterupdate/olm/install/installtest"
)

// played is a namespace with a controller in virtual time, whose writes are
// counted.
type played struct {
	*reconcile.Virtual
	t       *testing.T
	cluster *memory.Cluster
	clock   *reconcile.Clock
	writes  int
	created int // InstallPlans
	errs    []error
	check   func(call memory.Call) // after each write
}

func play(t *testing.T, catalog olm.Catalog, unpack install.Unpacker, objects ...any) *played {
	t.Helper()
	p := &played{t: t, clock: reconcile.NewClock(statusNow.Time)}
	p.cluster = memory.NewOpenShift(memory.Options{Clock: p.clock, Intercept: func(ctx context.Context, call memory.Call, do func(context.Context) error) error {
		err := do(ctx)
		switch call.Verb {
		case "Get", "List", "Watch":
			return err
		}
		p.writes++
		if call.Verb == "Create" && call.GVK.Kind == "InstallPlan" && err == nil {
			p.created++
		}
		if p.check != nil {
			p.check(call)
		}
		return err
	}})
	put(p.cluster, surroundings()...)
	put(p.cluster, objects...)
	c := checktest.Get(install.New(install.Options{
		API:             p.cluster,
		SnapshotOptions: install.SnapshotOptions{Catalogs: map[types.NamespacedName]olm.Catalog{catalogKey: catalog}, GlobalNamespace: "olm"},
		Unpacker:        unpack, Execute: true,
		Observe: func(e clusterapi.Event) {
			if e.Type == install.EventError {
				p.errs = append(p.errs, e.Err)
			}
		},
	}))(t)
	p.Virtual = reconcile.NewVirtual(reconcile.VirtualOptions{
		Cluster: p.cluster, Clock: p.clock, Latency: reconcile.Latency{Watch: 10 * time.Millisecond, Job: 10 * time.Millisecond},
	}, c.Process(), installtest.OLM{Install: 3 * time.Second}.Process())
	t.Cleanup(p.Close)
	return p
}

// run plays for a time, and returns the writes and the plans made in it.
func (p *played) run(d time.Duration) (writes, plans int) {
	p.t.Helper()
	writes, plans = p.writes, p.created
	for end := p.clock.Now().Add(d); ; {
		at, ok := p.Next()
		if !ok || at.After(end) {
			break
		}
		if p.writes-writes > 3000 {
			p.t.Fatalf("%d writes and %d plans in %s", p.writes-writes, p.created-plans, p.clock.Now().Sub(end.Add(-d)))
		}
		checktest.OK(p.t, checktest.Err(p.Step()))
	}
	return p.writes - writes, p.created - plans
}

func (p *played) plans() (out []string) {
	p.t.Helper()
	for _, x := range list[olmapi.InstallPlan](p.cluster) {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %v %s", x.Name, x.Status.Phase, x.Spec.ClusterServiceVersionNames, x.Status.Message)))
	}
	return out
}

func (p *played) subscription() string {
	p.t.Helper()
	s := checktest.Get(clusterapi.Get[olmapi.Subscription](context.Background(), p.cluster, clusterapi.Key(ns, "a")))(p.t)
	return strings.TrimSpace(fmt.Sprintf("%s %s/%s %s", s.Status.State, s.Status.InstalledCSV, s.Status.CurrentCSV, conditionsText(&s.Status)))
}

// copyOf is OLM's copy of an operator of another namespace.
func copyOf(name string, mark func(*olmapi.ClusterServiceVersion)) *olmapi.ClusterServiceVersion {
	c := installed(name + " X")[0]
	mark(&c)
	return &c
}

// A copy that OLM made of the wanted operator is not the operator: the plan
// waits for it to go, and nothing is written meanwhile.
func TestControllerCopiedOperator(t *testing.T) {
	for _, tc := range []struct {
		name, home string
		mark       func(*olmapi.ClusterServiceVersion)
	}{
		{"label", "openshift-operators", func(c *olmapi.ClusterServiceVersion) {
			c.Labels = map[string]string{olmapi.LabelCopiedFrom: "openshift-operators"}
		}},
		{"reason", "another namespace", func(c *olmapi.ClusterServiceVersion) { c.Status.Reason = "Copied" }},
		{"annotation", "another namespace", func(c *olmapi.ClusterServiceVersion) {
			c.Annotations["olm.operatorNamespace"] = "elsewhere"
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := play(t, contents("a.v1 X"), bundles(t, []string{"a.v1 X"}, nil), ptr(sub("a", "")), copyOf("a.v1", tc.mark))
			if writes, plans := p.run(time.Hour); writes > 20 || plans != 1 {
				t.Errorf("%d writes, %d plans", writes, plans)
			}
			text := "plan ops/install-1, step ClusterServiceVersion ops/a.v1 of a.v1, rule Exists: it is there as the copy of an operator that is installed in " + tc.home
			expect(t, "plans", p.plans(), []string{"install-1 Installing [a.v1] " + text})
			expect(t, "Subscription", []string{p.subscription()}, []string{"UpgradePending /a.v1 InstallPlanPending=True Installing " + text})
			if writes, _ := p.run(time.Hour); writes > 0 {
				t.Errorf("%d writes while nothing changes", writes)
			}
			if len(p.errs) > 0 {
				t.Errorf("errors: %v", p.errs)
			}

			checktest.OK(t, p.cluster.Delete(context.Background(), (&olmapi.ClusterServiceVersion{}).APIKind(), clusterapi.Key(ns, "a.v1"), clusterapi.DeleteOptions{}))
			p.run(time.Minute)
			expect(t, "plans", p.plans(), []string{"install-1 Complete [a.v1]"})
			expect(t, "Subscription", []string{p.subscription()}, []string{"AtLatestKnown a.v1/a.v1"})
		})
	}
}

// An operator of the name that is of another package is not the plan's either: the
// plan is given up.
func TestControllerForeignOperator(t *testing.T) {
	p := play(t, contents("a.v1 X"), bundles(t, []string{"a.v1 X"}, nil), ptr(sub("a", "", manual)))
	p.run(time.Minute)
	foreign := installed("a.v1 X")[0]
	foreign.Annotations = installed("z.v1 Z")[0].Annotations
	put(p.cluster, &foreign)
	checktest.OK(t, change(p.cluster, "install-1", approve))
	p.run(time.Hour)
	expect(t, "plans", p.plans(), []string{"install-1 Failed [a.v1] superseded: the resolution no longer asks for this plan, but for nothing"})
}

// A Subscription of the name that a dependency's is to have, to something
// else, is not the plan's either: nothing of the plan is written.
func TestControllerForeignSubscription(t *testing.T) {
	foreign := sub("b", "", named("b-stable-c-olm"))
	foreign.Spec.Channel = "none"
	lines := []string{"a.v1 X -Y", "b.v1 Y"}
	p := play(t, contents(lines...), bundles(t, lines, nil), ptr(sub("a", "")), &foreign)
	if writes, plans := p.run(time.Hour); writes > 20 || plans != 1 {
		t.Errorf("%d writes, %d plans", writes, plans)
	}
	expect(t, "plans", p.plans(), []string{"install-1 Installing [a.v1 b.v1] plan ops/install-1, step Subscription ops/b-stable-c-olm of b.v1, rule Exists: " +
		`it is there, and asks for package "b", channel "none" of catalog olm/c`})
	if csvs := list[olmapi.ClusterServiceVersion](p.cluster); len(csvs) > 0 {
		t.Errorf("%d CSVs", len(csvs))
	}
}

// Whatever never comes to rest costs a bounded number of writes, without an
// error: an operator that somebody deletes as soon as it is there, a bundle or a
// catalog that differs each time it is read.
func TestControllerBoundsWrites(t *testing.T) {
	count := 0
	differs := unpackerOf(func(r install.UnpackRequest) ([]*unstructured.Unstructured, error) {
		objects, err := bundles(t, []string{"a.v1 X"}, map[string][]string{"a.v1": {
			fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"k":"%d"}}`, count)}}).Unpack(context.Background(), r)
		count++
		return objects, err
	})
	flaps := catalogOf(func() *olm.Contents {
		count++
		return contents(fmt.Sprintf("a.v%d X", 1+count%2))
	})
	steady := contents("a.v1 X")
	gone := func(p *played, mark func(*olmapi.ClusterServiceVersion) error) {
		p.check = func(call memory.Call) {
			if call.Verb == "Create" && call.GVK.Kind == "ClusterServiceVersion" {
				p.clock.AfterFunc(time.Second, func() {
					_, err := clusterapi.Modify(context.Background(), p.cluster, call.Key, clusterapi.ModifyOptions{}, mark)
					if err == nil {
						err = p.cluster.Delete(context.Background(), call.GVK, call.Key, clusterapi.DeleteOptions{})
					}
					checktest.Good(t, err)
				})
			}
		}
	}
	for _, tc := range []struct {
		name          string
		catalog       olm.Catalog
		unpack        install.Unpacker
		sub           olmapi.Subscription
		set           func(*played)
		writes, plans int // in the second hour, at most
		want          []string
	}{
		{"deleted", steady, bundles(t, []string{"a.v1 X"}, nil), sub("a", ""), func(p *played) {
			gone(p, func(*olmapi.ClusterServiceVersion) error { return nil })
		}, 100, 5, nil},
		{"never quite deleted", steady, bundles(t, []string{"a.v1 X"}, nil), sub("a", ""), func(p *played) {
			gone(p, func(c *olmapi.ClusterServiceVersion) error { c.Finalizers = []string{"example.com/f"}; return nil })
		}, 0, 0, nil},
		{"bundle that differs", steady, differs, sub("a", ""), nil, 0, 0, []string{
			"install-1 Failed [a.v1] superseded: the resolution no longer asks for this plan, but for a.v1",
			"install-2 Complete [a.v1]"}},
		{"bundle that differs, to be approved", steady, differs, sub("a", "", manual), nil, 100, 5, nil},
		{"catalog that differs, to be approved", flaps, bundles(t, []string{"a.v1 X", "a.v2 X"}, nil), sub("a", "", manual), nil, 600, 61, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := play(t, tc.catalog, tc.unpack, &tc.sub)
			if tc.set != nil {
				tc.set(p)
			}
			p.run(time.Hour)
			if writes, plans := p.run(time.Hour); writes > tc.writes || plans > tc.plans {
				t.Errorf("%d writes and %d plans in an hour, want at most %d and %d", writes, plans, tc.writes, tc.plans)
			}
			if len(p.errs) > 0 {
				t.Errorf("errors: %v", p.errs)
			}
			if tc.want != nil {
				expect(t, "plans", p.plans(), tc.want)
			}
		})
	}
}

// catalogOf is a function that returns the contents of a catalog.
type catalogOf func() *olm.Contents

func (f catalogOf) Contents(context.Context) (*olm.Contents, error) { return f(), nil }

// Sync says when the plan that waits is due.
func TestSyncSaysWhenAPlanIsDue(t *testing.T) {
	w := manage(t, contents("a.v1 X"), ptr(sub("a", "")))
	w.settle()
	w.install("a.v1 X")
	w.settle()
	checktest.OK(t, w.Delete(context.Background(), (&olmapi.ClusterServiceVersion{}).APIKind(), clusterapi.Key(ns, "a.v1"), clusterapi.DeleteOptions{}))
	at := w.settle().At
	if want := statusNow.Add(5 * time.Second); !at.Equal(want) {
		t.Fatalf("due at %v, want %v", at, want)
	}
	expect(t, "plans", w.plans(), []string{"1 Automatic Complete [a.v1]"})
	w.clock.SetTime(at)
	w.settle()
	expect(t, "plans", w.plans(), []string{"1 Automatic Complete [a.v1]", "2 Automatic Installing [a.v1]"})
}

// An update under the account of the operator that it replaces: the account
// is owned by both until the old one is gone, so that neither sees it taken away.
func TestControllerKeepsOwnersOfAccounts(t *testing.T) {
	shelf := &changing{}
	shelf.put(contents("a.v1 X"))
	csv := func(name string) string { return strings.ReplaceAll(fullCSV, "a.v1", name) }
	unpack := unpackerOf(func(r install.UnpackRequest) ([]*unstructured.Unstructured, error) {
		return install.BundleObjects(inline(t, r.Lookup.Identifier, csv(r.Lookup.Identifier),
			`{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"sa"}}`))
	})
	p := play(t, shelf, unpack, ptr(sub("a", "")))
	ctx := context.Background()
	other := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "mine", UID: "mine"}
	both := false
	p.check = func(memory.Call) {
		sa, err := clusterapi.Get[corev1.ServiceAccount](ctx, p.cluster, clusterapi.Key(ns, "sa"))
		if err != nil {
			return
		}
		csvs := list[olmapi.ClusterServiceVersion](p.cluster)
		owners := map[types.UID]bool{}
		for _, ref := range sa.OwnerReferences {
			owners[ref.UID] = true
		}
		for _, c := range csvs {
			if c.Name == "a.v1" && len(sa.OwnerReferences) > 0 && !owners[c.UID] {
				t.Errorf("a.v1 is there and does not own the account: %+v", sa.OwnerReferences)
			}
		}
		both = both || len(csvs) == 2 && owners[csvs[0].UID] && owners[csvs[1].UID]
	}
	p.run(10 * time.Minute)
	checktest.OK(t, change(p.cluster, "sa", func(sa *corev1.ServiceAccount) {
		sa.OwnerReferences = append(sa.OwnerReferences, other)
	}, clusterapi.ModifyOptions{FieldManager: "me"}))
	put(p.cluster, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "mine", UID: "mine"}})
	shelf.put(contents("a.v1 X", "a.v2 X >a.v1"))
	p.run(30 * time.Minute)
	if got := p.subscription(); got != "AtLatestKnown a.v2/a.v2" {
		t.Fatal(got, p.plans())
	}
	if !both {
		t.Error("the account was never owned by both operators")
	}
	sa := checktest.Get(clusterapi.Get[corev1.ServiceAccount](ctx, p.cluster, clusterapi.Key(ns, "sa")))(t)
	names := map[string]bool{}
	for _, ref := range sa.OwnerReferences {
		names[ref.Kind+" "+ref.Name] = true
	}
	if !names["ClusterServiceVersion a.v2"] || !names["ConfigMap mine"] {
		t.Errorf("the account in the end: %+v", sa.ObjectMeta)
	}
}
