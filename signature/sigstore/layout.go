package sigstore

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"strings"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
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
	// Limits bound what a verification reads.
	Limits Limits
}

// DirLayout returns the layout in a directory.
func DirLayout(dir string) *Layout { return &Layout{FS: os.DirFS(dir), Name: dir} }

func (l *Layout) String() string { return "OCI layout " + l.Name }

// maxVersion is the largest file oci-layout that is read, in bytes.
const maxVersion = 4 << 10

// refName is the annotation of an index's entry that names it.
const refName = "org.opencontainers.image.ref.name"

// Attachments implements [Source].
func (l *Layout) Attachments(ctx context.Context, digest string) iter.Seq2[Attachment, error] {
	return func(yield func(Attachment, error) bool) {
		tag, err := SignatureTag(digest)
		if err != nil {
			yield(Attachment{}, err)
			return
		}
		s := &layoutSearch{l, newBudget(l.Limits)}
		images, err := s.images()
		if err != nil {
			yield(Attachment{}, err)
			return
		}
		n := counter{source: l.String(), digest: digest}
		for _, d := range images {
			if err := ctx.Err(); err != nil {
				yield(Attachment{}, err)
				return
			}
			name := d.Annotations[refName]
			bundle := strings.HasPrefix(d.ArtifactType, bundleType)
			named := name == tag || strings.HasSuffix(name, ":"+tag)
			if !bundle && !named {
				continue
			}
			if err := s.budget.candidate(digest); err != nil {
				yield(Attachment{}, fmt.Errorf("%s: %w", l, err))
				return
			}
			about := false
			if bundle {
				var err error
				if about, err = s.about(d, digest); isLimit(err) {
					yield(Attachment{}, fmt.Errorf("%s: %w", l, err))
					return
				}
			}
			if about {
				if !yield(Attachment{}, &OtherError{Location: l.Name + " " + d.Digest, MediaType: d.ArtifactType}) {
					return
				}
				continue
			}
			if !named {
				continue
			}
			layers, err := s.layers(d)
			if err != nil {
				if !yield(Attachment{Location: l.Name + " " + bounded.Text(d.Digest, 256)}, err) || isLimit(err) {
					return
				}
				continue
			}
			n.image = l.Name + " " + bounded.Text(name, 512)
			if !n.take(ctx, layers, s.blob, yield) {
				return
			}
		}
		if n.signatures == 0 {
			yield(Attachment{}, fmt.Errorf("%s has no signatures under %s: %w", l, tag, signature.ErrNotFound))
		}
	}
}

// layoutSearch is one search in a layout.
type layoutSearch struct {
	*Layout
	budget *budget
}

// images returns the entries of the layout's index.
func (l *layoutSearch) images() ([]descriptor, error) {
	var version struct {
		Version string `json:"imageLayoutVersion"`
	}
	data, err := l.read("oci-layout", maxVersion)
	if err == nil {
		err = decode(data, &version)
	}
	if err != nil {
		return nil, fmt.Errorf("%s is no OCI layout: %w", l.Name, err)
	}
	if !strings.HasPrefix(version.Version, "1.") {
		return nil, fmt.Errorf("%s is an OCI layout of unknown version %q", l.Name, bounded.Text(version.Version, 64))
	}
	if data, err = l.read("index.json", maxManifest); err != nil {
		return nil, fmt.Errorf("%s: %w", l.Name, err)
	}
	i, err := l.budget.index(data)
	if err != nil {
		return nil, fmt.Errorf("%s: index.json: %w", l.Name, err)
	}
	return i.Manifests, nil
}

// layers returns those of a manifest.
func (l *layoutSearch) layers(d descriptor) ([]descriptor, error) {
	if d.MediaType != "" && d.MediaType != ociManifest {
		return nil, &OtherError{Location: l.Name + " " + d.Digest, MediaType: d.MediaType}
	}
	data, err := l.blob(d, maxManifest)
	if err != nil {
		return nil, fmt.Errorf("unable to read manifest %s: %w", d.Digest, err)
	}
	m, err := l.budget.index(data)
	if err != nil {
		return nil, fmt.Errorf("manifest %s: %w", d.Digest, err)
	}
	return m.Layers, nil
}

// about reports whether a referrer is about the image with this digest. One
// that cannot be read is not.
func (l *layoutSearch) about(d descriptor, digest string) (bool, error) {
	data, err := l.blob(d, maxManifest)
	if err != nil {
		return false, err
	}
	m, err := l.budget.index(data)
	return err == nil && m.Subject != nil && m.Subject.Digest == digest, err
}

// blob reads a blob, whose size and digest must be those of its descriptor.
func (l *layoutSearch) blob(d descriptor, limit int64) ([]byte, error) {
	if err := d.validate(limit); err != nil {
		return nil, err
	}
	algo, want, _ := strings.Cut(d.Digest, ":")
	data, err := l.read(path.Join("blobs", algo, want), d.Size)
	if err != nil {
		return nil, err
	}
	if err := d.check(data); err != nil {
		return nil, err
	}
	return data, nil
}

// read returns a regular file of at most limit bytes.
func (l *layoutSearch) read(name string, limit int64) ([]byte, error) {
	info, err := fs.Stat(l.FS, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	// The size is a claim: what is read beyond it is paid for below.
	if err := l.budget.read(min(max(info.Size(), 0), limit)); err != nil {
		return nil, err
	}
	f, err := l.FS.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var b bytes.Buffer
	if _, err := io.Copy(&b, io.LimitReader(f, limit+1)); err != nil {
		return nil, err
	}
	if int64(b.Len()) > limit {
		return nil, fmt.Errorf("%s is larger than %d bytes", name, limit)
	}
	if more := int64(b.Len()) - info.Size(); more > 0 {
		if err := l.budget.read(more); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}
