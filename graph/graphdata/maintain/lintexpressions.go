package maintain

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

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

// source is a version that an update may start at, and how expressions see it.
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
	within  *semver.Version   // one in which a match ends within a number
	dead    string            // an alternative that matches nothing, once tried
	tried   bool
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
	longest := *re
	longest.Longest()
	for _, s := range l.sources {
		switch {
		case slices.ContainsFunc(s.full, re.MatchString):
			x.matched = append(x.matched, s.version)
			if x.within == nil && endsWithinNumber(&longest, s.full[0]) {
				x.within = s.version
			}
		case x.bare == nil && re.MatchString(s.version.Original()):
			x.bare = s.version
		}
	}
	l.expressions[text] = x
	return x
}

// endsWithinNumber reports whether a match ends between two digits.
func endsWithinNumber(re *regexp.Regexp, version string) bool {
	at := re.FindStringIndex(version)
	if at == nil || at[1] == 0 || at[1] == len(version) {
		return false
	}
	return isDigit(version[at[1]-1]) && isDigit(version[at[1]])
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// literalMinor is the minor that an expression starts with, and may end with: 4[.]1
// matches 4.18.0 too.
var literalMinor = regexp.MustCompile(`^\^?([0-9]+)(?:\[[.]\]|\\?[.])([0-9]+)(?:\[[.]\]|\\?[.]|$)`)

// otherMinor returns the minor that an expression starts with, and a version of
// another that it matches, nil if absent.
func otherMinor(text string, x *expression) (begins string, other *semver.Version) {
	prefix := literalMinor.FindStringSubmatch(text)
	if prefix == nil || x == nil || hasAlternatives(text) {
		return "", nil
	}
	begins = prefix[1] + "." + prefix[2]
	for _, v := range x.matched {
		if openshift.MinorOf(v).String() != begins {
			return begins, v
		}
	}
	return begins, nil
}

func (l *linter) fromOtherMinor() {
	for _, b := range l.edges {
		if begins, v := otherMinor(b.From, l.expression(b.From)); v != nil {
			l.edge(b, "from", "%s begins with %s and matches %s too", bounded.Quote(b.From), begins, v)
		}
	}
}

// fromWithinNumber: the longest match counts, so that what an expression leaves open,
// as in 4[.]8[.].*, is not a fault.
func (l *linter) fromWithinNumber() {
	for _, b := range l.edges {
		x := l.expression(b.From)
		to, err := graph.ParseVersion(b.To)
		if x == nil || err != nil || x.within == nil || !x.within.LessThan(to) {
			continue
		}
		if _, v := otherMinor(b.From, x); v == nil { // else it is reported already
			l.edge(b, "from", "%s ends within a number of %s, which [+] would exclude", bounded.Quote(b.From), x.within)
		}
	}
}

func (l *linter) fromHalfDead() {
	if len(l.unread) > 0 {
		return // the versions are in files that could not be read
	}
	for _, b := range l.edges {
		x := l.expression(b.From)
		if x == nil || len(x.matched) == 0 {
			continue
		}
		if !x.tried {
			x.dead, x.tried = l.deadAlternative(b.From), true
		}
		if x.dead != "" {
			l.edge(b, "from", "%s: the alternative %s matches no version", bounded.Quote(b.From), short(x.dead))
		}
	}
}

// deadAlternative returns an alternative of an expression that no version takes; ""
// if absent.
func (l *linter) deadAlternative(text string) string {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return "" // cannot happen: it was compiled
	}
	return deadBelow(parsed, func() bool {
		re, err := regexp.Compile(parsed.String())
		if err != nil {
			return true // cannot happen: it is a part of one that was compiled
		}
		return slices.ContainsFunc(l.sources, func(s source) bool { return slices.ContainsFunc(s.full, re.MatchString) })
	})
}

// deadBelow returns an alternative below a part of an expression that nothing takes.
// It reduces choices to one alternative, and asks whether what is left matches.
func deadBelow(part *syntax.Regexp, matches func() bool) string {
	all := part.Sub
	defer func() { part.Sub = all }()
	for i, sub := range all {
		if part.Op == syntax.OpAlternate {
			part.Sub = all[i : i+1]
			if !matches() {
				text := sub.String()
				if inner, flagged := strings.CutPrefix(text, "(?-s:"); flagged {
					text = strings.TrimSuffix(inner, ")")
				}
				return text
			}
		}
		if dead := deadBelow(sub, matches); dead != "" {
			return dead
		}
	}
	return ""
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
		if x == nil || err != nil || len(l.unread) > 0 || len(x.matched) > 0 && x.matched[0].LessThan(to) {
			continue
		}
		if len(x.matched) == 0 && x.bare != nil {
			continue // fromWithoutArchitecture reports it
		}
		l.edge(b, "from", "%s matches no version of a channel below %s", bounded.Quote(b.From), b.To)
	}
}

func (l *linter) fromWithoutArchitecture() {
	for _, b := range l.edges {
		if x := l.expression(b.From); x != nil && len(x.matched) == 0 && x.bare != nil {
			l.edge(b, "from", "%s matches %s, but not with an architecture, as in %s+amd64",
				bounded.Quote(b.From), x.bare, x.bare)
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
				l.edge(r, "from", "the update from %s is dropped by %s", v, d.File)
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
