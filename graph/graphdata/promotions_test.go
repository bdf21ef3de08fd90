package graphdata_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
)

var promotionDay = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

// entered says that a version came into a channel so long ago.
func entered(channel, version string, ago time.Duration) map[string]map[string]graphdata.Entered {
	return map[string]map[string]graphdata.Entered{channel: {version: {Time: promotionDay.Add(-ago), Commit: "0123456789abcdef", Summary: "More releases"}}}
}

// decisions shows promotions as lines.
func decisions(promotions []graphdata.Promotion) []string {
	var lines []string
	for _, p := range promotions {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s", p.Decision, p.Channel, p.Version)))
	}
	return lines
}

// feederTree has a channel fast-1.1 that a channel "fast" feeds.
func feederTree(feeder graphdata.Feeder, feeding graphdata.Channel, versions ...string) *graphdata.Tree {
	feeder.Name = "fast"
	feeding.Name, feeding.File = "fast", "internal-channels/fast.yaml"
	return &graphdata.Tree{
		Channels: []graphdata.Channel{{File: "channels/fast-1.1.yaml", Name: "fast-1.1", Feeder: &feeder, Versions: entries(versions...)}},
		Internal: []graphdata.Channel{feeding},
	}
}

// TestPromotionsCandidates: which versions there is a decision about.
func TestPromotionsCandidates(t *testing.T) {
	for _, c := range []struct {
		name    string
		filter  string
		feeding graphdata.Channel
		there   []string
		want    string
	}{
		{"all, sorted as text", "", graphdata.Channel{Versions: entries("1.1.2", "1.1.10", "1.1.1", "1.1.2")}, nil, "1.1.1 1.1.10 1.1.2"},
		{"those that are not there", "", graphdata.Channel{Versions: entries("1.1.1", "1.1.2")}, []string{"1.1.1"}, "1.1.2"},
		{"compared as text", "", graphdata.Channel{Versions: entries("1.1.1")}, []string{"1.1.1+amd64"}, "1.1.1"},
		{"without tombstones", "", graphdata.Channel{Versions: entries("1.1.1", "1.1.2"), Tombstones: entries("1.1.2")}, nil, "1.1.1"},
		{"filtered", "1[.]1[.][0-9]", graphdata.Channel{Versions: entries("1.1.1", "1.1.10", "11.1.1", "1.1.2-rc.0")}, nil, "1.1.1"},
		{"alternatives", "1[.]0[.]1|1[.]1[.]1", graphdata.Channel{Versions: entries("1.0.1", "1.0.10", "1.1.1", "1.1.10")}, nil, "1.0.1 1.1.1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree := feederTree(graphdata.Feeder{Delay: "P", Filter: c.filter}, c.feeding, c.there...)
			var got []string
			for _, p := range graphdata.Promotions(tree, graphdata.Facts{}, promotionDay) {
				got = append(got, p.Version)
				if p.Decision != graphdata.Wait { // nobody knows how old it is
					t.Error(p)
				}
			}
			if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// TestPromotionsRipe: delays and advisories.
func TestPromotionsRipe(t *testing.T) {
	const uri = "https://access.redhat.com/errata/RHBA-2026:1234"
	const hour, day, week = time.Hour, 24 * time.Hour, 7 * 24 * time.Hour
	public := map[string]bool{"https://access.redhat.com/errata/RHSA-2026:1234": true}
	never := time.Duration(-1)
	for _, c := range []struct {
		delay, errata string
		age           time.Duration
		public        map[string]bool
		want          graphdata.Decision
	}{
		{"PT0H", "", 1, nil, graphdata.Promote},
		{"P", "", 1, nil, graphdata.Promote},
		{"PT0H", "", 0, nil, graphdata.Wait}, // older than the delay, not as old
		{"PT1H", "", hour, nil, graphdata.Wait},
		{"PT1H", "", hour + 1, nil, graphdata.Promote},
		{"P2DT3H", "", 2*day + 3*hour, nil, graphdata.Wait},
		{"P2DT3H", "", 2*day + 3*hour + 1, nil, graphdata.Promote},
		{"P4D", "", 4*day + 1, nil, graphdata.Promote},
		{"P1W", "", week, nil, graphdata.Wait},
		{"P1W", "", week + 1, nil, graphdata.Promote},
		{"P99999999999999999999W", "", 1000 * week, nil, graphdata.Wait},
		{"P9999999D", "", 1000 * week, nil, graphdata.Wait},
		{"PT0H", "", never, nil, graphdata.Wait},
		{"", "", 1000 * week, nil, graphdata.Wait}, // neither: for ever
		{"", "", 1000 * week, public, graphdata.Wait},
		{"", "public", 1000 * week, nil, graphdata.Wait},
		{"", "public", never, public, graphdata.Promote},
		{"", "public", never, map[string]bool{uri: true}, graphdata.Promote},
		{"", "public", never, map[string]bool{uri + "5": true}, graphdata.Wait},
		{"P1W", "public", 1, public, graphdata.Promote}, // either suffices
		{"P1W", "public", week + 1, nil, graphdata.Promote},
		{"P1W", "public", week, nil, graphdata.Wait},
	} {
		t.Run(fmt.Sprintf("%s %s %v", c.delay, c.errata, c.age), func(t *testing.T) {
			tree := feederTree(graphdata.Feeder{Delay: c.delay, Errata: c.errata}, graphdata.Channel{Versions: entries("1.1.1")})
			facts := graphdata.Facts{Public: c.public, Graph: build(t, &graphdata.Tree{}, []graphdata.Release{release("1.1.1", "amd64", nil, graph.MetadataURL, uri)}, graphdata.BuildOptions{})}
			if c.age != never {
				facts.Entered = entered("fast", "1.1.1", c.age)
			}
			got := graphdata.Promotions(tree, facts, promotionDay)
			if len(got) != 1 || got[0].Decision != c.want {
				t.Fatalf("%v, want %s", got, c.want)
			}
			if wanted := map[bool]string{true: uri}[c.errata != ""]; got[0].Advisory != wanted {
				t.Errorf("advisory %q, want %q", got[0].Advisory, wanted)
			}
		})
	}
}

// TestPromotionsText: what there is to say about a decision.
func TestPromotionsText(t *testing.T) {
	const from = "1[.]0[.].*"
	fixed := func(b graphdata.BlockedEdge) graphdata.BlockedEdge {
		b.FixedIn = "1.1.3"
		return b
	}
	auto := func(b graphdata.BlockedEdge) graphdata.BlockedEdge {
		b.AutoExtend = "https://example.com/kb"
		return b
	}
	later := map[string]map[string]graphdata.Entered{}
	released := release("1.1.2", "amd64", nil, graph.MetadataURL, "https://access.redhat.com/errata/RHBA-2026:1234")
	for _, c := range []struct {
		name     string
		feeder   graphdata.Feeder
		entered  map[string]map[string]graphdata.Entered
		edges    []graphdata.BlockedEdge
		releases []graphdata.Release
		public   bool
		want     string
	}{
		{"promote", graphdata.Feeder{Delay: "PT0H"}, entered("fast", "1.1.2", 50*time.Hour+3*time.Second), nil, nil, false,
			"It was promoted to the feeder fast by 0123456789 (More releases, 2026-03-08T09:59:57Z) 2 days, 2h0m3s ago."},
		{"promote by an advisory", graphdata.Feeder{Errata: "public"}, later, nil, []graphdata.Release{released}, true,
			"It was promoted to the feeder fast by an unknown commit (without a summary, at an unknown time) an unknown time ago. https://access.redhat.com/errata/RHBA-2026:1234 is public."},
		{"wait", graphdata.Feeder{Delay: "P1W", Errata: "public"}, entered("fast", "1.1.2", time.Hour), nil, []graphdata.Release{released}, false,
			"Recommend waiting to promote 1.1.2 to fast-1.1; it was promoted the feeder fast by 0123456789 (More releases, 2026-03-10T11:00:00Z, 0 days, 1h0m0s) https://access.redhat.com/errata/RHBA-2026:1234 is not public."},
		{"blocked", graphdata.Feeder{Delay: "PT0H"}, entered("fast", "1.1.2", time.Hour), []graphdata.BlockedEdge{fixed(risk("C", "1.1.1", from)), auto(risk("B", "1.1.1", from)), risk("A", "1.1.1", from)}, nil, false,
			`FAILED A affects 1.1.1 and has no fixedIn set.  Check the url in the blocked-edges YAML for A to determine if the issue has been fixed.  If the issue is fixed in 1.1.2 or earlier, set "fixedIn" in the blocked-edges YAML for A to the version containing the fix.  ` +
				`If the issue is NOT yet fixed, copy the existing blocked-edges entry for A and change "to" to 1.1.2 so clusters are still warned when updating to 1.1.2. ` +
				"B affects 1.1.1 and needs to be extended to 1.1.2 because https://example.com/kb C affects 1.1.1 and is not fixed until 1.1.3.  Extend the risk to 1.1.2."},
		{"blocked by a drop", graphdata.Feeder{Delay: "PT0H"}, entered("fast", "1.1.2", time.Hour), []graphdata.BlockedEdge{fixed(drop("1.1.1", from)), fixed(drop("1.1.1", from))}, nil, false,
			"FAILED blocked-edges/1.1.1.yaml affects 1.1.1 and is not fixed until 1.1.3.  Extend the risk to 1.1.2."},
		{"unknown feeder", graphdata.Feeder{Name: "x", Delay: "PT0H"}, later, nil, nil, false, `Nothing can be promoted to fast-1.1: there is no channel "x"`},
		{"bad delay", graphdata.Feeder{Delay: "PT5M"}, later, nil, nil, false, `Nothing can be promoted to fast-1.1: invalid or unsupported ISO 8601 duration 'PT5M'.  Tooling currently only supports P<number>W for weeks, or P<number>DT<number>H for day/hour offsets`},
		{"bad errata", graphdata.Feeder{Errata: "all"}, later, nil, nil, false, `Nothing can be promoted to fast-1.1: invalid errata value for fast-1.1: "all"`},
		{"bad filter", graphdata.Feeder{Delay: "P", Filter: "("}, later, nil, nil, false, "Nothing can be promoted to fast-1.1: error parsing regexp: missing closing ): `(`"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree := feederTree(c.feeder, graphdata.Channel{Versions: entries("1.1.2")}, "1.1.1")
			if c.feeder.Name != "" {
				tree.Channels[0].Feeder.Name = c.feeder.Name
			}
			addEdges(tree, c.edges)
			facts := graphdata.Facts{Entered: c.entered}
			if c.releases != nil {
				facts.Graph = build(t, tree, c.releases, graphdata.BuildOptions{})
			}
			if c.public {
				facts.Public = map[string]bool{"https://access.redhat.com/errata/RHEA-2026:1234": true}
			}
			got := graphdata.Promotions(tree, facts, promotionDay)
			if len(got) != 1 {
				t.Fatal(got)
			}
			if diff := cmp.Diff(c.want, got[0].String()); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if got[0].Version != "" && got[0].Title() != "channels/fast-1.1: Promote 1.1.2" {
				t.Error(got[0].Title())
			}
		})
	}
}

// TestPromotionsWayOut: a version that leads nowhere waits.
func TestPromotionsWayOut(t *testing.T) {
	tree := feederTree(graphdata.Feeder{Delay: "PT0H"}, graphdata.Channel{Versions: entries("1.0.1", "1.0.2", "1.1.1")}, "1.1.0")
	tree.Channels = append(tree.Channels, graphdata.Channel{Name: "candidate-1.1", Versions: entries("1.0.1", "1.0.2", "1.1.0")})
	facts := graphdata.Facts{
		Entered: map[string]map[string]graphdata.Entered{"fast": {"1.0.1": {Time: promotionDay.Add(-time.Hour)}, "1.0.2": {Time: promotionDay.Add(-time.Hour)}, "1.1.1": {Time: promotionDay.Add(-time.Hour)}}},
		Graph:   build(t, tree, []graphdata.Release{release("1.0.1", "amd64", nil), release("1.0.2", "amd64", []string{"1.0.1"}), release("1.1.0", "amd64", []string{"1.0.1"})}, graphdata.BuildOptions{}),
	}
	got := graphdata.Promotions(tree, facts, promotionDay)
	if diff := cmp.Diff([]string{"Promote fast-1.1 1.0.1", "Wait fast-1.1 1.0.2", "Promote fast-1.1 1.1.1"}, decisions(got)); diff != "" {
		t.Fatalf("-want +got\n%s", diff)
	}
	if text := got[1].String(); !strings.HasSuffix(text, "1h0m0s)  No paths from 1.0.2 to 1.1 in candidate-1.1") {
		t.Error(text)
	}
}

// TestPromotionsRealTree: what the feeders of the real tree have for their
// channels, if all of it is ripe.
func TestPromotionsRealTree(t *testing.T) {
	tree, err := graphdata.Load(t.Context(), realTree(t), graphdata.LoadOptions{InternalChannels: true})
	if err != nil {
		t.Fatal(err)
	}
	facts := graphdata.Facts{Entered: map[string]map[string]graphdata.Entered{}}
	for _, c := range slices.Concat(tree.Channels, tree.Internal) {
		facts.Entered[c.Name] = map[string]graphdata.Entered{}
		for _, e := range c.Versions {
			facts.Entered[c.Name][e.Version] = graphdata.Entered{Time: promotionDay}
		}
	}
	for _, p := range graphdata.Promotions(tree, facts, promotionDay.AddDate(1, 0, 0)) {
		if p.Decision == graphdata.Undecidable || p.Decision == graphdata.Blocked {
			t.Error(p) // the maintainers' run would have failed
		}
	}
}

// TestPromotionsProperties: runs come to an end, nothing is promoted twice, and
// whatever is promoted was in the feeder.
func TestPromotionsProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pool := []string{"1.0.0", "1.0.1", "1.1.0", "1.1.1"}
		names := []string{"candidate", "fast", "stable", "stable-1.1"}
		tree := &graphdata.Tree{}
		facts := graphdata.Facts{Entered: map[string]map[string]graphdata.Entered{}}
		for i, name := range names {
			c := graphdata.Channel{Name: name, Versions: entries(rapid.SliceOfDistinct(rapid.SampledFrom(pool), rapid.ID[string]).Draw(t, name)...)}
			c.Tombstones = entries(rapid.SliceOfNDistinct(rapid.SampledFrom(pool), 0, 1, rapid.ID[string]).Draw(t, "tombstones")...)
			if i > 0 {
				c.Feeder = &graphdata.Feeder{Name: names[i-1], Delay: "PT1H"}
			}
			tree.Internal = append(tree.Internal, c)
			facts.Entered[name] = map[string]graphdata.Entered{}
			for _, v := range pool {
				facts.Entered[name][v] = graphdata.Entered{Time: promotionDay}
			}
		}
		for run := 0; ; run++ {
			promotions := graphdata.Promotions(tree, facts, promotionDay.Add(2*time.Hour))
			if len(promotions) == 0 {
				break
			}
			if run > len(names) {
				t.Fatal("no end")
			}
			before := map[string][]string{}
			for _, c := range tree.Internal {
				for _, e := range c.Versions {
					before[c.Name] = append(before[c.Name], e.Version)
				}
			}
			for _, p := range promotions {
				if p.Decision != graphdata.Promote || slices.Contains(before[p.Channel], p.Version) || !slices.Contains(before[p.Feeder], p.Version) {
					t.Fatalf("%v: %+v", before, p)
				}
				at := slices.IndexFunc(tree.Internal, func(c graphdata.Channel) bool { return c.Name == p.Channel })
				tree.Internal[at].Versions = append(tree.Internal[at].Versions, graphdata.Entry{Version: p.Version})
			}
		}
	})
}
