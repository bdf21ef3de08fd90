package oci

import (
	"cmp"

	"github.com/clusterupdate/clusterupdate/internal/limit"
	"github.com/clusterupdate/clusterupdate/internal/options"
)

// Limits bound what is read of images. A zero field means its default, which lies
// well above real release images; a negative one is an error. Passing a limit is a
// [*limit.LimitError] with the name of the field.
type Limits struct {
	// ManifestSize is the largest index, manifest or configuration, in bytes;
	// 0: 4 MiB.
	ManifestSize int64
	// ManifestsSize is the largest size of the manifests that one search reads, all
	// together, in bytes; 0: 64 MiB.
	ManifestsSize int64
	// Manifests is how many entries of indexes one search looks at; 0: 10,000.
	Manifests int
	// Depth is how deep indexes may be nested; 0: 8.
	Depth int
	// Layers is the largest number of layers of an image; 0: 256.
	Layers int
	// LayerSize is the largest layer as it is stored, in bytes; 0: 4 GiB.
	LayerSize int64
	// TotalSize is the largest size of all layers uncompressed, in bytes;
	// 0: 16 GiB.
	TotalSize int64
	// Entries is the largest number of files, directories and links in all
	// layers, in archives, and in the folders of a mirror; 0: 1,000,000.
	Entries int
	// FileSize is the largest file that is kept, in bytes; 0: 16 MiB.
	FileSize int64
	// KeptSize is the largest size of all that is kept in memory, in bytes:
	// files, also those that later layers replace, their names, and the names of
	// an archive's entries; 0: 512 MiB.
	KeptSize int64
}

// complete returns the limits with defaults in place of zeros. The error reports
// which field is negative.
func (l Limits) complete() (Limits, error) {
	if err := options.NonNegative(l); err != nil {
		return l, err
	}
	size := func(limit, otherwise int64) int64 { return min(cmp.Or(limit, otherwise), noLimit) }
	return Limits{
		ManifestSize:  size(l.ManifestSize, 4<<20),
		ManifestsSize: size(l.ManifestsSize, 64<<20),
		Manifests:     cmp.Or(l.Manifests, 10_000),
		Depth:         cmp.Or(l.Depth, 8),
		Layers:        cmp.Or(l.Layers, 256),
		LayerSize:     size(l.LayerSize, 4<<30),
		TotalSize:     size(l.TotalSize, 16<<30),
		Entries:       cmp.Or(l.Entries, 1_000_000),
		FileSize:      size(l.FileSize, 16<<20),
		KeptSize:      size(l.KeptSize, 512<<20),
	}, nil
}

const (
	// noLimit is the largest limit in bytes, beyond all that there is: sums with
	// it do not overflow.
	noLimit = 1 << 60
	// maxItems bounds objects and members of an index or manifest, since a
	// short text can hold many that are large in memory.
	maxItems = 128 << 10
	// maxPath is the longest name of a file or link, in bytes.
	maxPath = 4096
	// maxLinks is how many symbolic links are followed for one name.
	maxLinks = 40
	// nodeSize is about what an entry takes in memory, not counting its names.
	nodeSize = 256
)

func (l Limits) manifestSize() limit.Limit {
	return limit.Limit{Max: l.ManifestSize, Name: "ManifestSize", What: "bytes in an index, manifest or configuration"}
}

func (l Limits) entries(where string) limit.Limit {
	return limit.Limit{Max: int64(l.Entries), Name: "Entries", What: "entries in " + where}
}

// pathLimit bounds names of files and links.
var pathLimit = limit.Limit{Max: maxPath, Name: "Path", What: "bytes in the name of a file or link"}
