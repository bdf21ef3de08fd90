package olm_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/olm"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
)

// subscribeTo makes new Subscriptions to the first n packages, in their default
// channels.
func subscribeTo(c *olm.Contents, n int) []olmapi.Subscription {
	var subs []olmapi.Subscription
	for _, p := range c.Packages()[:n] {
		subs = append(subs, sub(p.Name, "", channel(p.DefaultChannel)))
	}
	return subs
}

func BenchmarkResolveCommunity(b *testing.B) {
	c := community(b).Contents
	for _, n := range []int{1, 20, 200, 332} {
		b.Run(fmt.Sprintf("search/%d", n), func(b *testing.B) {
			s := snapshot(c, nil, subscribeTo(c, n)...)
			b.ReportAllocs()
			for b.Loop() {
				checktest.OK(b, checktest.Err(olm.Resolve(context.Background(), s, olm.Options{})))
			}
		})
	}
	b.Run("search, any channel/332", func(b *testing.B) {
		s := snapshot(c, nil, subscribeTo(c, 332)...)
		for i := range s.Subscriptions {
			s.Subscriptions[i].Spec.Channel = ""
		}
		b.ReportAllocs()
		for b.Loop() {
			checktest.OK(b, checktest.Err(olm.Resolve(context.Background(), s, olm.Options{})))
		}
	})
}

// resolveValid resolves and validates.
func resolveValid(t *testing.T, s olm.Snapshot, o olm.Options) *olm.Generation {
	t.Helper()
	g := resolve(t, s, o)
	for _, err := range validate(s, g) {
		t.Error(err)
	}
	return g
}

// TestCommunityAlone resolves each package of a real catalog alone, with the
// default channel and with any, and then again until nothing changes.
func TestCommunityAlone(t *testing.T) {
	c := community(t).Contents
	for _, anyChannel := range []bool{false, true} {
		served := 0
		for _, p := range c.Packages() {
			ch := p.DefaultChannel
			if anyChannel {
				ch = ""
			}
			s := snapshot(c, nil, sub(p.Name, "", channel(ch)))
			g := resolveValid(t, s, olm.Options{})
			strict, err := olm.Resolve(context.Background(), s, olm.Options{AllOrNothing: true})
			if err == nil && slots(strict) != slots(g) {
				t.Errorf("all or nothing:\n%s\nsearch:\n%s", strict, g)
			}
			if g.Slots[0].Outcome == "AddedForSubscription" {
				served++
			} else if err == nil {
				t.Errorf("%s is not installed, though it could be", p.Name)
			}
			if _, err := olm.Sequence(t.Context(), s, olm.Options{}); err != nil {
				t.Errorf("%s: %v", p.Name, err)
			}
		}
		t.Logf("any channel %v: %d of %d packages can be installed", anyChannel, served, len(c.Packages()))
		if served < 100 {
			t.Errorf("%d packages can be installed", served)
		}
	}
}

// TestCommunityTogether subscribes to everything at once.
func TestCommunityTogether(t *testing.T) {
	c := community(t).Contents
	s := snapshot(c, nil, subscribeTo(c, len(c.Packages()))...)
	g := resolveValid(t, s, olm.Options{})
	t.Logf("%d operators, %d of them for requirements, %d wishes held back", len(g.Operators), len(g.NewSubscriptions), len(g.HeldBack))
	if len(g.Operators) < 100 {
		t.Errorf("%d operators", len(g.Operators))
	}
	if again := resolveValid(t, s, olm.Options{}); again.String() != g.String() {
		t.Error("a second resolution comes to another generation")
	}
}

// TestCommunityMovedToNewest installs random versions together and updates them
// until nothing moves.
func TestCommunityMovedToNewest(t *testing.T) {
	c := community(t).Contents
	random := rand.New(rand.NewPCG(1, 2))
	moves := 0
	for range 20 {
		s := snapshot(c, nil)
		for _, p := range c.Packages() {
			if random.IntN(8) > 0 {
				continue
			}
			ch := p.Channel(p.DefaultChannel)
			if ch == nil || len(ch.Ordered) == 0 {
				continue
			}
			e := ch.Ordered[random.IntN(len(ch.Ordered))]
			s.Subscriptions = append(s.Subscriptions, sub(p.Name, "", channel(ch.Name), startingCSV(e.Name)))
		}
		g := resolveValid(t, s, olm.Options{})
		s, err := s.Apply(g)
		checktest.OK(t, err)
		generations := checktest.Get(olm.Sequence(context.Background(), s, olm.Options{}))(t)
		for _, g := range generations {
			for _, err := range validate(s, g) {
				t.Error(err)
			}
			moves += len(g.Operators)
			if s, err = s.Apply(g); err != nil {
				t.Fatal(err)
			}
		}
		last := generations[len(generations)-1]
		if len(last.Operators) > 0 {
			t.Errorf("the last generation still changes %d operators", len(last.Operators))
		}
	}
	t.Logf("%d moves", moves)
}

// BenchmarkUpdateCommunity has all that can be installed at an old version, and
// updates everywhere.
func BenchmarkUpdateCommunity(b *testing.B) {
	c := community(b).Contents
	s := snapshot(c, nil)
	for _, p := range c.Packages() {
		if ch := p.Channel(p.DefaultChannel); ch != nil && len(ch.Ordered) > 0 {
			e := ch.Ordered[len(ch.Ordered)/2]
			s.Subscriptions = append(s.Subscriptions, sub(p.Name, "", channel(ch.Name), startingCSV(e.Name)))
		}
	}
	s = checktest.Get(s.Apply(resolve(b, s, olm.Options{})))(b)
	b.ReportAllocs()
	for b.Loop() {
		checktest.OK(b, checktest.Err(olm.Resolve(context.Background(), s, olm.Options{})))
	}
	b.ReportMetric(float64(len(s.Installed)), "installed")
}

// TestCommunityExplained: each package that is held back when all are wished
// has a reason.
func TestCommunityExplained(t *testing.T) {
	c := community(t).Contents
	g := resolve(t, snapshot(c, nil, subscribeTo(c, len(c.Packages()))...), olm.Options{})
	explained := 0
	for _, h := range g.HeldBack {
		if h.Err != nil {
			continue
		}
		if explained++; explained > 10 {
			break
		}
		e := checktest.Get(g.Explain(context.Background(), h.Subscription))(t)
		if explained <= 3 {
			t.Logf("%.600s", e)
		}
		for _, c := range e.Children {
			if strings.HasSuffix(c.Text, " not taken") && len(c.Children) == 0 {
				t.Errorf("%s: no reason: %s", h.Subscription, c.Text)
			}
		}
	}
	if explained == 0 {
		t.Error("nothing to explain")
	}
}

// TestCommunityAllOrNothing: what can be installed alone can be together, and
// what cannot be says why.
func TestCommunityAllOrNothing(t *testing.T) {
	c := community(t).Contents
	var subs []olmapi.Subscription
	failed := 0
	for _, p := range c.Packages() {
		ch := p.Channel(p.DefaultChannel)
		if ch == nil || ch.Err != nil {
			continue
		}
		s := snapshot(c, nil, sub(p.Name, "", channel(ch.Name)))
		_, err := olm.Resolve(context.Background(), s, olm.Options{AllOrNothing: true})
		var unsat *olm.NotSatisfiable
		switch {
		case err == nil:
			subs = append(subs, s.Subscriptions[0])
		case errors.As(err, &unsat):
			if failed++; failed == 1 {
				t.Logf("%.500s", err)
			}
			if len(unsat.Facts) == 0 {
				t.Errorf("%s: no facts", p.Name)
			}
		}
	}
	s := snapshot(c, nil, subs...)
	strict := resolveValid(t, s, olm.Options{AllOrNothing: true})
	checktest.SameIn(t, "all or nothing differs (-default +got)", slots(resolveValid(t, s, olm.Options{})), slots(strict))
	if len(strict.Operators) < len(subs) || failed == 0 {
		t.Errorf("%d of %d, %d packages cannot be installed alone", len(strict.Operators), len(subs), failed)
	}
}

// Why Subscriptions to the first packages of a real catalog are held back whose APIs
// operators have that nobody subscribed to.
func BenchmarkWhyCommunity(b *testing.B) {
	c := community(b).Contents
	for _, n := range []int{20, 100, 332} {
		s := snapshot(c, nil, subscribeTo(c, n)...)
		for _, p := range c.Packages()[:n] {
			ch := p.Channel(p.DefaultChannel)
			if len(ch.Heads) != 1 || len(ch.Heads[0].Bundle.Provides) == 0 {
				continue
			}
			csv := olmapi.ClusterServiceVersion{}
			csv.Namespace, csv.Name = s.Namespace, "other-"+p.Name
			api := ch.Heads[0].Bundle.Provides[0]
			csv.Spec.CustomResourceDefinitions.Owned = []olmapi.APIDescription{
				{Name: "x." + api.Group, Version: api.Version, Kind: api.Kind},
			}
			s.Installed = append(s.Installed, csv)
		}
		g := checktest.Must(olm.Resolve(context.Background(), s, olm.Options{}))
		var held []*olm.HeldBack
		for i := range g.HeldBack {
			held = append(held, &g.HeldBack[i])
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				checktest.OK(b, checktest.Err(g.Why(context.Background(), held...)))
			}
			b.ReportMetric(float64(len(g.HeldBack)), "held-back")
		})
	}
}
