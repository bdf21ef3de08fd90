package graphdata

import (
	configv1 "github.com/openshift/api/config/v1"
)

// Tree is what [Load] reads. It is plain data: safe to read from many goroutines
// at a time, not to change while others read. The zero value is a tree without
// channels, which builds a graph that nothing is served of.
type Tree struct {
	// SchemaVersion is the content of the file version, without white space
	// around it.
	SchemaVersion string
	// Channels are the public channels, Internal those without a minor that feed
	// them, each in the order of the files' names.
	Channels, Internal []Channel
	// Drops and Risks are the files of blocked-edges, in the order of their names.
	Drops, Risks []BlockedEdge
	// Raw adds metadata to releases, in the order of raw/metadata.json.
	Raw []RawEntry
	// Suggestions say which predecessors builds of releases should name. Those of a
	// file come together, "default" first, then the architectures by name.
	Suggestions []Suggestion
	// Problems are the warnings, and under Compat the errors too, sorted by file,
	// line and column.
	Problems []Problem
}

// Channel is a file of channels or internal-channels.
type Channel struct {
	// File is its path in the tree.
	File string
	// Name is what clusters ask for, e.g. "stable-4.18"; the file's name does not
	// matter.
	Name string
	// Versions are the releases in the channel, in the order of the file.
	Versions []Entry
	// Feeder is where releases come from; nil: they are added by hand.
	Feeder *Feeder
	// Tombstones are releases of this channel that are never promoted out of it.
	Tombstones []Entry
	// Lines are where the file has its fields, from 1, by the names that problems
	// give them: "name", "feeder", "feeder.delay".
	Lines map[string]int
}

// Feeder describes how releases get into a channel. An update service ignores it.
type Feeder struct {
	Name   string // the channel that releases come from
	Delay  string // ISO 8601 duration there that suffices, e.g. "PT48H"; empty: none does
	Errata string // "public": a public advisory suffices; empty: it does not
	Filter string // regular expression that the whole version must match; empty: ".*"
}

// Entry is a version in a list. Without a build it stands for every
// architecture, with one (4.2.14+amd64) for that alone.
type Entry struct {
	Version string
	Line    int // from 1
}

// BlockedEdge is a file of blocked-edges: it removes the updates to one release
// or makes them conditional.
type BlockedEdge struct {
	// File is its path in the tree, Line where its expression starts, from 1.
	File string
	Line int
	// To is the target; with a build, one architecture's.
	To string
	// From is a regular expression, which [CompileFrom] compiles. It is searched
	// for in the version of a source with its architecture: "4.1.18+amd64".
	From string
	// FixedIn is the first version without the exposure, empty if not known.
	FixedIn string
	// AutoExtend says, as a URI, why the risk extends to new releases without
	// asking; empty: it does not.
	AutoExtend string
	// Risk is under which the updates are conditional; nil if absent.
	Risk *configv1.ConditionalUpdateRisk
	// Lines are where the file has its keys, from 1.
	Lines map[string]int
}

// RawEntry is a value of raw/metadata.json.
type RawEntry struct {
	Line                int // of the key, from 1
	Version, Key, Value string
}

// Suggestion is what a build of a minor writes into its list of predecessors,
// for one architecture.
type Suggestion struct {
	File string
	Line int // of the architecture's key, from 1
	// Minor is e.g. "4.20", from the file's name.
	Minor string
	// Arch is an architecture, or "default" for those that the file does not name.
	Arch string
	// MinorMin and MinorMax bound what is taken of the previous minor, ZMin and
	// ZMax what is taken of the same; both ends belong to it.
	MinorMin, MinorMax, ZMin, ZMax string
	// MinorBlockList and ZBlockList are left out.
	MinorBlockList, ZBlockList []string
}
