package oci_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/internal/oci"
	"github.com/clusterupdate/clusterupdate/internal/oci/ocitest"
)

// watchedSource counts what of a source is open, and changes what is read.
type watchedSource struct {
	oci.Source
	open, opened int
	wrap         func(io.Reader) io.Reader
}

func (s *watchedSource) Open(ctx context.Context, d oci.Descriptor) (io.ReadCloser, error) {
	r, err := s.Source.Open(ctx, d)
	if err != nil {
		return nil, err
	}
	s.open++
	s.opened++
	return &watchedReader{s, s.wrap(r), r}, nil
}

type watchedReader struct {
	s *watchedSource
	io.Reader
	io.Closer
}

func (r *watchedReader) Close() error {
	r.s.open--
	return r.Closer.Close()
}

// failing reads until some bytes have been read, and fails then.
type failing struct {
	r    io.Reader
	left int
	fail func() error
}

func (f *failing) Read(p []byte) (int, error) {
	if f.left == 0 {
		return 0, f.fail()
	}
	n, err := f.r.Read(p[:min(len(p), f.left)])
	f.left -= n
	return n, err
}

// Whatever is opened is closed, and read no further than it is long: when all goes
// well, when it is not what was named, when reading fails, and when nobody waits
// for it any more.
func TestSourceIsClosed(t *testing.T) {
	broken := errors.New("connection lost")
	l := ocitest.NewLayout()
	noise := make([]byte, 200_000)
	for i := range noise {
		noise[i] = byte(i * i >> 3)
	}
	image := l.Image("linux/amd64", l.Layer(file("manifests/a", "1")), l.Layer(file("manifests/b", string(noise))), l.Layer(file("manifests/c", "3")))
	index := l.Index(image)
	l.Write(index)
	for _, tt := range []struct {
		name   string
		wrap   func(cancel func()) func(io.Reader) io.Reader
		opened int
		err    func(error) bool
	}{
		{"good", func(func()) func(io.Reader) io.Reader { return func(r io.Reader) io.Reader { return r } }, 5, func(err error) bool { return err == nil }},
		{"a byte more", func(func()) func(io.Reader) io.Reader {
			return func(r io.Reader) io.Reader { return io.MultiReader(r, strings.NewReader(" ")) }
		}, 1, func(err error) bool { return strings.Contains(err.Error(), "it has more than") }},
		{"without an end", func(func()) func(io.Reader) io.Reader {
			return func(r io.Reader) io.Reader { return io.MultiReader(r, endless{}) }
		}, 1, func(err error) bool { return strings.Contains(err.Error(), "it has more than") }},
		{"failure in the second layer", func(func()) func(io.Reader) io.Reader {
			return func(r io.Reader) io.Reader { return &failing{r, 1000, func() error { return broken }} }
		}, 4, func(err error) bool {
			return errors.Is(err, broken) && strings.HasPrefix(err.Error(), "layer 2: ")
		}},
		{"end of the wait in the second layer", func(cancel func()) func(io.Reader) io.Reader {
			return func(r io.Reader) io.Reader {
				return &failing{r, 1000, func() error { cancel(); return nil }}
			}
		}, 4, func(err error) bool {
			return errors.Is(err, context.Canceled) && strings.HasPrefix(err.Error(), "layer 2: ")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			src := &watchedSource{Source: &oci.Layout{FS: l.FS, Name: "dir"}, wrap: tt.wrap(cancel)}
			found, err := oci.Find(ctx, src, l.Entries, oci.Want{Digest: index.Digest}, oci.Limits{})
			if err == nil {
				fsys, unpackErr := oci.Unpack(ctx, src, found, kept, oci.Limits{})
				if err = unpackErr; err != nil && fsys != nil {
					t.Error("a file system besides the error")
				}
			}
			if !tt.err(err) {
				t.Errorf("%v", err)
			}
			if src.open != 0 || src.opened != tt.opened {
				t.Errorf("%d opened, %d not closed", src.opened, src.open)
			}
		})
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// The size of a layer's descriptor counts as its digest does.
func TestUnpackSizes(t *testing.T) {
	l := ocitest.NewLayout()
	d := l.Layer(file("manifests/a", "1"))
	for by, want := range map[int64]string{0: "", 1: "layer 2: blob differs from its descriptor: it has ", -1: "it has more than ", -d.Size - 1: "layer 2: blob of -1 bytes, more than the limit"} {
		other := d
		other.Size += by
		_, err := oci.Unpack(t.Context(), &oci.Layout{FS: l.FS}, &oci.Image{Layers: []oci.Descriptor{d, other}}, kept, oci.Limits{})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%d: %v, want %s", by, err, want)
		}
	}
	gone := d
	gone.Digest = missing
	if _, err := oci.Unpack(t.Context(), &oci.Layout{FS: l.FS}, &oci.Image{Layers: []oci.Descriptor{d, gone}}, kept, oci.Limits{}); err == nil || !strings.Contains(err.Error(), "layer 2: open blobs/sha256/aaaa") {
		t.Error(err)
	}
}

// One layer may be in an archive twice, in other files and compressed or not.
func TestDockerLayers(t *testing.T) {
	layer := ocitest.Tar(file("manifests/a", "1"))
	for _, tt := range []struct {
		name   string
		stored [2][]byte
		err    string
	}{
		{"as they are", [2][]byte{layer, layer}, ""},
		{"one compressed", [2][]byte{layer, ocitest.Gzip(layer)}, ""},
		{"the other compressed", [2][]byte{ocitest.Gzip(layer), layer}, ""},
		{"zstd", [2][]byte{layer, []byte("\x28\xb5\x2f\xfd....")}, `x: layer 2: "1/layer.tar" is compressed with zstd, which is not supported`},
		{"cut off", [2][]byte{layer, layer[:1100]}, "x: layer 2: blob differs from its descriptor"},
		{"cut off, compressed", [2][]byte{layer, ocitest.Gzip(layer)[:60]}, "x: layer 2: tar: unexpected EOF"},
		{"more after its end", [2][]byte{layer, append(bytes.Clone(layer), 0)}, "x: layer 2: blob differs from its descriptor"},
		{"empty", [2][]byte{layer, nil}, "x: layer 2: blob differs from its descriptor"},
	} {
		archive, manifest := ocitest.Docker(layer, layer)
		archive["0/layer.tar"].Data, archive["1/layer.tar"].Data = tt.stored[0], tt.stored[1]
		fsys, err := (&oci.DockerArchive{FS: archive, Name: "x"}).Unpack(t.Context(), oci.Want{Digest: ocitest.Digest(manifest)}, [][]byte{manifest}, kept, oci.Limits{})
		switch {
		case tt.err != "":
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: %v, want %s", tt.name, err, tt.err)
			}
		case err != nil:
			t.Errorf("%s: %v", tt.name, err)
		default:
			if diff := cmp.Diff(files{"manifests/a": "1"}, show(t, fsys)); diff != "" {
				t.Errorf("%s: %s", tt.name, diff)
			}
		}
	}
}
