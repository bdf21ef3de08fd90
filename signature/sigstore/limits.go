package sigstore

import (
	"cmp"
	"errors"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/limit"
	"github.com/clusterupdate/clusterupdate/internal/oci"
)

// Limits bound what a [Source] over images reads in one verification. A zero field
// means its default; a negative one is an error.
type Limits struct {
	// Candidates is how many entries of a layout's index are read as possible
	// signatures of the image, and how many referrers of an image are reported;
	// 0: 64.
	Candidates int
	// Bytes is how many bytes are read in all: manifests, indexes and payloads;
	// 0: 16 MiB.
	Bytes int64
}

const (
	// maxPayload is the largest payload, in bytes, that is read.
	maxPayload = 64 << 10
	// maxLayers is how many signatures of one image are tried.
	maxLayers = 32
	// maxManifest is the largest manifest, or index, that is read.
	maxManifest = 4 << 20
	// maxAnnotations bounds the number of annotations of one layer.
	maxAnnotations = 64
	// maxSignature bounds the text of a signature.
	maxSignature = 8 << 10
	// maxCertificates bounds the certificates of a chain.
	maxCertificates = 16
	// maxAttempts bounds what is taken of a source.
	maxAttempts = 1024

	// maxWord and maxReason bound, in bytes, how much of names and causes gets into
	// texts; maxReasons all of them.
	maxWord    = 512
	maxReason  = 1 << 10
	maxReasons = 1536
)

// The limits on one thing that is read.
var (
	manifestLimit = limit.Limit{Max: maxManifest, What: "bytes in an index or manifest"}
	payloadLimit  = limit.Limit{Max: maxPayload, What: "bytes in a payload"}
)

func short(s string) string { return bounded.Text(s, maxWord) }

// budget returns what one search in a source may read.
func (l Limits) budget(source string) limit.Budget {
	return limit.Budget{
		Bytes:   limit.Limit{Max: cmp.Or(l.Bytes, 16<<20), Name: "Bytes", What: "bytes in all in " + short(source)},
		Entries: limit.Limit{Max: int64(cmp.Or(l.Candidates, 64)), Name: "Candidates", What: "candidates in " + short(source)},
	}
}

// spent reports whether err ends a search: nothing more may be read.
func spent(err error) bool {
	passed, ok := errors.AsType[*limit.LimitError](err)
	return ok && passed.Limit != "" && passed.Limit != "Items"
}

func parseManifest(data []byte) (oci.Manifest, error) {
	var m oci.Manifest
	err := oci.Decode(data, &m)
	return m, err
}
