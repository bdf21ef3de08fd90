package image_test

import (
	"context"
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

	"github.com/clusterupdate/clusterupdate/internal/checktest"
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

// inTar returns a source of files in a tar file, and its size in bytes.
func inTar(t testing.TB, files fstest.MapFS, o image.Options) (*image.Source, int64) {
	t.Helper()
	data := ocitest.Tar(ocitest.Files(files)...)
	name := filepath.Join(t.TempDir(), "release.tar")
	checktest.OK(t, os.WriteFile(name, data, 0o600))
	return opened(t)(image.Open(name, o)), int64(len(data))
}

// opened wants a source to open, and closes it in the end.
func opened(t testing.TB) func(*image.Source, error) *image.Source {
	return func(s *image.Source, err error) *image.Source {
		t.Helper()
		checktest.OK(t, err)
		t.Cleanup(func() { s.Close() })
		return s
	}
}

// forms returns the sources of one layout in every form.
func forms(t *testing.T, layout fstest.MapFS, o image.Options) map[string]*image.Source {
	t.Helper()
	dir := t.TempDir()
	checktest.OK(t, os.CopyFS(dir, layout))
	tarred, _ := inTar(t, layout, o)
	return map[string]*image.Source{
		"file system": opened(t)(image.FromFS(layout, o)),
		"directory":   opened(t)(image.Open(dir, o)),
		"tar file":    tarred,
		"store":       opened(t)(image.FromStore(store{layout, new([]string)}, o)),
	}
}

func TestPayload(t *testing.T) {
	l := ocitest.NewLayout()
	amd, arm := releaseImage(l, "linux/amd64", "1.0.0"), releaseImage(l, "linux/arm64", "1.0.1")
	index := l.Index(amd, arm)
	layout := l.Write(ocitest.Named(index, "1.0.0-multi"), releaseImage(l, "", "1.0.2"))
	wantHash := func(version string) string {
		_, hash, err := loadFS(t.Context(), testdata.Release(version, configMap("a-"+version), configMap("b")), "")
		checktest.OK(t, err)
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
	checktest.OK(t, err)
	other := ocitest.Digest([]byte("x"))
	_, err = src.Payload(t.Context(), release(other))
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
	checktest.ErrorIs(t, context.Canceled, checktest.Err(src.Payload(ctx, release(d.Digest))))
	layout[oci.BlobPath(d.Digest)].Data[5] ^= 0x10
	for form, src := range forms(t, layout, image.Options{}) {
		if _, err := src.Payload(t.Context(), release(d.Digest)); !errors.As(err, new(*image.DigestError)) {
			t.Errorf("%s: %v", form, err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	packed := filepath.Join(dir, "x.tar.gz")
	checktest.OK(t, os.WriteFile(packed, ocitest.Gzip(ocitest.Tar()), 0o600))
	for place, want := range map[string]string{
		dir: " holds no images: neither oci-layout nor v2, docker/registry/v2 or mirror_*.tar", packed: "x.tar.gz: the archive is compressed with gzip: decompress it first",
		filepath.Join(dir, "gone"): "no such file", os.DevNull: "is neither a directory nor a regular file",
	} {
		checktest.ErrorHas(t, want, checktest.Err(image.Open(place, image.Options{})))
	}
	negative := image.Options{Limits: image.Limits{Depth: -1}}
	for _, open := range []func() (*image.Source, error){
		func() (*image.Source, error) { return image.Open(dir, negative) },
		func() (*image.Source, error) { return image.FromFS(fstest.MapFS{}, negative) },
		func() (*image.Source, error) { return image.FromStore(nil, negative) },
	} {
		checktest.ErrorHas(t, "Limits.Depth is negative", checktest.Err(open()))
	}
}

// A store is asked in the repository of the pull spec.
func TestStore(t *testing.T) {
	l := ocitest.NewLayout()
	amd := releaseImage(l, "linux/amd64", "1.0.0")
	index := l.Index(amd)
	var asked []string
	src := checktest.Get(image.FromStore(store{l.FS, &asked},
		image.Options{Platform: image.Platform{Architecture: "amd64"}}))(t)
	if _, _, err := load(t.Context(), src, index.Digest); err != nil {
		t.Fatal(err)
	}
	manifest, blob := "manifest of "+repository, "blob of "+repository
	checktest.Same(t, []string{manifest, manifest, blob, blob, blob}, asked)
	checktest.ErrorIs(t, errors.ErrUnsupported, checktest.Err(src.List(t.Context())))
}

// Of an image its labels are known before its files are read; a tag leads to it.
func TestImage(t *testing.T) {
	l := ocitest.NewLayout()
	files := l.Layer(ocitest.File("configs/a.yaml", "a"), ocitest.File("other/b", "b"))
	labels := map[string]string{"where": "configs"}
	labelled := l.Labelled(labels, files)
	bare := l.JSON(oci.TypeManifest, oci.Manifest{MediaType: oci.TypeManifest, Layers: []oci.Descriptor{files}})
	index := l.Index(labelled)
	l.Write(ocitest.Named(index, "org/index:v1"), ocitest.Named(bare, "org/bare:v1"), ocitest.Named(bare, "org/bare:v2"))
	src := opened(t)(image.FromFS(l.FS, image.Options{}))
	for _, tt := range []struct {
		spec, want string
		labels     map[string]string
		err        string
	}{
		{spec: "r.example/org/index:v1", want: labelled.Digest, labels: labels},
		{spec: "r.example/org/index@" + index.Digest, want: labelled.Digest, labels: labels},
		{spec: "r.example/org/bare:v1", want: bare.Digest},
		{spec: "mirror.example/elsewhere:v2", want: bare.Digest},
		{spec: "mirror.example/elsewhere:v1", err: `2 images have the tag "v1", none in repository "mirror.example/elsewhere"`},
		{spec: "r.example/org/index:v3", err: "file does not exist"},
		{spec: "r.example/org/index", err: "neither a digest nor a tag"},
		{spec: "R", err: "must be lowercase"},
	} {
		spec, err := src.Resolve(t.Context(), tt.spec)
		if tt.err != "" {
			checktest.ErrorHas(t, tt.err, err)
			continue
		}
		checktest.OK(t, err)
		found := checktest.Get(src.Image(t.Context(), spec))(t)
		checktest.SameIn(t, tt.spec, []any{tt.want, tt.labels}, []any{found.Digest, found.Labels})
		fsys := checktest.Get(found.Files(t.Context(), "configs"))(t)
		checktest.Equal(t, "a", string(checktest.Get(fs.ReadFile(fsys, "configs/a.yaml"))(t)), "%s", tt.spec)
		checktest.ErrorIs(t, fs.ErrNotExist, checktest.Err(fs.Stat(fsys, "other")))
	}
	checktest.ErrorHas(t, "no digest by which", checktest.Err(src.Image(t.Context(), "r.example/org/index:v1")))
	l.FS[oci.BlobPath(l.JSON("", map[string]any{"config": map[string]any{"Labels": labels}}).Digest)].Data = []byte("{}")
	checktest.ErrorHas(t, "unable to read the configuration", checktest.Err(src.Image(t.Context(), "r.example/org/index@"+index.Digest)))
	small := opened(t)(image.FromFS(l.FS, image.Options{Limits: image.Limits{ManifestSize: 10}}))
	checktest.ErrorHas(t, "ManifestSize", checktest.Err(small.Resolve(t.Context(), "r.example/org/index:v1")))
}

func TestList(t *testing.T) {
	l := ocitest.NewLayout()
	amd, arm, plain := releaseImage(l, "linux/amd64", "1.0.0"), releaseImage(l, "linux/arm64/v8", "1.0.0"), releaseImage(l, "", "1.0.1")
	index, gone := l.Index(amd, arm, l.Image("unknown/unknown")), l.Index(plain)
	delete(l.FS, oci.BlobPath(gone.Digest))
	src, err := image.FromFS(l.Write(ocitest.Named(index, "1.0.0"), plain, gone), image.Options{})
	checktest.OK(t, err)
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
	checktest.OK(t, err)
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
			src, _ := inTar(t, l.Write(index), image.Options{Platform: image.Platform{Architecture: "amd64"}})
			fsys, err := src.Payload(t.Context(), release(index.Digest))
			checktest.OK(t, err)
			f := manifest.DefaultFilter()
			f.FeatureSet = new(string)
			p, err := manifest.Load(t.Context(), fsys, manifest.LoadOptions{Image: "example.com/release@sha256:abc", Filter: f})
			checktest.OK(t, err)
			checktest.Equal(t, want, p.Hash, "hash %v", p)
		})
	}
}

// A source that is closed reads no more; what it has read stays.
func TestClose(t *testing.T) {
	l := ocitest.NewLayout()
	d := releaseImage(l, "linux/amd64", "1.0.0")
	for form, src := range forms(t, l.Write(d), image.Options{}) {
		fsys, err := src.Payload(t.Context(), release(d.Digest))
		if err != nil {
			t.Fatal(form, err)
		}
		if err := src.Close(); err != nil {
			t.Error(form, err)
		}
		opened := form == "directory" || form == "tar file"
		checktest.Equal(t, opened, checktest.Err(src.Payload(t.Context(), release(d.Digest))) != nil, "%s", form)
		if _, err := fs.ReadFile(fsys, "release-manifests/release-metadata"); err != nil {
			t.Error(form, err)
		}
	}
}
