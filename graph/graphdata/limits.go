package graphdata

import "cmp"

// Limits bound what [Load] and [OpenArchive] read. A field that is zero means its
// default.
type Limits struct {
	// MaxFiles is how many files and directories of a tree are looked at; the
	// default is 20,000.
	MaxFiles int
	// MaxTreeBytes is how many bytes all files that are read may have together;
	// the default is 32 MiB.
	MaxTreeBytes int64
	// MaxFileBytes is how many bytes a file may have, with aliases replaced by
	// what they stand for; the default is 1 MiB.
	MaxFileBytes int64
	// MaxEntries is how many versions all channels may list together; the default
	// is 200,000.
	MaxEntries int
	// MaxProblems is how many problems are kept; the default is 10,000.
	MaxProblems int
	// MaxCompressed is how many bytes an archive may have; the default is 64 MiB.
	MaxCompressed int64
	// MaxExpanded is how many bytes the files and headers of an archive may have
	// together; the default is 512 MiB.
	MaxExpanded int64
	// MaxArchiveEntries is how many entries an archive may have, and how many
	// directories these may make; the default is 100,000.
	MaxArchiveEntries int
}

// What limits bound, as errors name it.
const (
	limitFiles          = "files and directories"
	limitTreeBytes      = "bytes of all files"
	limitFileBytes      = "bytes of a file"
	limitEntries        = "versions in channels"
	limitProblems       = "problems"
	limitDepth          = "levels of nested YAML"
	limitExpression     = "bytes of a regular expression"
	limitCompressed     = "bytes of an archive"
	limitExpanded       = "bytes of an archive, expanded"
	limitArchiveEntries = "entries of an archive"
	limitNodes          = "nodes"
	limitEdges          = "edges"
	limitRawBytes       = "bytes of a stored graph"
	limitReleases       = "releases"
	limitLine           = "bytes of a line"
)

// The limits of a file that no option changes.
const (
	maxDepth      = 16   // levels of nested YAML
	maxExpression = 1024 // bytes of a regular expression
)

func (l Limits) withDefaults() Limits {
	l.MaxFiles = cmp.Or(l.MaxFiles, 20_000)
	l.MaxTreeBytes = cmp.Or(l.MaxTreeBytes, 32<<20)
	l.MaxFileBytes = cmp.Or(l.MaxFileBytes, 1<<20)
	l.MaxEntries = cmp.Or(l.MaxEntries, 200_000)
	l.MaxProblems = cmp.Or(l.MaxProblems, 10_000)
	l.MaxCompressed = cmp.Or(l.MaxCompressed, 64<<20)
	l.MaxExpanded = cmp.Or(l.MaxExpanded, 512<<20)
	l.MaxArchiveEntries = cmp.Or(l.MaxArchiveEntries, 100_000)
	return l
}
