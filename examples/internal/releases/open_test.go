package releases_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/examples/internal/releases"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/oci/ocitest"
	"github.com/clusterupdate/clusterupdate/internal/program"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/manifest/image"
)

// directory has the files of a file system.
func directory(t *testing.T, fsys fs.FS) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "release")
	checktest.OK(t, os.CopyFS(dir, fsys))
	return dir
}

// archive is a tar file with them.
func archive(t *testing.T, fsys fs.FS) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "release.tar")
	checktest.OK(t, os.WriteFile(file, ocitest.Tar(ocitest.Files(fsys)...), 0o600))
	return file
}

// mirror is a layout with the sample release for two architectures, of which one has
// a file more.
func mirror(t *testing.T) (layout fstest.MapFS, digest string) {
	l := ocitest.NewLayout()
	files := l.Layer(ocitest.Files(sample.To())...)
	more := l.Layer(ocitest.File("release-manifests/0000_99_more.json", `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "more"}}`))
	index := l.Index(l.Image("linux/amd64", files), l.Image("linux/arm64", files, more))
	return l.Write(ocitest.Named(index, "4.21.1-multi")), index.Digest
}

func TestOpen(t *testing.T) {
	layout, digest := mirror(t)
	oc := (&ocitest.Layout{FS: layout}).Mirror("openshift/release", ":", "4.21.1-multi", digest)
	flat := checktest.Get(fs.Sub(sample.To(), "release-manifests"))(t)
	arm := image.Platform{Architecture: "arm64"}
	for _, tt := range []struct {
		name, place string
		platform    image.Platform
		image       string
		verified    bool
		manifests   int
	}{
		{"built in", releases.To, arm, sample.ToImage, false, 104},
		{"directory", directory(t, sample.To()), arm, "quay.io/openshift-release-dev/ocp-release", false, 104},
		{"extracted", directory(t, flat), arm, "quay.io/openshift-release-dev/ocp-release", false, 98},
		{"layout", directory(t, layout) + "@" + digest, image.Platform{Architecture: "amd64"}, "quay.io/openshift-release-dev/ocp-release@" + digest, true, 104},
		{"archive of a layout", archive(t, layout) + "@" + digest, arm, "quay.io/openshift-release-dev/ocp-release@" + digest, true, 105},
		{"mirror", directory(t, oc) + "@" + digest, arm, "quay.io/openshift-release-dev/ocp-release@" + digest, true, 105},
	} {
		r, err := releases.Open(t.Context(), tt.place, tt.platform)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		p, err := manifest.Load(t.Context(), r.FS, manifest.LoadOptions{Image: r.Image})
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if n := len(p.Manifests) + len(p.Excluded); r.Image != tt.image || r.Verified != tt.verified || n != tt.manifests || p.Release.Version != sample.ToVersion {
			t.Errorf("%s: %s, verified %v, %d manifests of %s", tt.name, r.Image, r.Verified, n, p.Release.Version)
		}
	}
}

func TestOpenFails(t *testing.T) {
	layout, digest := mirror(t)
	dir := directory(t, layout)
	notes := filepath.Join(t.TempDir(), "notes@home.txt")
	checktest.OK(t, os.WriteFile(notes, []byte("no archive"), 0o600))
	other := ocitest.Digest([]byte("other"))
	for name, tt := range map[string]struct {
		place, want string
		code        int // of a program
	}{
		"no digest":     {dir, "holds images: add @ and the digest of the release; there are " + digest + " 4.21.1-multi, sha256:", program.BadUsage},
		"no platform":   {dir + "@" + digest, "linux/amd64", program.Unknown},
		"another one":   {dir + "@" + other, other, program.Unknown},
		"no digest too": {dir + "@sha256:1", "sha256:1", program.Unknown},
		"no such place": {dir + "x@" + digest, "releasex", program.Unknown},
		"nothing":       {filepath.Join(dir, "absent"), "absent", program.Unknown},
		"empty":         {t.TempDir(), "holds no images", program.Unknown},
		"a file":        {notes, "notes@home.txt", program.Unknown},
	} {
		_, err := releases.Open(t.Context(), tt.place, image.Platform{})
		if err == nil || !strings.Contains(err.Error(), tt.want) || codeOf(t, err) != tt.code {
			t.Errorf("%s: %v, exit %d", name, err, codeOf(t, err))
		}
	}
	checktest.Fails(t, checktest.Err(fs.ReadFile(sampleFlat(t), "other")), "a file beside the manifests")
}

// sampleFlat is the file system of a directory of manifests alone.
func sampleFlat(t *testing.T) fs.FS {
	t.Helper()
	flat := checktest.Get(fs.Sub(sample.To(), "release-manifests"))(t)
	r := checktest.Get(releases.Open(t.Context(), directory(t, flat), image.Platform{}))(t)
	return r.FS
}
