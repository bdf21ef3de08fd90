package maintain

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/graph/graphdata/internal/inside"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
)

func (l *linter) channelTwice() {
	for _, c := range l.twice {
		first := l.byName[c.Name].File
		l.channel(c, "name", "multiple definitions for %s: %s and %s", short(c.Name), first, c.File)
	}
}

// promotionOrder: stable within fast within candidate, whatever the builds. The
// channels of 4.1 are older than the rule.
func (l *linter) promotionOrder() {
	before := map[string]string{"stable": "fast", "fast": "candidate"}
	for _, c := range l.public {
		i := strings.LastIndexByte(c.Name, '-')
		if i < 0 || before[c.Name[:i]] == "" || c.Name[i+1:] == "4.1" {
			continue
		}
		name := before[c.Name[:i]] + c.Name[i:]
		earlier := l.byName[name]
		if earlier == nil {
			if l.unread[name] {
				continue
			}
			l.channel(c, "name", "Channel %s exists, but not %s", c.Name, name)
			continue
		}
		in := map[string]bool{}
		for _, e := range earlier.Versions {
			in[inside.WithoutBuild(e.Version)] = true
		}
		for i, e := range c.Versions {
			if !in[inside.WithoutBuild(e.Version)] {
				l.report(c.File, e.Line, element("versions", i),
					"Release %s present in %s, but not in %s", e.Version, c.Name, name)
			}
		}
	}
}

func (l *linter) channelFileName() {
	for _, c := range l.channels {
		if base := strings.TrimSuffix(path.Base(c.File), path.Ext(c.File)); base != c.Name {
			l.channel(c, "name", "the channel is %s, not %s as the name of the file says",
				bounded.Quote(c.Name), bounded.Quote(base))
		}
	}
}

func (l *linter) channelName() {
	for _, c := range l.public {
		if !strings.Contains(c.Name, "-") {
			l.channel(c, "name", "%s has no hyphen", bounded.Quote(c.Name))
		}
	}
}

func (l *linter) channelMinor() {
	for _, c := range l.public {
		name, ok := graph.ParseChannel(c.Name)
		if !ok {
			continue
		}
		for i, e := range c.Versions {
			v, err := graph.ParseVersion(e.Version)
			if err == nil && openshift.MinorOf(v).Above(minorOf(name)) {
				l.report(c.File, e.Line, element("versions", i), "%s is above the minor of %s", e.Version, c.Name)
			}
		}
	}
}

func (l *linter) versionTwice() {
	for _, c := range l.channels {
		first := map[string]int{}
		for i, e := range c.Versions {
			if line, twice := first[e.Version]; twice {
				l.report(c.File, e.Line, element("versions", i), "%s is there twice, first on line %d", e.Version, line)
				continue
			}
			first[e.Version] = e.Line
		}
	}
}

func (l *linter) versionBuild() {
	for _, c := range l.channels {
		without := map[string]int{}
		for _, e := range c.Versions {
			if inside.WithoutBuild(e.Version) == e.Version {
				without[e.Version] = e.Line
			}
		}
		for i, e := range c.Versions {
			if line := without[inside.WithoutBuild(e.Version)]; line > 0 && inside.WithoutBuild(e.Version) != e.Version {
				l.report(c.File, e.Line, element("versions", i),
					"%s is there for every architecture, on line %d", e.Version, line)
			}
		}
	}
}

func (l *linter) tombstone() {
	for _, c := range l.channels {
		in := versionSet(c.Versions)
		for i, e := range c.Tombstones {
			if !in[e.Version] {
				l.report(c.File, e.Line, element("tombstones", i), "%s is not in the channel", e.Version)
			}
		}
	}
}

func (l *linter) tombstonePromoted() {
	for _, c := range l.channels {
		if c.Feeder == nil || l.byName[c.Feeder.Name] == nil {
			continue
		}
		var despite []string
		dead := versionSet(l.byName[c.Feeder.Name].Tombstones)
		for _, e := range c.Versions {
			if dead[e.Version] {
				despite = append(despite, e.Version)
			}
		}
		if len(despite) > 0 {
			l.channel(c, "versions", "some versions in %s despite tombstones in %s: %s",
				c.Name, c.Feeder.Name, bounded.Join(despite, ", ", 1024))
		}
	}
}

func (l *linter) feederUnknown() {
	for _, c := range l.fed() {
		if l.byName[c.Feeder.Name] == nil && l.readsFeeder(c.Feeder.Name) {
			l.channel(c, "feeder.name", "there is no channel %s", bounded.Quote(c.Feeder.Name))
		}
	}
}

// readsFeeder reports whether a channel would be known if it were there: a tree may
// have been read without its internal channels, and a file may be broken.
func (l *linter) readsFeeder(name string) bool {
	if l.unread[name] {
		return false
	}
	return len(l.tree.Internal) > 0 || !slices.Contains([]string{"candidate", "fast", "stable"}, name)
}

func (l *linter) feederCycle() {
	for _, c := range l.fed() {
		seen := map[string]bool{}
		for at := l.byName[c.Feeder.Name]; at != nil && at.Feeder != nil && !seen[at.Name]; at = l.byName[at.Feeder.Name] {
			seen[at.Name] = true
		}
		if seen[c.Name] || c.Feeder.Name == c.Name {
			l.channel(c, "feeder.name", "%s is fed by itself", c.Name)
		}
	}
}

var feederDuration = regexp.MustCompile(`^P(?:([0-9]+)W|(?:([0-9]+)D)?(?:T([0-9]+)H)?)$`)

func (l *linter) feederDelay() {
	for _, c := range l.fed() {
		if d := c.Feeder.Delay; d != "" && !feederDuration.MatchString(d) {
			l.channel(c, "feeder.delay", "invalid or unsupported ISO 8601 duration '%s'.  Tooling currently only "+
				"supports P<number>W for weeks, or P<number>DT<number>H for day/hour offsets", short(d))
		}
	}
}

func (l *linter) feederErrata() {
	for _, c := range l.fed() {
		if e := c.Feeder.Errata; e != "" && e != "public" {
			l.channel(c, "feeder.errata", "invalid errata value for %s: %s", c.Name, bounded.Quote(e))
		}
	}
}

func (l *linter) feederWaits() {
	for _, c := range l.fed() {
		if c.Feeder.Delay == "" && c.Feeder.Errata == "" {
			l.channel(c, "feeder", "has neither a delay nor errata: nothing is ever promoted")
		}
	}
}

// fed are the channels with a feeder.
func (l *linter) fed() (list []graphdata.Channel) {
	for _, c := range l.channels {
		if c.Feeder != nil {
			list = append(list, c)
		}
	}
	return list
}

func versionSet(entries []graphdata.Entry) map[string]bool {
	set := make(map[string]bool, len(entries))
	for _, e := range entries {
		set[e.Version] = true
	}
	return set
}
