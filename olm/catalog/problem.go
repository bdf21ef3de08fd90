package catalog

import (
	"fmt"
	"strings"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// Problem is a fault of a catalog and its place.
type Problem struct {
	File     string // path in the tree, or the name of the stream
	Document int    // which object of the file, from 1; 0 if it concerns none
	Offset   int64  // if that object starts, in bytes from 0
	Line     int    // line of the fault in the file, from 1: where known, else where the object begins
	Package  string // what it concerns; each may be empty
	Channel  string
	Bundle   string
	Message  string // in the words of the catalog tools

	// Rule is the rule that is broken. The catalog tools refuse a catalog at once for
	// Syntax, Schema, Keys, PackageName, ChannelName, EntryName, BundleName, Properties,
	// Image, Version, UnusedBundle, MissingBundle and Deprecation. They collect
	// DefaultChannel, NoChannel, NoEntry, Heads, Cycle, Stranded, Skips, SkipRange, NoImage,
	// Release, SameVersion and DeprecationMessage. Warnings are Requirement, IgnoredKeys and
	// Number.
	Rule string
}

// The rules for which the catalog tools refuse a catalog at once.
const (
	ruleSyntax        = "Syntax"        // no JSON or YAML object, or a field of the wrong type
	ruleSchema        = "Schema"        // object without a schema
	ruleKeys          = "Keys"          // keys that differ by case only
	rulePackageName   = "PackageName"   // none, twice, or no DNS label
	ruleChannelName   = "ChannelName"   // none, twice, or of an unknown package
	ruleEntryName     = "EntryName"     // none or twice in a channel
	ruleBundleName    = "BundleName"    // twice, or of no or an unknown package
	ruleProperties    = "Properties"    // malformed, or not exactly one olm.package that fits
	ruleImage         = "Image"         // no image reference
	ruleVersion       = "Version"       // no strict semantic version, or a bad release
	ruleUnusedBundle  = "UnusedBundle"  // in no channel
	ruleMissingBundle = "MissingBundle" // entries without a bundle
	ruleDeprecation   = "Deprecation"   // malformed, or of something that does not exist
)

// The rules whose problems the catalog tools collect into one message.
const (
	ruleDefaultChannel     = "DefaultChannel"     // none, or one that does not exist
	ruleNoChannel          = "NoChannel"          // package without a channel
	ruleNoEntry            = "NoEntry"            // channel without an entry
	ruleHeads              = "Heads"              // not exactly one head
	ruleCycle              = "Cycle"              // in the chain of replacements
	ruleStranded           = "Stranded"           // entries that the chain does not reach
	ruleSkips              = "Skips"              // an empty one
	ruleSkipRange          = "SkipRange"          // no range of versions
	ruleNoImage            = "NoImage"            // neither an image nor objects
	ruleRelease            = "Release"            // name or version do not fit the release
	ruleSameVersion        = "SameVersion"        // several bundles of one version
	ruleDeprecationMessage = "DeprecationMessage" // deprecation without one
)

// The rules of warnings.
const (
	ruleRequirement = "Requirement" // cannot be read: who reaches the bundle is stuck
	ruleIgnoredKeys = "IgnoredKeys" // a constraint's element has several keys; one counts
	ruleNumber      = "Number"      // olm.maxOpenShiftVersion is a number: 4.10 becomes 4.1
)

// collected reports whether the catalog tools collect problems of this rule.
// Their messages alone do not say what they are about.
func collected(rule string) bool {
	switch rule {
	case ruleDefaultChannel, ruleNoChannel, ruleNoEntry, ruleHeads, ruleCycle, ruleStranded,
		ruleSkips, ruleSkipRange, ruleNoImage, ruleRelease, ruleSameVersion, ruleDeprecationMessage:
		return true
	}
	return false
}

// Error is the place and the message.
func (p *Problem) Error() string {
	var s strings.Builder
	if p.File != "" {
		s.WriteString(p.File)
		if p.Line > 0 {
			fmt.Fprintf(&s, ":%d", p.Line)
		}
		if p.Document > 0 {
			fmt.Fprintf(&s, ": document %d", p.Document)
		}
		s.WriteString(": ")
	}
	if collected(p.Rule) {
		s.WriteString(strings.Join(p.path(), ": "))
	} else {
		s.WriteString(p.Message)
	}
	return s.String()
}

// path is what the problem concerns, from the package down, and its message.
func (p *Problem) path() []string {
	var path []string
	for _, at := range []struct{ kind, name string }{
		{"package", p.Package}, {"channel", p.Channel}, {"bundle", p.Bundle},
	} {
		if at.name != "" {
			path = append(path, fmt.Sprintf("invalid %s %q", at.kind, bounded.Text(at.name, maxProblemName)))
		}
	}
	return append(path, p.Message)
}

// position is where an object was found.
type position struct {
	file     string
	document int
	offset   int64
	line     int
}

func (p position) problem(rule string, format string, args ...any) Problem {
	return Problem{File: p.file, Document: p.document, Offset: p.offset, Line: p.line, Rule: rule,
		Message: bounded.Text(fmt.Sprintf(format, args...), maxProblemText)}
}

// maxProblemText is the most bytes of a message, which quotes the catalog, and
// maxProblemName those of a name where many messages repeat it.
const (
	maxProblemText = 32 << 10
	maxProblemName = 1 << 10
)

// Validate returns what the catalog tools say about the catalog, nil if they
// accept it: the first problem that they refuse at once, a [*Problem], else
// all in one [*IndexError].
func (c *Catalog) Validate() error {
	for i := range c.problems {
		if !collected(c.problems[i].Rule) {
			return &c.problems[i]
		}
	}
	if len(c.problems) == 0 {
		return nil
	}
	return &IndexError{Problems: c.problems}
}

// IndexError are the problems of a catalog that belong to its packages,
// channels and bundles.
type IndexError struct {
	Problems []Problem // by package, channel and bundle
}

// Error is the tree of the catalog tools: "invalid index:", below it the
// packages, their channels and bundles.
func (e *IndexError) Error() string {
	paths := make([][]string, len(e.Problems))
	for i := range e.Problems {
		paths[i] = e.Problems[i].path()
	}
	var s strings.Builder
	s.WriteString("invalid index:\n")
	writeTree(&s, paths, "")
	return strings.TrimSuffix(s.String(), "\n")
}

// writeTree writes paths as the branches of a tree. Those with the same beginning
// follow each other.
func writeTree(s *strings.Builder, paths [][]string, indent string) {
	for len(paths) > 0 {
		node, rest := paths[0][0], paths
		var below [][]string
		for len(rest) > 0 && len(rest[0]) > 1 && rest[0][0] == node {
			below, rest = append(below, rest[0][1:]), rest[1:]
		}
		if len(below) == 0 {
			rest = paths[1:]
		}
		branch, deeper := "├── ", "│   "
		if len(rest) == 0 {
			branch, deeper = "└── ", "    "
		}
		s.WriteString(indent + branch + node)
		if len(below) > 0 {
			s.WriteByte(':')
		}
		s.WriteByte('\n')
		writeTree(s, below, indent+deeper)
		paths = rest
	}
}
