package olm_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/olm"
	"pgregory.net/rapid"
)

// TestSearchAgainstBruteForce compares the resolver with a reference that knows
// every legal generation.
func TestSearchAgainstBruteForce(t *testing.T) {
	for _, strict := range []bool{false, true} {
		name := "hold back"
		if strict {
			name = "all or nothing"
		}
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				w := drawWorld(t, worldOptions{disorder: true, deprecated: true, starting: true, labels: true, channels: rapid.Bool().Draw(t, "channels")})
				s := w.snapshot(t)
				want, ok := newReference(&w, strict).check(t, &w, s)
				g, err := olm.Resolve(context.Background(), s, olm.Options{AllOrNothing: strict})
				if prevented := (*olm.Prevented)(nil); strict && errors.As(err, &prevented) {
					return // by a channel in disorder
				}
				if unsat := (*olm.NotSatisfiable)(nil); errors.As(err, &unsat) {
					if ok && len(s.Subscriptions) > 0 {
						t.Fatalf("%v, but there is %q\n%s", err, want, &w)
					}
					return
				}
				if err != nil {
					t.Fatalf("%v\n%s", err, &w)
				}
				if len(s.Subscriptions) == 0 {
					return
				}
				if !ok {
					t.Fatalf("there is no legal generation, but:\n%s\n%s", g, &w)
				}
				if got := members(g); got != want {
					t.Fatalf("generation %q, want %q\n%s\n%s", got, want, g, &w)
				}
			})
		})
	}
}

// check returns the names of the preferred generation.
func (r *reference) check(t *rapid.T, w *world, s olm.Snapshot) (string, bool) {
	set, ok := r.generation()
	if ok && len(w.subs) > 0 {
		legal := false
		for _, x := range r.sets {
			legal = legal || x == set
		}
		if !legal {
			t.Fatalf("the reference is wrong: %q is not legal\n%s", r.names(set), w)
		}
	}
	return r.names(set), ok
}

// TestGreedyAgainstSearch: where the greedy engine holds nothing back and
// nothing was broken before, both come to the same generation.
func TestGreedyAgainstSearch(t *testing.T) {
	compared, all := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, worldOptions{starting: true, labels: true, mild: rapid.Bool().Draw(t, "mild"), channels: rapid.Bool().Draw(t, "channels")})
		s := w.snapshot(t)
		greedy, err := olm.Resolve(context.Background(), s, olm.Options{Greedy: true})
		if err != nil {
			t.Fatal(err)
		}
		all++
		withdrawn, nowhere := false, false
		for _, h := range greedy.HeldBack {
			withdrawn = withdrawn || len(h.NotTaken) > 0
			nowhere = nowhere || h.Err != nil
		}
		if withdrawn || brokenBefore(&w) {
			return
		}
		compared++
		search, err := olm.Resolve(context.Background(), s, olm.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if greedy.String() != search.String() {
			// The search also reports requirements that did not get their first
			// provider; what is there must be the same, slot by slot.
			if slots(greedy) != slots(search) {
				t.Fatalf("greedy:\n%s\nsearch:\n%s\n%s", greedy, search, &w)
			}
		}
		if nowhere || len(w.subs) == 0 {
			return
		}
		strict, err := olm.Resolve(context.Background(), s, olm.Options{AllOrNothing: true})
		if prevented := (*olm.Prevented)(nil); errors.As(err, &prevented) {
			return
		}
		if err != nil {
			t.Fatalf("%v, but greedily:\n%s\n%s", err, greedy, &w)
		}
		if slots(greedy) != slots(strict) {
			t.Fatalf("greedy:\n%s\nall or nothing:\n%s\n%s", greedy, strict, &w)
		}
	})
	t.Logf("%d of %d compared", compared, all)
}

func slots(g *olm.Generation) string {
	text := ""
	for i := range g.Slots {
		text += g.Slots[i].String() + "\n"
	}
	return text
}

func brokenBefore(w *world) bool {
	r := &reference{strict: true}
	for _, line := range w.installed {
		r.installed = append(r.installed, len(r.elements))
		r.elements = append(r.elements, element{operatorLine: parseOperator(line), catalog: -1})
	}
	for i := range r.elements {
		e := &r.elements[i]
		for _, p := range e.requirements() {
			if !r.met(p, r.before()) {
				return true
			}
		}
		for j := range i {
			if r.clash(i, j) {
				return true
			}
		}
		if e.deprecated() {
			return true
		}
	}
	return false
}

// TestMaximal: no legal generation serves or updates the same Subscriptions and
// one more.
func TestMaximal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, worldOptions{disorder: true, deprecated: true, labels: true, channels: rapid.Bool().Draw(t, "channels")})
		if len(w.subs) == 0 {
			return
		}
		r := newReference(&w, false)
		served := func(set uint) (subs uint) {
			for i, s := range r.subs {
				if set&r.mask(s.candidates) != 0 {
					subs |= 1 << i
				}
			}
			return subs
		}
		set, _ := r.generation()
		g, err := olm.Resolve(context.Background(), w.snapshot(t), olm.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if members(g) != r.names(set) {
			t.Fatalf("generation %q, want %q", members(g), r.names(set))
		}
		for _, x := range r.sets {
			if a, b := served(set), served(x); a != b && a&b == a {
				t.Fatalf("generation %q serves %b, but %q serves %b\n%s", members(g), a, r.names(x), b, &w)
			}
		}
	})
}

// TestConflictIsMinimal: without any one of the facts the others contradict each
// other no more. What can be left out of a world is left out of it.
func TestConflictIsMinimal(t *testing.T) {
	tried, solved := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, worldOptions{deprecated: true, labels: true})
		_, err := olm.Resolve(context.Background(), w.snapshot(t), olm.Options{AllOrNothing: true})
		var unsat *olm.NotSatisfiable
		if !errors.As(err, &unsat) {
			return
		}
		if len(unsat.Facts) == 0 {
			t.Fatalf("no facts\n%s", &w)
		}
		for _, f := range unsat.Facts {
			without := w
			switch f.Kind {
			case olm.FactSubscription:
				i := slices.IndexFunc(w.subs, func(s olm.Subscription) bool { return s.Name == f.Subscription })
				if slices.ContainsFunc(w.installed, func(l string) bool { return strings.Fields(l)[0] == w.subs[i].Status.InstalledCSV }) {
					continue // its operator would become freestanding
				}
				without.subs = slices.Delete(slices.Clone(w.subs), i, i+1)
			case olm.FactDeprecated:
				name := f.Member[strings.LastIndex(f.Member, "/")+1:]
				catalog := f.Member[:strings.Index(f.Member, "/")]
				allow := func(lines []string) (out []string) {
					for _, l := range lines {
						if strings.Fields(l)[0] == name {
							l = strings.TrimSuffix(l, " deprecated")
						}
						out = append(out, l)
					}
					return out
				}
				if catalog == "@existing" {
					without.installed = allow(w.installed)
				}
				without.catalogs = slices.Clone(w.catalogs)
				for i := range without.catalogs {
					if without.catalogs[i].key.Name == catalog {
						without.catalogs[i].lines = allow(w.catalogs[i].lines)
					}
				}
			default:
				continue
			}
			tried++
			_, again := olm.Resolve(context.Background(), without.snapshot(t), olm.Options{AllOrNothing: true})
			var other *olm.NotSatisfiable
			if !errors.As(again, &other) {
				solved++
				continue
			}
			// There is another contradiction; it must not be in the same facts.
			inside := true
			for _, o := range other.Facts {
				inside = inside && o.Message != f.Message && slices.ContainsFunc(unsat.Facts, func(x olm.Fact) bool { return x.Message == o.Message })
			}
			if inside {
				t.Fatalf("%q can be left out: %v\n%s", f.Message, err, &w)
			}
		}
	})
	t.Logf("%d facts left out, %d times that was all", tried, solved)
}

// TestExplanations: everything that is held back has a reason, and ways out
// lead to generations.
func TestExplanations(t *testing.T) {
	explained := 0
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, worldOptions{disorder: true, deprecated: true, starting: true, labels: true})
		g, err := olm.Resolve(context.Background(), w.snapshot(t), olm.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range g.HeldBack {
			name := h.Subscription
			if name == "" {
				continue
			}
			e, err := g.Explain(context.Background(), name)
			if err != nil {
				t.Fatalf("%v\n%s", err, &w)
			}
			explained++
			for _, c := range e.Children {
				if strings.HasSuffix(c.Text, " not taken") && len(c.Children) == 0 {
					t.Fatalf("no reason for %q:\n%s\n%s\n%s", c.Text, e, g, &w)
				}
			}
			for _, x := range e.Exits {
				if x.Generation == nil || x.Text == "" {
					t.Fatalf("exit %v", x)
				}
			}
		}
	})
	t.Logf("%d explained", explained)
}

// TestDefaultServesAll: where AllOrNothing succeeds and nothing was broken
// before, the default leaves no Subscription without an operator, either.
func TestDefaultServesAll(t *testing.T) {
	compared := 0
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, worldOptions{starting: true, labels: true, mild: rapid.Bool().Draw(t, "mild"), channels: rapid.Bool().Draw(t, "channels")})
		if _, err := olm.Resolve(context.Background(), w.snapshot(t), olm.Options{AllOrNothing: true}); err != nil || brokenBefore(&w) {
			return
		}
		compared++
		g, err := olm.Resolve(context.Background(), w.snapshot(t), olm.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, slot := range g.Slots {
			if slot.Outcome == olm.NotInstalled {
				t.Fatalf("%s\n%s\n%s", &slot, g, &w)
			}
		}
	})
	t.Logf("%d compared", compared)
}

// TestSequenceEnds: every world comes to rest, by legal steps, and its input is
// left alone.
func TestSequenceEnds(t *testing.T) {
	steps := 0
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, worldOptions{disorder: true, labels: true, starting: true, mild: true, channels: rapid.Bool().Draw(t, "channels")})
		s := w.snapshot(t)
		text := func() string {
			data, err := json.Marshal([]any{s.Subscriptions, s.Installed, s.OperatorGroups})
			if err != nil {
				t.Fatal(err)
			}
			return string(data)
		}
		before := text()
		o := olm.Options{Greedy: rapid.Bool().Draw(t, "greedy")}
		generations, err := olm.Sequence(context.Background(), s, o)
		if err != nil {
			t.Fatalf("%v\n%s", err, &w)
		}
		if text() != before {
			t.Fatal("the snapshot was changed")
		}
		for _, g := range generations {
			for _, err := range validate(s, g) {
				t.Fatalf("%v\n%s\n%s", err, g, &w)
			}
			if s, err = olm.Apply(s, g); err != nil {
				t.Fatal(err)
			}
			steps++
		}
	})
	t.Logf("%d steps", steps)
}
