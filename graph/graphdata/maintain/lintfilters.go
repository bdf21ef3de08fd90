package maintain

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/Masterminds/semver/v3"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
)

func (l *linter) filterCompiles() {
	for _, c := range l.fed() {
		if _, err := graphdata.CompileFrom(c.Feeder.Filter); err != nil {
			l.channel(c, "feeder.filter", "%s", short(err.Error()))
		}
	}
}

// filters returns the filter of a channel as it is meant, and as the maintainers'
// script puts it together; both nil if it is missing or does not compile.
func filters(c graphdata.Channel) (meant, script *regexp.Regexp) {
	if c.Feeder.Filter == "" {
		return nil, nil
	}
	if _, err := graphdata.CompileFrom(c.Feeder.Filter); err != nil {
		return nil, nil
	}
	meant, err := regexp.Compile("^(?:" + c.Feeder.Filter + ")$")
	if err != nil {
		return nil, nil
	}
	script, err = regexp.Compile("^" + c.Feeder.Filter + "$")
	if err != nil {
		return nil, nil
	}
	return meant, script
}

func (l *linter) filterParentheses() {
	for _, c := range l.fed() {
		meant, script := filters(c)
		if meant == nil {
			continue
		}
		for _, v := range l.known {
			if meant.MatchString(v.Original()) != script.MatchString(v.Original()) {
				l.channel(c, "feeder.filter",
					"%s is not the same for %s once it stands between ^ and $: use parentheses", bounded.Quote(c.Feeder.Filter), v)
				break
			}
		}
	}
}

func (l *linter) filterExcludes() {
	for _, c := range l.fed() {
		meant, _ := filters(c)
		if meant == nil || l.excludedMinor(c) != "" {
			continue
		}
		var excluded []string
		for _, e := range c.Versions {
			if !meant.MatchString(e.Version) {
				excluded = append(excluded, e.Version)
			}
		}
		if len(excluded) > 0 {
			l.channel(c, "feeder.filter", "%s excludes versions of the channel: %s",
				bounded.Quote(c.Feeder.Filter), bounded.Join(excluded, ", ", 1024))
		}
	}
}

func (l *linter) filterOwnMinor() {
	for _, c := range l.fed() {
		if own := l.excludedMinor(c); own != "" {
			l.channel(c, "feeder.filter", "%s lets no version of %s pass", bounded.Quote(c.Feeder.Filter), own)
		}
	}
}

// excludedMinor returns the minor of a channel if its filter lets none of its versions
// pass: neither those that a channel has, nor those that a minor starts with.
func (l *linter) excludedMinor(c graphdata.Channel) string {
	name, ok := graph.ParseChannel(c.Name)
	meant, _ := filters(c)
	if !ok || meant == nil {
		return ""
	}
	own := minorOf(name)
	passes := func(v *semver.Version) bool { return openshift.MinorOf(v) == own && meant.MatchString(v.Original()) }
	first := slices.ContainsFunc([]string{".0", ".0-rc.0"}, func(end string) bool { return meant.MatchString(own.String() + end) })
	if first || slices.ContainsFunc(l.known, passes) {
		return ""
	}
	return own.String()
}

// hasEUS reports whether a minor has an eus channel: those with extended support,
// from 4.6.
func hasEUS(m openshift.Minor) bool {
	return m.EUS() && (m.Minor >= 6 || m.Major > 4)
}

func (l *linter) eusMissing() {
	for _, c := range l.public {
		name, ok := graph.ParseChannel(c.Name)
		if !ok || name.Type != "stable" || !hasEUS(minorOf(name)) {
			continue
		}
		if eus := fmt.Sprintf("eus-%d.%d", name.Major, name.Minor); l.byName[eus] == nil && !l.unread[eus] {
			l.channel(c, "name", "there is no channel %s", eus)
		}
	}
}

// eusFeeder: a release enters stable and eus at the same time. What is in them may
// still differ, by their filters.
func (l *linter) eusFeeder() {
	for _, c := range l.public {
		name, ok := graph.ParseChannel(c.Name)
		if !ok || name.Type != "eus" {
			continue
		}
		switch {
		case !hasEUS(minorOf(name)):
			l.channel(c, "name", "its minor has no extended support")
		case c.Feeder == nil:
			l.channel(c, "feeder", "has no feeder, which should be stable without delay")
		case c.Feeder.Name != "stable" || c.Feeder.Delay != "PT0H":
			l.channel(c, "feeder", "is %s with delay %q, which should be stable with PT0H",
				bounded.Quote(c.Feeder.Name), short(c.Feeder.Delay))
		}
	}
}
