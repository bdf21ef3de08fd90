package olm_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/olm"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
)

// adversary is a catalog made to be hard, with Subscriptions to it.
type adversary struct {
	name  string
	lines func(entries int) (lines []string, subs []string)
	// served is how many of the Subscriptions can be satisfied.
	served func(subs int) int
}

func everything(n int) int { return n }

// layers are packages of twenty versions; each version needs the next package at its
// own version, five deep. With one way through, only the oldest version of the last
// layer is there: every version but the first fails, deep down.
func layers(oneWay bool) func(entries int) (lines, subs []string) {
	const versions, depth = 20, 5
	return func(entries int) (lines, subs []string) {
		packages := entries / versions
		if oneWay {
			packages = packages / depth * depth
		}
		for p := range packages {
			for v := 1; v <= versions; v++ {
				line := fmt.Sprintf("p%04d.v%d P%dV%d", p, v, p, v)
				if v > 1 {
					line += fmt.Sprintf(" >p%04d.v%d", p, v-1)
				}
				switch {
				case p%depth != depth-1 && p+1 < packages:
					line += fmt.Sprintf(" -P%dV%d", p+1, v)
				case oneWay && v > 1:
					line += " -Missing"
				}
				lines = append(lines, line)
			}
		}
		for p := 0; p < packages && len(subs) < 20; p += depth {
			subs = append(subs, fmt.Sprintf("p%04d", p))
		}
		return lines, subs
	}
}

// needs is operators each of which needs another one.
func needs(next func(i, entries int) int, subs ...string) func(entries int) ([]string, []string) {
	return func(entries int) ([]string, []string) {
		var lines []string
		for i := range entries {
			lines = append(lines, fmt.Sprintf("p%04d.v1 A%d -A%d", i, i, next(i, entries)))
		}
		return lines, subs
	}
}

func adversaries() []adversary {
	return []adversary{
		{name: "layers", served: everything, lines: layers(false)},
		{name: "layers with one way through", served: everything, lines: layers(true)},
		{name: "one deep chain", served: everything, lines: needs(func(i, entries int) int { return min(i+1, entries-1) }, "p0000")},
		{name: "a deep chain that breaks at its end", served: func(int) int { return 0 }, lines: needs(func(i, _ int) int { return i + 1 }, "p0000")},
		{name: "a ring", served: everything, lines: needs(func(i, entries int) int { return (i + 1) % entries }, "p0000", "p0001")},
		{
			name: "wide alternatives of which the last works",
			lines: func(entries int) (lines, subs []string) {
				for i := range entries - 1 {
					need := "-Missing"
					if i == entries-2 {
						need = ""
					}
					lines = append(lines, fmt.Sprintf("p%04d.v1 A %s", i, need))
				}
				return append(lines, "s.v1 -A"), []string{"s"}
			},
			served: everything,
		},
		{
			name: "one long channel of which the oldest works",
			lines: func(entries int) (lines, subs []string) {
				lines = append(lines, "p.v1")
				for i := 2; i <= entries; i++ {
					lines = append(lines, fmt.Sprintf("p.v%d -Missing >p.v%d", i, i-1))
				}
				return lines, []string{"p"}
			},
			served: everything,
		},
		{
			// Subscriptions whose heads all exclude each other by one API, while
			// their older versions do not.
			name: "rivals",
			lines: func(entries int) (lines, subs []string) {
				for i := range entries / 2 {
					p := fmt.Sprintf("p%04d", i)
					lines = append(lines, p+".v1", p+".v2 Y >"+p+".v1")
					subs = append(subs, p)
				}
				return lines, subs
			},
			served: everything,
		},
		{
			// Subscriptions in pairs of which only one can be served, whichever
			// of its versions it takes.
			name: "pairs",
			lines: func(entries int) (lines, subs []string) {
				for i := range entries / 6 {
					for _, side := range []string{"a", "b"} {
						p := fmt.Sprintf("%s%04d", side, i)
						for v := 1; v <= 3; v++ {
							lines = append(lines, fmt.Sprintf("%s.v%d Y%d", p, v, i))
						}
						lines[len(lines)-1] += " >" + p + ".v2"
						lines[len(lines)-2] += " >" + p + ".v1"
						subs = append(subs, p)
					}
				}
				return lines, subs
			},
			served: func(subs int) int { return subs / 2 },
		},
		{
			// Grid of choices: each Subscription needs one of ten providers in each
			// of ten layers, and those of a layer exclude each other, so all must
			// agree; all but the last of each layer lead to a dead end.
			name: "agreement",
			lines: func(entries int) (lines, subs []string) {
				layers := entries / 20
				for l := range layers {
					for i := range 20 {
						need := fmt.Sprintf("-L%d", l+1)
						switch {
						case i < 19:
							need += fmt.Sprintf(" -D%d", l) // provided by a rival in the same layer only
						case l == layers-1:
							need = ""
						}
						lines = append(lines, fmt.Sprintf("q%03d-%02d.v1 L%d X%d %s", l, i, l, l, need))
					}
					lines = append(lines, fmt.Sprintf("r%03d.v1 D%d X%d", l, l, l))
				}
				for i := range 10 {
					lines = append(lines, fmt.Sprintf("s%d.v1 -L0", i))
					subs = append(subs, fmt.Sprintf("s%d", i))
				}
				return lines, subs
			},
			served: everything,
		},
	}
}

func (a *adversary) snapshot(t testing.TB, entries int) olm.Snapshot {
	lines, names := a.lines(entries)
	var subs []olmapi.Subscription
	for _, n := range names {
		subs = append(subs, sub(n, ""))
	}
	return snapshot(contents(lines...), nil, subs...)
}

// TestAdversaries: hard catalogs meet few conflicts.
func TestAdversaries(t *testing.T) {
	entries := 2000
	if israce.Enabled {
		entries = 500
	}
	for _, a := range adversaries() {
		t.Run(a.name, func(t *testing.T) {
			s := a.snapshot(t, entries)
			g := resolveValid(t, s, olm.Options{MaxConflicts: 500})
			for _, h := range g.HeldBack {
				if limit := (*olm.LimitError)(nil); errors.As(h.Err, &limit) {
					t.Error(limit)
				}
			}
			served := 0
			for _, slot := range g.Slots {
				if slot.Outcome == "AddedForSubscription" {
					served++
				}
			}
			if want := a.served(len(s.Subscriptions)); served != want {
				t.Errorf("%d Subscriptions served, want %d", served, want)
			}
			strict, err := olm.Resolve(context.Background(), s, olm.Options{AllOrNothing: true, MaxConflicts: 2000})
			if served < len(s.Subscriptions) {
				if unsat := (*olm.NotSatisfiable)(nil); !errors.As(err, &unsat) {
					t.Errorf("error %v, want NotSatisfiable", err)
				}
				return
			}
			checktest.OK(t, err)
			if len(strict.Operators) < served {
				t.Errorf("all or nothing: %d operators", len(strict.Operators))
			}
		})
	}
}

// pigeons asks n Subscriptions to share n-1 places. No resolution proof of that
// is short.
func pigeons(t testing.TB, n int) olm.Snapshot {
	var lines []string
	var subs []olmapi.Subscription
	for i := range n {
		lines = append(lines, fmt.Sprintf("s%02d.v1 -label=l%d", i, i))
		subs = append(subs, sub(fmt.Sprintf("s%02d", i), ""))
		for j := range n - 1 {
			lines = append(lines, fmt.Sprintf("p%02d-%02d.v1 label=l%d Place%d", i, j, i, j))
		}
	}
	return snapshot(contents(lines...), nil, subs...)
}

func TestLimit(t *testing.T) {
	s := pigeons(t, 14)
	_, err := olm.Resolve(context.Background(), s, olm.Options{AllOrNothing: true, MaxConflicts: 1000})
	if limit := (*olm.LimitError)(nil); !errors.As(err, &limit) || limit.Max != 1000 || limit.Where != "" {
		t.Errorf("error %v, want a LimitError of 1000", err)
	}
	if _, err := olm.Resolve(context.Background(), s, olm.Options{MaxConflicts: -1}); err == nil || !strings.Contains(err.Error(), "MaxConflicts is negative") {
		t.Errorf("error %v, want that MaxConflicts is negative", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, o := range []olm.Options{{}, {AllOrNothing: true}} {
		if _, err := olm.Resolve(ctx, s, o); !errors.Is(err, context.Canceled) {
			t.Errorf("%+v: error %v, want Canceled", o, err)
		}
	}
	g := resolveValid(t, pigeons(t, 6), olm.Options{})
	if len(g.HeldBack) == 0 || len(g.Operators) != 10 {
		t.Errorf("six Subscriptions for five places: %d operators\n%s", len(g.Operators), g)
	}
}

// TestGiveUp: what is too hard for one Subscription holds back that one alone.
func TestGiveUp(t *testing.T) {
	s := pigeons(t, 14)
	c := contents("easy.v2 >easy.v1", "easy.v1", "zeal.v1 -Helper", "help.v1 Helper")
	s.Catalogs = append(s.Catalogs, olm.SnapshotCatalog{Key: types.NamespacedName{Namespace: ns, Name: "easy"}, Contents: c})
	s.Subscriptions = append(s.Subscriptions, sub("easy", "easy.v1", source("easy", ns)), sub("zeal", "", source("easy", ns)))
	s.Installed = append(s.Installed, installed("easy.v1")...)

	o := olm.Options{MaxConflicts: 1000}
	g := resolveValid(t, s, o)
	given := map[string]string{}
	for _, h := range g.HeldBack {
		if limit := (*olm.LimitError)(nil); errors.As(h.Err, &limit) {
			given[h.Subscription] = limit.Error()
		}
	}
	if want := map[string]string{"s13": "gave up on subscription s13: more than 1000 conflicts (limit MaxConflicts)"}; !maps.Equal(given, want) {
		t.Errorf("gave up on %v, want %v", given, want)
	}
	if got := len(g.Operators); got != 2*13+3 {
		t.Errorf("%d operators, want 13 with their places, easy.v2, zeal.v1 and help.v1:\n%s", got, g)
	}
	for name, want := range map[string]string{"easy": "updated easy.v1 to easy.v2", "zeal": "added zeal.v1"} {
		e, err := g.Explain(context.Background(), name)
		if err != nil || !strings.HasPrefix(e.Text, want) {
			t.Errorf("%s: %v, %v", name, e, err)
		}
	}
	e := checktest.Get(g.Explain(context.Background(), "s13"))(t)
	const want = "nothing for subscription s13\n" +
		"  gave up on subscription s13: more than 1000 conflicts (limit MaxConflicts)\n" +
		"  s13.v1 not taken\n" +
		"    more than 1000 conflicts (limit MaxConflicts)\n"
	if got := e.String(); !strings.HasPrefix(got, want) {
		t.Errorf("explanation:\n%s\nwant\n%s", got, want)
	}
	if again := resolveValid(t, s, o); again.String() != g.String() {
		t.Errorf("the same input gives\n%s\nand\n%s", g, again)
	}
}

func BenchmarkAdversaries(b *testing.B) {
	for _, a := range adversaries() {
		for _, n := range []int{2000, 6000} {
			b.Run(fmt.Sprintf("%s/search/%d", a.name, n), func(b *testing.B) {
				s := a.snapshot(b, n)
				b.ReportAllocs()
				for b.Loop() {
					checktest.OK(b, checktest.Err(olm.Resolve(context.Background(), s, olm.Options{})))
				}
			})
		}
	}
}

func BenchmarkLimit(b *testing.B) {
	s := pigeons(b, 30)
	b.ReportAllocs()
	for b.Loop() {
		_, err := olm.Resolve(context.Background(), s, olm.Options{AllOrNothing: true})
		if limit := (*olm.LimitError)(nil); !errors.As(err, &limit) {
			b.Fatal(err)
		}
	}
}

// TestExplainLongChannel: thousands of options are explained in one go.
func TestExplainLongChannel(t *testing.T) {
	var lines []string
	for v := 1; v <= 1000; v++ {
		line := fmt.Sprintf("p.v%d", v)
		if v > 1 {
			line += fmt.Sprintf(" -Missing >p.v%d", v-1)
		}
		lines = append(lines, line)
	}
	g := resolve(t, snapshot(contents(lines...), nil, sub("p", "")), olm.Options{})
	e := checktest.Get(g.Explain(context.Background(), "p"))(t)
	if got := len(e.Children); got != 1000 { // and that p.v1 is the first that can be
		t.Errorf("%d reasons", got)
	}
	if got, want := e.Children[999].Line(), "p.v2 not taken: p.v2 requires Missing (g/v1), which nothing provides"; got != want {
		t.Errorf("last reason %q, want %q", got, want)
	}
}

// BenchmarkConflict has the failure whose explanation is as long as can be.
func BenchmarkConflict(b *testing.B) {
	for _, n := range []int{200, 2000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for _, a := range adversaries() {
				if a.name != "a deep chain that breaks at its end" {
					continue
				}
				s := a.snapshot(b, n)
				b.ReportAllocs()
				for b.Loop() {
					_, err := olm.Resolve(context.Background(), s, olm.Options{AllOrNothing: true})
					if unsat := (*olm.NotSatisfiable)(nil); !errors.As(err, &unsat) || len(unsat.Facts) < n {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
