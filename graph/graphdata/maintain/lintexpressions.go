package maintain

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/Masterminds/semver/v3"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/graph/graphdata/internal/inside"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
)

// architectures are those of releases, which stand behind versions where
// expressions are searched.
var architectures = []string{"amd64", "arm64", "multi", "ppc64le", "s390x"}

// source is a version that an update may begin at, and how expressions see it.
type source struct {
	version *semver.Version // without its build
	full    []string        // with builds
}

// findSources returns the releases of the snapshot or, without one, the versions of
// channels on all architectures.
func (l *linter) findSources() (list []source) {
	if l.snap == nil {
		for _, v := range l.known {
			s := source{version: v}
			for _, arch := range architectures {
				s.full = append(s.full, v.Original()+"+"+arch)
			}
			list = append(list, s)
		}
		return list
	}
	last := ""
	for _, n := range l.snap.Nodes {
		if n.Metadata == nil {
			continue
		}
		if n.Base != last || len(list) == 0 {
			v, err := graph.ParseVersion(n.Base)
			if err != nil {
				continue // cannot happen: the version with its build was parsed
			}
			list = append(list, source{version: v})
			last = n.Base
		}
		at := &list[len(list)-1]
		at.full = append(at.full, n.Version)
	}
	return list
}

// expression is what is known about an expression of blocked edges.
type expression struct {
	re      *regexp.Regexp
	matched []*semver.Version // sources that it matches on some architecture
	bare    *semver.Version   // one that it matches only without an architecture
}

// expression looks an expression up; nil if it does not compile.
func (l *linter) expression(text string) *expression {
	if x, done := l.expressions[text]; done {
		return x
	}
	re, err := graphdata.CompileFrom(text)
	if err != nil {
		l.expressions[text] = nil
		return nil
	}
	x := &expression{re: re}
	for _, s := range l.sources {
		switch {
		case slices.ContainsFunc(s.full, re.MatchString):
			x.matched = append(x.matched, s.version)
		case x.bare == nil && re.MatchString(s.version.Original()):
			x.bare = s.version
		}
	}
	l.expressions[text] = x
	return x
}

// literalMinor is the minor that an expression begins with, and may end with: 4[.]1
// matches 4.18.0 too.
var literalMinor = regexp.MustCompile(`^\^?([0-9]+)(?:\[[.]\]|\\?[.])([0-9]+)(?:\[[.]\]|\\?[.]|$)`)

func (l *linter) fromOtherMinor() {
	for _, b := range l.edges {
		prefix, x := literalMinor.FindStringSubmatch(b.From), l.expression(b.From)
		if prefix == nil || x == nil || hasAlternatives(b.From) {
			continue
		}
		begins := prefix[1] + "." + prefix[2]
		for _, v := range x.matched {
			if openshift.MinorOf(v).String() != begins {
				l.report(b.File, b.Line, "from", fmt.Sprintf("%s begins with %s and matches %s too", bounded.Quote(b.From), begins, v))
				break
			}
		}
	}
}

// hasAlternatives reports whether an expression that compiles has a bar outside of
// parentheses: its beginning speaks for the first alternative alone.
func hasAlternatives(text string) bool {
	depth, class := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			i++
		case c == '[':
			class = true
		case c == ']':
			class = false
		case class:
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == '|' && depth == 0:
			return true
		}
	}
	return false
}

func (l *linter) fromMatchesNothing() {
	for _, b := range l.edges {
		x := l.expression(b.From)
		if x != nil && l.snap != nil {
			l.matchesNoUpdate(b, x)
			continue
		}
		to, err := graph.ParseVersion(b.To)
		if x == nil || err != nil || len(x.matched) > 0 && x.matched[0].LessThan(to) {
			continue
		}
		l.report(b.File, b.Line, "from", fmt.Sprintf("%s matches no version of a channel below %s", bounded.Quote(b.From), b.To))
	}
}

func (l *linter) fromWithoutArchitecture() {
	for _, b := range l.edges {
		if x := l.expression(b.From); x != nil && len(x.matched) == 0 && x.bare != nil {
			l.report(b.File, b.Line, "from", fmt.Sprintf("%s matches %s, but not with an architecture, as in %s+amd64", bounded.Quote(b.From), x.bare, x.bare))
		}
	}
}

// overlap: what removes an update beats a risk, but not with the update service that
// exists.
func (l *linter) overlap() {
	drops := map[string][]graphdata.BlockedEdge{}
	for _, d := range l.tree.Drops {
		drops[inside.WithoutBuild(d.To)] = append(drops[inside.WithoutBuild(d.To)], d)
	}
	for _, r := range l.tree.Risks {
		to, err := graph.ParseVersion(r.To)
		if err != nil {
			continue
		}
		if l.snap != nil {
			l.overlapMetadata(r)
		}
		for _, d := range drops[inside.WithoutBuild(r.To)] {
			if d.To != r.To && d.To != inside.WithoutBuild(d.To) && r.To != inside.WithoutBuild(r.To) {
				continue // of two architectures
			}
			v := ""
			if l.snap != nil {
				v = l.commonUpdate(d, r)
			} else if common := commonBelow(l.expression(d.From), l.expression(r.From), to); common != nil {
				v = common.Original()
			}
			if v != "" {
				l.report(r.File, r.Line, "from", fmt.Sprintf("the update from %s is dropped by %s", v, d.File))
			}
		}
	}
}

// commonBelow returns a version below to that both expressions match, or nil.
func commonBelow(a, b *expression, to *semver.Version) *semver.Version {
	if a == nil || b == nil {
		return nil
	}
	in := map[*semver.Version]bool{}
	for _, v := range a.matched {
		in[v] = true
	}
	for _, v := range b.matched {
		if in[v] && v.LessThan(to) {
			return v
		}
	}
	return nil
}
