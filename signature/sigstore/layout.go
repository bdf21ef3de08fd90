package sigstore

import (
	"bytes"
	"context"
	"encoding/json"
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
}

// DirLayout returns the layout in a directory.
func DirLayout(dir string) *Layout { return &Layout{FS: os.DirFS(dir), Name: dir} }

func (l *Layout) String() string { return "OCI layout " + l.Name }

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
		images, err := l.images()
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
			if strings.HasPrefix(d.ArtifactType, bundleType) && l.about(d, digest) {
				if !yield(Attachment{}, &OtherError{Location: l.Name + " " + d.Digest, MediaType: d.ArtifactType}) {
					return
				}
				continue
			}
			if name != tag && !strings.HasSuffix(name, ":"+tag) {
				continue
			}
			layers, err := l.layers(d)
			if err != nil {
				if !yield(Attachment{Location: l.Name + " " + d.Digest}, err) {
					return
				}
				continue
			}
			n.image = l.Name + " " + name
			if !n.take(ctx, layers, l.blob, yield) {
				return
			}
		}
		if n.signatures == 0 {
			yield(Attachment{}, fmt.Errorf("%s has no signatures under %s: %w", l, tag, signature.ErrNotFound))
		}
	}
}

// images returns the entries of the layout's index.
func (l *Layout) images() ([]descriptor, error) {
	var version struct {
		Version string `json:"imageLayoutVersion"`
	}
	if err := l.decode("oci-layout", &version); err != nil {
		return nil, fmt.Errorf("%s is no OCI layout: %w", l.Name, err)
	}
	if !strings.HasPrefix(version.Version, "1.") {
		return nil, fmt.Errorf("%s is an OCI layout of unknown version %q", l.Name, version.Version)
	}
	var i index
	if err := l.decode("index.json", &i); err != nil {
		return nil, fmt.Errorf("%s: %w", l.Name, err)
	}
	return i.Manifests, nil
}

func (l *Layout) decode(name string, to any) error {
	data, err := l.read(name, maxManifest)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, to); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// layers returns those of a manifest.
func (l *Layout) layers(d descriptor) ([]descriptor, error) {
	if d.MediaType != "" && d.MediaType != ociManifest {
		return nil, &OtherError{Location: l.Name + " " + d.Digest, MediaType: d.MediaType}
	}
	data, err := l.blob(d, maxManifest)
	if err != nil {
		return nil, fmt.Errorf("unable to read manifest %s: %w", d.Digest, err)
	}
	var m index
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("manifest %s: %w", d.Digest, err)
	}
	return m.Layers, nil
}

// about reports whether a referrer is about the image with this digest. One
// that cannot be read is not.
func (l *Layout) about(d descriptor, digest string) bool {
	data, err := l.blob(d, maxManifest)
	if err != nil {
		return false
	}
	var m index
	return json.Unmarshal(data, &m) == nil && m.Subject != nil && m.Subject.Digest == digest
}

// blob reads a blob, whose size and digest must be those of its descriptor.
func (l *Layout) blob(d descriptor, limit int64) ([]byte, error) {
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
func (l *Layout) read(name string, limit int64) ([]byte, error) {
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
	var b bytes.Buffer
	if _, err := io.Copy(&b, io.LimitReader(f, limit+1)); err != nil {
		return nil, err
	}
	if int64(b.Len()) > limit {
		return nil, fmt.Errorf("%s is larger than %d bytes", name, limit)
	}
	return b.Bytes(), nil
}
