package oci_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/oci"
	"github.com/clusterupdate/clusterupdate/internal/oci/ocitest"
)

// archives returns the files in n archives, as oc-mirror writes them.
func archives(all fstest.MapFS, n int) fstest.MapFS {
	var parts [][]ocitest.Entry
	for i, e := range ocitest.Files(all) {
		if i < n {
			parts = append(parts, nil)
		}
		parts[i%n] = append(parts[i%n], e)
	}
	out := fstest.MapFS{"working-dir/x": {}, "mirror_seq.txt": {}}
	for i, part := range parts {
		out[fmt.Sprintf("mirror_%06d.tar", i+1)] = &fstest.MapFile{Data: ocitest.Tar(part...)}
	}
	return out
}

// onDisk returns files as they are in a directory, which links do not leave.
func onDisk(t *testing.T, files fstest.MapFS) fs.FS {
	t.Helper()
	dir := t.TempDir()
	checktest.OK(t, os.CopyFS(dir, files))
	root := checktest.Get(os.OpenRoot(dir))(t)
	t.Cleanup(func() { root.Close() })
	return root.FS()
}

// One release for two architectures is read alike in every form, and so is what is
// wrong with it.
func TestForms(t *testing.T) {
	l := ocitest.NewLayout()
	layer := l.Layer(file("manifests/a", "1"))
	amd, arm := l.Image("linux/amd64", layer), l.Image("linux/arm64", l.Layer(file("manifests/a", "2")))
	release := l.Index(amd, arm)
	l.Write(ocitest.Named(release, "openshift/release:4.21.1-multi"))
	inTar := func(files fstest.MapFS) fs.FS {
		return checktest.Get(openTar(ocitest.Tar(ocitest.Files(files)...), oci.Limits{}))(t)
	}
	all := []string{release.Digest, amd.Digest, arm.Digest}
	made := map[string]func(*ocitest.Layout) fs.FS{
		"layout":        func(l *ocitest.Layout) fs.FS { return l.FS },
		"layout in tar": func(l *ocitest.Layout) fs.FS { return inTar(l.FS) },
		"mirror":        func(l *ocitest.Layout) fs.FS { return l.Mirror("openshift/release", ":", "4.21.1-multi", all...) },
		"mirror on disk": func(l *ocitest.Layout) fs.FS {
			return onDisk(t, l.Mirror("openshift/release", ":", "4.21.1-multi", all...))
		},
		"mirror on Windows": func(l *ocitest.Layout) fs.FS {
			return l.Mirror("openshift/release", "-", "4.21.1-multi", all...)
		},
		"mirror in tar": func(l *ocitest.Layout) fs.FS {
			return inTar(l.Mirror("openshift/release", ":", "4.21.1-multi", all...))
		},
		"cache": func(l *ocitest.Layout) fs.FS { return l.Storage("openshift/release", "4.21.1-multi", all...) },
		"archive": func(l *ocitest.Layout) fs.FS {
			return archives(l.Storage("openshift/release", "4.21.1-multi", all...), 1)
		},
		"archives": func(l *ocitest.Layout) fs.FS {
			return archives(l.Storage("openshift/release", "4.21.1-multi", all...), 3)
		},
		"archives on disk": func(l *ocitest.Layout) fs.FS {
			return onDisk(t, archives(l.Storage("openshift/release", "4.21.1-multi", all...), 3))
		},
	}
	without := func(digest string) *ocitest.Layout {
		other := &ocitest.Layout{FS: maps.Clone(l.FS)}
		delete(other.FS, oci.BlobPath(digest))
		return other
	}
	changed := func(digest string) *ocitest.Layout {
		other := without(digest)
		data := append([]byte(nil), l.FS[oci.BlobPath(digest)].Data...)
		data[len(data)/2] ^= 1
		other.FS[oci.BlobPath(digest)] = &fstest.MapFile{Data: data}
		return other
	}
	read := func(fsys fs.FS, digest string) (map[string]string, error) {
		m, err := oci.Find(t.Context(), in(fsys), oci.Want{Digest: digest, Platform: platform("arm64")}, oci.Limits{})
		if err != nil {
			return nil, err
		}
		out, err := oci.Unpack(t.Context(), in(fsys), m.Layers, kept, oci.Limits{})
		if err != nil {
			return nil, err
		}
		return show(t, out), nil
	}
	for name, make := range made {
		t.Run(name, func(t *testing.T) {
			fsys := make(l)
			for digest, want := range map[string]string{release.Digest: "2", amd.Digest: "1", arm.Digest: "2"} {
				if got, err := read(fsys, digest); err != nil || got["manifests/a"] != want {
					t.Errorf("%s: %v, %v", digest, got, err)
				}
			}
			layout := in(fsys).Store.(*oci.Layout)
			list, err := oci.List(t.Context(), layout, oci.Limits{})
			checktest.OK(t, err)
			var digests []string
			for _, d := range list {
				digests = append(digests, d.Digest)
			}
			if diff := cmp.Diff(all, digests); diff != "" || list[0].Annotations[oci.RefName] != "openshift/release:4.21.1-multi" || list[1].Platform == nil {
				t.Errorf("%+v %s", list, diff)
			}
			if f, err := layout.Manifest(t.Context(), "", "4.21.1-multi"); err != nil {
				t.Error(err)
			} else if err := f.Close(); err != nil {
				t.Error(err)
			}
			for reference, want := range map[string]string{"4.21.2-multi": "file does not exist", "": "file does not exist", "sha256:../x": "file does not exist"} {
				_, err := layout.Manifest(t.Context(), "", reference)
				refused(t, err, "", want)
			}
			_, err = layout.Blob(t.Context(), "", "sha256:../x")
			refused(t, err, "", "invalid checksum digest length")

			_, err = read(fsys, missing)
			refused(t, err, "", `there is no image "`+missing+`", but `+release.Digest+" (openshift/release:4.21.1-multi), "+amd.Digest+" (linux/amd64), ")
			for _, digest := range []string{release.Digest, amd.Digest, layer.Digest} {
				for _, other := range []*ocitest.Layout{without(digest), changed(digest)} {
					_, err := read(make(other), amd.Digest)
					want := "blob differs from its descriptor"
					if other.FS[oci.BlobPath(digest)] == nil {
						want = "no such file"
						if !strings.Contains(name, "disk") {
							want = "file does not exist"
						}
						if strings.Contains(name, "archive") || name == "cache" {
							want = "archives of oc-mirror are incremental, an earlier one may hold it"
						}
					}
					if digest == release.Digest {
						checktest.Good(t, err)
						continue
					}
					if refused(t, err, "", want); errors.As(err, new(*oci.NotFoundError)) {
						t.Errorf("%v, though it is named", err)
					}
				}
			}
		})
	}
}

// What lies in a mirror and names no image is passed over, and nothing outside of it is
// read.
func TestStrangeFiles(t *testing.T) {
	l := ocitest.NewLayout()
	image := l.Image("linux/amd64", l.Layer(file("manifests/a", "1")))
	link := func(target string) *fstest.MapFile {
		return &fstest.MapFile{Mode: fs.ModeSymlink | 0o777, Data: []byte(target)}
	}
	tree := l.Mirror("o/release", ":", "1", image.Digest)
	storage := l.Storage("o/release", "1", image.Digest)
	manifests, tags := "v2/o/release/manifests/", "docker/registry/v2/repositories/o/release/_manifests/tags/"
	revisions := "docker/registry/v2/repositories/o/release/_manifests/revisions/sha256/"
	maps.Copy(tree, fstest.MapFS{
		manifests + "x.download": {}, manifests + "sha256:abc": {}, manifests + "out": link("../../../../etc/passwd"), manifests + "loop": link("loop"),
		manifests + "dir/x": {}, "v2/o/file": {}, "v2/link": link("o"), "v2/o/loop": link("../o"), "v2/o/" + image.Digest: {},
		manifests + "windows": link(`..\manifests\` + strings.Replace(image.Digest, ":", "-", 1)),
	})
	maps.Copy(storage, fstest.MapFS{
		tags + "none/index/x": {}, tags + "bad/current/link": {Data: []byte("sha256:../../x")}, tags + "loop/current/link": link("link"), tags + "file": {},
		revisions + "x/link": {Data: []byte("md5:x")}, revisions + "large/link": {Data: make([]byte, 5000)}, "docker/registry/v2/repositories/link": link("o"),
	})
	named := func(d oci.Descriptor) string { return d.Annotations[oci.RefName] }
	for name, tt := range map[string]struct {
		files fstest.MapFS
		want  []string
	}{
		"mirror":  {tree, []string{"o/release:1", "o/release:windows"}},
		"storage": {storage, []string{"o/release:1"}},
	} {
		list, err := oci.List(t.Context(), in(onDisk(t, tt.files)).Store.(*oci.Layout), oci.Limits{})
		var got []string
		for _, d := range list {
			checktest.Equal(t, image.Digest, d.Digest, "d.Digest (%v)", d)
			got = append(got, named(d))
		}
		diff := cmp.Diff(tt.want, got)
		checktest.FailIf(t, err != nil || diff != "", "%s: %v, %s", name, err, diff)
	}
	// A blob that leads out of the folder, or nowhere.
	for target, want := range map[string]string{"../../../../../../blob": "path escapes", "/dev/zero": "path escapes", image.Digest[7:]: "no such file"} {
		for _, files := range []fstest.MapFS{maps.Clone(tree), l.Mirror("o/release", "-", "1", image.Digest)} {
			for name := range files {
				if strings.HasSuffix(name, image.Digest[7:]) {
					files[name] = link(target)
				}
			}
			dir := t.TempDir()
			checktest.OK(t, os.CopyFS(dir, files))
			layout, closer, err := oci.Open(dir, dir, oci.Limits{})
			checktest.OK(t, err)
			_, err = oci.Find(t.Context(), oci.Repository{Store: layout}, oci.Want{Digest: image.Digest}, oci.Limits{})
			if refused(t, err, "", want); closer.Close() != nil {
				t.Error("not closed")
			}
		}
	}
}

func TestOpenLayoutRefuses(t *testing.T) {
	version := &fstest.MapFile{Data: []byte(`{"imageLayoutVersion":"1.0.0"}`)}
	l := ocitest.NewLayout()
	image := l.Image("linux/amd64")
	mirror, storage := l.Mirror("o/release", ":", "1", image.Digest, l.Image("linux/arm64").Digest), l.Storage("o/release", "1", image.Digest)
	broken := archives(storage, 2)
	broken["mirror_000002.tar"].Data = broken["mirror_000002.tar"].Data[:700]
	packed := archives(storage, 1)
	packed["mirror_000001.tar"].Data = ocitest.Gzip(packed["mirror_000001.tar"].Data)
	for _, tt := range []struct {
		name        string
		fs          fstest.MapFS
		limits      oci.Limits
		field, want string
	}{
		{"nothing", nil, oci.Limits{}, "", "dir holds no images: neither oci-layout nor v2, docker/registry/v2 or mirror_*.tar"},
		{"no version", fstest.MapFS{"oci-layout": {Data: []byte("{}")}}, oci.Limits{}, "", `dir: an OCI layout of unknown version ""`},
		{"new version", fstest.MapFS{"oci-layout": {Data: []byte(`{"imageLayoutVersion":"2.0.0"}`)}}, oci.Limits{}, "", `unknown version "2.0.0"`},
		{"no index", fstest.MapFS{"oci-layout": version}, oci.Limits{}, "", "dir: open index.json: file does not exist"},
		{"broken index", fstest.MapFS{"oci-layout": version, "index.json": {Data: []byte("{")}}, oci.Limits{}, "", "dir: index.json: unexpected"},
		{"index that is no file", fstest.MapFS{"oci-layout": version, "index.json": {Mode: fs.ModeNamedPipe}}, oci.Limits{}, "", "index.json is not a regular file"},
		{"large index", fstest.MapFS{"oci-layout": version, "index.json": {Data: make([]byte, 101)}}, oci.Limits{ManifestSize: 100}, "ManifestSize", "index.json: more than 100 bytes in an index"},
		{"negative limit", l.FS, oci.Limits{Depth: -1}, "", "Depth is negative"},
		{"many folders", mirror, oci.Limits{Entries: 2}, "Entries", "entries in the folders of the mirror"},
		{"many folders of a registry", storage, oci.Limits{Entries: 2}, "Entries", "entries in the folders of the mirror"},
		{"many names of images", mirror, oci.Limits{Manifests: 1}, "Manifests", "entries of indexes"},
		{"many names in archives", archives(storage, 2), oci.Limits{Entries: 5}, "Entries", "mirror_000001.tar: more than 5 entries in the archive"},
		{"archive that is cut off", broken, oci.Limits{}, "", "dir: mirror_000002.tar: tar: unexpected EOF"},
		{"compressed archive", packed, oci.Limits{}, "", "mirror_000001.tar: the archive is compressed with gzip"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			layout, err := oci.OpenLayout(tt.fs, "dir", tt.limits)
			if err == nil {
				_, err = oci.List(t.Context(), layout, tt.limits)
			}
			refused(t, err, tt.field, tt.want)
		})
	}
}
