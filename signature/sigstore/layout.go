package sigstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"strings"

	"github.com/clusterupdate/clusterupdate/internal/oci"
	"github.com/clusterupdate/clusterupdate/signature"
)

// Layout reads signatures from an OCI image layout: a directory with
// index.json and blobs, as mirror tools write it. The image of the signatures
// is the one whose reference name is [SignatureTag], or a full name with that
// tag. It is safe for concurrent use if FS is.
type Layout struct {
	// FS holds the layout.
	FS fs.FS
	// Name tells people where that is.
	Name string
	// Limits bound what one verification reads.
	Limits Limits
}

// DirLayout returns the layout in a directory.
func DirLayout(dir string) *Layout { return &Layout{FS: os.DirFS(dir), Name: dir} }

func (l *Layout) String() string { return "OCI layout " + l.Name }

// Attachments implements [Source]. Signatures come before what else is attached
// to the image.
func (l *Layout) Attachments(ctx context.Context, digest string) iter.Seq2[Attachment, error] {
	return func(yield func(Attachment, error) bool) {
		tag, err := SignatureTag(digest)
		if err != nil {
			yield(Attachment{}, err)
			return
		}
		r := &layoutReader{Layout: l, budget: newBudget(l.String(), l.Limits)}
		images, err := r.images()
		if err != nil {
			yield(Attachment{}, err)
			return
		}
		n := counter{source: l.String(), digest: digest}
		for _, d := range images {
			name := d.Annotations[oci.RefName]
			if isBundle(d) || name != tag && !strings.HasSuffix(name, ":"+tag) {
				continue
			}
			if err := cmp.Or(ctx.Err(), r.candidate()); err != nil {
				yield(Attachment{}, err)
				return
			}
			layers, err := r.layers(d)
			if err != nil {
				if !yield(Attachment{Location: l.Name + " " + short(d.Digest)}, err) || spent(err) {
					return
				}
				continue
			}
			n.image = l.Name + " " + short(name)
			if !n.take(ctx, layers, r.blob, yield) {
				return
			}
		}
		for _, d := range images {
			if !isBundle(d) {
				continue
			}
			if err := cmp.Or(ctx.Err(), r.candidate()); err != nil {
				yield(Attachment{}, err)
				return
			}
			about, err := r.about(d, digest)
			switch {
			case err != nil:
				yield(Attachment{}, err)
				return
			case about && !yield(Attachment{}, &OtherError{Location: l.Name + " " + short(d.Digest), MediaType: short(d.ArtifactType)}):
				return
			}
		}
		if n.signatures == 0 {
			yield(Attachment{}, fmt.Errorf("%s has no signatures under %s: %w", l, tag, signature.ErrNotFound))
		}
	}
}

// layoutReader is one search.
type layoutReader struct {
	*Layout
	*budget
}

// images returns the entries of the layout's index.
func (l *layoutReader) images() ([]oci.Descriptor, error) { return oci.Index(l.Name, l.decode) }

func (l *layoutReader) decode(name string, to any) error {
	data, err := l.read(name, maxManifest)
	if err != nil {
		return err
	}
	if err := decode(data, to); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// layers returns those of a manifest.
func (l *layoutReader) layers(d oci.Descriptor) ([]oci.Descriptor, error) {
	if d.MediaType != "" && d.MediaType != oci.TypeManifest {
		return nil, &OtherError{Location: l.Name + " " + short(d.Digest), MediaType: short(d.MediaType)}
	}
	data, err := l.blob(d, maxManifest)
	if err != nil {
		return nil, fmt.Errorf("unable to read manifest %s: %w", short(d.Digest), err)
	}
	m, err := parseManifest(data)
	if err != nil {
		return nil, fmt.Errorf("manifest %s: %w", short(d.Digest), err)
	}
	return m.Layers, nil
}

// about reports whether a referrer is about the image with this digest. One
// that cannot be read is not. The error says that nothing more may be read.
func (l *layoutReader) about(d oci.Descriptor, digest string) (bool, error) {
	data, err := l.blob(d, maxManifest)
	if err != nil {
		if !spent(err) {
			err = nil
		}
		return false, err
	}
	m, err := parseManifest(data)
	return err == nil && m.Subject != nil && m.Subject.Digest == digest, nil
}

// blob reads a blob, whose size and digest must be those of its descriptor.
func (l *layoutReader) blob(d oci.Descriptor, limit int64) ([]byte, error) {
	if err := validate(d, limit); err != nil {
		return nil, err
	}
	if err := l.afford(d.Size); err != nil {
		return nil, err
	}
	data, err := l.read(oci.BlobPath(d.Digest), d.Size)
	if err != nil {
		return nil, err
	}
	if err := check(d, data); err != nil {
		return nil, err
	}
	return data, nil
}

// read returns a regular file of at most limit bytes.
func (l *layoutReader) read(name string, limit int64) ([]byte, error) {
	allowed := min(limit, l.bytes)
	data, err := oci.ReadFile(l.FS, name, allowed)
	// One byte past what is allowed tells that there are more.
	over := l.spend(int64(len(data)))
	if over != nil && allowed < limit && errors.Is(err, oci.ErrTooLarge) {
		err = over
	}
	return data, err
}
