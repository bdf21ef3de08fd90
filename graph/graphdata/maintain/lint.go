package maintain

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/graph/graphdata/internal/inside"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// LintOptions say what [Lint] may compare a tree with. The zero value compares it
// with nothing.
type LintOptions struct {
	// Releases are all that there are, for the rules on missing releases, on their
	// metadata and on build suggestions; nil leaves these rules out.
	Releases []graphdata.Release
	// Signed reports whether the image of a release has a signature, or need not
	// have one. It is asked for those of Releases that channels and drops name; nil
	// leaves the rule out.
	Signed func(graphdata.Release) bool
	// PromQL returns what is wrong with a query, nil for one that can be parsed, such as
	// the error of promqlsnapshot.Metrics. It is asked for each query once; nil leaves the rule out.
	PromQL func(query string) error
}

// Lint reports what [graphdata.Load] accepts and the maintainers of a tree do not, together
// with the problems of the tree, sorted by file, line and column. An error is what the
// maintainers' own checks refuse, a warning what they let pass or only warn of. The tree
// may come from a [graphdata.LoadError]: rules that need what could not be read find
// nothing then.
//
// With a snapshot that was built from the tree, expressions are compared with the
// updates that releases declare, and channels that a release can enter and not
// leave are found. Without one (nil), expressions are compared with the versions of
// channels, for all architectures.
func Lint(tree *graphdata.Tree, snap *graphdata.Snapshot, opts LintOptions) []graphdata.Problem {
	l := &linter{tree: tree, opts: opts, expressions: map[string]*expression{}}
	if snap != nil {
		l.snap = snap.Inside()
	}
	l.index()
	for _, r := range rules {
		l.rule = r
		r.check(l)
	}
	found := append(slices.Clone(tree.Problems), l.problems...)
	for i := range found {
		// Their script ends at such a text, but for the one that it does not look at.
		if found[i].Rule == "not-string" && found[i].Field != "autoExtend" {
			found[i].Warning = false
		}
	}
	slices.SortStableFunc(found, graphdata.Problem.Compare)
	return found
}

// rule is a rule and what looks for it.
type rule struct {
	name    string
	warning bool // what the maintainers' own checks let pass
	check   func(*linter)
}

var rules = []rule{
	// The name of a risk's file does not start with its target.
	{"risk-file-name", false, (*linter).riskFileName},
	// The URL of a risk does not start with https://.
	{"risk-url", false, (*linter).riskURL},
	// The name of a risk is not in CamelCase.
	{"risk-name", false, (*linter).riskName},
	// A risk has no matching rule, so that nobody gets the update.
	{"risk-rules", false, (*linter).riskRules},
	// A risk has two matching rules of one type.
	{"rule-twice", false, (*linter).ruleTwice},
	// A file says other things about a risk than most files with its name.
	{"risk-diverges", false, (*linter).riskDiverges},
	// The version that fixes a risk is of another minor than the target, or not above it.
	{"fixed-in", true, (*linter).fixedIn},
	// A query cannot be parsed (with a parser).
	{"promql", true, (*linter).promQL},

	// An expression starts with one minor and matches versions of another.
	{"from-other-minor", true, (*linter).fromOtherMinor},
	// An expression matches no version below the target.
	{"from-matches-nothing", true, (*linter).fromMatchesNothing},
	// An expression would match versions, but for the architecture behind them.
	{"from-without-architecture", true, (*linter).fromWithoutArchitecture},
	// Where an expression ends its match, the number continues: 4[.]8[.]1 matches
	// 4.8.12.
	{"from-within-number", true, (*linter).fromWithinNumber},
	// An alternative of an expression matches no version.
	{"from-half-dead", true, (*linter).fromHalfDead},
	// A risk is about an update that a drop removes or, with a snapshot, metadata: an update service that exists serves it as conditional.
	{"overlap", true, (*linter).overlap},

	// Two files define one channel.
	{"channel-twice", false, (*linter).channelTwice},
	// A release is in a channel, but not in the one that comes before it.
	{"promotion-order", false, (*linter).promotionOrder},
	// The name of a channel's file differs from the channel's.
	{"channel-file-name", true, (*linter).channelFileName},
	// The name of a public channel has no hyphen, which crashes an update service that exists.
	{"channel-name", true, (*linter).channelName},
	// A release is above the minor of its channel.
	{"channel-minor", true, (*linter).channelMinor},
	// A channel lists a version twice.
	{"version-twice", true, (*linter).versionTwice},
	// A channel lists a version both with and without a build.
	{"version-build", true, (*linter).versionBuild},
	// A tombstone is not among the versions of its channel.
	{"tombstone", true, (*linter).tombstone},
	// A channel has versions that its feeder marks as not to be promoted.
	{"tombstone-promoted", true, (*linter).tombstonePromoted},
	// The feeder of a channel does not exist.
	{"feeder-unknown", false, (*linter).feederUnknown},
	// A channel is fed by itself.
	{"feeder-cycle", false, (*linter).feederCycle},
	// The delay of a feeder is not a duration of weeks, or of days and hours.
	{"feeder-delay", false, (*linter).feederDelay},
	// The errata of a feeder are other than public.
	{"feeder-errata", false, (*linter).feederErrata},
	// A feeder has neither a delay nor errata: nothing is ever promoted.
	{"feeder-waits", true, (*linter).feederWaits},
	// The filter of a feeder is not a regular expression.
	{"filter", false, (*linter).filterCompiles},
	// A filter with alternatives means something else to the maintainers' script, which does not put it in parentheses.
	{"filter-parentheses", true, (*linter).filterParentheses},
	// A channel has versions that its filter excludes.
	{"filter-excludes", true, (*linter).filterExcludes},
	// A filter lets no version of the channel's own minor pass.
	{"filter-own-minor", true, (*linter).filterOwnMinor},
	// There is a stable channel of a minor with extended support, and no eus channel.
	{"eus-missing", true, (*linter).eusMissing},
	// An eus channel is not fed by stable without delay.
	{"eus-feeder", true, (*linter).eusFeeder},

	// A version has no way to the minor of its channel (with a snapshot).
	{"updates-out", true, (*linter).updatesOut},
	// A version of the highest minor of its channel has no update without a risk (with a snapshot).
	{"updates-patch", true, (*linter).updatesPatch},

	// A version is named that no release has.
	{"release-missing", false, (*linter).releaseMissing},
	// A release that is named has no signature.
	{"release-unsigned", false, (*linter).releaseUnsigned},
	// The metadata of a release have no link to its advisory.
	{"release-url", false, (*linter).releaseURL},
	// A release names other predecessors than were suggested.
	{"suggestion-differs", true, (*linter).suggestionDiffers},
}

// linter is one call of Lint.
type linter struct {
	tree     *graphdata.Tree
	snap     *inside.Graph // nil if absent
	opts     LintOptions
	rule     rule
	problems []graphdata.Problem

	edges    []graphdata.BlockedEdge // drops and risks
	public   []graphdata.Channel     // the first definition of each
	channels []graphdata.Channel     // and those of internal ones
	twice    []graphdata.Channel     // further definitions
	byName   map[string]*graphdata.Channel
	unread   map[string]bool    // channels, by the names of their files, that could not be read
	known    []*semver.Version  // that channels name, without builds, ascending
	sources  []source           // what expressions are compared with, ascending
	releases map[string][]int32 // version without build → releases of the snapshot

	expressions map[string]*expression
}

func (l *linter) index() {
	l.edges = append(slices.Clone(l.tree.Drops), l.tree.Risks...)
	l.byName = map[string]*graphdata.Channel{}
	all := slices.Concat(l.tree.Channels, l.tree.Internal)
	for i, c := range all {
		switch {
		case l.byName[c.Name] != nil:
			l.twice = append(l.twice, c)
			continue
		case i < len(l.tree.Channels):
			l.public = append(l.public, c)
		}
		l.channels = append(l.channels, c)
		l.byName[c.Name] = &all[i]
	}
	l.unread = map[string]bool{}
	for _, p := range l.tree.Problems {
		dir, base := path.Split(p.File)
		if !p.Warning && (dir == "channels/" || dir == "internal-channels/") {
			l.unread[strings.TrimSuffix(base, path.Ext(base))] = true
		}
	}
	seen := map[string]bool{}
	for _, c := range l.channels {
		for _, e := range c.Versions {
			text := inside.WithoutBuild(e.Version)
			if seen[text] {
				continue
			}
			seen[text] = true
			if v, err := graph.ParseVersion(text); err == nil {
				l.known = append(l.known, v)
			}
		}
	}
	slices.SortFunc(l.known, (*semver.Version).Compare)
	l.sources = l.findSources()
	if l.snap == nil {
		return
	}
	l.releases = map[string][]int32{}
	for i, n := range l.snap.Nodes {
		if n.Metadata != nil {
			l.releases[n.Base] = append(l.releases[n.Base], int32(i))
		}
	}
}

// element names an element of a list.
func element(field string, i int) string { return fmt.Sprintf("%s[%d]", field, i) }

// short cuts a text of the tree for a message.
func short(text string) string { return bounded.Text(text, bounded.MaxQuoted) }

// edge reports a fault of a blocked edge, at the line of a field.
func (l *linter) edge(b graphdata.BlockedEdge, field, format string, args ...any) {
	line := b.Line
	if field != "from" {
		key, _, _ := strings.Cut(field, "[")
		line = b.Lines[key]
	}
	l.report(b.File, line, field, format, args...)
}

// channel reports a fault of a channel, at the line of a field.
func (l *linter) channel(c graphdata.Channel, field, format string, args ...any) {
	l.report(c.File, c.Lines[field], field, format, args...)
}

// report adds a problem of the present rule.
func (l *linter) report(file string, line int, field, format string, args ...any) {
	l.problems = append(l.problems, graphdata.Problem{
		File: file, Line: line, Field: field,
		Rule: l.rule.name, Message: fmt.Sprintf(format, args...), Warning: l.rule.warning,
	})
}
