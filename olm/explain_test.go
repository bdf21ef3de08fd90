package olm_test

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/olm"
)

// TestExplainLater: what becomes of a snapshot after its resolution plays no
// part.
func TestExplainLater(t *testing.T) {
	s := snapshot(contents("a.v1 -B", "b.v1 B", "b.v2 >b.v1"), installed("a.v1 -B", "b.v1 B"), sub("a", "a.v1"), sub("b", "b.v1"))
	g := resolve(t, s, olm.Options{})
	want := checktest.Get(g.Explain(context.Background(), "b"))(t)
	s.Subscriptions[1].Name, s.Subscriptions[1].Status.InstalledCSV = "x", "b.v2"
	s.Installed[0].Name, s.Installed[1].Name = "a.v2", "b.v2"
	s.Catalogs[0].Contents, s.OperatorGroups[0].Name = nil, "x"
	got := checktest.Get(g.Explain(context.Background(), "b"))(t)
	checktest.SameIn(t, "explanation (-before +after)", want.String(), got.String())
}

// TestWhyForeign: what the generation does not have is not explained.
func TestWhyForeign(t *testing.T) {
	g := resolve(t, snapshot(contents("a.v1"), nil, sub("a", "")), olm.Options{})
	if _, err := g.Explain(t.Context(), "x"); !errors.Is(err, olm.ErrNothingToExplain) {
		t.Errorf("error %v", err)
	}
	h := olm.HeldBack{Subscription: "x", NotTaken: []olm.Option{{Catalog: types.NamespacedName{Name: "x"}}}}
	for _, g := range []*olm.Generation{g, {}} {
		if _, err := g.Why(context.Background(), &h); !errors.Is(err, olm.ErrNothingToExplain) {
			t.Errorf("error %v", err)
		}
	}
}

func TestExplainNotSatisfiable(t *testing.T) {
	s := snapshot(contents("a.v1 -K", "k.v1 K", "k.v2 L >k.v1", "a.v2 @beta"), installed("k.v2 L"), sub("a", ""), sub("k", "k.v2"))
	s.Catalogs = append(s.Catalogs, olm.SnapshotCatalog{Key: types.NamespacedName{Namespace: "elsewhere", Name: "d"}, Contents: contents("z.v1 K")})
	o := olm.Options{AllOrNothing: true}
	_, err := olm.Resolve(context.Background(), s, o)
	var unsat *olm.NotSatisfiable
	if !errors.As(err, &unsat) {
		t.Fatalf("error %v", err)
	}
	e := checktest.Get(unsat.Explain(context.Background(), s, o))(t)
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
	checktest.SameIn(t, "explanation", want, e.String())
	for _, x := range e.Remedies {
		if x.Generation == nil {
			t.Errorf("%s was not tried", x.Text)
		}
	}
}

// TestNotSatisfiableTwice: each conflict is reported, and what ends one of them
// helps.
func TestNotSatisfiableTwice(t *testing.T) {
	s := snapshot(contents("a.v1 -Gone", "b.v1 -Lost", "b.v0 @old", "c.v1"), nil, sub("a", ""), sub("b", ""), sub("c", ""))
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
	e := checktest.Get(unsat.Explain(context.Background(), s, o))(t)
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
	checktest.SameIn(t, "explanation", want, e.String())
}
