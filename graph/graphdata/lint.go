package graphdata

import (
	"slices"

	"github.com/Masterminds/semver/v3"

	"github.com/clusterupdate/clusterupdate/graph"
)

// LintOptions say what [Lint] may compare a tree with. The zero value compares it
// with nothing.
type LintOptions struct {
	// Releases are all that there are, for the rules on missing releases, on their
	// metadata and on build suggestions; nil leaves these rules out.
	Releases []Release
	// Signed reports whether the image of a release has a signature, or need not
	// have one. It is asked for those of Releases that channels and drops name; nil
	// leaves the rule out.
	Signed func(Release) bool
}

// Lint reports what [Load] accepts and the maintainers of a tree do not, together
// with the problems of the tree, sorted by file, line and column. [LintRules]
// lists the rules. An error is what the maintainers' own checks refuse, a warning
// what they let pass or only warn of.
//
// With a snapshot that was built from the tree, expressions are compared with the
// updates that releases declare, and channels that a release can enter and not
// leave are found. Without one (nil), expressions are compared with the versions of
// channels, for all architectures.
func Lint(tree *Tree, snap *Snapshot, opts LintOptions) []Problem {
	l := &linter{tree: tree, snap: snap, opts: opts, expressions: map[string]*expression{}}
	l.index()
	for _, r := range lintRules {
		l.rule = r
		r.check(l)
	}
	found := append(slices.Clone(tree.Problems), l.problems...)
	slices.SortStableFunc(found, compareProblems)
	return found
}

// LintRules returns the rules of [Lint], in an order that is the same each time.
func LintRules() []Rule {
	var rules []Rule
	for _, r := range lintRules {
		rules = append(rules, r.Rule)
	}
	return rules
}

// lintRule is a rule and what looks for it.
type lintRule struct {
	Rule
	severity Severity
	check    func(*linter)
}

var lintRules = []lintRule{
	{Rule{"risk-file-name", "the name of a risk's file does not begin with its target"}, SeverityError, (*linter).riskFileName},
	{Rule{"risk-url", "the URL of a risk does not begin with https://"}, SeverityError, (*linter).riskURL},
	{Rule{"risk-name", "the name of a risk is not in CamelCase"}, SeverityError, (*linter).riskName},
	{Rule{"risk-rules", "a risk has no matching rule, so that nobody gets the update"}, SeverityError, (*linter).riskRules},
	{Rule{"rule-twice", "a risk has two matching rules of one type"}, SeverityError, (*linter).ruleTwice},
	{Rule{"risk-diverges", "two files with one risk's name say different things about it"}, SeverityError, (*linter).riskDiverges},

	{Rule{"from-other-minor", "an expression begins with one minor and matches versions of another"}, SeverityWarning, (*linter).fromOtherMinor},
	{Rule{"from-matches-nothing", "an expression matches no version below the target"}, SeverityWarning, (*linter).fromMatchesNothing},
	{Rule{"from-without-architecture", "an expression would match versions, but for the architecture behind them"}, SeverityWarning, (*linter).fromWithoutArchitecture},
	{Rule{"overlap", "a risk is about an update that a drop removes or, with a snapshot, metadata: an update service that exists serves it as conditional"}, SeverityWarning, (*linter).overlap},

	{Rule{"channel-twice", "two files define one channel"}, SeverityError, (*linter).channelTwice},
	{Rule{"promotion-order", "a release is in a channel, but not in the one that comes before it"}, SeverityError, (*linter).promotionOrder},
	{Rule{"channel-file-name", "the name of a channel's file is not that of the channel"}, SeverityWarning, (*linter).channelFileName},
	{Rule{"channel-name", "the name of a public channel has no hyphen, which crashes an update service that exists"}, SeverityWarning, (*linter).channelName},
	{Rule{"channel-minor", "a release is above the minor of its channel"}, SeverityWarning, (*linter).channelMinor},
	{Rule{"version-twice", "a channel lists a version twice"}, SeverityWarning, (*linter).versionTwice},
	{Rule{"version-build", "a channel lists a version both with and without a build"}, SeverityWarning, (*linter).versionBuild},
	{Rule{"tombstone", "a tombstone is not among the versions of its channel"}, SeverityWarning, (*linter).tombstone},
	{Rule{"tombstone-promoted", "a channel has versions that its feeder marks as not to be promoted"}, SeverityWarning, (*linter).tombstonePromoted},
	{Rule{"feeder-unknown", "the feeder of a channel does not exist"}, SeverityError, (*linter).feederUnknown},
	{Rule{"feeder-cycle", "a channel is fed by itself"}, SeverityError, (*linter).feederCycle},
	{Rule{"feeder-delay", "the delay of a feeder is no duration of weeks, or of days and hours"}, SeverityError, (*linter).feederDelay},
	{Rule{"feeder-errata", "the errata of a feeder are other than public"}, SeverityError, (*linter).feederErrata},
	{Rule{"feeder-waits", "a feeder has neither a delay nor errata: nothing is ever promoted"}, SeverityWarning, (*linter).feederWaits},
	{Rule{"filter", "the filter of a feeder is no regular expression"}, SeverityError, (*linter).filterCompiles},
	{Rule{"filter-parentheses", "a filter with alternatives means something else to the maintainers' script, which does not put it in parentheses"}, SeverityWarning, (*linter).filterParentheses},
	{Rule{"filter-excludes", "a channel has versions that its filter excludes"}, SeverityWarning, (*linter).filterExcludes},
	{Rule{"eus-missing", "there is a stable channel of a minor with extended support, and no eus channel"}, SeverityWarning, (*linter).eusMissing},
	{Rule{"eus-feeder", "an eus channel is not fed by stable without delay"}, SeverityWarning, (*linter).eusFeeder},

	{Rule{"updates-out", "a version has no way to the minor of its channel (with a snapshot)"}, SeverityWarning, (*linter).updatesOut},
	{Rule{"updates-patch", "a version of the highest minor of its channel has no update without a risk (with a snapshot)"}, SeverityWarning, (*linter).updatesPatch},

	{Rule{"release-missing", "a version is named that no release has"}, SeverityError, (*linter).releaseMissing},
	{Rule{"release-unsigned", "a release that is named has no signature"}, SeverityError, (*linter).releaseUnsigned},
	{Rule{"release-url", "the metadata of a release have no link to its advisory"}, SeverityError, (*linter).releaseURL},
	{Rule{"suggestion-differs", "a release names other predecessors than were suggested"}, SeverityWarning, (*linter).suggestionDiffers},
}

// linter is one call of Lint.
type linter struct {
	tree     *Tree
	snap     *Snapshot // may be nil
	opts     LintOptions
	rule     lintRule
	problems []Problem

	edges    []BlockedEdge // drops and risks
	channels []Channel     // public and internal
	byName   map[string]*Channel
	known    []*semver.Version // that channels name, without builds, ascending
	sources  []source          // what expressions are compared with, ascending
	declared *predecessors     // nil without a snapshot

	expressions map[string]*expression
}

func (l *linter) index() {
	l.edges = append(slices.Clone(l.tree.Drops), l.tree.Risks...)
	l.channels = append(slices.Clone(l.tree.Channels), l.tree.Internal...)
	l.byName = map[string]*Channel{}
	seen := map[string]bool{}
	for i := range l.channels {
		c := &l.channels[i]
		if l.byName[c.Name] == nil {
			l.byName[c.Name] = c
		}
		for _, e := range c.Versions {
			text := withoutBuild(e.Version)
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
	if l.snap != nil {
		l.declared = newPredecessors(l.snap)
	}
}

// report adds a problem of the present rule.
func (l *linter) report(file string, line int, field, message string) {
	l.problems = append(l.problems, Problem{File: file, Line: line, Field: field, Rule: l.rule.Name, Message: message, Severity: l.rule.severity})
}
