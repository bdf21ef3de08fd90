package oci_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/oci"
	"github.com/clusterupdate/clusterupdate/internal/oci/ocitest"
)

// watchedSource counts what of a store is open, and changes what is read.
type watchedSource struct {
	oci.Store
	open, opened int
	wrap         func(io.Reader) io.Reader
}

func (s *watchedSource) Manifest(ctx context.Context, repository, digest string) (io.ReadCloser, error) {
	return s.watch(s.Store.Manifest(ctx, repository, digest))
}

func (s *watchedSource) Blob(ctx context.Context, repository, digest string) (io.ReadCloser, error) {
	return s.watch(s.Store.Blob(ctx, repository, digest))
}

func (s *watchedSource) watch(r io.ReadCloser, err error) (io.ReadCloser, error) {
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
		}, 1, func(err error) bool { return errors.As(err, new(*oci.DigestError)) }},
		{"without an end", func(func()) func(io.Reader) io.Reader {
			return func(r io.Reader) io.Reader { return io.MultiReader(r, endless{}) }
		}, 1, func(err error) bool { return strings.Contains(err.Error(), "limit ManifestSize") }},
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
			src := &watchedSource{Store: in(l.FS).Store, wrap: tt.wrap(cancel)}
			from := oci.Repository{Store: src}
			found, err := oci.Find(ctx, from, oci.Want{Digest: index.Digest}, oci.Limits{})
			if err == nil {
				_, err = oci.Unpack(ctx, from, found.Layers, kept, oci.Limits{})
			}
			checktest.FailIf(t, !tt.err(err), "%v", err)
			checktest.FailIf(t, src.open != 0 || src.opened != tt.opened,
				"%d opened, %d not closed", src.opened, src.open)
		})
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// The size of a layer's descriptor counts as its digest does.
func TestUnpackSizes(t *testing.T) {
	l := ocitest.NewLayout()
	d := l.Layer(file("manifests/a", "1"))
	for by, want := range map[int64]string{0: "", 1: "layer 2: blob differs from its descriptor: it has ", -1: "it has more than ", -d.Size - 1: "layer 2: blob of -1 bytes"} {
		other := d
		other.Size += by
		_, err := oci.Unpack(t.Context(), in(l.FS), []oci.Descriptor{d, other}, kept, oci.Limits{})
		checktest.FailIf(t, (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want),
			"%d: %v, want %s", by, err, want)
	}
	gone := d
	gone.Digest = missing
	checktest.ErrorHas(t, "layer 2: open blobs/sha256/aaaa", checktest.Err(
		oci.Unpack(t.Context(), in(l.FS), []oci.Descriptor{d, gone}, kept, oci.Limits{})))
}
