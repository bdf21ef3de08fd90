package image

import "github.com/clusterupdate/clusterupdate/internal/oci"

// Options are those of a [Source]. The zero value works for what holds one
// platform only.
type Options struct {
	// Name is what errors call the source. Empty: the place where it was
	// opened, else "image source".
	Name string
	// Platform chooses from an index. It does not matter where the wanted digest
	// is that of one image. Zero: the index must have only one image.
	Platform Platform
	// Manifests are manifests and indexes, as they are stored in a registry,
	// that the source might lack: see the package's doc. They are not trusted
	// more than what the source holds, and must not be changed.
	Manifests [][]byte
	// Limits bound what is read; zero fields have defaults.
	Limits Limits
}

// Limits bound what is read of an image. A zero field means its default, which
// lies well above real release images; a negative one is an error. Passing a limit
// is a [*LimitError].
type Limits struct {
	// ManifestSize is the largest index, manifest or configuration, in bytes;
	// 0: 4 MiB.
	ManifestSize int64
	// ManifestsSize is the largest size of those that are read to find one
	// image, all together, in bytes; 0: 64 MiB.
	ManifestsSize int64
	// Manifests is how many entries of indexes are looked at; 0: 10,000.
	Manifests int
	// Depth is how deep indexes may be nested, that of a layout counting as the
	// first; 0: 8.
	Depth int
	// Layers is the largest number of layers of an image; 0: 256.
	Layers int
	// LayerSize is the largest layer as it is stored, in bytes; 0: 4 GiB.
	LayerSize int64
	// TotalSize is the largest size of all layers uncompressed, in bytes;
	// 0: 16 GiB.
	TotalSize int64
	// Entries is the largest number of files, directories and links in all
	// layers, and in an archive; 0: 1,000,000.
	Entries int
	// FileSize is the largest file of a payload, in bytes; 0: 16 MiB.
	FileSize int64
	// KeptSize is the largest size of all that is held in memory, in bytes: the
	// payload's files, also those that later layers replace, and the names of an
	// archive's entries; 0: 512 MiB.
	KeptSize int64
}

// Platform is what an image is made for: its fields OS (empty: linux),
// Architecture and Variant are as in an image index, such as linux, arm64 and v8.
// The zero value is no platform in particular. It is plain data: safe to copy and
// for concurrent use.
type Platform = oci.Platform

// ParsePlatform reads os/architecture, os/architecture/variant, or an architecture
// alone, which is one of linux. Anything else is an error.
func ParsePlatform(s string) (Platform, error) { return oci.ParsePlatform(s) }

// The errors of a [Source], for use with errors.As. They are plain data: safe to
// copy and for concurrent use.
type (
	// LimitError says which of the [Limits] was passed: fields Limit, its name;
	// Max, its value; What is limited. Limit is "Items" and "Path" for the two
	// that cannot be changed.
	LimitError = oci.LimitError
	// DigestError tells that what a source holds is not what its name says:
	// fields Want and WantSize, Got and GotSize, sizes in bytes.
	DigestError = oci.DigestError
	// NotFoundError tells that a source has nothing with the wanted digest:
	// fields Want; Available, what it has, in words; Err, why some of that could
	// not be read.
	NotFoundError = oci.NotFoundError
	// PlatformError tells that an index has no image for a platform, or several:
	// fields Platform, zero if none was wanted; Matching, how many; Available,
	// what it has, in words.
	PlatformError = oci.PlatformError
)
