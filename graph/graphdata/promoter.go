package graphdata

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// promoter is one call of Promotions.
type promoter struct {
	tree  *Tree
	facts Facts
	now   time.Time
	ways  *connectivity // nil: no releases are known
}

func (p *promoter) channel(c Channel, feeder *Channel) []Promotion {
	base := Promotion{File: c.File, Channel: c.Name, Feeder: c.Feeder.Name}
	delay, fault := checkFeeder(c, feeder)
	if fault != "" {
		base.Decision, base.Concern = Undecidable, fault
		return []Promotion{base}
	}
	filter, _ := filters(c)
	in, dead := versionSet(c.Versions), versionSet(feeder.Tombstones)
	var candidates []string
	known := make([]string, 0, len(c.Versions))
	for _, e := range c.Versions {
		known = append(known, e.Version)
	}
	for _, e := range feeder.Versions {
		if !in[e.Version] && !dead[e.Version] && (filter == nil || filter.MatchString(e.Version)) {
			candidates = append(candidates, e.Version)
		}
	}
	slices.Sort(candidates)
	candidates = slices.Compact(candidates)
	known = append(known, candidates...)
	way := p.ways.wayOut(c)
	var all []Promotion
	for _, version := range candidates {
		promotion := base
		promotion.Version = version
		p.decide(&promotion, c, delay, known, way)
		all = append(all, promotion)
	}
	return all
}

// decide fills in the facts about a version and what follows from them. A delay
// below zero is none.
func (p *promoter) decide(promotion *Promotion, c Channel, delay time.Duration, known []string, way *wayOut) {
	version := promotion.Version
	promotion.Entered = p.facts.Entered[c.Feeder.Name][version]
	if !promotion.Entered.Time.IsZero() {
		promotion.Age = p.now.Sub(promotion.Entered.Time)
	}
	if c.Feeder.Errata == "public" {
		promotion.Advisory, promotion.Public = p.advisory(version)
	}
	if texts := exposureTexts(p.tree, predecessor(known, version), version); len(texts) > 0 {
		promotion.Decision, promotion.Concern = Blocked, strings.Join(texts, " ")
		return
	}
	promotion.Concern, _ = way.concern(version)
	ripe := delay >= 0 && !promotion.Entered.Time.IsZero() && promotion.Age > delay || promotion.Public
	promotion.Decision = Wait
	if ripe && promotion.Concern == "" {
		promotion.Decision = Promote
	}
}

var advisoryType = regexp.MustCompile(`RH[BSE]A`)

// advisory returns the advisory of a release, and whether it is public under any
// type.
func (p *promoter) advisory(version string) (uri string, public bool) {
	if p.ways == nil {
		return "", false
	}
	at := p.ways.find(version)
	if at < 0 {
		return "", false
	}
	uri = p.facts.Graph.nodes[at].metadata[graph.MetadataURL]
	for _, as := range []string{"RHBA", "RHSA", "RHEA"} {
		public = public || uri != "" && p.facts.Public[advisoryType.ReplaceAllString(uri, as)]
	}
	return uri, public
}

// checkFeeder returns the delay of a channel's feeder, -1 if it has none, or why
// nothing can be promoted.
func checkFeeder(c Channel, feeder *Channel) (delay time.Duration, fault string) {
	if feeder == nil {
		return 0, fmt.Sprintf("there is no channel %s", bounded.Quote(c.Feeder.Name))
	}
	if e := c.Feeder.Errata; e != "" && e != "public" {
		return 0, errataFault(c)
	}
	if _, err := CompileFrom(c.Feeder.Filter); err != nil {
		return 0, bounded.Text(err.Error(), bounded.MaxQuoted)
	}
	if c.Feeder.Delay == "" {
		return -1, ""
	}
	delay, ok := parseDelay(c.Feeder.Delay)
	if !ok {
		return 0, delayFault(c)
	}
	return delay, ""
}

// parseDelay reads weeks, or days and hours. A delay that is too long for a
// Duration is as long as one can be.
func parseDelay(text string) (delay time.Duration, ok bool) {
	m := feederDuration.FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	const longest = 1<<63 - 1
	for i, unit := range []time.Duration{7 * 24 * time.Hour, 24 * time.Hour, time.Hour} {
		if m[i+1] == "" {
			continue
		}
		n, err := strconv.ParseInt(m[i+1], 10, 64)
		if err != nil || n > int64((longest-delay)/unit) {
			return longest, true
		}
		delay += time.Duration(n) * unit
	}
	return delay, true
}

// exposureTexts says what keeps a release from being promoted, in the words of the
// maintainers' script.
func exposureTexts(tree *Tree, previous, version string) []string {
	var texts []string
	for _, b := range exposures(tree, previous, version) {
		k := exposureKey(b)
		switch {
		case b.FixedIn != "":
			texts = append(texts, fmt.Sprintf("%s affects %s and is not fixed until %s.  Extend the risk to %s.", k, previous, b.FixedIn, version))
		case b.AutoExtend != "":
			texts = append(texts, fmt.Sprintf("%s affects %s and needs to be extended to %s because %s", k, previous, version, b.AutoExtend))
		default:
			texts = append(texts, fmt.Sprintf("%[1]s affects %[2]s and has no fixedIn set.  Check the url in the blocked-edges YAML for %[1]s to determine if the issue has been fixed.  "+
				"If the issue is fixed in %[3]s or earlier, set \"fixedIn\" in the blocked-edges YAML for %[1]s to the version containing the fix.  "+
				"If the issue is NOT yet fixed, copy the existing blocked-edges entry for %[1]s and change \"to\" to %[3]s so clusters are still warned when updating to %[3]s.", k, previous, version))
		}
	}
	return slices.Compact(texts)
}
