package image

import (
	"context"
	"errors"
	"fmt"

	"github.com/clusterupdate/clusterupdate/internal/oci"
)

// Entry is an image, or an index of images, that a source holds.
type Entry struct {
	// Digest is what a pull spec names it by.
	Digest string
	// Name is the reference name that the layout gives it, or its repository in a
	// mirror, with its tag if it has one; may be empty.
	Name string
	// Platform is what it is made for; zero for an index, and if nothing says so.
	Platform Platform
	// Index reports that it is an index of images, which follow it.
	Index bool
}

// List returns what files hold: each index before its images. It shows which releases
// a mirror has; names and platforms are what the mirror says. A store cannot be
// listed: that is errors.ErrUnsupported. Other errors are those of reading, and
// [*LimitError].
func (s *Source) List(ctx context.Context) ([]Entry, error) {
	layout, ok := s.store.(*oci.Layout)
	if !ok {
		return nil, fmt.Errorf("%s: %w", s.name, errors.ErrUnsupported)
	}
	found, err := oci.List(ctx, layout, s.o.Limits)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	out := make([]Entry, len(found))
	for i, d := range found {
		out[i] = Entry{Digest: d.Digest, Name: d.Annotations[oci.RefName], Index: d.IsIndex()}
		if d.Platform != nil {
			out[i].Platform = *d.Platform
		}
	}
	return out, nil
}
