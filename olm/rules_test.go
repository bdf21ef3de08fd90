package olm_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/olm"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
	"github.com/clusterupdate/clusterupdate/olm/catalog"
)

func phase(csvs []olmapi.ClusterServiceVersion, phases ...string) []olmapi.ClusterServiceVersion {
	for i, p := range phases {
		csvs[i].Status.Phase = p
	}
	return csvs
}

func with(s olm.Snapshot, changes ...func(*olm.Snapshot)) olm.Snapshot {
	for _, f := range changes {
		f(&s)
	}
	return s
}

func withCatalog(namespace, name string, priority int, c *olm.Contents) func(*olm.Snapshot) {
	return func(s *olm.Snapshot) {
		s.Catalogs = append(s.Catalogs, olm.SnapshotCatalog{Key: types.NamespacedName{Namespace: namespace, Name: name}, Priority: priority, Contents: c})
	}
}

func broken(namespace, name string, err error) func(*olm.Snapshot) {
	return func(s *olm.Snapshot) {
		s.Catalogs = append(s.Catalogs, olm.SnapshotCatalog{Key: types.NamespacedName{Namespace: namespace, Name: name}, Err: err})
	}
}

// withoutAnnotation makes CSVs that say nothing about themselves.
func withoutAnnotation(csvs []olmapi.ClusterServiceVersion) []olmapi.ClusterServiceVersion {
	for i := range csvs {
		csvs[i].Annotations = map[string]string{olmapi.AnnotationProperties: "{}"}
	}
	return csvs
}

// TestPrevented has the faults that end a resolution, and which comes first.
func TestPrevented(t *testing.T) {
	down := errors.New("connection refused")
	bad := installed("z.v1")
	bad[0].Annotations[olmapi.AnnotationProperties] = `{"properties":[{"type":"olm.gvk.required","value":7}]}`
	malformed := installed("z.v1")
	malformed[0].Annotations[olmapi.AnnotationProperties] = `{`
	two := func(s *olm.Snapshot) { s.OperatorGroups = append(s.OperatorGroups, olmapi.OperatorGroup{}) }
	unconnected := func(s *olm.Snapshot) {
		s.Catalogs = append(s.Catalogs, olm.SnapshotCatalog{Key: types.NamespacedName{Namespace: ns, Name: "d"}})
	}
	disordered := func(s *olm.Snapshot) {
		s.Catalogs[0].Contents = contents("a.v1", "k.v1 K", "k.v2 K")
		s.Subscriptions = append(s.Subscriptions, sub("k", ""), sub("k", "", named("k2")))
	}
	const chains = `a unique replacement chain within a channel is required to determine the relative order between channel entries, but 2 replacement chains were found in channel "stable" of package "k": k.v1, k.v2`
	for _, tc := range []struct {
		name      string
		installed []olmapi.ClusterServiceVersion
		change    func(*olm.Snapshot)
		o         olm.Options
		want      string // prefix
	}{
		{"the same fault of two Subscriptions", nil, disordered, olm.Options{AllOrNothing: true}, chains},
		{"catalogs before Subscriptions", nil, func(s *olm.Snapshot) { disordered(s); broken("olm", "d", down)(s) }, olm.Options{AllOrNothing: true}, "error using catalogsource olm/d: connection refused"},
		{"what installed operators reach before catalogs", installed("z.v1 -K"), func(s *olm.Snapshot) { disordered(s); broken("olm", "d", down)(s) }, olm.Options{AllOrNothing: true}, chains},
		{"installed operators among catalogs", malformed, func(s *olm.Snapshot) { broken("a", "d", down)(s); broken("olm", "d", down)(s) }, olm.Options{}, "[error using catalogsource olm/d: connection refused, error using catalogsource ops/@existing: failed"},
		{"operator groups before all", bad, func(s *olm.Snapshot) { two(s); broken("olm", "d", down)(s) }, olm.Options{}, "expected 1 OperatorGroup in the namespace, found 2"},
		{"catalog", nil, broken("olm", "d", down), olm.Options{}, "error using catalogsource olm/d: connection refused"},
		{"catalog, all or nothing", nil, broken("olm", "d", down), olm.Options{AllOrNothing: true}, "error using catalogsource olm/d: connection refused"},
		{"no connection", nil, unconnected, olm.Options{}, "error using catalogsource ops/d: no registry client established for catalogsource ops/d"},
		{"several, by name", nil, func(s *olm.Snapshot) {
			broken("olm", "e", down)(s)
			broken("olm", "d", down)(s)
			s.Catalogs[1].Priority = 1
		}, olm.Options{}, "[error using catalogsource olm/d: connection refused, error using catalogsource olm/e: connection refused]"},
		{"installed", malformed, func(*olm.Snapshot) {}, olm.Options{}, `error using catalogsource ops/@existing: failed to retrieve properties of csv "z.v1": failed to unmarshal properties annotation: `},
		{"an installed requirement before catalogs", bad, broken("olm", "d", down), olm.Options{}, ""},
		{"operator groups", nil, two, olm.Options{}, "expected 1 OperatorGroup in the namespace, found 2"},
		{"no operator group", nil, func(s *olm.Snapshot) { s.OperatorGroups = nil }, olm.Options{}, "expected 1 OperatorGroup in the namespace, found 0"},
		{"tolerated but subscribed", nil, func(s *olm.Snapshot) {
			broken("olm", "d", down)(s)
			s.Subscriptions = append(s.Subscriptions, sub("b", "", source("d", "olm")))
		}, olm.Options{TolerateUnusedCatalogs: true}, "error using catalogsource olm/d: connection refused"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := with(snapshot(contents("a.v1"), tc.installed, sub("a", "")), tc.change)
			_, err := olm.Resolve(context.Background(), s, tc.o)
			var prevented *olm.Prevented
			if !errors.As(err, &prevented) {
				t.Fatalf("error %v, want a Prevented", err)
			}
			if !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("error %q, want %q", err, tc.want)
			}
			if tc.want == chains && err.Error() != chains {
				t.Errorf("error %q, want no more than %q", err, chains)
			}
			if tc.want == "" && strings.Contains(err.Error(), "catalogsource") {
				t.Errorf("error %q, want that of the requirement", err)
			}
		})
	}
	t.Run("tolerated", func(t *testing.T) {
		s := with(snapshot(contents("a.v1"), nil, sub("a", "")), broken("olm", "d", down))
		g := resolve(t, s, olm.Options{TolerateUnusedCatalogs: true})
		if diff := cmp.Diff([]string{"error using catalogsource olm/d: connection refused"}, g.Warnings); diff != "" || members(g) != "a.v1" {
			t.Errorf("%s\n%s", diff, g)
		}
	})
	t.Run("invisible catalogs do not matter", func(t *testing.T) {
		s := with(snapshot(contents("a.v1"), nil, sub("a", "")), broken("elsewhere", "d", down))
		checktest.Same(t, "a.v1", outcome(s, olm.Options{}))
	})
	t.Run("no subscriptions, no resolution", func(t *testing.T) {
		s := with(snapshot(contents("a.v1"), bad), two, broken("olm", "d", down))
		checktest.Same(t, "z.v1", outcome(s, olm.Options{}))
	})
	t.Run("the global namespace is excluded", func(t *testing.T) {
		s := snapshot(contents("a.v1"), nil, sub("a", ""))
		for value, want := range map[string]string{"true": "", "True": "a.v1", "false": "a.v1"} {
			s.OperatorGroups = []olmapi.OperatorGroup{{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{olmapi.AnnotationExcludeGlobal: value}}}}
			if got := outcome(s, olm.Options{}); got != want {
				t.Errorf("%q: %q, want %q", value, got, want)
			}
		}
	})
}

// TestFacts has the reasons why a Subscription leads nowhere: the first in order.
func TestFacts(t *testing.T) {
	headless := func(s *olm.Snapshot) {
		text := `{"schema":"olm.package","name":"a","defaultChannel":"stable"}
{"schema":"olm.channel","package":"a","name":"stable","entries":[{"name":"a.v2","skips":["a.v1"]},{"name":"a.v1"}]}
{"schema":"olm.bundle","package":"a","name":"a.v1","image":"registry.example/a:1","properties":[{"type":"olm.package","value":{"packageName":"a","version":"1.0.0"}}]}`
		c := checktest.Get(catalog.Read(context.Background(), strings.NewReader(text), "catalog.json", catalog.Options{}))(t)
		s.Catalogs[0].Contents = c.Contents
	}
	empty := func(s *olm.Snapshot) { s.Catalogs[0].Contents = contents() }
	for _, tc := range []struct {
		name   string
		sub    olmapi.Subscription
		change func(*olm.Snapshot)
		kind   string
		want   string
	}{
		{"catalog", sub("x", "", named("s"), source("d", "olm"), channel("x"), startingCSV("x")), nil, "NoCatalogEntries", "no operators found from catalog d in namespace olm referenced by subscription s"},
		{"a catalog's name without its namespace", sub("a", "", named("s"), source("c", "")), nil, "NoCatalogEntries", "no operators found from catalog c in namespace  referenced by subscription s"},
		{"a catalog without anything", sub("a", "", named("s")), empty, "NoCatalogEntries", "no operators found from catalog c in namespace olm referenced by subscription s"},
		{"package", sub("x", "", named("s"), channel("x"), startingCSV("x")), nil, "NoPackage", "no operators found in package x in the catalog referenced by subscription s"},
		{"channel", sub("a", "", named("s"), channel("x"), startingCSV("x")), nil, "NoChannel", "no operators found in channel x of package a in the catalog referenced by subscription s"},
		{"startingCSV", sub("a", "", named("s"), startingCSV("x")), nil, "NoStartingCSV", "no operators found with name x in channel stable of package a in the catalog referenced by subscription s"},
		{"nothing to choose", sub("a", "", named("s")), headless, "NoMatch", "no operators found matching the criteria of subscription s"},
		{"channel, with an installed operator", sub("a", "z.v1", named("s"), channel("x")), nil, "NoChannel", "no operators found in channel x of package a in the catalog referenced by subscription s"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := snapshot(contents("a.v1"), installed("z.v1"), tc.sub)
			if tc.change != nil {
				tc.change(&s)
			}
			_, err := olm.Resolve(context.Background(), s, olm.Options{AllOrNothing: true})
			var unsat *olm.NotSatisfiable
			if !errors.As(err, &unsat) {
				t.Fatalf("error %v, want NotSatisfiable", err)
			}
			want := "constraints not satisfiable: " + tc.want + ", subscription s exists"
			checktest.SameIn(t, "error", want, err.Error())
			if unsat.Facts[0].Kind != tc.kind || unsat.Facts[0].Subscription != "s" {
				t.Errorf("fact %+v", unsat.Facts[0])
			}
			g := resolve(t, s, olm.Options{})
			var fact *olm.Fact
			if len(g.HeldBack) != 1 || !errors.As(g.HeldBack[0].Err, &fact) || fact.Message != tc.want || len(g.Operators) != 0 {
				t.Errorf("generation:\n%s", g)
			}
		})
	}
}

// TestInvalidSnapshot has what contradicts itself.
func TestInvalidSnapshot(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*olm.Snapshot)
		o      olm.Options
		want   string
	}{
		{"catalog twice", withCatalog("olm", "c", 0, contents("a.v1")), olm.Options{}, "catalog olm/c occurs twice"},
		{"another namespace", func(s *olm.Snapshot) { s.Subscriptions[0].Namespace = "x" }, olm.Options{}, "subscription x/a is of another namespace than ops"},
		{"subscription twice", func(s *olm.Snapshot) { s.Subscriptions = append(s.Subscriptions, s.Subscriptions[0]) }, olm.Options{}, "subscription a occurs twice"},
		{"nameless", func(s *olm.Snapshot) { s.Installed = append(s.Installed, olmapi.ClusterServiceVersion{}) }, olm.Options{}, "clusterserviceversion 0 has no name"},
		{"no namespace", func(s *olm.Snapshot) { s.Namespace, s.Subscriptions = "", nil }, olm.Options{}, "no namespace"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := olm.Resolve(context.Background(), with(snapshot(contents("a.v1"), nil, sub("a", "")), tc.change), tc.o)
			if !errors.Is(err, olm.ErrSnapshot) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// TestResolveWhileUpdating has operators that are still being replaced.
func TestResolveWhileUpdating(t *testing.T) {
	csvs := func(phases ...string) []olmapi.ClusterServiceVersion {
		return phase(installed("a.v1 K", "a.v2 K >a.v1", "b.v1"), phases...)
	}
	failForward := func(s *olm.Snapshot) {
		s.OperatorGroups[0].Spec.UpgradeStrategy = "TechPreviewUnsafeFailForward"
	}
	lines := []string{"a.v1 K", "a.v2 K >a.v1", "a.v3 K >a.v2 ~a.v2", "b.v1", "b.v2 >b.v1"}
	for _, tc := range []struct {
		name    string
		phases  []string
		sub     string
		change  func(*olm.Snapshot)
		want    string
		strict  string
		waiting string
	}{
		{"replacing", []string{"Replacing", "Installing"}, "a.v2", nil, "a.v1 a.v2 b.v2", "error", "a"},
		{"deleting", []string{"Deleting", "Succeeded"}, "a.v2", nil, "a.v1 a.v2 b.v2", "error", "a"},
		{"the subscription is still at the old one", []string{"Replacing", "Installing"}, "a.v1", nil, "a.v1 a.v2 b.v2", "error", "a"},
		{"failed", []string{"Replacing", "Failed"}, "a.v2", nil, "a.v1 a.v2 b.v2", "error", "a"},
		{"failing forward", []string{"Replacing", "Failed"}, "a.v2", failForward, "a.v3 b.v2", "a.v3 b.v2", ""},
		{"another phase", []string{"Succeeded", "Succeeded"}, "a.v2", nil, "a.v1 a.v2 b.v2", "error", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := snapshot(contents(lines...), csvs(tc.phases...), sub("a", tc.sub), sub("b", "b.v1"))
			if tc.change != nil {
				tc.change(&s)
			}
			g := resolve(t, s, olm.Options{})
			if got := members(g); got != tc.want {
				t.Errorf("generation %q, want %q\n%s", got, tc.want, g)
			}
			waiting := ""
			for _, u := range g.InProgress {
				waiting += strings.Join(u.Subscriptions, " ")
			}
			if waiting != tc.waiting || len(g.Stuck) > 0 {
				t.Errorf("%q waits, want %q\n%s", waiting, tc.waiting, g)
			}
			got := outcome(s, olm.Options{AllOrNothing: true})
			if strings.HasPrefix(got, "error: constraints not satisfiable: ") && tc.strict == "error" {
				return
			}
			if got != tc.strict {
				t.Errorf("all or nothing: %q, want %q", got, tc.strict)
			}
		})
	}
}

// TestStuck has Subscriptions without a channel that get nothing. A channel without an order
// holds one back if an entry of it replaces the operator, and is a warning otherwise.
func TestStuck(t *testing.T) {
	stuck := []string{"a.v1", "a.v2 >a.v1", "a.v3 >a.v2 ~a.v2"}
	for _, tc := range []struct {
		name           string
		further        []string
		installed      string
		stuck          bool
		held, warnings int
	}{
		{"alone", nil, "a.v1", true, 0, 0},
		{"head", nil, "a.v3", false, 0, 0},
		{"a channel without an order", []string{"a.v4 @beta", "a.v5 @beta"}, "a.v1", true, 0, 1},
		{"head, a channel without an order", []string{"a.v3 @beta range=<9.0.0", "a.v5 @beta"}, "a.v3", false, 0, 1},
		{"a channel without an order has an update", []string{"a.v4 @beta", "a.v5 @beta >a.v1"}, "a.v1", false, 1, 0},
		{"only a channel without an order has it", []string{"a.v4 @beta", "a.v5 @beta"}, "a.v4", false, 1, 0},
	} {
		s := snapshot(contents(append(stuck, tc.further...)...), installed(tc.installed), sub("a", tc.installed, channel("")))
		g := resolve(t, s, olm.Options{})
		if len(g.Stuck) == 1 != tc.stuck || len(g.HeldBack) != tc.held || len(g.Warnings) != tc.warnings {
			t.Errorf("%s:\n%s", tc.name, g)
		}
	}
}

// TestBesideUpdating: of an operator that is on its way out only the name counts.
func TestBesideUpdating(t *testing.T) {
	csvs := phase(installed("a.v1 K -Q", "a.v2 >a.v1"), olmapi.CSVPhaseReplacing, "Installing")
	c := contents("a.v1 K -Q", "a.v2 >a.v1", "a.v3 >a.v2", "n.v1 -K", "k.v1 K")
	g := resolve(t, snapshot(c, csvs, sub("a", "a.v2"), sub("n", "")), olm.Options{})
	held := slices.ContainsFunc(g.HeldBack, func(h olm.HeldBack) bool { return h.Subscription != "" })
	if members(g) != "a.v1 a.v2 k.v1 n.v1" || held || len(g.BrokenBefore) != 0 {
		t.Errorf("generation:\n%s", g)
	}
	nameless := withoutAnnotation(phase(installed("a.v1", "a.v2 >a.v1"), olmapi.CSVPhaseReplacing, "Installing"))
	s := snapshot(c, nameless, sub("a", "a.v2"), sub("a", "", named("b"), startingCSV("a.v1")))
	if got, want := outcome(s, olm.Options{}), "a.v1 a.v2"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestOperators has the fields of what is to be installed.
func TestOperators(t *testing.T) {
	c := contents("a.v2 -K >a.v0 range=<2.0.0", "k.v1 K @beta >k.v0", "n.v1", "n.v2 >n.v1")
	s := snapshot(c, installed("a.v1"), sub("a", "a.v1", startingCSV("a.v2")), sub("n", "", startingCSV("n.v1")))
	g := resolve(t, s, olm.Options{})
	type row struct {
		Name, Version, Package, Channel, Catalog, Replaces, StartingCSV string
		Default                                                         bool
	}
	var got []row
	for _, o := range g.Operators {
		got = append(got, row{o.Name, o.Version, o.Package, o.Channel, o.Catalog.String(), o.Replaces, o.StartingCSV, o.DefaultChannel})
	}
	want := []row{
		{"a.v2", "2.0.0", "a", "stable", "olm/c", "a.v1", "", true},
		{"k.v1", "1.0.0", "k", "beta", "olm/c", "k.v0", "", true},
		{"n.v1", "1.0.0", "n", "stable", "olm/c", "", "n.v1", true},
	}
	checktest.SameIn(t, "operators", want, got)
	if len(g.NewSubscriptions) != 1 {
		t.Fatalf("%d new Subscriptions", len(g.NewSubscriptions))
	}
	n := g.NewSubscriptions[0]
	wantSpec := olmapi.SubscriptionSpec{Source: "c", SourceNamespace: "olm", Package: "k", Channel: "beta", StartingCSV: "k.v1", InstallPlanApproval: olmapi.ApprovalAutomatic}
	if diff := cmp.Diff(wantSpec, n.Spec); diff != "" || n.Name != "k-beta-c-olm" || n.Namespace != ns {
		t.Errorf("new Subscription %s/%s (-want +got):\n%s", n.Namespace, n.Name, diff)
	}
}
