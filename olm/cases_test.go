package olm_test

import (
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/olm"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

// TestExamples runs constructed cases through all three modes. Where only want
// is given all agree. An unsatisfiable case is written "error", an empty
// generation "nothing".
func TestExamples(t *testing.T) {
	key := func(namespace, name string) types.NamespacedName {
		return types.NamespacedName{Namespace: namespace, Name: name}
	}
	for _, tc := range []struct {
		name         string
		installed    []string
		subs         []olm.Subscription
		catalog      []string
		more         map[types.NamespacedName]int // priorities of further catalogs
		lines        map[types.NamespacedName][]string
		want         string
		greedy       string
		allOrNothing string
		newSubs      string
	}{
		{
			name:      "an API that an installed operator depends on is not taken away",
			installed: []string{"a.v1 A -B", "b.v1 B"},
			subs:      []olm.Subscription{sub("a", "a.v1"), sub("b", "b.v1")},
			catalog:   []string{"a.v1 A -B", "b.v1 B", "b.v2 C >b.v1"},
			want:      "a.v1 b.v1",
		},
		{
			name:      "the same with a freestanding dependant",
			installed: []string{"a.v1 A -B", "b.v1 B"},
			subs:      []olm.Subscription{sub("b", "b.v1")},
			catalog:   []string{"a.v1 A -B", "b.v1 B", "b.v2 C >b.v1"},
			want:      "a.v1 b.v1",
		},
		{
			name:      "another provider frees the update",
			installed: []string{"a.v1 A -B", "b.v1 B"},
			subs:      []olm.Subscription{sub("a", "a.v1"), sub("b", "b.v1")},
			catalog:   []string{"a.v1 A -B", "b.v1 B", "b.v2 C >b.v1", "x.v1 B"},
			want:      "a.v1 b.v2 x.v1",
			newSubs:   "x-stable-c-olm",
		},
		{
			name:      "another provider frees the update beside a freestanding dependant",
			installed: []string{"a.v1 A -B", "b.v1 B"},
			subs:      []olm.Subscription{sub("b", "b.v1")},
			catalog:   []string{"a.v1 A -B", "b.v1 B", "b.v2 C >b.v1", "x.v1 B"},
			want:      "a.v1 b.v2 x.v1",
			newSubs:   "x-stable-c-olm",
		},
		{
			name:      "once the dependant follows both go in one step",
			installed: []string{"a.v1 A -B", "b.v1 B"},
			subs:      []olm.Subscription{sub("a", "a.v1"), sub("b", "b.v1")},
			catalog:   []string{"a.v1 A -B", "a.v2 A -C >a.v1", "b.v1 B", "b.v2 C >b.v1"},
			want:      "a.v2 b.v2",
		},
		{
			name:      "version deadlock",
			installed: []string{"a.v1 A -B", "b.v1 B -A"},
			subs:      []olm.Subscription{sub("a", "a.v1"), sub("b", "b.v1")},
			catalog:   []string{"a.v1 A -B", "b.v1 B -A", "a.v2 A2 -B2 >a.v1", "b.v2 B2 -A2 >b.v1"},
			want:      "a.v2 b.v2",
		},
		{
			name:      "version deadlock with one half published",
			installed: []string{"a.v1 A -B", "b.v1 B -A"},
			subs:      []olm.Subscription{sub("a", "a.v1"), sub("b", "b.v1")},
			catalog:   []string{"a.v1 A -B", "b.v1 B -A", "a.v2 A2 -B2 >a.v1"},
			want:      "a.v1 b.v1",
		},
		{
			name:    "1 cyclic requirement",
			subs:    []olm.Subscription{sub("a", "")},
			catalog: []string{"a.v1 A -B", "b.v1 B -A"},
			want:    "a.v1 b.v1",
			newSubs: "b-stable-c-olm",
		},
		{
			name:    "2 the version that fits",
			subs:    []olm.Subscription{sub("a", "")},
			catalog: []string{"a.v1 A -B", "b.v1 B -A", "a.v2 A2 -B2 >a.v1", "b.v2 B2 -A2 >b.v1"},
			want:    "a.v2 b.v2",
			newSubs: "b-stable-c-olm",
		},
		{
			name:      "3 ring of three",
			installed: []string{"a.v1 A -B", "b.v1 B -D", "d.v1 D -A"},
			subs:      []olm.Subscription{sub("a", "a.v1"), sub("b", "b.v1"), sub("d", "d.v1")},
			catalog:   []string{"a.v2 A2 -B2 >a.v1", "b.v2 B2 -D2 >b.v1", "d.v2 D2 -A2 >d.v1"},
			want:      "a.v2 b.v2 d.v2",
		},
		{
			name:      "4 broken ring of three",
			installed: []string{"a.v1 A -B", "b.v1 B -D", "d.v1 D -A"},
			subs:      []olm.Subscription{sub("a", "a.v1"), sub("b", "b.v1"), sub("d", "d.v1")},
			catalog:   []string{"a.v2 A2 -B2 >a.v1", "b.v2 B2 -D2 >b.v1", "d.v1 D -A"},
			want:      "a.v1 b.v1 d.v1",
		},
		{
			name:      "5 an API moves",
			installed: []string{"a.v1 K", "b.v1 -K"},
			subs:      []olm.Subscription{sub("a", "a.v1"), sub("b", "b.v1")},
			catalog:   []string{"a.v2 >a.v1", "b.v2 K >b.v1"},
			want:      "a.v2 b.v2",
		},
		{
			name:      "6 an API cannot move",
			installed: []string{"a.v1 K", "b.v1 -K"},
			subs:      []olm.Subscription{sub("a", "a.v1"), sub("b", "b.v1")},
			catalog:   []string{"a.v2 >a.v1", "b.v2 K -Q >b.v1"},
			want:      "a.v1 b.v1",
		},
		{
			name:      "7 one stuck operator does not stop another",
			installed: []string{"a.v1 A", "b.v1 B"},
			subs:      []olm.Subscription{sub("a", "a.v1"), sub("b", "b.v1")},
			catalog:   []string{"a.v2 A >a.v1", "b.v2 B -Q >b.v1"},
			want:      "a.v2 b.v1",
		},
		{
			name:    "8 an older provider",
			subs:    []olm.Subscription{sub("a", "")},
			catalog: []string{"a.v1 -K", "k.v1 K", "k.v2 >k.v1"},
			want:    "a.v1 k.v1",
			newSubs: "k-stable-c-olm",
		},
		{
			name:      "9 an installed provider serves",
			installed: []string{"k.v1 K"},
			subs:      []olm.Subscription{sub("a", "")},
			catalog:   []string{"a.v1 -K", "k.v1 K", "k.v2 K >k.v1"},
			want:      "a.v1 k.v1",
		},
		{
			name:         "10 only an older version has it",
			installed:    []string{"k.v2 L"},
			subs:         []olm.Subscription{sub("a", ""), sub("k", "k.v2")},
			catalog:      []string{"a.v1 -K", "k.v1 K", "k.v2 L >k.v1"},
			want:         "k.v2",
			allOrNothing: "error",
		},
		{
			name:      "11 a third has it",
			installed: []string{"k.v2 L"},
			subs:      []olm.Subscription{sub("a", ""), sub("k", "k.v2")},
			catalog:   []string{"a.v1 -K", "k.v1 K", "k.v2 L >k.v1", "z.v1 K"},
			want:      "a.v1 k.v2 z.v1",
			newSubs:   "z-stable-c-olm",
		},
		{
			name:         "12 what is left of a failed wish is pruned",
			installed:    []string{"a.v1"},
			subs:         []olm.Subscription{sub("a", "a.v1"), sub("n", "")},
			catalog:      []string{"a.v1", "a.v2 >a.v1", "n.v1 -K -Q", "k.v1 K"},
			want:         "a.v2",
			allOrNothing: "error",
		},
		{
			name:      "13 updates that exclude each other",
			installed: []string{"a.v1 X", "b.v1 Z"},
			subs:      []olm.Subscription{sub("a", "a.v1"), sub("b", "b.v1")},
			catalog:   []string{"a.v2 X Y >a.v1", "b.v2 Z Y >b.v1"},
			want:      "a.v2 b.v1",
		},
		{
			name:    "14 the own catalog beats priority",
			subs:    []olm.Subscription{sub("a", "")},
			catalog: []string{"a.v1 -K", "kc.v1 K"},
			more:    map[types.NamespacedName]int{key("olm", "hi"): 100},
			lines:   map[types.NamespacedName][]string{key("olm", "hi"): {"kh.v1 K"}},
			want:    "a.v1 kc.v1",
			newSubs: "kc-stable-c-olm",
		},
		{
			name:    "15 priority beats namespace",
			subs:    []olm.Subscription{sub("a", "")},
			catalog: []string{"a.v1 -K"},
			more:    map[types.NamespacedName]int{key(ns, "lo"): -5, key(ns, "z0"): 0, key("olm", "g10"): 10},
			lines:   map[types.NamespacedName][]string{key(ns, "lo"): {"klo.v1 K"}, key(ns, "z0"): {"kz0.v1 K"}, key("olm", "g10"): {"kg10.v1 K"}},
			want:    "a.v1 kg10.v1",
			newSubs: "kg10-stable-g10-olm",
		},
		{
			name:    "15 namespace beats name",
			subs:    []olm.Subscription{sub("a", "")},
			catalog: []string{"a.v1 -K"},
			more:    map[types.NamespacedName]int{key(ns, "z0"): 10, key("olm", "g10"): 10},
			lines:   map[types.NamespacedName][]string{key(ns, "z0"): {"kz0.v1 K"}, key("olm", "g10"): {"kg10.v1 K"}},
			want:    "a.v1 kz0.v1",
			newSubs: "kz0-stable-z0-" + ns,
		},
		{
			name:    "15 name decides last",
			subs:    []olm.Subscription{sub("a", "")},
			catalog: []string{"a.v1 -K"},
			more:    map[types.NamespacedName]int{key("olm", "g2"): 0, key("olm", "g10"): 0},
			lines:   map[types.NamespacedName][]string{key("olm", "g2"): {"kg2.v1 K"}, key("olm", "g10"): {"kg10.v1 K"}},
			want:    "a.v1 kg10.v1",
			newSubs: "kg10-stable-g10-olm",
		},
		{
			name:    "16 a bundle satisfies itself",
			subs:    []olm.Subscription{sub("a", "")},
			catalog: []string{"a.v1 K -K"},
			want:    "a.v1",
		},
		{
			name:         "17 broken before",
			installed:    []string{"z.v1 -Q"},
			subs:         []olm.Subscription{sub("a", "")},
			catalog:      []string{"a.v1"},
			want:         "a.v1 z.v1",
			allOrNothing: "error",
		},
		{
			name:    "18 the next provider if the first has unmet needs",
			subs:    []olm.Subscription{sub("n", "")},
			catalog: []string{"n.v1 -K", "p.v1 K -Q", "q.v1 K"},
			want:    "n.v1 q.v1", greedy: "nothing",
			newSubs: "q-stable-c-olm",
		},
		{
			name:      "19 one's head does not cost another the whole update",
			installed: []string{"a.v1", "b.v1"},
			subs:      []olm.Subscription{sub("a", "a.v1"), sub("b", "b.v1")},
			catalog:   []string{"a.v2 >a.v1", "a.v3 Y >a.v2 range=<3.0.0", "b.v2 Y >b.v1"},
			want:      "a.v2 b.v2", greedy: "a.v3 b.v1", allOrNothing: "a.v3 b.v1",
		},
		{
			name:      "20 a new Subscription is served before an update",
			installed: []string{"a.v1"},
			subs:      []olm.Subscription{sub("a", "a.v1"), sub("n", "")},
			catalog:   []string{"a.v2 Y >a.v1", "n.v1 Y"},
			want:      "a.v1 n.v1", greedy: "a.v2",
		},
		{
			name:    "requirements of Subscriptions come before those of others",
			subs:    []olm.Subscription{sub("a", ""), sub("b", "")},
			catalog: []string{"a.v1 -K", "b.v1 -L", "m.v1 L", "n.v1 K L"},
			want:    "a.v1 b.v1 n.v1",
			newSubs: "n-stable-c-olm",
		},
		{
			name:      "a straight edge jumps over versions",
			installed: []string{"a.v1"},
			subs:      []olm.Subscription{sub("a", "a.v1")},
			catalog:   []string{"a.v1", "a.v2 >a.v1", "a.v3 >a.v2 range=<3.0.0"},
			want:      "a.v3",
		},
		{
			name:      "the next entry if the head cannot be",
			installed: []string{"a.v1"},
			subs:      []olm.Subscription{sub("a", "a.v1")},
			catalog:   []string{"a.v1", "a.v2 >a.v1", "a.v3 -Q >a.v2 range=<3.0.0"},
			want:      "a.v2", greedy: "a.v1",
		},
		{
			name:      "one edge a time",
			installed: []string{"a.v1"},
			subs:      []olm.Subscription{sub("a", "a.v1")},
			catalog:   []string{"a.v1", "a.v2 >a.v1", "a.v3 >a.v2"},
			want:      "a.v2",
		},
		{
			name:    "an older entry for a new Subscription",
			subs:    []olm.Subscription{sub("a", "")},
			catalog: []string{"a.v1", "a.v2 -Q >a.v1"},
			want:    "a.v1", greedy: "nothing",
		},
		{
			name:    "who is there already satisfies further requirements",
			subs:    []olm.Subscription{sub("a", ""), sub("b", "")},
			catalog: []string{"a.v1 -label=l -M -label=m", "aa.v1 label=l", "ab.v1 label=m", "b.v1 label=l", "m.v1 M label=m"},
			want:    "a.v1 b.v1 m.v1",
			newSubs: "m-stable-c-olm",
		},
		{
			name:    "deprecated entries are never taken for a requirement",
			subs:    []olm.Subscription{sub("a", "")},
			catalog: []string{"a.v1 -K", "k.v1 K deprecated", "m.v1 K"},
			want:    "a.v1 m.v1",
			newSubs: "m-stable-c-olm",
		},
		{
			name:      "an API cannot move from under a freestanding dependant",
			installed: []string{"a.v1 K", "b.v1 -K"},
			subs:      []olm.Subscription{sub("a", "a.v1")},
			catalog:   []string{"a.v2 >a.v1", "b.v2 K >b.v1"},
			want:      "a.v1 b.v1",
		},
		{
			name:      "two that do not touch each other go beside one that touches both",
			installed: []string{"a.v1", "b.v1", "d.v1"},
			subs:      []olm.Subscription{sub("a", "a.v1"), sub("b", "b.v1"), sub("d", "d.v1")},
			catalog:   []string{"a.v2 Y >a.v1", "b.v2 Y Z >b.v1", "d.v2 Z >d.v1"},
			want:      "a.v2 b.v1 d.v2",
		},
		{
			name:      "an earlier one wins against two later ones",
			installed: []string{"a.v1", "b.v1", "d.v1"},
			subs:      []olm.Subscription{sub("a", "a.v1"), sub("b", "b.v1"), sub("d", "d.v1")},
			catalog:   []string{"a.v2 Y Z >a.v1", "b.v2 Y >b.v1", "d.v2 Z >d.v1"},
			want:      "a.v2 b.v1 d.v1",
		},
		{
			name:    "two new ones that exclude each other",
			subs:    []olm.Subscription{sub("a", ""), sub("b", "")},
			catalog: []string{"a.v1 Y", "b.v1 Y"},
			want:    "a.v1", allOrNothing: "error",
		},
		{
			name:    "one's head does not cost another everything",
			subs:    []olm.Subscription{sub("a", ""), sub("n", "")},
			catalog: []string{"a.v1", "a.v2 Y >a.v1", "n.v1 Y"},
			want:    "a.v1 n.v1", greedy: "a.v2",
		},
		{
			name:    "the own catalog is that of who requires",
			subs:    []olm.Subscription{sub("a", "")},
			catalog: []string{"a.v1 -K", "lc.v1 L"},
			more:    map[types.NamespacedName]int{key("olm", "hi"): -1},
			lines:   map[types.NamespacedName][]string{key("olm", "hi"): {"k.v1 K -L", "lh.v1 L"}},
			want:    "a.v1 k.v1 lh.v1",
			newSubs: "k-stable-hi-olm lh-stable-hi-olm",
		},
		{
			name:      "an installed operator has no own catalog",
			installed: []string{"a.v1 -K", "b.v1 K"},
			subs:      []olm.Subscription{sub("a", "a.v1"), sub("b", "b.v1")},
			catalog:   []string{"a.v1 -K", "b.v2 >b.v1", "kc.v1 K"},
			more:      map[types.NamespacedName]int{key("olm", "hi"): 1},
			lines:     map[types.NamespacedName][]string{key("olm", "hi"): {"kh.v1 K"}},
			want:      "a.v1 b.v2 kh.v1",
			newSubs:   "kh-stable-hi-olm",
		},
		{
			name:      "what was lacking before is added",
			installed: []string{"a.v1 -K"},
			subs:      []olm.Subscription{sub("a", "a.v1")},
			catalog:   []string{"a.v1 -K", "k.v1 K"},
			want:      "a.v1 k.v1",
			newSubs:   "k-stable-c-olm",
		},
		{
			name:      "what was lacking before is tolerated of who stays, not of its update",
			installed: []string{"a.v1 -K"},
			subs:      []olm.Subscription{sub("a", "a.v1")},
			catalog:   []string{"a.v1 -K", "a.v2 -K >a.v1"},
			want:      "a.v1", allOrNothing: "error",
		},
		{
			name:      "an update heals what was lacking before",
			installed: []string{"a.v1 -K"},
			subs:      []olm.Subscription{sub("a", "a.v1")},
			catalog:   []string{"a.v1 -K", "a.v2 >a.v1"},
			want:      "a.v2",
		},
		{
			name:      "requirements of Subscriptions' operators come before those of freestanding ones",
			installed: []string{"b.v1 L", "z.v1 -L"},
			subs:      []olm.Subscription{sub("a", ""), sub("b", "b.v1")},
			catalog:   []string{"a.v1 -K", "b.v2 >b.v1", "p.v1 K", "q.v1 K L", "s.v1 L"},
			want:      "a.v1 b.v2 p.v1 s.v1 z.v1",
			newSubs:   "p-stable-c-olm s-stable-c-olm",
		},
		{
			name:      "requirements of one operator in the order of its properties",
			installed: nil,
			subs:      []olm.Subscription{sub("a", "")},
			catalog:   []string{"a.v1 -L -K", "p.v1 K", "q.v1 K L", "s.v1 L"},
			want:      "a.v1 q.v1",
			newSubs:   "q-stable-c-olm",
		},
		{
			name:      "all that lack one thing are taken back at once, though one brings it back",
			installed: []string{"a.v1 K", "b.v1"},
			subs:      []olm.Subscription{sub("a", "a.v1"), sub("b", "b.v1")},
			catalog:   []string{"a.v2 -K >a.v1", "b.v2 -K >b.v1"},
			want:      "a.v1 b.v2", greedy: "a.v1 b.v1",
		},
		{
			name:      "one entry replaces the operators of two Subscriptions",
			installed: []string{"old.v1 K", "older.v1 L"},
			subs:      []olm.Subscription{sub("a", "old.v1"), sub("a", "older.v1", named("a2"))},
			catalog:   []string{"a.v2 K L >old.v1 ~older.v1"},
			want:      "a.v2",
		},
		{
			name:      "and is taken back from both",
			installed: []string{"old.v1 K", "older.v1 L", "z.v1 -L"},
			subs:      []olm.Subscription{sub("a", "old.v1"), sub("a", "older.v1", named("a2")), sub("b", "")},
			catalog:   []string{"a.v2 K >old.v1 ~older.v1", "b.v1"},
			want:      "b.v1 old.v1 older.v1 z.v1",
		},
		{
			name:      "two Subscriptions of one operator move together or not at all",
			installed: []string{"a.v1"},
			subs:      []olm.Subscription{sub("a", "a.v1"), sub("a", "a.v1", named("a2"), channel("beta"))},
			catalog:   []string{"a.v1 @stable @beta", "a.v2 @stable >a.v1"},
			want:      "a.v1",
		},
		{
			name:    "additions that need each other only are pruned",
			subs:    []olm.Subscription{sub("a", ""), sub("n", "")},
			catalog: []string{"a.v1", "n.v1 -K -Q", "k.v1 K -L", "l.v1 L -K"},
			want:    "a.v1", allOrNothing: "error",
		},
		{
			name:    "deprecated entries are never taken",
			subs:    []olm.Subscription{sub("a", "")},
			catalog: []string{"a.v1", "a.v2 deprecated >a.v1"},
			want:    "a.v1",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := snapshot(contents(t, tc.catalog...), installed(tc.installed...), tc.subs...)
			for k, lines := range tc.lines {
				s.Catalogs = append(s.Catalogs, olm.SnapshotCatalog{Key: k, Priority: tc.more[k], Contents: contents(t, lines...)})
			}
			greedy, allOrNothing := tc.greedy, tc.allOrNothing
			switch greedy {
			case "":
				greedy = tc.want
			case "nothing":
				greedy = ""
			}
			if allOrNothing == "" {
				allOrNothing = tc.want
			}
			g := resolve(t, s, olm.Options{})
			if got := members(g); got != tc.want {
				t.Errorf("generation %q, want %q\n%s", got, tc.want, g)
			}
			var subs []string
			for _, s := range g.NewSubscriptions {
				subs = append(subs, s.Name)
			}
			if diff := cmp.Diff(tc.newSubs, strings.Join(subs, " ")); diff != "" {
				t.Errorf("new Subscriptions (-want +got):\n%s", diff)
			}
			if got := outcome(s, olm.Options{Greedy: true}); got != greedy {
				t.Errorf("greedy: %q, want %q", got, greedy)
			}
			got := outcome(s, olm.Options{AllOrNothing: true})
			if strings.HasPrefix(got, "error: constraints not satisfiable: ") && allOrNothing == "error" {
				t.Log(got)
				return
			}
			if got != allOrNothing {
				t.Errorf("all or nothing: %q, want %q", got, allOrNothing)
			}
		})
	}
}
