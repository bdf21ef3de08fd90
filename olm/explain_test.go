package olm_test

import (
	"context"
	"errors"
	"testing"

	"github.com/clusterupdate/clusterupdate/olm"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

func TestExplain(t *testing.T) {
	for _, tc := range []struct {
		name      string
		installed []string
		subs      []olm.Subscription
		catalog   []string
		what      string
		want      string
	}{
		{
			name:      "an update that would take an API away",
			installed: []string{"a.v1 A -B", "b.v1 B"},
			subs:      []olm.Subscription{sub("a", "a.v1"), sub("b", "b.v1")},
			catalog:   []string{"a.v1 A -B", "b.v1 B", "b.v2 C >b.v1"},
			what:      "b",
			want: `kept b.v1 for subscription b
  b.v2 not taken
    a.v1 requires B (g/v1), which only b.v1 provides
      subscription a can have nothing but a.v1
way out: remove subscription a and its operator a.v1
`,
		},
		{
			name:      "a freestanding dependant",
			installed: []string{"a.v1 A -B", "b.v1 B"},
			subs:      []olm.Subscription{sub("b", "b.v1")},
			catalog:   []string{"a.v1 A -B", "b.v1 B", "b.v2 C >b.v1"},
			what:      "b",
			want: `kept b.v1 for subscription b
  b.v2 not taken
    a.v1 requires B (g/v1), which only b.v1 provides
      a.v1 is installed and no subscription has it, so it stays
way out: remove the operator a.v1, which no subscription has
`,
		},
		{
			name:    "a requirement that nothing provides",
			subs:    []olm.Subscription{sub("a", "")},
			catalog: []string{"a.v1 -Q"},
			what:    "a",
			want: `nothing for subscription a
  a.v1 not taken
    a.v1 requires Q (g/v1), which nothing provides
`,
		},
		{
			name:      "an earlier subscription's update",
			installed: []string{"a.v1 X", "b.v1 Z"},
			subs:      []olm.Subscription{sub("a", "a.v1"), sub("b", "b.v1")},
			catalog:   []string{"a.v2 X Y >a.v1", "b.v2 Z Y >b.v1", "b.v3 Z @beta >b.v1"},
			what:      "b",
			want: `kept b.v1 for subscription b
  b.v2 not taken
    there can be only one provider of Y (g/v1): a.v2 and b.v2 exclude each other
      subscription a is updated first, with a.v2
way out: remove subscription a and its operator a.v1
way out: switch subscription b to channel beta
`,
		},
		{
			name:      "a chain",
			installed: []string{"a.v1 A -B", "b.v1 B -D", "d.v1 D -A"},
			subs:      []olm.Subscription{sub("a", "a.v1"), sub("b", "b.v1"), sub("d", "d.v1")},
			catalog:   []string{"a.v2 A2 -B2 >a.v1", "b.v2 B2 -D2 >b.v1", "d.v1 D -A"},
			what:      "a",
			want: `kept a.v1 for subscription a
  a.v2 not taken
    a.v2 requires B2 (g/v1), which only b.v2 provides
      b.v2 requires D2 (g/v1), which nothing provides
`,
		},
		{
			name:    "what came for a requirement",
			subs:    []olm.Subscription{sub("n", "")},
			catalog: []string{"n.v1 -K", "p.v1 K -Q", "q.v1 K"},
			what:    "q.v1",
			want: `added q.v1 (channel stable, catalog olm/c): n.v1 requires an operator providing an API with group: g, version: v1, kind: K
  p.v1 not taken
    p.v1 requires Q (g/v1), which nothing provides
`,
		},
		{
			name:    "providers that cannot be read or ordered",
			subs:    []olm.Subscription{sub("a", "")},
			catalog: []string{"a.v1 -K", "k.v1 K prop=olm.label.required:7", "x.v1 K", "x.v2"},
			what:    "a",
			want: `nothing for subscription a
  a.v1 not taken
    a.v1 requires K (g/v1), which only k.v1 provides
      bundle k.v1: property of type olm.label.required: json: cannot unmarshal number into Go value of type olm.wireLabel
      a unique replacement chain within a channel is required to determine the relative order between channel entries, but 2 replacement chains were found in channel "stable" of package "x": x.v1, x.v2
`,
		},
		{
			name:      "an update that needs what it replaces",
			installed: []string{"a.v1 K"},
			subs:      []olm.Subscription{sub("a", "a.v1")},
			catalog:   []string{"a.v2 -K >a.v1"},
			what:      "a",
			want: `kept a.v1 for subscription a
  a.v2 not taken
    a.v2 replaces a.v1
      a.v2 requires K (g/v1), which only a.v1 provides
`,
		},
		{
			name:      "an update of what another needs",
			installed: []string{"old.v1"},
			subs:      []olm.Subscription{sub("a", "old.v1"), sub("b", "")},
			catalog:   []string{"a.v2 >old.v1", "b.v1 -pkg=old:>=1.0.0"},
			what:      "a",
			want: `kept old.v1 for subscription a
  a.v2 not taken
    a.v2 replaces old.v1
      b.v1 requires an operator with package: old and with version in range: >=1.0.0, which only old.v1 provides
        subscription b is served first, with b.v1
way out: remove subscription b
`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := resolve(t, snapshot(contents(t, tc.catalog...), installed(tc.installed...), tc.subs...), olm.Options{})
			e, err := g.Explain(context.Background(), tc.what)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, e.String()); diff != "" {
				t.Errorf("explanation:\n%s", e)
			}
		})
	}
	g := resolve(t, snapshot(contents(t, "a.v1"), nil, sub("a", "")), olm.Options{})
	if e, err := g.Explain(context.Background(), "a"); err != nil || e.Line() != "added a.v1 (channel stable, catalog olm/c) for subscription a: it is first in channel stable" {
		t.Errorf("explanation %v, %v", e.Line(), err)
	}
	if _, err := g.Explain(context.Background(), "x"); !errors.Is(err, olm.ErrNothingToExplain) {
		t.Errorf("error %v", err)
	}
}

// TestExplainGreedy: the greedy engine says which rule took an update back.
func TestExplainGreedy(t *testing.T) {
	s := snapshot(contents(t, "a.v1 -B", "b.v1 B", "b.v2 >b.v1", "n.v1 -Q", "x.v1", "x.v2 Y >x.v1", "y.v2 Y"),
		installed("a.v1 -B", "b.v1 B", "x.v1"),
		sub("a", "a.v1"), sub("b", "b.v1"), sub("n", ""), sub("x", "x.v1"), sub("y", ""))
	g := resolve(t, s, olm.Options{Greedy: true})
	var got []string
	for i := range g.HeldBack {
		e, err := g.Why(context.Background(), &g.HeldBack[i])
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range e.Children {
			got = append(got, c.Line())
		}
	}
	want := []string{
		"b.v2 not taken: a.v1 requires B (g/v1), which only b.v1 provides",
		"n.v1 not taken: n.v1 requires Q (g/v1), which nothing provides",
		"y.v2 not taken: there can be only one provider of Y (g/v1): x.v2 and y.v2 exclude each other",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
}

// TestRequiredBy: who asked first may have been taken back.
func TestRequiredBy(t *testing.T) {
	s := snapshot(contents(t, "a.v1 -K -Q", "b.v1 -K", "k.v1 K"), nil, sub("a", ""), sub("b", ""))
	for _, o := range []olm.Options{{}, {Greedy: true}} {
		g := resolve(t, s, o)
		if by := g.Slots[len(g.Slots)-1].RequiredBy; members(g) != "b.v1 k.v1" || by == nil || by.Bundle.Name != "b.v1" {
			t.Errorf("%+v:\n%s", o, g)
		}
	}
}

// TestExplainLater: what becomes of a snapshot after its resolution plays no
// part.
func TestExplainLater(t *testing.T) {
	s := snapshot(contents(t, "a.v1 -B", "b.v1 B", "b.v2 >b.v1"), installed("a.v1 -B", "b.v1 B"), sub("a", "a.v1"), sub("b", "b.v1"))
	g := resolve(t, s, olm.Options{})
	want, err := g.Explain(context.Background(), "b")
	if err != nil {
		t.Fatal(err)
	}
	s.Subscriptions[1].Name, s.Subscriptions[1].Status.InstalledCSV = "x", "b.v2"
	s.Installed[0].Name, s.Installed[1].Name = "a.v2", "b.v2"
	s.Catalogs[0].Contents, s.OperatorGroups[0].Name = nil, "x"
	got, err := g.Explain(context.Background(), "b")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.String(), got.String()); diff != "" {
		t.Errorf("explanation (-before +after):\n%s", diff)
	}
}

// TestWhyForeign: what another resolution held back is not this one's business.
func TestWhyForeign(t *testing.T) {
	g := resolve(t, snapshot(contents(t, "a.v1"), nil, sub("a", "")), olm.Options{})
	h := olm.HeldBack{Subscription: "x", NotTaken: []olm.Option{{Catalog: types.NamespacedName{Name: "x"}}}}
	for _, g := range []*olm.Generation{g, {}} {
		if _, err := g.Why(context.Background(), &h); !errors.Is(err, olm.ErrNothingToExplain) {
			t.Errorf("error %v", err)
		}
	}
}

// TestWhyRequirement: what an installed operator lacked before cannot be had.
func TestWhyRequirement(t *testing.T) {
	s := snapshot(contents(t, "a.v1 Y", "k.v1 K Y"), installed("z.v1 -K"), sub("a", ""))
	g := resolve(t, s, olm.Options{})
	if len(g.HeldBack) != 1 {
		t.Fatalf("generation:\n%s", g)
	}
	e, err := g.Why(context.Background(), &g.HeldBack[0])
	if err != nil {
		t.Fatal(err)
	}
	want := `held back: z.v1 requires an operator providing an API with group: g, version: v1, kind: K: not taken k.v1; nothing instead
  k.v1 not taken
    there can be only one provider of Y (g/v1): a.v1 and k.v1 exclude each other
      subscription a is served first, with a.v1
`
	if diff := cmp.Diff(want, e.String()); diff != "" {
		t.Errorf("explanation (-want +got):\n%s", diff)
	}
}

// TestWhyAfterHealing: what was taken for one thing that was lacking before
// stands against another.
func TestWhyAfterHealing(t *testing.T) {
	s := snapshot(contents(t, "a.v1", "k.v1 K Y", "m.v1 M Y"), installed("a.v1", "z.v1 -K -M"), sub("a", "a.v1"))
	g := resolve(t, s, olm.Options{})
	if members(g) != "a.v1 k.v1 z.v1" || len(g.HeldBack) != 1 {
		t.Fatalf("generation:\n%s", g)
	}
	e, err := g.Why(context.Background(), &g.HeldBack[0])
	if err != nil {
		t.Fatal(err)
	}
	want := `held back: z.v1 requires an operator providing an API with group: g, version: v1, kind: M: not taken m.v1; nothing instead
  m.v1 not taken
    there can be only one provider of Y (g/v1): m.v1 and k.v1 exclude each other
      k.v1 is taken for another requirement
`
	if diff := cmp.Diff(want, e.String()); diff != "" {
		t.Errorf("explanation (-want +got):\n%s", diff)
	}
}

func TestExplainNotSatisfiable(t *testing.T) {
	s := snapshot(contents(t, "a.v1 -K", "k.v1 K", "k.v2 L >k.v1", "a.v2 @beta"), installed("k.v2 L"), sub("a", ""), sub("k", "k.v2"))
	s.Catalogs = append(s.Catalogs, olm.SnapshotCatalog{Key: types.NamespacedName{Namespace: "elsewhere", Name: "d"}, Contents: contents(t, "z.v1 K")})
	o := olm.Options{AllOrNothing: true}
	_, err := olm.Resolve(context.Background(), s, o)
	var unsat *olm.NotSatisfiable
	if !errors.As(err, &unsat) {
		t.Fatalf("error %v", err)
	}
	e, err := unsat.Explain(context.Background(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	want := `no generation satisfies all of these together
  @existing/ops//k.v2 and c/olm/stable/k.v1 originate from package k
  bundle a.v1 requires an operator providing an API with group: g, version: v1, kind: K
  subscription a exists
  subscription a requires c/olm/stable/a.v1
  subscription k exists
  subscription k requires @existing/ops//k.v2
way out: remove subscription a
way out: switch subscription a to channel beta
way out: remove subscription k and its operator k.v2
way out: offer catalog elsewhere/d to the namespace
`
	if diff := cmp.Diff(want, e.String()); diff != "" {
		t.Errorf("explanation (-want +got):\n%s", diff)
	}
	for _, x := range e.Remedies {
		if x.Generation == nil {
			t.Errorf("%s was not tried", x.Text)
		}
	}
}

// TestNotSatisfiableTwice: each conflict is reported, and what ends one of them
// helps.
func TestNotSatisfiableTwice(t *testing.T) {
	s := snapshot(contents(t, "a.v1 -Gone", "b.v1 -Lost", "b.v0 @old", "c.v1"), nil, sub("a", ""), sub("b", ""), sub("c", ""))
	o := olm.Options{AllOrNothing: true}
	_, err := olm.Resolve(context.Background(), s, o)
	var unsat *olm.NotSatisfiable
	if !errors.As(err, &unsat) || len(unsat.Others) != 1 {
		t.Fatalf("error %v", err)
	}
	const text = "constraints not satisfiable: " +
		"bundle a.v1 requires an operator providing an API with group: g, version: v1, kind: Gone, " +
		"subscription a exists, subscription a requires c/olm/stable/a.v1; " +
		"bundle b.v1 requires an operator providing an API with group: g, version: v1, kind: Lost, " +
		"subscription b exists, subscription b requires c/olm/stable/b.v1"
	if err.Error() != text {
		t.Errorf("error %q\nwant  %q", err, text)
	}
	e, err := unsat.Explain(context.Background(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	want := `no generation satisfies all of these together
  bundle a.v1 requires an operator providing an API with group: g, version: v1, kind: Gone
  subscription a exists
  subscription a requires c/olm/stable/a.v1
  nor all of these
    bundle b.v1 requires an operator providing an API with group: g, version: v1, kind: Lost
    subscription b exists
    subscription b requires c/olm/stable/b.v1
way out: remove subscription a
way out: remove subscription b
way out: switch subscription b to channel old
`
	if diff := cmp.Diff(want, e.String()); diff != "" {
		t.Errorf("explanation (-want +got):\n%s", diff)
	}
}
