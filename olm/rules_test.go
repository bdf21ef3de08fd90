package olm_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/olm"
	"github.com/clusterupdate/clusterupdate/olm/catalog"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func phase(csvs []olm.ClusterServiceVersion, phases ...string) []olm.ClusterServiceVersion {
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

// TestSubscriptions has what a Subscription can have.
func TestSubscriptions(t *testing.T) {
	any := func(s *olm.Subscription) { s.Spec.Source, s.Spec.SourceNamespace = "", "" }
	for _, tc := range []struct {
		name      string
		installed []olm.ClusterServiceVersion
		subs      []olm.Subscription
		catalog   []string
		change    []func(*olm.Snapshot)
		want      string
		strict    string // with AllOrNothing, if it differs
		greedy    string // with Greedy, if it differs; "nothing" if empty
		report    string // part of the generation's text
	}{
		{
			name:    "an installedCSV that is not there counts as not installed",
			subs:    []olm.Subscription{sub("a", "a.v1")},
			catalog: []string{"a.v1", "a.v2 >a.v1", "a.v3 >a.v2"},
			want:    "a.v3",
		},
		{
			name:    "startingCSV",
			subs:    []olm.Subscription{sub("a", "", startingCSV("a.v1"))},
			catalog: []string{"a.v1", "a.v2 >a.v1"},
			want:    "a.v1",
		},
		{
			name:    "startingCSV may be skipped",
			subs:    []olm.Subscription{sub("a", "", startingCSV("a.v1"))},
			catalog: []string{"a.v1", "a.v2 ~a.v1"},
			want:    "a.v1",
		},
		{
			name:    "startingCSV of a channel in disorder",
			subs:    []olm.Subscription{sub("a", "", startingCSV("a.v1"))},
			catalog: []string{"a.v1", "a.v2"},
			want:    "a.v1",
		},
		{
			name:      "startingCSV does not count once something is installed",
			installed: installed("a.v1"),
			subs:      []olm.Subscription{sub("a", "a.v1", startingCSV("a.v9"))},
			catalog:   []string{"a.v1", "a.v2 >a.v1"},
			want:      "a.v2",
		},
		{
			name:    "startingCSV that is not there",
			subs:    []olm.Subscription{sub("a", "", startingCSV("a.v9"))},
			catalog: []string{"a.v1"},
			want:    "",
			strict:  "error: constraints not satisfiable: no operators found with name a.v9 in channel stable of package a in the catalog referenced by subscription a, subscription a exists",
			report:  "held back: subscription a: no operators found with name a.v9 in channel stable of package a in the catalog referenced by subscription a; nothing instead",
		},
		{
			name:    "what only startingCSV makes available serves others too",
			subs:    []olm.Subscription{sub("a", "", startingCSV("a.v1")), sub("b", "")},
			catalog: []string{"a.v1 K", "a.v2 ~a.v1", "b.v1 -K"},
			want:    "a.v1 b.v1",
		},
		{
			name:    "no channel: the default one, then by name",
			subs:    []olm.Subscription{sub("a", "", channel(""))},
			catalog: []string{"a.v2 @zeta -Q", "a.v1 @beta"},
			want:    "a.v1",
			greedy:  "nothing",
		},
		{
			name:    "no channel: the default one first",
			subs:    []olm.Subscription{sub("a", "", channel(""))},
			catalog: []string{"a.v2 @zeta", "a.v1 @beta"},
			want:    "a.v2",
		},
		{
			name:      "no channel: edges in any",
			installed: installed("a.v1"),
			subs:      []olm.Subscription{sub("a", "a.v1", channel(""))},
			catalog:   []string{"a.v1 @stable", "a.v2 @beta >a.v1"},
			want:      "a.v2",
		},
		{
			name:      "no channel: only entries that qualify themselves",
			installed: installed("a.v1"),
			subs:      []olm.Subscription{sub("a", "a.v1", channel(""))},
			catalog:   []string{"a.v1 @alpha @beta", "a.v2 @beta >a.v1", "a.v3 @alpha -Q ~a.v2 >a.v1", "a.v4 @gamma >a.v9"},
			want:      "a.v2",
			greedy:    "a.v1",
		},
		{
			name:    "no source: all catalogs, by preference",
			subs:    []olm.Subscription{sub("a", "", any)},
			catalog: []string{"a.v1"},
			change:  []func(*olm.Snapshot){withCatalog("olm", "d", 5, readLines(t, "a.v2"))},
			want:    "a.v2",
		},
		{
			name:      "no source: updates from any catalog",
			installed: installed("a.v1"),
			subs:      []olm.Subscription{sub("a", "a.v1", any)},
			catalog:   []string{"a.v1"},
			change:    []func(*olm.Snapshot){withCatalog("olm", "d", -5, readLines(t, "a.v2 >a.v1"))},
			want:      "a.v2",
		},
		{
			name:      "an update comes from the own catalog only",
			installed: installed("a.v1"),
			subs:      []olm.Subscription{sub("a", "a.v1")},
			catalog:   []string{"a.v1"},
			change:    []func(*olm.Snapshot){withCatalog("olm", "d", 5, readLines(t, "a.v2 >a.v1"))},
			want:      "a.v1",
		},
		{
			name:    "two Subscriptions share an entry",
			subs:    []olm.Subscription{sub("a", ""), sub("a", "", named("a2"), channel(""))},
			catalog: []string{"a.v1"},
			want:    "a.v1",
			report:  "added a.v1 (channel stable, catalog olm/c) for subscription a, a2\n",
		},
		{
			name:    "the same bundle in two channels is two entries",
			subs:    []olm.Subscription{sub("a", "", channel("alpha")), sub("a", "", named("a2"), channel("beta"))},
			catalog: []string{"a.v1 @alpha @beta"},
			want:    "a.v1",
			strict:  "error: constraints not satisfiable: c/olm/alpha/a.v1 and c/olm/beta/a.v1 originate from package a, subscription a exists, subscription a requires c/olm/alpha/a.v1, subscription a2 exists, subscription a2 requires c/olm/beta/a.v1",
			report:  "held back: subscription a2: not taken a.v1; nothing instead",
		},
		{
			name:      "another channel takes effect with its edges",
			installed: installed("a.v1"),
			subs:      []olm.Subscription{sub("a", "a.v1", channel("beta"))},
			catalog:   []string{"a.v1 @stable", "a.v2 @stable >a.v1", "a.v5 @beta"},
			want:      "a.v1",
		},
		{
			name:      "an operator of another package is replaced",
			installed: installed("old.v1 K"),
			subs:      []olm.Subscription{sub("a", "old.v1")},
			catalog:   []string{"a.v2 K >old.v1"},
			want:      "a.v2",
			report:    "updated old.v1 to a.v2",
		},
		{
			name:      "one entry replaces the operators of two Subscriptions",
			installed: installed("old.v1 K", "older.v1 L"),
			subs:      []olm.Subscription{sub("a", "old.v1"), sub("a", "older.v1", named("a2"))},
			catalog:   []string{"a.v2 K L >old.v1 ~older.v1"},
			want:      "a.v2",
			report:    "updated old.v1 to a.v2 (channel stable, catalog olm/c) for subscription a, a2\n",
		},
		{
			name:      "an update and what it replaces are not there together",
			installed: installed("old.v1 label=old"),
			subs:      []olm.Subscription{sub("a", "old.v1"), sub("b", ""), sub("d", "")},
			catalog:   []string{"a.v2 K >old.v1", "b.v1 -K", "d.v1 -label=old"},
			want:      "a.v2 b.v1",
			strict:    "error: constraints not satisfiable: bundle b.v1 requires an operator providing an API with group: g, version: v1, kind: K, bundle d.v1 requires an operator with label: old, c/olm/stable/a.v2 conflicts with @existing/ops//old.v1, subscription b exists, subscription b requires c/olm/stable/b.v1, subscription d exists, subscription d requires c/olm/stable/d.v1",
		},
		{
			name:    "a cel constraint that nothing evaluates",
			subs:    []olm.Subscription{sub("a", ""), sub("b", "")},
			catalog: []string{`a.v1 prop=olm.constraint:{"cel":{"rule":"true"}}`, "b.v1"},
			want:    "b.v1",
			strict:  "error: *",
			report:  "held back: subscription a: bundle a.v1: ",
		},
		{
			name:    "a provider with a malformed requirement is no option",
			subs:    []olm.Subscription{sub("a", "")},
			catalog: []string{"a.v1 -K", "k.v1 K prop=olm.gvk.required:7", "z.v1 K"},
			want:    "a.v1 z.v1",
			strict:  "error: *",
		},
		{
			name:      "an entry is counted once for an API that it names twice",
			installed: nil,
			subs:      []olm.Subscription{sub("a", ""), sub("b", "")},
			catalog:   []string{"a.v1 K K", "b.v1 -K"},
			want:      "a.v1 b.v1",
		},
		{
			name:    "a channel name may hold a slash",
			subs:    []olm.Subscription{sub("a", "", channel("x/y"))},
			catalog: []string{"a.v1 K -L @x/y", "k.v1 K L", "l.v1 L"},
			want:    "a.v1 l.v1",
		},
		{
			name:      "a provider with a subscription takes its own update first",
			installed: installed("k.v1 K"),
			subs:      []olm.Subscription{sub("a", ""), sub("k", "k.v1")},
			catalog:   []string{"a.v1 -K", "k.v1 K", "k.v2 K >k.v1"},
			want:      "a.v1 k.v2",
		},
		{
			name:    "catalogs that do not matter for an update do for what it needs",
			subs:    []olm.Subscription{sub("a", "")},
			catalog: []string{"a.v1 -K"},
			change:  []func(*olm.Snapshot){withCatalog(ns, "d", -1, readLines(t, "k.v1 K"))},
			want:    "a.v1 k.v1",
		},
		{
			name:    "not excludes",
			subs:    []olm.Subscription{sub("a", ""), sub("b", "")},
			catalog: []string{`a.v1 prop=olm.constraint:{"all":{"constraints":[{"gvk":{"group":"g","version":"v1","kind":"K"}},{"not":{"constraints":[{"gvk":{"group":"g","version":"v1","kind":"L"}}]}}]}}`, "b.v1", "k.v1 K L", "m.v1 K"},
			want:    "a.v1 b.v1 m.v1",
		},
		{
			name:      "updates exclude what they replace",
			installed: installed("old.v1"),
			subs:      []olm.Subscription{sub("a", "old.v1"), sub("b", "")},
			catalog:   []string{"a.v2 >old.v1", "b.v1 -pkg=old:>=1.0.0"},
			want:      "b.v1 old.v1",
			greedy:    "a.v2",
			strict:    "b.v1 old.v1",
		},
		{
			name:    "an invisible catalog",
			subs:    []olm.Subscription{sub("a", "", source("d", "elsewhere")), sub("b", "")},
			catalog: []string{"b.v1"},
			change:  []func(*olm.Snapshot){withCatalog("elsewhere", "d", 0, readLines(t, "a.v1"))},
			want:    "b.v1",
			strict:  "error: constraints not satisfiable: no operators found from catalog d in namespace elsewhere referenced by subscription a, subscription a exists",
		},
		{
			name:      "no package, though something is installed",
			installed: installed("a.v1"),
			subs:      []olm.Subscription{sub("a", "a.v1")},
			catalog:   []string{"b.v1"},
			want:      "a.v1",
			strict:    "error: constraints not satisfiable: no operators found in package a in the catalog referenced by subscription a, subscription a exists",
		},
		{
			name:      "no channel of the name",
			installed: installed("a.v1"),
			subs:      []olm.Subscription{sub("a", "a.v1", channel("gone"))},
			catalog:   []string{"a.v1"},
			want:      "a.v1",
			strict:    "error: constraints not satisfiable: no operators found in channel gone of package a in the catalog referenced by subscription a, subscription a exists",
			report:    "held back: subscription a: no operators found in channel gone of package a in the catalog referenced by subscription a; instead a.v1",
		},
		{
			name:    "a channel in disorder holds back who needs it only",
			subs:    []olm.Subscription{sub("a", ""), sub("b", "")},
			catalog: []string{"a.v1", "a.v2", "b.v1"},
			want:    "b.v1",
			strict:  `error: a unique replacement chain within a channel is required to determine the relative order between channel entries, but 2 replacement chains were found in channel "stable" of package "a": a.v1, a.v2`,
		},
		{
			name:    "a provider in a channel in disorder is no option",
			subs:    []olm.Subscription{sub("a", "")},
			catalog: []string{"a.v1 -K", "k.v1 K", "k.v2 K", "z.v1 K"},
			want:    "a.v1 z.v1",
			strict:  `error: a unique replacement chain within a channel is required to determine the relative order between channel entries, but 2 replacement chains were found in channel "stable" of package "k": k.v1, k.v2`,
		},
		{
			name:    "all faults of Subscriptions together",
			subs:    []olm.Subscription{sub("a", ""), sub("b", "")},
			catalog: []string{"a.v1", "a.v2", "b.v1 >b.v2", "b.v2 >b.v1"},
			want:    "",
			strict:  `error: [a unique replacement chain within a channel is required to determine the relative order between channel entries, but 2 replacement chains were found in channel "stable" of package "a": a.v1, a.v2, no channel heads (entries not replaced by another entry) found in channel "stable" of package "b"]`,
		},
		{
			name:      "a deprecated installed operator is tolerated",
			installed: installed("a.v1 deprecated"),
			subs:      []olm.Subscription{sub("a", "a.v1")},
			catalog:   []string{"a.v1"},
			want:      "a.v1",
			strict:    "error: constraints not satisfiable: bundle @existing/ops//a.v1 is deprecated, subscription a exists, subscription a requires @existing/ops//a.v1",
			report:    "broken before: a.v1 is deprecated",
		},
		{
			name:      "a deprecated installed operator is updated",
			installed: installed("a.v1 deprecated"),
			subs:      []olm.Subscription{sub("a", "a.v1")},
			catalog:   []string{"a.v1 deprecated", "a.v2 >a.v1"},
			want:      "a.v2",
		},
		{
			name:    "a deprecated head alone",
			subs:    []olm.Subscription{sub("a", "")},
			catalog: []string{"a.v1 deprecated"},
			want:    "",
			strict:  "error: constraints not satisfiable: bundle c/olm/stable/a.v1 is deprecated, subscription a exists, subscription a requires c/olm/stable/a.v1",
		},
		{
			name:      "a clash of installed operators is tolerated, a new one beside it is not",
			installed: installed("x.v1 K", "y.v1 K"),
			subs:      []olm.Subscription{sub("a", ""), sub("n", "")},
			catalog:   []string{"a.v1", "n.v1 K"},
			want:      "a.v1 x.v1 y.v1",
			strict:    "error: constraints not satisfiable: @existing/ops//x.v1, @existing/ops//y.v1 and c/olm/stable/n.v1 provide K (g/v1), clusterserviceversion x.v1 exists and is not referenced by a subscription, clusterserviceversion y.v1 exists and is not referenced by a subscription",
			report:    "broken before: x.v1, y.v1 provide K (g/v1)",
		},
		{
			name:      "what an installed operator lacked is still sought",
			installed: installed("z.v1 -K"),
			subs:      []olm.Subscription{sub("a", "")},
			catalog:   []string{"a.v1", "k.v1 K"},
			want:      "a.v1 k.v1 z.v1",
		},
		{
			name:      "and taken back where a Subscription's operator excludes it",
			installed: installed("z.v1 -K"),
			subs:      []olm.Subscription{sub("a", "")},
			catalog:   []string{"a.v1 Y", "k.v1 K Y"},
			want:      "a.v1 z.v1",
			strict:    "error: constraints not satisfiable: bundle z.v1 requires an operator providing an API with group: g, version: v1, kind: K, c/olm/stable/a.v1 and c/olm/stable/k.v1 provide Y (g/v1), clusterserviceversion z.v1 exists and is not referenced by a subscription, subscription a exists, subscription a requires c/olm/stable/a.v1",
			report:    "broken before: z.v1 requires an operator providing an API with group: g, version: v1, kind: K",
		},
		{
			name:      "the bundle of a freestanding operator is not added beside it",
			installed: withoutAnnotation(installed("k.v1")),
			subs:      []olm.Subscription{sub("a", "")},
			catalog:   []string{"a.v1 -K", "k.v1 K"},
			want:      "k.v1",
			strict:    "error: constraints not satisfiable: @existing/ops//k.v1 and c/olm/stable/k.v1 have the name k.v1, bundle a.v1 requires an operator providing an API with group: g, version: v1, kind: K, clusterserviceversion k.v1 exists and is not referenced by a subscription, subscription a exists, subscription a requires c/olm/stable/a.v1",
		},
		{
			name:      "a property that names no package",
			installed: installed(`x.v1 prop=olm.package:{"packageName":"","version":"1.0.0"}`, `y.v1 prop=olm.package:{"packageName":"","version":"1.0.0"}`),
			subs:      []olm.Subscription{sub("a", "")},
			catalog:   []string{"a.v1"},
			want:      "a.v1 x.v1 y.v1",
		},
		{
			name:      "a Subscription to what is there already, without its status",
			installed: installed("a.v1"),
			subs:      []olm.Subscription{sub("a", "a.v1"), sub("a", "", named("a2"))},
			catalog:   []string{"a.v1"},
			want:      "a.v1",
			strict:    "error: constraints not satisfiable: @existing/ops//a.v1 and c/olm/stable/a.v1 originate from package a, subscription a exists, subscription a requires @existing/ops//a.v1, subscription a2 exists, subscription a2 requires c/olm/stable/a.v1",
		},
		{
			name:      "and it joins the update",
			installed: installed("a.v1"),
			subs:      []olm.Subscription{sub("a", "a.v1"), sub("a", "", named("a2"))},
			catalog:   []string{"a.v1", "a.v2 >a.v1"},
			want:      "a.v2",
			report:    "updated a.v1 to a.v2 (channel stable, catalog olm/c) for subscription a, a2\n",
		},
		{
			name:    "startingCSV of one Subscription serves another of the package",
			subs:    []olm.Subscription{sub("a", "", startingCSV("a.v1")), sub("a", "", named("a2"))},
			catalog: []string{"a.v1", "a.v2 >a.v1"},
			want:    "a.v1",
			report:  "added a.v1 (channel stable, catalog olm/c) for subscription a, a2\n",
		},
		{
			name:    "a deprecated startingCSV",
			subs:    []olm.Subscription{sub("a", "", startingCSV("a.v1"))},
			catalog: []string{"a.v1 deprecated", "a.v2 >a.v1"},
			want:    "",
			strict:  "error: constraints not satisfiable: bundle c/olm/stable/a.v1 is deprecated, subscription a exists, subscription a requires c/olm/stable/a.v1",
		},
		{
			name:    "startingCSV without channel, source and order",
			subs:    []olm.Subscription{sub("a", "", any, channel(""), startingCSV("a.v1"))},
			catalog: []string{"a.v2 @stable", "a.v3 @stable", "a.v1 @beta", "a.v2 @beta ~a.v1"},
			want:    "a.v1",
		},
		{
			name:      "stuck",
			installed: installed("a.v2"),
			subs:      []olm.Subscription{sub("a", "a.v2")},
			catalog:   []string{"a.v1", "a.v2", "a.v3 >a.v1 ~a.v2x", "a.v4 >a.v3 ~a.v2y", "a.v5 >a.v4", "a.v6 >a.v5 ~a.v2"},
			want:      "a.v6",
		},
		{
			name:      "stuck below the head",
			installed: installed("a.v1"),
			subs:      []olm.Subscription{sub("a", "a.v1")},
			catalog:   []string{"a.v1", "a.v2 >a.v1", "a.v3 >a.v2 ~a.v2"},
			want:      "a.v1",
			report:    "subscription a is stuck",
		},
		{
			name:      "an open range does not lead down",
			installed: installed("a.v3"),
			subs:      []olm.Subscription{sub("a", "a.v3")},
			catalog:   []string{"a.v1", "a.v2 >a.v1 range=>=1.0.0", "a.v3 >a.v2 range=>=1.0.0"},
			want:      "a.v3",
		},
		{
			name:    "labels and packages",
			subs:    []olm.Subscription{sub("a", "")},
			catalog: []string{"a.v1 -label=l -pkg=p:>=2.0.0", "p.v1", "p.v2 >p.v1", "q.v1 label=l", "r.v1 label=l"},
			want:    "a.v1 p.v2 q.v1",
		},
		{
			name:    "one candidate must satisfy a constraint entirely",
			subs:    []olm.Subscription{sub("a", "")},
			catalog: []string{`a.v1 prop=olm.constraint:{"all":{"constraints":[{"gvk":{"group":"g","version":"v1","kind":"K"}},{"gvk":{"group":"g","version":"v1","kind":"L"}}]}}`, "k.v1 K", "l.v1 L", "m.v1 K L"},
			want:    "a.v1 m.v1",
		},
		{
			name:    "a malformed requirement is no option",
			subs:    []olm.Subscription{sub("a", "")},
			catalog: []string{"a.v1", `a.v2 >a.v1 prop=olm.gvk.required:7`},
			want:    "a.v1",
			strict:  "error: *",
			report:  "warning: subscription a: ",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := with(snapshot(contents(t, tc.catalog...), tc.installed, tc.subs...), tc.change...)
			g := resolve(t, s, olm.Options{})
			if got := members(g); got != tc.want {
				t.Errorf("generation %q, want %q\n%s", got, tc.want, g)
			}
			if !strings.Contains(g.String(), tc.report) {
				t.Errorf("%q is not in:\n%s", tc.report, g)
			}
			greedy := tc.greedy
			switch greedy {
			case "":
				greedy = tc.want
			case "nothing":
				greedy = ""
			}
			if got := outcome(s, olm.Options{Greedy: true}); got != greedy {
				t.Errorf("greedy: %q, want %q", got, greedy)
			}
			want := tc.strict
			if want == "" {
				want = tc.want
			}
			got := outcome(s, olm.Options{AllOrNothing: true})
			if want == "error: *" {
				if !strings.HasPrefix(got, "error: ") || strings.Contains(got, "constraints not satisfiable") {
					t.Errorf("all or nothing: %q", got)
				}
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("all or nothing (-want +got):\n%s", diff)
			}
		})
	}
}

// withoutAnnotation makes CSVs that say nothing about themselves.
func withoutAnnotation(csvs []olm.ClusterServiceVersion) []olm.ClusterServiceVersion {
	for i := range csvs {
		csvs[i].Annotations = map[string]string{olm.AnnotationProperties: "{}"}
	}
	return csvs
}

// TestPrevented has the faults that end a resolution, and which comes first.
func TestPrevented(t *testing.T) {
	down := errors.New("connection refused")
	bad := installed("z.v1")
	bad[0].Annotations[olm.AnnotationProperties] = `{"properties":[{"type":"olm.gvk.required","value":7}]}`
	malformed := installed("z.v1")
	malformed[0].Annotations[olm.AnnotationProperties] = `{`
	two := func(s *olm.Snapshot) { s.OperatorGroups = append(s.OperatorGroups, olm.OperatorGroup{}) }
	unconnected := func(s *olm.Snapshot) {
		s.Catalogs = append(s.Catalogs, olm.SnapshotCatalog{Key: types.NamespacedName{Namespace: ns, Name: "d"}})
	}
	disordered := func(s *olm.Snapshot) {
		s.Catalogs[0].Contents = contents(t, "a.v1", "k.v1 K", "k.v2 K")
		s.Subscriptions = append(s.Subscriptions, sub("k", ""), sub("k", "", named("k2")))
	}
	const chains = `a unique replacement chain within a channel is required to determine the relative order between channel entries, but 2 replacement chains were found in channel "stable" of package "k": k.v1, k.v2`
	for _, tc := range []struct {
		name      string
		installed []olm.ClusterServiceVersion
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
			s := with(snapshot(contents(t, "a.v1"), tc.installed, sub("a", "")), tc.change)
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
		s := with(snapshot(contents(t, "a.v1"), nil, sub("a", "")), broken("olm", "d", down))
		g := resolve(t, s, olm.Options{TolerateUnusedCatalogs: true})
		if diff := cmp.Diff([]string{"error using catalogsource olm/d: connection refused"}, g.Warnings); diff != "" || members(g) != "a.v1" {
			t.Errorf("%s\n%s", diff, g)
		}
	})
	t.Run("invisible catalogs do not matter", func(t *testing.T) {
		s := with(snapshot(contents(t, "a.v1"), nil, sub("a", "")), broken("elsewhere", "d", down))
		if got := outcome(s, olm.Options{}); got != "a.v1" {
			t.Error(got)
		}
	})
	t.Run("no subscriptions, no resolution", func(t *testing.T) {
		s := with(snapshot(contents(t, "a.v1"), bad), two, broken("olm", "d", down))
		if got := outcome(s, olm.Options{}); got != "z.v1" {
			t.Error(got)
		}
	})
	t.Run("the global namespace is excluded", func(t *testing.T) {
		s := snapshot(contents(t, "a.v1"), nil, sub("a", ""))
		for value, want := range map[string]string{"true": "", "True": "a.v1", "false": "a.v1"} {
			s.OperatorGroups = []olm.OperatorGroup{{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{olm.AnnotationExcludeGlobal: value}}}}
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
		c, err := catalog.Read(context.Background(), strings.NewReader(text), "catalog.json", catalog.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s.Catalogs[0].Contents = c.Contents
	}
	empty := func(s *olm.Snapshot) { s.Catalogs[0].Contents = contents(t) }
	for _, tc := range []struct {
		name   string
		sub    olm.Subscription
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
			s := snapshot(contents(t, "a.v1"), installed("z.v1"), tc.sub)
			if tc.change != nil {
				tc.change(&s)
			}
			_, err := olm.Resolve(context.Background(), s, olm.Options{AllOrNothing: true})
			var unsat *olm.NotSatisfiable
			if !errors.As(err, &unsat) {
				t.Fatalf("error %v, want NotSatisfiable", err)
			}
			want := "constraints not satisfiable: " + tc.want + ", subscription s exists"
			if diff := cmp.Diff(want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if unsat.Facts[0].Kind != tc.kind || unsat.Facts[0].Subscription != "s" {
				t.Errorf("fact %+v", unsat.Facts[0])
			}
			for _, o := range []olm.Options{{}, {Greedy: true}} {
				g := resolve(t, s, o)
				var fact *olm.Fact
				if len(g.HeldBack) != 1 || !errors.As(g.HeldBack[0].Err, &fact) || fact.Message != tc.want || len(g.Operators) != 0 {
					t.Errorf("generation:\n%s", g)
				}
			}
		})
	}
}

// TestConflictTexts has the messages of facts that other tests do not meet.
func TestConflictTexts(t *testing.T) {
	for _, tc := range []struct {
		name      string
		installed []string
		subs      []olm.Subscription
		catalog   []string
		want      []string
	}{
		{
			name:      "options in order, the installed one last",
			installed: []string{"a.v1 -Q"},
			subs:      []olm.Subscription{sub("a", "a.v1")},
			catalog:   []string{"a.v1 -Q", "a.v2 -Q >a.v1", "a.v3 -Q >a.v2 range=<3.0.0"},
			want: []string{
				"bundle a.v1 requires an operator providing an API with group: g, version: v1, kind: Q",
				"bundle a.v2 requires an operator providing an API with group: g, version: v1, kind: Q",
				"bundle a.v3 requires an operator providing an API with group: g, version: v1, kind: Q",
				"subscription a exists",
				"subscription a requires at least one of c/olm/stable/a.v3, c/olm/stable/a.v2 or @existing/ops//a.v1",
			},
		},
		{
			name:    "three providers of one API",
			subs:    []olm.Subscription{sub("a", ""), sub("b", "")},
			catalog: []string{"a.v1 Y", "b.v1 Y -K", "k.v1 Y K"},
			want: []string{
				"c/olm/stable/a.v1, c/olm/stable/b.v1 and c/olm/stable/k.v1 provide Y (g/v1)",
				"subscription a exists",
				"subscription a requires c/olm/stable/a.v1",
				"subscription b exists",
				"subscription b requires c/olm/stable/b.v1",
			},
		},
		{
			name: "requirements of all kinds",
			subs: []olm.Subscription{sub("a", "")},
			catalog: []string{
				"a.v1 -label=l",
				"a.v2 -pkg=p:>=1.0.0_<2.0.0 >a.v1",
				`a.v3 prop=olm.constraint:{"any":{"constraints":[{"package":{"packageName":"p","versionRange":"1.x"}},{"gvk":{"group":"g","version":"v1","kind":"K"}}]}} >a.v2`,
				`a.v4 prop=olm.constraint:{"failureMessage":"both","all":{"constraints":[{"gvk":{"group":"g","version":"v1","kind":"K"}},{"not":{"constraints":[{"gvk":{"group":"g","version":"v1","kind":"L"}},{"gvk":{"group":"g","version":"v1","kind":"M"}}]}}]}} >a.v3`,
			},
			want: []string{
				"bundle a.v1 requires an operator with label: l",
				"bundle a.v2 requires an operator with package: p and with version in range: >=1.0.0 <2.0.0",
				"bundle a.v3 requires an operator with package: p and with version in range: 1.x or providing an API with group: g, version: v1, kind: K",
				"bundle a.v4 requires an operator providing an API with group: g, version: v1, kind: K and providing an API with group: g, version: v1, kind: L and not providing an API with group: g, version: v1, kind: M and message: \"both\"",
				"subscription a exists",
				"subscription a requires at least one of c/olm/stable/a.v4, c/olm/stable/a.v3, c/olm/stable/a.v2 or c/olm/stable/a.v1",
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := snapshot(contents(t, tc.catalog...), installed(tc.installed...), tc.subs...)
			want := "error: constraints not satisfiable: " + strings.Join(tc.want, ", ")
			if diff := cmp.Diff(want, outcome(s, olm.Options{AllOrNothing: true})); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
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
		{"catalog twice", withCatalog("olm", "c", 0, contents(t, "a.v1")), olm.Options{}, "catalog olm/c occurs twice"},
		{"another namespace", func(s *olm.Snapshot) { s.Subscriptions[0].Namespace = "x" }, olm.Options{}, "subscription x/a is of another namespace than ops"},
		{"subscription twice", func(s *olm.Snapshot) { s.Subscriptions = append(s.Subscriptions, s.Subscriptions[0]) }, olm.Options{}, "subscription a occurs twice"},
		{"nameless", func(s *olm.Snapshot) { s.Installed = append(s.Installed, olm.ClusterServiceVersion{}) }, olm.Options{}, "clusterserviceversion 0 has no name"},
		{"no namespace", func(s *olm.Snapshot) { s.Namespace, s.Subscriptions = "", nil }, olm.Options{}, "no namespace"},
		{"two modes", func(*olm.Snapshot) {}, olm.Options{AllOrNothing: true, Greedy: true}, "AllOrNothing and Greedy exclude each other"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := olm.Resolve(context.Background(), with(snapshot(contents(t, "a.v1"), nil, sub("a", "")), tc.change), tc.o)
			if !errors.Is(err, olm.ErrSnapshot) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// TestResolveWhileUpdating has operators that are still being replaced.
func TestResolveWhileUpdating(t *testing.T) {
	csvs := func(phases ...string) []olm.ClusterServiceVersion {
		return phase(installed("a.v1 K", "a.v2 K >a.v1", "b.v1"), phases...)
	}
	failForward := func(s *olm.Snapshot) {
		s.OperatorGroups[0].Spec.UpgradeStrategy = "TechPreviewUnsafeFailForward"
	}
	lines := []string{"a.v1 K", "a.v2 K >a.v1", "a.v3 K >a.v2", "b.v1", "b.v2 >b.v1"}
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
			s := snapshot(contents(t, lines...), csvs(tc.phases...), sub("a", tc.sub), sub("b", "b.v1"))
			if tc.change != nil {
				tc.change(&s)
			}
			g := resolve(t, s, olm.Options{})
			if got := members(g); got != tc.want {
				t.Errorf("generation %q, want %q\n%s", got, tc.want, g)
			}
			if got := outcome(s, olm.Options{Greedy: true}); got != tc.want {
				t.Errorf("greedy: %q, want %q", got, tc.want)
			}
			waiting := ""
			for _, u := range g.InProgress {
				waiting += strings.Join(u.Subscriptions, " ")
			}
			if waiting != tc.waiting {
				t.Errorf("%q waits, want %q", waiting, tc.waiting)
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

// TestNotStuck: where a channel has no order, it is not known that nothing in it
// replaces an operator.
func TestNotStuck(t *testing.T) {
	s := snapshot(contents(t, "a.v1", "a.v2 >a.v1", "a.v3 >a.v2 ~a.v2"), installed("a.v1"), sub("a", "a.v1", channel("")))
	if g := resolve(t, s, olm.Options{}); !slices.Equal(g.Stuck, []string{"a"}) || len(g.HeldBack) != 0 {
		t.Errorf("generation:\n%s", g)
	}
	s.Catalogs[0].Contents = contents(t, "a.v1", "a.v2 >a.v1", "a.v3 >a.v2 ~a.v2", "a.v4 @beta", "a.v5 @beta")
	if g := resolve(t, s, olm.Options{}); len(g.Stuck) != 0 || len(g.HeldBack) != 1 {
		t.Errorf("generation:\n%s", g)
	}
}

// TestBesideUpdating: of an operator that is on its way out only the name counts.
func TestBesideUpdating(t *testing.T) {
	csvs := phase(installed("a.v1 K -Q", "a.v2 >a.v1"), olm.CSVPhaseReplacing, "Installing")
	c := contents(t, "a.v1 K -Q", "a.v2 >a.v1", "a.v3 >a.v2", "n.v1 -K", "k.v1 K")
	for _, o := range []olm.Options{{}, {Greedy: true}} {
		g := resolve(t, snapshot(c, csvs, sub("a", "a.v2"), sub("n", "")), o)
		held := slices.ContainsFunc(g.HeldBack, func(h olm.HeldBack) bool { return h.Subscription != "" })
		if members(g) != "a.v1 a.v2 k.v1 n.v1" || held || len(g.BrokenBefore) != 0 {
			t.Errorf("%+v:\n%s", o, g)
		}
	}
	nameless := withoutAnnotation(phase(installed("a.v1", "a.v2 >a.v1"), olm.CSVPhaseReplacing, "Installing"))
	for _, o := range []olm.Options{{}, {Greedy: true}} {
		s := snapshot(c, nameless, sub("a", "a.v2"), sub("a", "", named("b"), startingCSV("a.v1")))
		if got, want := outcome(s, o), "a.v1 a.v2"; got != want {
			t.Errorf("%+v: %q, want %q", o, got, want)
		}
	}
}

// TestAmbiguousInstalledCSV: a Subscription whose operator is not clear waits.
func TestAmbiguousInstalledCSV(t *testing.T) {
	s := snapshot(contents(t, "a.v2 >a.v1", "b.v1"), installed("a.v1", "a.v1"), sub("a", "a.v1"), sub("b", ""))
	const text = "multiple name matches for status.installedCSV of subscription ops/a: a.v1, a.v1"
	if got, want := outcome(s, olm.Options{AllOrNothing: true}), "error: "+text; got != want {
		t.Errorf("all or nothing: %q, want %q", got, want)
	}
	g := resolve(t, s, olm.Options{})
	if members(g) != "a.v1 a.v1 b.v1" || !strings.Contains(g.String(), "held back: subscription a: "+text) {
		t.Errorf("generation:\n%s", g)
	}
}

// TestOperators has the fields of what is to be installed.
func TestOperators(t *testing.T) {
	c := contents(t, "a.v2 -K >a.v0 range=<2.0.0", "k.v1 K @beta >k.v0", "n.v1", "n.v2 >n.v1")
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
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("operators (-want +got):\n%s", diff)
	}
	if len(g.NewSubscriptions) != 1 {
		t.Fatalf("%d new Subscriptions", len(g.NewSubscriptions))
	}
	n := g.NewSubscriptions[0]
	wantSpec := olm.SubscriptionSpec{Source: "c", SourceNamespace: "olm", Package: "k", Channel: "beta", StartingCSV: "k.v1", InstallPlanApproval: olm.ApprovalAutomatic}
	if diff := cmp.Diff(wantSpec, n.Spec); diff != "" || n.Name != "k-beta-c-olm" || n.Namespace != ns {
		t.Errorf("new Subscription %s/%s (-want +got):\n%s", n.Namespace, n.Name, diff)
	}
}

// TestDeterminism: the order of the input plays no part.
func TestDeterminism(t *testing.T) {
	c := contents(t, "a.v1 X", "a.v2 X Y -K >a.v1", "b.v1 Z", "b.v2 Z Y -L >b.v1", "k.v1 K", "k2.v1 K", "l.v1 L M", "m.v1 M")
	d := contents(t, "k.v1 K", "l.v2 L")
	s := with(snapshot(c, installed("a.v1 X", "b.v1 Z", "z.v1 -M"), sub("a", "a.v1"), sub("b", "b.v1"), sub("m", "")), withCatalog("olm", "d", 0, d))
	want := resolve(t, s, olm.Options{}).String()
	random := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		x := s
		x.Subscriptions, x.Installed, x.Catalogs = slices.Clone(s.Subscriptions), slices.Clone(s.Installed), slices.Clone(s.Catalogs)
		random.Shuffle(len(x.Subscriptions), func(i, j int) {
			x.Subscriptions[i], x.Subscriptions[j] = x.Subscriptions[j], x.Subscriptions[i]
		})
		random.Shuffle(len(x.Installed), func(i, j int) { x.Installed[i], x.Installed[j] = x.Installed[j], x.Installed[i] })
		random.Shuffle(len(x.Catalogs), func(i, j int) { x.Catalogs[i], x.Catalogs[j] = x.Catalogs[j], x.Catalogs[i] })
		if got := resolve(t, x, olm.Options{}).String(); got != want {
			t.Fatalf("got:\n%s\nwant:\n%s", got, want)
		}
	}
}
