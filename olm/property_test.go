package olm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/olm"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
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
				s := w.snapshot()
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
		r.elements = append(r.elements, element{OperatorLine: parseOperator(line), catalog: -1})
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
// one more, and none gives one Subscription more with the others as they are.
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
		option := func(set uint, i int) int {
			for k, c := range r.subs[i].candidates {
				if set>>c&1 == 1 {
					return k
				}
			}
			return len(r.subs[i].candidates)
		}
		set, _ := r.generation()
		g := checktest.Get(olm.Resolve(context.Background(), w.snapshot(), olm.Options{}))(t)
		if members(g) != r.names(set) {
			t.Fatalf("generation %q, want %q", members(g), r.names(set))
		}
		for _, x := range r.sets {
			if a, b := served(set), served(x); a != b && a&b == a {
				t.Fatalf("generation %q serves %b, but %q serves %b\n%s", members(g), a, r.names(x), b, &w)
			}
			raised, others := 0, 0
			for i := range r.subs {
				switch a, b := option(set, i), option(x, i); {
				case b < a:
					raised++
				case b > a:
					others++
				}
			}
			if raised == 1 && others == 0 {
				t.Fatalf("generation %q, but %q gives one more\n%s", members(g), r.names(x), &w)
			}
		}
	})
}

// TestOrderOfInput: how the input is sorted plays no part, in no mode.
func TestOrderOfInput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, worldOptions{disorder: true, deprecated: true, starting: true, labels: true})
		o := rapid.SampledFrom([]olm.Options{{}, {AllOrNothing: true}}).Draw(t, "options")
		text := func(w *world) string {
			g, err := olm.Resolve(context.Background(), w.snapshot(), o)
			if err != nil {
				return err.Error()
			}
			var b strings.Builder
			b.WriteString(g.String())
			for _, op := range g.Operators {
				fmt.Fprintln(&b, op.Name, op.Catalog, op.Replaces, op.StartingCSV)
			}
			for _, n := range g.NewSubscriptions {
				fmt.Fprintln(&b, n.Name)
			}
			for i := range g.HeldBack {
				e := checktest.Get(g.Why(context.Background(), &g.HeldBack[i]))(t)[0]
				b.WriteString(e.String())
			}
			return b.String()
		}
		other := world{
			catalogs:  rapid.Permutation(w.catalogs).Draw(t, "catalogs"),
			installed: rapid.Permutation(w.installed).Draw(t, "installed"),
			subs:      rapid.Permutation(w.subs).Draw(t, "subscriptions"),
		}
		for i := range other.catalogs {
			other.catalogs[i].lines = rapid.Permutation(other.catalogs[i].lines).Draw(t, "lines")
		}
		if diff := cmp.Diff(text(&w), text(&other)); diff != "" {
			t.Fatalf("%s\n%s\n%s", diff, &w, &other)
		}
	})
}

// TestPhases: updates that are in progress or failed in whatever way leave a
// generation that keeps its promises, and can be explained.
func TestPhases(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, worldOptions{disorder: true, deprecated: true, starting: true, labels: true, channels: rapid.Bool().Draw(t, "channels")})
		s := w.snapshot()
		for i := range s.Installed {
			csv := &s.Installed[i]
			csv.Status.Phase = rapid.SampledFrom([]string{olmapi.CSVPhaseSucceeded, olmapi.CSVPhaseReplacing, olmapi.CSVPhaseDeleting, olmapi.CSVPhaseFailed}).Draw(t, "phase")
			csv.Spec.Replaces = s.Installed[rapid.IntRange(0, len(s.Installed)-1).Draw(t, "replaces")].Name
		}
		if rapid.Bool().Draw(t, "fail forward") {
			s.OperatorGroups[0].Spec.UpgradeStrategy = "TechPreviewUnsafeFailForward"
		}
		var o olm.Options
		g, err := olm.Resolve(context.Background(), s, o)
		if prevented := (*olm.Prevented)(nil); errors.As(err, &prevented) {
			return // by a chain of replacements in disorder
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, &w)
		}
		for _, u := range g.InProgress {
			for _, slot := range g.Slots {
				for _, name := range u.Subscriptions {
					if slices.Contains(slot.Subscriptions, name) && slot.Operator != nil {
						t.Fatalf("%s waits for %s to go\n%s\n%s", name, u.Old, g, &w)
					}
				}
			}
		}
		for _, slot := range g.Slots {
			for _, name := range slot.Subscriptions {
				if _, err := g.Explain(context.Background(), name); err != nil {
					t.Fatalf("%v\n%s\n%s", err, g, &w)
				}
			}
		}
		if _, err := olm.Sequence(context.Background(), s, o); err != nil {
			if prevented := (*olm.Prevented)(nil); !errors.As(err, &prevented) {
				t.Fatalf("%v\n%s", err, &w)
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
		_, err := olm.Resolve(context.Background(), w.snapshot(), olm.Options{AllOrNothing: true})
		var unsat *olm.NotSatisfiable
		if !errors.As(err, &unsat) {
			return
		}
		if len(unsat.Facts) == 0 {
			t.Fatalf("no facts\n%s", &w)
		}
		seen := map[string]bool{}
		for _, set := range append([][]olm.Fact{unsat.Facts}, unsat.Others...) {
			for _, f := range set {
				key := fmt.Sprint(f.Kind, f.Subscription, f.Member, f.Message)
				if len(set) == 0 || seen[key] {
					t.Fatalf("%q is in two sets: %v\n%s", f.Message, err, &w)
				}
				seen[key] = true
			}
		}
		for _, f := range unsat.Facts {
			without := w
			switch f.Kind {
			case "Subscription":
				i := slices.IndexFunc(w.subs, func(s olmapi.Subscription) bool { return s.Name == f.Subscription })
				if slices.ContainsFunc(w.installed, func(l string) bool { return strings.Fields(l)[0] == w.subs[i].Status.InstalledCSV }) {
					continue // its operator would become freestanding
				}
				without.subs = slices.Delete(slices.Clone(w.subs), i, i+1)
			case "Deprecated":
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
			_, again := olm.Resolve(context.Background(), without.snapshot(), olm.Options{AllOrNothing: true})
			var other *olm.NotSatisfiable
			if !errors.As(again, &other) {
				solved++
				continue
			}
			// There is another contradiction; it must not be in the same facts.
			inside := true
			for _, o := range other.Facts {
				same := func(x olm.Fact) bool { return x.Message == o.Message && x.Member == o.Member }
				inside = inside && !same(f) && slices.ContainsFunc(unsat.Facts, same)
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
		g := checktest.Get(olm.Resolve(context.Background(), w.snapshot(), olm.Options{}))(t)
		for i := range g.HeldBack {
			e, err := whyOrExplain(g, &g.HeldBack[i])
			if err != nil {
				t.Fatalf("%v\n%s", err, &w)
			}
			explained++
			for _, c := range e.Children {
				if strings.HasSuffix(c.Text, " not taken") && len(c.Children) == 0 {
					t.Fatalf("no reason for %q:\n%s\n%s\n%s", c.Text, e, g, &w)
				}
			}
			for _, x := range e.Remedies {
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
		if _, err := olm.Resolve(context.Background(), w.snapshot(), olm.Options{AllOrNothing: true}); err != nil || brokenBefore(&w) {
			return
		}
		compared++
		g := checktest.Get(olm.Resolve(context.Background(), w.snapshot(), olm.Options{}))(t)
		for _, slot := range g.Slots {
			if slot.Outcome == "NotInstalled" {
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
		s := w.snapshot()
		text := func() string {
			data := checktest.Get(json.Marshal([]any{s.Subscriptions, s.Installed, s.OperatorGroups}))(t)
			return string(data)
		}
		before := text()
		var o olm.Options
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
			if s, err = s.Apply(g); err != nil {
				t.Fatal(err)
			}
			steps++
		}
	})
	t.Logf("%d steps", steps)
}

// TestLittleEffort: a search that may meet one conflict for each choice still
// comes to a generation that keeps its promises, and says what it gave up on.
func TestLittleEffort(t *testing.T) {
	gaveUp := 0
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, worldOptions{deprecated: true, starting: true, labels: true})
		s := w.snapshot()
		g, err := olm.Resolve(context.Background(), s, olm.Options{MaxConflicts: 1})
		if err != nil {
			t.Fatalf("%v\n%s", err, &w)
		}
		full := checktest.Get(olm.Resolve(context.Background(), s, olm.Options{}))(t)
		gave := false
		for i := range g.HeldBack {
			h := &g.HeldBack[i]
			if limit := (*olm.LimitError)(nil); errors.As(h.Err, &limit) {
				gave = true
				if limit.What == "" || len(h.NotTaken) == 0 {
					t.Fatalf("%+v\n%s", h, &w)
				}
			}
			if _, err := g.Why(context.Background(), h); err != nil {
				t.Fatalf("%v\n%s", err, &w)
			}
		}
		if gave {
			gaveUp++
		} else if slots(g) != slots(full) {
			t.Fatalf("gave up on nothing:\n%s\nwant\n%s\n%s", g, full, &w)
		}
	})
	t.Logf("gave up in %d worlds", gaveUp)
}

// TestCoresAreMinimal: of what an explanation rests on nothing can be left out.
func TestCoresAreMinimal(t *testing.T) {
	total := 0
	rapid.Check(t, func(t *rapid.T) {
		for range 10 {
			w := drawWorld(t, worldOptions{disorder: true, deprecated: true, starting: true, labels: true})
			sets, redundant, err := olm.RedundantFacts(context.Background(), w.snapshot(), olm.Options{AllOrNothing: rapid.Bool().Draw(t, "all or nothing")})
			if prevented := (*olm.Prevented)(nil); err != nil && !errors.As(err, &prevented) {
				t.Fatal(err)
			}
			if len(redundant) > 0 {
				t.Fatalf("can be left out: %v\n%s", redundant, &w)
			}
			total += sets
		}
	})
	if total < 800 {
		t.Errorf("there were only %d sets", total)
	}
	t.Logf("%d sets of facts", total)
}

// whyOrExplain explains a Subscription by Explain, and a requirement by Why.
func whyOrExplain(g *olm.Generation, h *olm.HeldBack) (*olm.Explanation, error) {
	if h.Subscription != "" {
		return g.Explain(context.Background(), h.Subscription)
	}
	all, err := g.Why(context.Background(), h)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}
