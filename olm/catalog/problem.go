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
	Rule     string // that it breaks, such as Syntax: the documentation of the package lists them
	Message  string // in the words of the catalog tools
}

// The rules: see the documentation of the package.
const (
	ruleSyntax        = "Syntax"
	ruleSchema        = "Schema"
	ruleKeys          = "Keys"
	rulePackageName   = "PackageName"
	ruleChannelName   = "ChannelName"
	ruleEntryName     = "EntryName"
	ruleBundleName    = "BundleName"
	ruleProperties    = "Properties"
	ruleImage         = "Image"
	ruleVersion       = "Version"
	ruleUnusedBundle  = "UnusedBundle"
	ruleMissingBundle = "MissingBundle"
	ruleDeprecation   = "Deprecation"

	ruleDefaultChannel     = "DefaultChannel"
	ruleNoChannel          = "NoChannel"
	ruleNoEntry            = "NoEntry"
	ruleHeads              = "Heads"
	ruleCycle              = "Cycle"
	ruleStranded           = "Stranded"
	ruleSkips              = "Skips"
	ruleSkipRange          = "SkipRange"
	ruleNoImage            = "NoImage"
	ruleRelease            = "Release"
	ruleSameVersion        = "SameVersion"
	ruleDeprecationMessage = "DeprecationMessage"

	ruleRequirement = "Requirement"
	ruleIgnoredKeys = "IgnoredKeys"
	ruleNumber      = "Number"
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
// all others in one [*IndexError].
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
