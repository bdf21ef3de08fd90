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
	// file, and for each time that a node of it may be executed; 0: 100,000.
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

func fileSizeError(limit int64) error {
	return &LimitError{Limit: "FileSize", Max: limit, What: "bytes in the file"}
}

func valuesError(limit int) error {
	return &LimitError{Limit: "Values", Max: int64(limit), What: "values in all manifests"}
}

// heapError is about a document that would make too much, whatever the limits.
func heapError() error { return &LimitError{Max: limit.Heap, What: "bytes of memory for a document"} }

func expandedError(limit int64) error {
	return &LimitError{Limit: "ExpandedSize", Max: limit, What: "bytes after the expansion of aliases"}
}

func filesError(limit int) error {
	return &LimitError{Limit: "Files", Max: int64(limit), What: "manifest files"}
}

func depthError(limit int) error {
	return &LimitError{Limit: "Depth", Max: int64(limit), What: "levels of maps and lists"}
}

// usage is what a file, or several, take of the limits of a payload.
type usage struct {
	documents int64
	size      int64 // of the file as decoded, and of the JSON of its objects
	values    int64
	expanded  int64 // size of documents that have aliases
}

func (u *usage) add(other usage) {
	u.documents += other.documents
	u.size += other.size
	u.values += other.values
	u.expanded += other.expanded
}

// check returns the first limit of a payload that is passed.
func (u usage) check(l *Limits) error {
	switch {
	case u.size > l.TotalSize:
		return &LimitError{Limit: "TotalSize", Max: l.TotalSize, What: "bytes in all manifest files and the JSON of their objects"}
	case u.documents > int64(l.Documents):
		return &LimitError{Limit: "Documents", Max: int64(l.Documents), What: "documents in all manifest files"}
	case u.values > int64(l.Values):
		return valuesError(l.Values)
	case u.expanded > l.ExpandedSize:
		return expandedError(l.ExpandedSize)
	}
	return nil
}

// contextError returns why a context has ended, with its cause.
func contextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if err == nil || cause == nil || errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
