package olm_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/olm"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
)

// In the real catalog, paths follow edges and end, and the shortest way to
// where they end is as long at most. For packages that need nothing, a plan takes the
// same steps.
func TestRealPaths(t *testing.T) {
	c := community(t).Contents
	walked, planned := 0, 0
	for _, p := range c.Packages() {
		for _, ch := range p.Channels {
			if ch.Err != nil || len(ch.Entries) == 0 {
				continue
			}
			free := true
			for _, e := range ch.Ordered {
				free = free && len(e.Bundle.Requires) == 0 && !e.Bundle.Deprecated
			}
			for i, from := range ch.Entries {
				if from.Bundle == nil || i%3 != 0 {
					continue
				}
				steps, err := c.Path(p.Name, ch.Name, olm.Origin{Name: from.Name})
				if err != nil {
					t.Fatalf("%s, %s, from %s: %v", p.Name, ch.Name, from.Name, err)
				}
				walked++
				at := from.Name
				for _, s := range steps {
					if s.From != at || s.Edge == "" {
						t.Fatalf("%s, %s, from %s: step %+v", p.Name, ch.Name, from.Name, s)
					}
					at = s.To
				}
				if len(steps) == 0 {
					continue
				}
				short, err := c.PathTo(p.Name, ch.Name, olm.Origin{Name: from.Name}, func(e *olm.Entry) bool { return e.Name == at })
				if err != nil || len(short) > len(steps) {
					t.Errorf("%s, %s, from %s to %s: %d steps, %v, want at most %d", p.Name, ch.Name, from.Name, at, len(short), err, len(steps))
				}
				if !free || i%12 != 0 {
					continue
				}
				planned++
				var want, got []string
				for k, s := range steps {
					want = append(want, fmt.Sprintf("%d %s>%s", k+1, s.From, s.To))
				}
				csv := newCSV(from.Name, atVersion(from.Bundle.RawVersion))
				s := snapshot(c, []olmapi.ClusterServiceVersion{csv}, sub(p.Name, from.Name, channel(ch.Name)))
				plan := checktest.Get(olm.Plan(context.Background(), []*olm.Snapshot{&s}, olm.PlanOptions{}))(t)
				if err := plan.Namespaces[0].Err; err != nil {
					t.Errorf("%s, %s, from %s: %v", p.Name, ch.Name, from.Name, err)
				}
				for k, g := range plan.Namespaces[0].Generations {
					if slot := &g.Slots[0]; slot.Operator != nil {
						got = append(got, fmt.Sprintf("%d %s>%s", k+1, slot.Previous.Name, slot.Current.Name))
					}
				}
				checktest.SameIn(t, fmt.Sprintf("%s, %s, from %s", p.Name, ch.Name, from.Name), want, got)
			}
		}
	}
	if walked < 1000 || planned < 100 {
		t.Errorf("only %d paths and %d plans", walked, planned)
	}
}
