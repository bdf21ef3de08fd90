package sigstore

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"strings"

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

// refName is the annotation of an index's entry that names it.
const refName = "org.opencontainers.image.ref.name"

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
			name := d.Annotations[refName]
			if d.bundle() || name != tag && !strings.HasSuffix(name, ":"+tag) {
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
			if !d.bundle() {
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

// bundle reports whether this is a bundle of newer versions of cosign.
func (d descriptor) bundle() bool { return strings.HasPrefix(d.ArtifactType, bundleType) }

// layoutReader is one search.
type layoutReader struct {
	*Layout
	*budget
}

// images returns the entries of the layout's index.
func (l *layoutReader) images() ([]descriptor, error) {
	var version struct {
		Version string `json:"imageLayoutVersion"`
	}
	if err := l.decode("oci-layout", &version); err != nil {
		return nil, fmt.Errorf("%s is no OCI layout: %w", l.Name, err)
	}
	if !strings.HasPrefix(version.Version, "1.") {
		return nil, fmt.Errorf("%s is an OCI layout of unknown version %q", l.Name, short(version.Version))
	}
	var i index
	if err := l.decode("index.json", &i); err != nil {
		return nil, fmt.Errorf("%s: %w", l.Name, err)
	}
	return i.Manifests, nil
}

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
func (l *layoutReader) layers(d descriptor) ([]descriptor, error) {
	if d.MediaType != "" && d.MediaType != ociManifest {
		return nil, &OtherError{Location: l.Name + " " + short(d.Digest), MediaType: short(d.MediaType)}
	}
	data, err := l.blob(d, maxManifest)
	if err != nil {
		return nil, fmt.Errorf("unable to read manifest %s: %w", short(d.Digest), err)
	}
	var m index
	if err := decode(data, &m); err != nil {
		return nil, fmt.Errorf("manifest %s: %w", short(d.Digest), err)
	}
	return m.Layers, nil
}

// about reports whether a referrer is about the image with this digest. One
// that cannot be read is not. The error says that nothing more may be read.
func (l *layoutReader) about(d descriptor, digest string) (bool, error) {
	data, err := l.blob(d, maxManifest)
	if err != nil {
		if !spent(err) {
			err = nil
		}
		return false, err
	}
	m, err := parseIndex(data)
	return err == nil && m.Subject != nil && m.Subject.Digest == digest, nil
}

// blob reads a blob, whose size and digest must be those of its descriptor.
func (l *layoutReader) blob(d descriptor, limit int64) ([]byte, error) {
	if err := d.validate(limit); err != nil {
		return nil, err
	}
	if err := l.afford(d.Size); err != nil {
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
func (l *layoutReader) read(name string, limit int64) ([]byte, error) {
	info, err := fs.Stat(l.FS, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	f, err := l.FS.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	allowed := min(limit, l.bytes)
	var b bytes.Buffer
	_, err = io.Copy(&b, io.LimitReader(f, allowed+1))
	// One byte past the limit tells that there are more.
	if over := l.spend(int64(b.Len())); err != nil || over != nil && allowed < limit {
		return nil, cmp.Or(err, over)
	}
	if int64(b.Len()) > limit {
		return nil, fmt.Errorf("%s is larger than %d bytes", name, limit)
	}
	return b.Bytes(), nil
}
