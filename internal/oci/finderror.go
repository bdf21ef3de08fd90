package oci

import (
	"fmt"
	"strings"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// NotFoundError reports that nothing has the wanted digest.
type NotFoundError struct {
	// Want is the digest.
	Want string
	// Available are the digests of the images and indexes that are there, each
	// with its name or platform if it has one.
	Available []string
	// Err is the reason if Available is not all; may be nil.
	Err error
}

func (e *NotFoundError) Error() string {
	s := "there is no image " + bounded.Quote(e.Want) + ", but " + list(e.Available)
	if e.Err != nil {
		s += "; not all could be listed: " + bounded.Text(e.Err.Error(), maxReason)
	}
	return s
}

// Unwrap returns Err.
func (e *NotFoundError) Unwrap() error { return e.Err }

// PlatformError reports that not exactly one image is made for a platform.
type PlatformError struct {
	// Platform is the one that was wanted; zero if none was.
	Platform Platform
	// Matching is how many images are made for it: 0, or 2 and more.
	Matching int
	// Available determines which images there are: platform and digest.
	Available []string
}

func (e *PlatformError) Error() string {
	switch {
	case e.Matching == 0 && e.Platform == (Platform{}):
		return "there is no image"
	case e.Platform == (Platform{}):
		return fmt.Sprintf("one of %d images must be chosen by its platform: %s", e.Matching, list(e.Available))
	case e.Matching == 0:
		return fmt.Sprintf("there is no image for %s, but %s", e.Platform, list(e.Available))
	}
	return fmt.Sprintf("there are %d images for %s: %s", e.Matching, e.Platform, list(e.Available))
}

func list(items []string) string {
	if len(items) == 0 {
		return "none at all"
	}
	return bounded.Join(items, ", ", maxReason)
}

// describe names an entry for people.
func describe(d Descriptor) string {
	var notes []string
	if d.Platform != nil {
		notes = append(notes, printable(d.Platform.String()))
	}
	if name := d.Annotations[RefName]; name != "" {
		notes = append(notes, printable(name))
	}
	s := printable(d.Digest)
	if len(notes) > 0 {
		s += " (" + strings.Join(notes, ", ") + ")"
	}
	return bounded.Text(s, bounded.MaxQuoted)
}

// printable returns a text from outside for people, bounded, and quoted if it would
// be hard to read.
func printable(s string) string {
	quoted := bounded.Quote(s)
	if quoted == `"`+s+`"` {
		return s
	}
	return quoted
}
