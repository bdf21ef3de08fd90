package sigstore

import (
	"errors"
	"fmt"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/oci"
)

// The defaults of [Limits].
const (
	DefaultCandidates = 64
	DefaultBytes      = 16 << 20 // 16 MiB, in bytes
)

// Limits bound what a [Layout] or a [Registry] reads in one verification. The
// zero value means the defaults.
type Limits struct {
	// Candidates is how many entries of a layout's index are read as possible
	// signatures of the image, and how many referrers of an image are told of;
	// zero or less means DefaultCandidates.
	Candidates int
	// Bytes is how many bytes are read in all: manifests, indexes, payloads,
	// and answers of token services. Zero or less means DefaultBytes. From a
	// registry, the answer that passes it is dropped once it has been read; it
	// is not larger than any answer may be.
	Bytes int64
}

// LimitError says which limit something from outside passed.
type LimitError struct {
	Limit string // its name in the documentation of the package
	Max   int64
	What  string // what passed it; bounded
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("%s: more than the limit of %d (%s)", e.What, e.Max, e.Limit)
}

// The names of limits, as the documentation of the package has them.
const (
	limitCandidates   = "candidates of an image"
	limitBytes        = "bytes of a verification"
	limitAttempts     = "attempts of a verification"
	limitLayers       = "layers of signatures"
	limitAnnotations  = "annotations of a layer"
	limitItems        = "items of an index"
	limitSignature    = "size of a signature"
	limitCertificates = "certificates of a chain"
	limitToken        = "size of a token"
)

const (
	// maxAnnotations bounds the number of annotations of one layer.
	maxAnnotations = 64
	// maxSignature bounds the text of a signature.
	maxSignature = 8 << 10
	// maxCertificates bounds the certificates of a chain.
	maxCertificates = 16
	// maxToken bounds a token.
	maxToken = 16 << 10
	// maxAttempts bounds what is taken of a source.
	maxAttempts = 1024
	// maxChallenges is how many headers that ask for authorization are read.
	maxChallenges = 8

	// maxWord and maxReason bound, in bytes, what of names and of causes gets
	// into texts; maxReasons all of them.
	maxWord    = 512
	maxReason  = 1 << 10
	maxReasons = 1536
)

func short(s string) string { return bounded.Text(s, maxWord) }

// budget is what one search may still read.
type budget struct {
	who        string
	limits     Limits
	bytes      int64
	candidates int
}

func newBudget(who string, l Limits) *budget {
	l = l.withDefaults()
	return &budget{who: who, limits: l, bytes: l.Bytes, candidates: l.Candidates}
}

func (l Limits) withDefaults() Limits {
	if l.Candidates <= 0 {
		l.Candidates = DefaultCandidates
	}
	if l.Bytes <= 0 {
		l.Bytes = DefaultBytes
	}
	return l
}

// afford reports whether n more bytes may be read.
func (b *budget) afford(n int64) error {
	if n > b.bytes {
		return &LimitError{Limit: limitBytes, Max: b.limits.Bytes, What: short(b.who)}
	}
	return nil
}

// spend takes note of n bytes that have been read.
func (b *budget) spend(n int64) error {
	err := b.afford(n)
	b.bytes -= min(n, b.bytes)
	return err
}

// candidate takes note of one more candidate.
func (b *budget) candidate() error {
	if b.candidates == 0 {
		return &LimitError{Limit: limitCandidates, Max: int64(b.limits.Candidates), What: short(b.who)}
	}
	b.candidates--
	return nil
}

// decode reads JSON as [oci.Decode] does.
func decode(data []byte, to any) error {
	err := oci.Decode(data, to)
	if past, ok := errors.AsType[*oci.LimitError](err); ok {
		return &LimitError{Limit: limitItems, Max: past.Max, What: "JSON"}
	}
	return err
}
