package image_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/internal/oci"
	"github.com/clusterupdate/clusterupdate/internal/oci/ocitest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/manifest/image"
)

const repository = "quay.io/openshift-release-dev/ocp-release"

func configMap(name string) string {
	return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `","annotations":{"include.release.openshift.io/self-managed-high-availability":"true"}}}`
}

// releaseImage adds an image with a release, below a layer of a base image and
// with a file of its own that a later layer removes.
func releaseImage(l *ocitest.Layout, platform, version string) oci.Descriptor {
	return l.Image(platform,
		l.Layer(ocitest.File("usr/bin/cluster-version-operator", "ELF"), ocitest.File("release-manifests/0000_00_base.yaml", "{")),
		l.Layer(ocitest.Files(testdata.Release(version, configMap("a-"+version), configMap("b")))...),
		l.Layer(ocitest.File("release-manifests/.wh.0000_00_base.yaml", "")))
}

// release is the release of an image.
func release(digest string) configv1.Release {
	return configv1.Release{Image: repository + "@" + digest}
}

// load loads a release and returns its version and hash.
func load(ctx context.Context, src manifest.PayloadSource, digest string) (version, hash string, err error) {
	spec := repository + "@" + digest
	fsys, err := src.Payload(ctx, configv1.Release{Image: spec})
	if err != nil {
		return "", "", err
	}
	return loadFS(ctx, fsys, spec)
}

func loadFS(ctx context.Context, fsys fs.FS, spec string) (version, hash string, err error) {
	p, err := manifest.Load(ctx, fsys, manifest.LoadOptions{Image: spec, Filter: manifest.DefaultFilter()})
	if err != nil {
		return "", "", err
	}
	return p.Release.Version, p.Hash, nil
}

// store is a layout as a store. What it is asked for is noted.
type store struct {
	fs    fs.FS
	asked *[]string
}

func (s store) Manifest(_ context.Context, repository, digest string) (io.ReadCloser, error) {
	*s.asked = append(*s.asked, "manifest of "+repository)
	return s.fs.Open(oci.BlobPath(digest))
}

func (s store) Blob(_ context.Context, repository, digest string) (io.ReadCloser, error) {
	*s.asked = append(*s.asked, "blob of "+repository)
	return s.fs.Open(oci.BlobPath(digest))
}

// forms returns the sources of one layout in every form.
func forms(t *testing.T, layout fstest.MapFS, o image.Options) map[string]*image.Source {
	t.Helper()
	dir := t.TempDir()
	data := ocitest.Tar(ocitest.Files(layout)...)
	if err := errors.Join(os.CopyFS(filepath.Join(dir, "layout"), layout), os.WriteFile(filepath.Join(dir, "layout.tar"), data, 0o600)); err != nil {
		t.Fatal(err)
	}
	must := func(s *image.Source, err error) *image.Source {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	return map[string]*image.Source{
		"file system": must(image.FromFS(layout, o)),
		"reader":      must(image.FromTar(bytes.NewReader(data), int64(len(data)), o)),
		"directory":   must(image.Open(filepath.Join(dir, "layout"), o)),
		"tar file":    must(image.Open(filepath.Join(dir, "layout.tar"), o)),
		"store":       must(image.FromStore(store{layout, new([]string)}, o)),
	}
}

func TestPayload(t *testing.T) {
	l := ocitest.NewLayout()
	amd, arm := releaseImage(l, "linux/amd64", "1.0.0"), releaseImage(l, "linux/arm64", "1.0.1")
	index := l.Index(amd, arm)
	layout := l.Write(ocitest.Named(index, "1.0.0-multi"), releaseImage(l, "", "1.0.2"))
	wantHash := func(version string) string {
		_, hash, err := loadFS(t.Context(), testdata.Release(version, configMap("a-"+version), configMap("b")), "")
		if err != nil {
			t.Fatal(err)
		}
		return hash
	}
	amd64, s390x := image.Platform{Architecture: "amd64"}, image.Platform{OS: "linux", Architecture: "s390x"}
	for _, tt := range []struct {
		name     string
		platform image.Platform
		digest   string
		version  string
		err      string
	}{
		{"index", amd64, index.Digest, "1.0.0", ""},
		{"index, another platform", image.Platform{OS: "linux", Architecture: "arm64", Variant: "v8"}, index.Digest, "1.0.1", ""},
		{"image", image.Platform{}, arm.Digest, "1.0.1", ""},
		{"image by digest, whatever the platform", amd64, arm.Digest, "1.0.1", ""},
		{"no such platform", s390x, index.Digest, "", "there is no image for linux/s390x, but " + amd.Digest + " (linux/amd64), " + arm.Digest + " (linux/arm64)"},
		{"no platform", image.Platform{}, index.Digest, "", "one of 2 images must be chosen by its platform: "},
		{"layer", amd64, l.Layer(ocitest.File("x", "")).Digest, "", ""},
		{"another digest", amd64, ocitest.Digest([]byte("x")), "", ""},
	} {
		for form, src := range forms(t, layout, image.Options{Platform: tt.platform, Name: "mirror"}) {
			t.Run(tt.name+" "+form, func(t *testing.T) {
				version, hash, err := load(t.Context(), src, tt.digest)
				switch {
				case tt.version == "":
					if err == nil || !strings.Contains(err.Error(), tt.err) || !strings.HasPrefix(err.Error(), "mirror: "+tt.digest+": ") {
						t.Errorf("%v, want %s", err, tt.err)
					}
				case err != nil || version != tt.version || hash != wantHash(tt.version):
					t.Errorf("%s, hash %s, %v; want %s, hash %s", version, hash, err, tt.version, wantHash(tt.version))
				}
			})
		}
	}
}

// A digest that is not the image's is refused, and so is an image that is not its
// digest's.
func TestPayloadRefuses(t *testing.T) {
	l := ocitest.NewLayout()
	d := releaseImage(l, "linux/amd64", "1.0.0")
	layout := l.Write(d)
	src, err := image.FromFS(layout, image.Options{Name: "mirror"})
	if err != nil {
		t.Fatal(err)
	}
	other := ocitest.Digest([]byte("x"))
	_, err = src.Payload(t.Context(), configv1.Release{Image: repository + "@" + other})
	want := `mirror: ` + other + `: there is no image "` + other + `", but ` + d.Digest + " (linux/amd64)"
	if missing := (*image.NotFoundError)(nil); !errors.As(err, &missing) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	for spec, want := range map[string]string{
		"":                         `pull spec "": repository name must have at least one component`,
		repository:                 "it has no digest by which the image could be verified",
		repository + ":1.0.0":      "it has no digest by which the image could be verified",
		repository + "@sha256:abc": "invalid reference format",
		"a b":                      "invalid reference format",
		repository + "@md5:" + strings.Repeat("a", 32): "unsupported digest algorithm",
	} {
		if _, err := src.Payload(t.Context(), configv1.Release{Image: spec}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", spec, err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := src.Payload(ctx, configv1.Release{Image: repository + "@" + d.Digest}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	// Any byte of the image.
	for name, file := range layout {
		if !strings.HasPrefix(name, "blobs/") || bytes.HasPrefix(file.Data, []byte(`{"created"`)) { // the configuration is not read
			continue
		}
		data := file.Data
		for _, at := range []int{0, len(data) / 2, len(data) - 1} {
			changed := bytes.Clone(data)
			changed[at] ^= 0x10
			file.Data = changed
			for form, src := range map[string]func() (*image.Source, error){
				"layout": func() (*image.Source, error) { return image.FromFS(layout, image.Options{}) },
				"store":  func() (*image.Source, error) { return image.FromStore(store{layout, new([]string)}, image.Options{}) },
			} {
				s, err := src()
				if err != nil {
					t.Fatal(err)
				}
				_, err = s.Payload(t.Context(), configv1.Release{Image: repository + "@" + d.Digest})
				if mismatch := (*image.DigestError)(nil); !errors.As(err, &mismatch) {
					t.Errorf("%s, byte %d of %s: %v", form, at, name, err)
				}
			}
		}
		file.Data = data
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	packed := filepath.Join(dir, "x.tar.gz")
	if err := os.WriteFile(packed, ocitest.Gzip(ocitest.Tar()), 0o600); err != nil {
		t.Fatal(err)
	}
	for place, want := range map[string]string{
		dir: " has neither oci-layout nor manifest.json", packed: "x.tar.gz: the archive is compressed with gzip: decompress it first",
		filepath.Join(dir, "gone"): "no such file", os.DevNull: "is neither a directory nor a regular file",
	} {
		if _, err := image.Open(place, image.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	negative := image.Options{Limits: image.Limits{Depth: -1}}
	for _, open := range []func() (*image.Source, error){
		func() (*image.Source, error) { return image.Open(dir, negative) },
		func() (*image.Source, error) { return image.FromFS(fstest.MapFS{}, negative) },
		func() (*image.Source, error) { return image.FromTar(bytes.NewReader(nil), 0, negative) },
		func() (*image.Source, error) { return image.FromStore(nil, negative) },
	} {
		if _, err := open(); err == nil || !strings.Contains(err.Error(), "Limits.Depth is negative") {
			t.Error(err)
		}
	}
}

// A store is asked in the repository of the pull spec, and not for what is given
// as an option.
func TestStore(t *testing.T) {
	l := ocitest.NewLayout()
	amd := releaseImage(l, "linux/amd64", "1.0.0")
	index := l.Index(amd)
	var asked []string
	src, err := image.FromStore(store{l.FS, &asked}, image.Options{Platform: image.Platform{Architecture: "amd64"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := load(t.Context(), src, index.Digest); err != nil {
		t.Fatal(err)
	}
	manifest, blob := "manifest of "+repository, "blob of "+repository
	if diff := cmp.Diff([]string{manifest, manifest, blob, blob, blob}, asked); diff != "" {
		t.Error(diff)
	}
	// What is read is not added to the caller's list.
	given := make([][]byte, 0, 1)
	src, err = image.FromStore(store{l.FS, &asked}, image.Options{Manifests: given})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := load(t.Context(), src, index.Digest); err != nil || given[:1][0] != nil {
		t.Error(err, given[:1])
	}
	asked = nil
	src, err = image.FromStore(store{l.FS, &asked}, image.Options{Manifests: [][]byte{l.FS[oci.BlobPath(index.Digest)].Data, l.FS[oci.BlobPath(amd.Digest)].Data}})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := load(t.Context(), src, index.Digest); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{blob, blob, blob}, asked); diff != "" {
		t.Error(diff)
	}
	if _, err := src.List(t.Context()); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
}

// A mirror that kept one image of an index is read with the index from elsewhere.
func TestManifestsOfOptions(t *testing.T) {
	l := ocitest.NewLayout()
	amd := releaseImage(l, "linux/amd64", "1.0.0")
	index := l.Index(amd, releaseImage(l, "linux/arm64", "1.0.1"))
	data := l.FS[oci.BlobPath(index.Digest)].Data
	delete(l.FS, oci.BlobPath(index.Digest))
	layout := l.Write(amd)
	o := image.Options{Platform: image.Platform{Architecture: "amd64"}}
	for form, src := range forms(t, layout, o) {
		if _, _, err := load(t.Context(), src, index.Digest); err == nil {
			t.Errorf("%s: no error without the index", form)
		}
	}
	o.Manifests = [][]byte{data}
	for form, src := range forms(t, layout, o) {
		if version, _, err := load(t.Context(), src, index.Digest); err != nil || version != "1.0.0" {
			t.Error(form, version, err)
		}
	}
}

func TestDockerArchive(t *testing.T) {
	files, registryManifest := ocitest.Docker(ocitest.Tar(ocitest.Files(testdata.Release("1.0.0", configMap("a")))...))
	var m oci.Manifest
	if err := json.Unmarshal(registryManifest, &m); err != nil {
		t.Fatal(err)
	}
	data := ocitest.Tar(ocitest.Files(files)...)
	open := func(o image.Options) *image.Source {
		t.Helper()
		s, err := image.FromTar(bytes.NewReader(data), int64(len(data)), o)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	digest := ocitest.Digest(registryManifest)
	with := open(image.Options{Manifests: [][]byte{registryManifest}})
	if version, _, err := load(t.Context(), with, digest); err != nil || version != "1.0.0" {
		t.Error(version, err)
	}
	without := open(image.Options{Name: "release.tar"})
	if version, _, err := load(t.Context(), without, m.Config.Digest); err != nil || version != "1.0.0" {
		t.Error(version, err)
	}
	_, _, err := load(t.Context(), without, digest)
	if missing := (*image.NotFoundError)(nil); !errors.As(err, &missing) || !strings.Contains(err.Error(), "release.tar: "+digest+": the archive is one without manifests") {
		t.Error(err)
	}
	got, err := without.List(t.Context())
	want := []image.Entry{{Digest: m.Config.Digest, Name: "registry.example/release:1", Platform: image.Platform{OS: "linux", Architecture: "amd64"}}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}

	// New versions write a layout into the archive, whose manifest is another.
	l := ocitest.NewLayout()
	own := l.Image("linux/amd64", l.Blob(ocitest.TypeLayer, files["0/layer.tar"].Data))
	for name, f := range l.Write(own) {
		files[name] = f
	}
	data = ocitest.Tar(ocitest.Files(files)...)
	both := open(image.Options{Manifests: [][]byte{registryManifest}})
	for _, d := range []string{own.Digest, digest, m.Config.Digest} {
		if version, _, err := load(t.Context(), both, d); err != nil || version != "1.0.0" {
			t.Error(version, err)
		}
	}
	if _, _, err := load(t.Context(), open(image.Options{}), digest); err == nil || !strings.Contains(err.Error(), "but "+own.Digest) {
		t.Error(err)
	}
}

func TestList(t *testing.T) {
	l := ocitest.NewLayout()
	amd, arm, plain := releaseImage(l, "linux/amd64", "1.0.0"), releaseImage(l, "linux/arm64/v8", "1.0.0"), releaseImage(l, "", "1.0.1")
	index, gone := l.Index(amd, arm, l.Image("unknown/unknown")), l.Index(plain)
	delete(l.FS, oci.BlobPath(gone.Digest))
	src, err := image.FromFS(l.Write(ocitest.Named(index, "1.0.0"), plain, gone), image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := src.List(t.Context())
	want := []image.Entry{
		{Digest: index.Digest, Name: "1.0.0", Index: true},
		{Digest: amd.Digest, Platform: image.Platform{OS: "linux", Architecture: "amd64"}},
		{Digest: arm.Digest, Platform: image.Platform{OS: "linux", Architecture: "arm64", Variant: "v8"}},
		{Digest: plain.Digest},
		{Digest: gone.Digest, Index: true},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	src, err = image.FromFS(l.FS, image.Options{Name: "mirror", Limits: image.Limits{Depth: 1}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := src.List(t.Context()); err == nil || err.Error() != "mirror: more than 1 levels of indexes (limit Depth)" {
		t.Error(err)
	}
}

// A real payload in an image is the payload in its directory.
func TestRealPayload(t *testing.T) {
	for name, want := range map[string]string{"payload-4.17.30": "seB0BzE37qY=", "payload-4.18.15": "QYbuCLFiWFk="} {
		t.Run(name, func(t *testing.T) {
			l := ocitest.NewLayout()
			d := l.Image("linux/amd64", l.Layer(ocitest.Files(os.DirFS(filepath.Join(testdata.Dir(t), name)))...))
			index := l.Index(d)
			data := ocitest.Tar(ocitest.Files(l.Write(index))...)
			src, err := image.FromTar(bytes.NewReader(data), int64(len(data)), image.Options{Platform: image.Platform{Architecture: "amd64"}})
			if err != nil {
				t.Fatal(err)
			}
			fsys, err := src.Payload(t.Context(), configv1.Release{Image: repository + "@" + index.Digest})
			if err != nil {
				t.Fatal(err)
			}
			f := manifest.DefaultFilter()
			f.FeatureSet = new(string)
			p, err := manifest.Load(t.Context(), fsys, manifest.LoadOptions{Image: "example.com/release@sha256:abc", Filter: f})
			if err != nil || p.Hash != want {
				t.Fatalf("hash %v, %v; want %s", p, err, want)
			}
		})
	}
}
