package manifest

import "fmt"

// Limits bound what is read from a payload. Zero fields mean the default,
// which lies well above real payloads (of about 930 documents in 660 files
// with 11 MB, at most 24 in one file, the largest of 1.2 MB). Passing a limit
// is an error that names it.
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
	// TotalSize is the largest size of all manifest files in bytes; 0: 512 MiB.
	TotalSize int64
	// Depth is how deep maps and lists may be nested; 0: 500.
	Depth int
	// ExpandedSize is the largest size in bytes to which the aliases of a
	// document may expand it; 0: 16 MiB.
	ExpandedSize int64
}

func (l Limits) withDefaults() Limits {
	def := func(n *int, value int) {
		if *n == 0 {
			*n = value
		}
	}
	def64 := func(n *int64, value int64) {
		if *n == 0 {
			*n = value
		}
	}
	def(&l.Files, 20_000)
	def(&l.Documents, 50_000)
	def(&l.DocumentsPerFile, 5_000)
	def64(&l.FileSize, 16<<20)
	def64(&l.TotalSize, 512<<20)
	def(&l.Depth, 500)
	def64(&l.ExpandedSize, 16<<20)
	return l
}

// LimitError says which of the [Limits] was passed.
type LimitError struct {
	// Limit is the name of the field of Limits.
	Limit string
	// Max is its value.
	Max int64
	// What is limited, such as "bytes in the file".
	What string
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("more than %d %s (limit %s)", e.Max, e.What, e.Limit)
}

func fileSizeError(limit int64) error {
	return &LimitError{Limit: "FileSize", Max: limit, What: "bytes in the file"}
}
