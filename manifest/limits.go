package manifest

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/clusterupdate/clusterupdate/internal/limit"
)

// Limits bound what is read from a payload, and so what reading it costs and
// what is kept of it. Zero fields mean the default, which lies well above real
// payloads (of about 930 documents in 660 files with 11 MB, at most 24 in one
// file, the largest of 1.2 MB). Passing a limit is an error that names it, a
// [*LimitError]; a negative field is one too.
type Limits struct {
	// Files is the largest number of manifest files; 0: 20,000.
	Files int
	// Documents is the largest number of objects in all files; 0: 50,000.
	Documents int
	// DocumentsPerFile is the largest number of objects in a file; 0: 5,000.
	DocumentsPerFile int
	// FileSize is the largest size of a file in bytes, also after its template
	// has been rendered; 0: 16 MiB.
	FileSize int64
	// TotalSize is the largest size in bytes of all manifest files, rendered,
	// together with the JSON form of their objects ([Manifest.Raw]); 0: 512 MiB.
	TotalSize int64
	// Depth is how deep maps and lists may be nested; 0: 500.
	Depth int
	// Values is the largest number of values in the objects of all files: maps,
	// lists and what they hold (a real payload has 121,000); 0: 2,000,000. In a
	// YAML document in an unusual form, each character that could start a value
	// counts until the document has been decoded.
	Values int
	// ExpandedSize is the largest size in bytes to which aliases may expand
	// the documents that have some, all files together; 0: 16 MiB.
	ExpandedSize int64
	// TemplateSteps is what a template may cost: a step for every four bytes of its
	// file, and each time that a node of it may be executed one step, and one more for
	// every four bytes of the node's pipeline; 0: 100,000.
	TemplateSteps int
	// TemplateText is how many bytes of text the functions of a template
	// (print, printf, html, ...) may make; 0: 64 KiB.
	TemplateText int64
}

// complete returns the limits with defaults in place of zeros.
func (l Limits) complete() Limits {
	return Limits{
		Files:            cmp.Or(l.Files, 20_000),
		Documents:        cmp.Or(l.Documents, 50_000),
		DocumentsPerFile: cmp.Or(l.DocumentsPerFile, 5_000),
		FileSize:         cmp.Or(l.FileSize, 16<<20),
		TotalSize:        cmp.Or(l.TotalSize, 512<<20),
		Depth:            cmp.Or(l.Depth, 500),
		Values:           cmp.Or(l.Values, 2_000_000),
		ExpandedSize:     cmp.Or(l.ExpandedSize, 16<<20),
		TemplateSteps:    cmp.Or(l.TemplateSteps, 100_000),
		TemplateText:     cmp.Or(l.TemplateText, 64<<10),
	}
}

// LimitError reports which of the [Limits] was passed, in its field Limit.
type LimitError = limit.LimitError

const totalSizeWhat = "bytes in all manifest files and the JSON of their objects"

// budget returns what the files of a payload may take together.
func (l Limits) budget() limit.Budget {
	return limit.Budget{
		Bytes:   limit.Limit{Max: l.TotalSize, Name: "TotalSize", What: totalSizeWhat},
		Values:  limit.Limit{Max: int64(l.Values), Name: "Values", What: "values in all manifests"},
		Entries: limit.Limit{Max: int64(l.Documents), Name: "Documents", What: "documents in all manifest files"},
		Depth:   limit.Limit{Max: int64(l.Depth), Name: "Depth", What: "levels of maps and lists"},
		Aliases: limit.Limit{Max: l.ExpandedSize, Name: "ExpandedSize", What: "bytes after the expansion of aliases"},
	}
}

func (l Limits) files() limit.Limit {
	return limit.Limit{Max: int64(l.Files), Name: "Files", What: "manifest files"}
}

func (l Limits) fileSize() limit.Limit {
	return limit.Limit{Max: l.FileSize, Name: "FileSize", What: "bytes in the file"}
}

func (l Limits) documentsPerFile() limit.Limit {
	return limit.Limit{Max: int64(l.DocumentsPerFile), Name: "DocumentsPerFile", What: "documents in the file"}
}

// heapError is about a document that would make too much, whatever the limits.
func heapError() error { return &LimitError{Max: limit.Heap, What: "bytes of memory for a document"} }

// contextError returns why a context has ended, with its cause.
func contextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if err == nil || cause == nil || errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
