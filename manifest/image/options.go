package image

import (
	"github.com/clusterupdate/clusterupdate/internal/limit"
	"github.com/clusterupdate/clusterupdate/internal/oci"
)

// Options are those of a [Source]. The zero value works for what holds one
// platform only.
type Options struct {
	// Name is what errors call the source. Empty: the place from which it was
	// opened, else "image source".
	Name string
	// Platform chooses from an index. It does not matter where the wanted digest is
	// one image's. Zero: the index must have only one image.
	Platform Platform
	// Limits bound what is read; zero fields have defaults.
	Limits Limits
}

// Limits bound what is read of images. A zero field means its default; a negative
// one is an error. docs/limits.md lists them.
type Limits = oci.Limits

// Platform is what an image is made for: its fields OS (empty: linux), Architecture and
// Variant are as in an image index, such as linux, arm64 and v8. The zero value means no
// particular platform. Its method Set reads os/architecture, os/architecture/variant, or
// an architecture alone, which is one of linux, so that it is a flag.Value. It is plain
// data: safe to copy and for concurrent use.
type Platform = oci.Platform

// The errors of a [Source], for use with errors.As. They are plain data: safe to
// copy and for concurrent use.
type (
	// LimitError reports which of the [Limits] was passed: fields Where, the file
	// if it is known; Limit, its name; Max, its value; What is limited. Limit is
	// "Items" and "Path" for the two that cannot be changed.
	LimitError = limit.LimitError
	// DigestError reports that what a source holds is not what its name says:
	// fields Want and WantSize, Got and GotSize, sizes in bytes.
	DigestError = oci.DigestError
	// NotFoundError reports that a source has nothing with the wanted digest:
	// fields Want; Available, what it has, in words; Err, why that is not all.
	NotFoundError = oci.NotFoundError
	// PlatformError reports that an index has no image for a platform, or several:
	// fields Platform, zero if none was wanted; Matching, how many; Available,
	// what it has, in words.
	PlatformError = oci.PlatformError
)
