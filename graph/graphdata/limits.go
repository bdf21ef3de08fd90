package graphdata

import "cmp"

// Limits bound what is read. A field that is zero means its default.
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
}

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
	return l
}
