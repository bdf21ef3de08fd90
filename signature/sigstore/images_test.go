package sigstore_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"testing/iotest"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/oci"
	"github.com/clusterupdate/clusterupdate/internal/oci/ocitest"
	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/signature/sigstore"
)

const (
	layerType  = "application/vnd.dev.cosign.simplesigning.v1+json"
	bundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"
)

func tagOf(digest string) string { return strings.Replace(digest, ":", "-", 1) + ".sig" }

// layer adds the layer of a signature.
func layer(l *ocitest.Layout, a sigstore.Attachment) oci.Descriptor {
	d := l.Blob(layerType, a.Payload)
	d.Annotations = a.Annotations
	return d
}

// signed adds an image of signatures under a name.
func signed(l *ocitest.Layout, name string, layers ...oci.Descriptor) oci.Descriptor {
	d := ocitest.Named(l.JSON(oci.TypeManifest, oci.Manifest{MediaType: oci.TypeManifest, Layers: layers}), name)
	l.Write(d)
	return d
}

// bundle adds a bundle of newer versions of cosign about an image.
func newBundle(l *ocitest.Layout, digest, artifactType string) {
	d := l.JSON(oci.TypeManifest, oci.Manifest{Subject: &oci.Descriptor{Digest: digest}})
	d.ArtifactType = artifactType
	l.Write(d)
}

// store serves a layout as a registry does.
type store struct {
	layout    *ocitest.Layout
	referrers []byte // nil: the API is not served
	err       error
	asked     []string
}

func (s *store) Manifest(_ context.Context, _, reference string) (io.ReadCloser, error) {
	s.asked = append(s.asked, reference)
	for _, d := range s.layout.Entries {
		if name := d.Annotations[oci.RefName]; name == reference || strings.HasSuffix(name, ":"+reference) {
			return s.open(d.Digest)
		}
	}
	return s.open(reference)
}

func (s *store) Blob(_ context.Context, _, digest string) (io.ReadCloser, error) {
	s.asked = append(s.asked, "blob")
	return s.open(digest)
}

func (s *store) Referrers(context.Context, string, string) (io.ReadCloser, error) {
	s.asked = append(s.asked, "referrers")
	if s.referrers == nil {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(s.referrers)), s.err
}

func (s *store) open(digest string) (io.ReadCloser, error) {
	file := s.layout.FS[oci.BlobPath(digest)]
	if s.err != nil || file == nil {
		return nil, errors.Join(s.err, fs.ErrNotExist)
	}
	return io.NopCloser(bytes.NewReader(file.Data)), nil
}

// storeOf returns a store that holds what a layout has.
func storeOf(l *ocitest.Layout) *store {
	s := &store{layout: l}
	var about []oci.Descriptor
	for _, d := range l.Entries {
		if d.ArtifactType != "" {
			about = append(about, d)
		}
	}
	if about != nil {
		s.referrers = must(json.Marshal(oci.Manifest{Manifests: about}))
	}
	return s
}

func fromStore(s sigstore.Store, limits sigstore.Limits) sigstore.Source {
	return must(sigstore.FromStore(s, "registry.example/o/rel", limits))
}

// onDisk writes files to a directory.
func onDisk(t testing.TB, files fstest.MapFS) string {
	t.Helper()
	dir := t.TempDir()
	checktest.OK(t, os.CopyFS(dir, files))
	return dir
}

func fromFiles(t testing.TB, l *ocitest.Layout, limits sigstore.Limits) sigstore.Source {
	t.Helper()
	return must(sigstore.OpenFS(l.Write(), "dir", limits))
}

// list shows what a source yields, in short.
func list(ctx context.Context, s sigstore.Source, digest string) []string {
	var out []string
	for a, err := range s.Attachments(ctx, digest) {
		var other *sigstore.OtherError
		switch {
		case errors.As(err, &other):
			out = append(out, "other "+other.MediaType)
		case errors.Is(err, signature.ErrNotFound):
			out = append(out, "none")
		case err != nil:
			out = append(out, "error "+err.Error())
		default:
			out = append(out, fmt.Sprintf("%d %s", a.Number, a.Location))
		}
	}
	return out
}

// Signatures are found in every form in which images lie in files, and in stores.
func TestImages(t *testing.T) {
	good := attach(ed(), payload(digestA, named))
	l := ocitest.NewLayout()
	signed(l, tagOf(digestB), layer(l, attach(ed(), payload(digestB, named))))
	image := signed(l, repo+":"+tagOf(digestA), l.Blob("application/octet-stream", []byte("x")), layer(l, attach(p256(), good.Payload)), layer(l, good))
	storage := l.Storage("openshift/release-images", tagOf(digestA), image.Digest)
	dirs := map[string]string{
		"layout":   onDisk(t, l.Write()),
		"mirror":   onDisk(t, l.Mirror("openshift/release", ":", tagOf(digestA), image.Digest)),
		"cache":    onDisk(t, storage),
		"archives": onDisk(t, fstest.MapFS{"mirror_000001.tar": {Data: ocitest.Tar(ocitest.Files(storage)...)}}),
	}
	dirs["tar file"] = filepath.Join(t.TempDir(), "layout.tar")
	checktest.OK(t, os.WriteFile(dirs["tar file"], ocitest.Tar(ocitest.Files(l.FS)...), 0o600))
	served := storeOf(l)
	sources := map[string]sigstore.Source{"store": fromStore(served, sigstore.Limits{})}
	for name, dir := range dirs {
		sources[name] = must(sigstore.OpenSource(dir, sigstore.Limits{}))
	}
	for name, src := range sources {
		t.Run(name, func(t *testing.T) {
			v := must(policy(ed()).Verify(t.Context(), repo+"@"+digestA, src))
			if s := v.Signers[0]; s.Number != 2 || !strings.HasSuffix(s.Location, ":"+tagOf(digestA)+" layer 3") || s.Reference != named || s.Store != src.String() {
				t.Errorf("%+v", s)
			}
			if got := list(t.Context(), src, digestA); len(got) != 3 || got[0] != "other application/octet-stream" {
				t.Error(got)
			}
			if got := list(t.Context(), src, "sha256:"+strings.Repeat("c", 64)); len(got) != 1 || got[0] != "none" {
				t.Error(got)
			}
			for _, digest := range []string{"", "sha256:a", "md5:x", "sha256:../x"} {
				if got := list(t.Context(), src, digest); len(got) != 1 || !strings.HasPrefix(got[0], "error ") {
					t.Error(got)
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if got := list(ctx, src, digestA); len(got) != 1 || got[0] != "error context canceled" {
				t.Error(got)
			}
		})
	}
	served.asked = nil
	list(t.Context(), sources["store"], digestA)
	checktest.Same(t,
		[]string{tagOf(digestA), "blob", "blob", "referrers", strings.TrimSuffix(tagOf(digestA), ".sig")}, served.asked)
	checktest.Equal(t, "repository registry.example/o/rel", sources["store"].String(), "value")
}

func TestSourcesRefuse(t *testing.T) {
	for repository, want := range map[string]string{
		"quay.io/o/rel": "", "localhost:5000/o": "", "busybox": "",
		"quay.io/o/rel:tag": "neither tag nor digest", "quay.io/o@" + digestA: "neither tag nor digest", "quay.io/o/../p": "invalid", "https://quay.io/o/rel": "invalid", "": "at least one component",
	} {
		if _, err := sigstore.FromStore(&store{}, repository, sigstore.Limits{}); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", repository, err, want)
		}
	}
	for place, want := range map[string]string{
		"docker://quay.io/a": "OCI image layout", filepath.Join(t.TempDir(), "gone"): "no such file", t.TempDir(): "holds no images", os.DevNull: "neither a directory nor a regular file",
	} {
		checktest.ErrorHas(t, want, checktest.Err(sigstore.OpenSource(place, sigstore.Limits{})))
	}
	negative := sigstore.Limits{Bytes: -1}
	_, err := sigstore.OpenSource(t.TempDir(), negative)
	_, storeErr := sigstore.FromStore(&store{}, "quay.io/a", negative)
	_, fsErr := sigstore.OpenFS(fstest.MapFS{}, "dir", negative)
	for _, err := range []error{err, storeErr, fsErr} {
		checktest.ErrorHas(t, "Bytes is negative", err)
	}
}

// What images may have wrong: it is reported, and the rest is used.
func TestImageFaults(t *testing.T) {
	good := attach(ed(), payload(digestA, named))
	tag := tagOf(digestA)
	with := func(change func(l *ocitest.Layout, d *oci.Descriptor)) func(*ocitest.Layout) {
		return func(l *ocitest.Layout) {
			d := layer(l, attach(ed(), []byte("other")))
			change(l, &d)
			signed(l, tag, d, layer(l, good))
		}
	}
	for _, tt := range []struct {
		name        string
		make        func(l *ocitest.Layout)
		files, want string // of files, if the store says something else
		verifies    bool
	}{
		{"missing blob", with(func(l *ocitest.Layout, d *oci.Descriptor) { delete(l.FS, oci.BlobPath(d.Digest)) }), "", "error unable to read ", true},
		{"size", with(func(_ *ocitest.Layout, d *oci.Descriptor) { d.Size = 4 }), "", "blob differs from its descriptor", true},
		{"size, too large", with(func(_ *ocitest.Layout, d *oci.Descriptor) { d.Size = 50 }), "", "blob differs from its descriptor", true},
		{"negative size", with(func(_ *ocitest.Layout, d *oci.Descriptor) { d.Size = -1 }), "", "blob of -1 bytes", true},
		{"digest", with(func(l *ocitest.Layout, d *oci.Descriptor) { l.FS[oci.BlobPath(d.Digest)].Data[3] ^= 1 }), "", "blob differs from its descriptor", true},
		{"path in a digest", with(func(_ *ocitest.Layout, d *oci.Descriptor) { d.Digest = "sha256:../../x" }), "", "invalid checksum digest", true},
		{"weak digest", with(func(_ *ocitest.Layout, d *oci.Descriptor) { d.Digest = "md5:x" }), "", "unsupported digest", true},
		{"manifest that is none", func(l *ocitest.Layout) { l.Write(ocitest.Named(l.Blob("", []byte("{")), tag)) }, "error unable to read manifest sha256:", "error unable to read registry.example/o/rel:" + tag + ": unexpected end of JSON", false},
		{"manifest of another type", func(l *ocitest.Layout) {
			l.Write(ocitest.Named(l.JSON("application/x", oci.Manifest{MediaType: "application/x"}), tag))
		}, "", "other application/x", false},
		{"many", func(l *ocitest.Layout) {
			var layers []oci.Descriptor
			for range 40 {
				layers = append(layers, layer(l, good))
			}
			signed(l, tag, layers...)
		}, "", "more than 32 layers for " + digestA, true},
		{"newer bundle", func(l *ocitest.Layout) { newBundle(l, digestA, bundleType) }, "", "other " + bundleType + "\nnone", false},
		{"another referrer", func(l *ocitest.Layout) { newBundle(l, digestA, "application/spdx+json") }, "", "none", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := ocitest.NewLayout()
			tt.make(l)
			for form, src := range map[string]sigstore.Source{"files": fromFiles(t, l, sigstore.Limits{}), "store": fromStore(storeOf(l), sigstore.Limits{})} {
				want := tt.want
				if form == "files" && tt.files != "" {
					want = tt.files
				}
				checktest.Has(t, strings.Join(list(t.Context(), src, digestA), "\n"), want)
				if _, err := policy(ed()).Verify(t.Context(), repo+"@"+digestA, src); (err == nil) != tt.verifies {
					t.Errorf("%s: %v", form, err)
				}
			}
			// Of a layout, another image of signatures counts, too.
			signed(l, tag, layer(l, good))
			checktest.Good(t, checktest.Err(
				policy(ed()).Verify(t.Context(), repo+"@"+digestA, fromFiles(t, l, sigstore.Limits{}))))
		})
	}
	// Bundles about other images are of no interest, broken indexes are no source.
	l := ocitest.NewLayout()
	newBundle(l, digestB, bundleType)
	if got := list(t.Context(), fromFiles(t, l, sigstore.Limits{}), digestA); len(got) != 1 || got[0] != "none" {
		t.Error(got)
	}
	for name, index := range map[string]string{"broken": "{", "huge": strings.Repeat(" ", 5<<20), "twice": `{"manifests":[],"manifests":[]}`} {
		files := maps.Clone(l.FS)
		files["index.json"] = &fstest.MapFile{Data: []byte(index)}
		if got := list(t.Context(), must(sigstore.OpenFS(files, "dir", sigstore.Limits{})), digestA); len(got) != 1 || !strings.HasPrefix(got[0], "error") {
			t.Errorf("%s: %q", name, got)
		}
	}
	// Referrers under the tag of older registries, and referrers that are none.
	s := &store{layout: ocitest.NewLayout(), referrers: []byte("[")}
	if got := list(t.Context(), fromStore(s, sigstore.Limits{}), digestA); len(got) != 1 || got[0] != "none" {
		t.Error(got)
	}
	s.layout.Write(ocitest.Named(s.layout.Index(oci.Descriptor{ArtifactType: bundleType, Digest: digestB}), strings.TrimSuffix(tag, ".sig")))
	if got := list(t.Context(), fromStore(s, sigstore.Limits{}), digestA); len(got) != 2 || got[0] != "other "+bundleType {
		t.Error(got)
	}
	// A store that fails is not asked for more.
	s.err = errors.New("response status 503")
	_, err := policy(ed()).Verify(t.Context(), repo+"@"+digestA, fromStore(failing{}, sigstore.Limits{}))
	if err == nil || err.Error() != "A signature was required, but no signature exists: unable to read registry.example/o/rel:"+tag+": response status 503" {
		t.Error(err)
	}
	// An image that has only what is not read here is told apart from one that
	// has nothing.
	l = ocitest.NewLayout()
	signed(l, tag, l.Blob("application/octet-stream", []byte("x")))
	_, err = policy(ed()).Verify(t.Context(), repo+"@"+digestA, fromFiles(t, l, sigstore.Limits{}))
	if err == nil || err.Error() != "A signature was required, but no signature exists (1 attachments of other types)" {
		t.Error(err)
	}
}

// failing is a store that fails in the middle of a manifest.
type failing struct{}

func (failing) Manifest(context.Context, string, string) (io.ReadCloser, error) {
	return io.NopCloser(iotest.ErrReader(errors.New("response status 503"))), nil
}

func (f failing) Blob(ctx context.Context, repository, digest string) (io.ReadCloser, error) {
	return f.Manifest(ctx, repository, digest)
}

// Nothing that a store holds makes the source panic, or read too much.
func FuzzStore(f *testing.F) {
	l := ocitest.NewLayout()
	f.Add(l.FS[oci.BlobPath(signed(l, tagOf(digestA), layer(l, attach(ed(), payload(digestA, named)))).Digest)].Data, []byte(`{"manifests":[{"artifactType":"`+bundleType+`"}]}`))
	f.Add([]byte(`{"layers":[{"mediaType":"`+layerType+`","size":-1}]}`), []byte("{"))
	f.Fuzz(func(t *testing.T, manifest, referrers []byte) {
		l := ocitest.NewLayout()
		l.Write(ocitest.Named(l.Blob("", manifest), tagOf(digestA)))
		s := &store{layout: l, referrers: referrers}
		for a, err := range fromStore(s, sigstore.Limits{}).Attachments(t.Context(), digestA) {
			if err == nil && len(a.Payload) > 64<<10 {
				t.Error("larger than the limit")
			}
		}
		if len(s.asked) > 50 {
			t.Errorf("asked %d times", len(s.asked))
		}
	})
}
