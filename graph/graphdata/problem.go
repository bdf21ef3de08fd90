package graphdata

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/clusterupdate/clusterupdate/internal/limit"
)

// Problem is a fault of a tree and its place.
type Problem struct {
	File         string // path in the tree
	Line, Column int    // from 1; 0 if absent
	Field        string // the key that it concerns, e.g. "matchingRules[0].type"; may be empty
	Rule         string // stable name, such as "unknown-key"
	Message      string // for people
	// Warning lets the file count; under Compat, what an update service accepts and a
	// strict [Load] does not is a warning too. Otherwise the problem is an error: it
	// makes a strict Load fail, and under Compat the file counts for nothing, as it
	// does for an update service.
	Warning bool
	// Err is the cause: a [*SchemaError], a [*LimitError], an error of the file
	// system. It is nil where Message says it all.
	Err error
}

// String is the place and the message: "blocked-edges/4.1.yaml:3:7: from: …".
func (p Problem) String() string {
	var s strings.Builder
	s.WriteString(p.File)
	for _, at := range []int{p.Line, p.Column} {
		if at > 0 {
			s.WriteString(":" + strconv.Itoa(at))
		}
	}
	if p.File != "" {
		s.WriteString(": ")
	}
	if p.Field != "" {
		s.WriteString(p.Field + ": ")
	}
	s.WriteString(p.Message)
	return s.String()
}

// Compare orders problems by place.
func (p Problem) Compare(o Problem) int { return compareProblems(p, o) }

func compareProblems(a, b Problem) int {
	return cmp.Or(
		cmp.Compare(a.File, b.File),
		cmp.Compare(a.Line, b.Line),
		cmp.Compare(a.Column, b.Column),
		cmp.Compare(a.Rule, b.Rule),
		cmp.Compare(a.Field, b.Field),
		cmp.Compare(a.Message, b.Message),
	)
}

// LoadError explains why a tree was not loaded.
type LoadError struct {
	// Problems are all errors and warnings that were found, by file and line.
	Problems []Problem
	// Tree is what could be read, without the files at fault: enough for
	// maintain.Lint to look at the rest, and nothing to build a graph from. It is nil
	// if a limit ended the reading.
	Tree *Tree
}

// Error returns the first ten errors, one a line, and how many more there are.
func (e *LoadError) Error() string {
	const most = 10
	errs := e.errors()
	var s strings.Builder
	for i, p := range errs {
		if i == most {
			fmt.Fprintf(&s, "\nand %d more errors", len(errs)-most)
			break
		}
		if i > 0 {
			s.WriteByte('\n')
		}
		s.WriteString(p.String())
	}
	return s.String()
}

// Unwrap returns the causes of the problems that have one.
func (e *LoadError) Unwrap() []error {
	var causes []error
	for _, p := range e.Problems {
		if p.Err != nil && !p.Warning {
			causes = append(causes, p.Err)
		}
	}
	return causes
}

func (e *LoadError) errors() []Problem {
	return slices.DeleteFunc(slices.Clone(e.Problems), func(p Problem) bool { return p.Warning })
}

// SchemaError reports that a tree has a schema that is not understood.
type SchemaError struct {
	Version string // the content of the file version, trimmed
	// Malformed reports that it is not a version at all, rather than one of another
	// major.
	Malformed bool
}

// Error is in the words of the update service.
func (e *SchemaError) Error() string {
	if e.Malformed {
		return e.Version + " is not a valid semver"
	}
	return fmt.Sprintf("unrecognized graph-data version %s; %q and compatible versions are supported", e.Version, newestSchema)
}

// LimitError reports that input passed a limit.
type LimitError = limit.LimitError

// The rules of [Load], [Collect] and [Build], as problems name them, and what breaks
// each. Those of the first four are close to the classes of faults that an update
// service can be configured not to tolerate.
const (
	ruleRead             = "read"              // a file or directory that there must be is missing or cannot be read
	ruleInvalidExtension = "invalid-extension" // a file whose extension is not .yaml is not read
	ruleMissingExtension = "missing-extension" // a file without an extension is not read
	ruleYAML             = "yaml"              // a file is not YAML, or empty

	ruleDirectory      = "directory"       // a directory if there should be files alone
	ruleBelow          = "below-directory" // a file that is not read, since it lies in a directory below
	ruleDocuments      = "documents"       // a file with more than one YAML document
	ruleAlias          = "alias"           // an alias of YAML
	ruleLimit          = "limit"           // a limit is passed
	ruleSchema         = "schema"          // the schema version is not one that is understood
	ruleSchemaNewer    = "schema-newer"    // the schema version is newer than what is understood
	ruleRaw            = "raw-metadata"    // raw/metadata.json is not an object of objects of strings
	ruleType           = "type"            // a value has another type than its key wants
	ruleDuplicateKey   = "duplicate-key"   // a key is there twice
	ruleUnknownKey     = "unknown-key"     // a key is not known
	ruleRequired       = "required"        // a key that must be there is missing, or its value is empty
	ruleNotString      = "not-string"      // a text without quotes is something else to other readers of YAML
	ruleVersion        = "version"         // a version is not SemVer
	ruleFromEmpty      = "from-empty"      // the expression of a blocked edge is empty
	ruleFrom           = "from"            // the expression of a blocked edge does not compile, or means something else to the update service
	rulePartialRisk    = "partial-risk"    // a blocked edge has some keys of a risk, but not all
	ruleDropKey        = "drop-key"        // a blocked edge without a risk has a key that makes the update service ignore it
	ruleRuleType       = "rule-type"       // a matching rule is of an unknown type
	ruleRuleKey        = "rule-key"        // a matching rule lacks its query, or has one that it should not have
	ruleSuggestionName = "suggestion-name" // a file of build-suggestions is not named for a minor

	ruleRelease        = "release"         // a release cannot be read
	ruleReleaseVersion = "release-version" // a release has, or names, what is not SemVer
	ruleMismatch       = "mismatch"        // several images claim one version
	ruleUnknownEdit    = "unknown-edit"    // the metadata of a release add or remove an update of a version that there is not
	ruleCycle          = "cycle"           // updates lead back to where they began
)
