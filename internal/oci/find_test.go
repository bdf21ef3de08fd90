package oci_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/limit"
	"github.com/clusterupdate/clusterupdate/internal/oci"
	"github.com/clusterupdate/clusterupdate/internal/oci/ocitest"
)

// in returns the images in files.
func in(fsys fs.FS) oci.Repository {
	l, err := oci.OpenLayout(fsys, "dir", oci.Limits{})
	if err != nil {
		panic(err)
	}
	return oci.Repository{Store: l}
}

func find(t *testing.T, l *ocitest.Layout, w oci.Want, limits oci.Limits) (oci.Manifest, error) {
	t.Helper()
	return oci.Find(t.Context(), in(l.FS), w, limits)
}

// refused wants an error of a limit, or without a name of one, with a text.
func refused(t *testing.T, err error, field, text string) {
	t.Helper()
	passed, ok := errors.AsType[*limit.LimitError](err)
	checktest.FailIf(t, field != "" && (!ok || passed.Limit != field), "%v, want the limit %s", err, field)
	checktest.ErrorHas(t, text, err)
}

func platform(s string) oci.Platform {
	p, err := oci.ParsePlatform(s)
	if err != nil {
		panic(err)
	}
	return p
}

const missing = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

func TestFind(t *testing.T) {
	l := ocitest.NewLayout()
	amd, arm, arm7 := l.Image("linux/amd64"), l.Image("linux/arm64/v8"), l.Image("linux/arm/v7")
	windows, plain := l.Image("windows/amd64"), l.Image("")
	attestation := l.Image("unknown/unknown")
	release := l.Index(amd, arm, attestation)
	nested := l.Index(l.Index(arm7), windows)
	twice := l.Index(amd, l.Index(amd))
	same := l.Index(l.Image("linux/arm/v6"), arm7)
	sole, empty, unknown := l.Index(plain), l.Index(), l.Index(plain, amd)
	l.Write(ocitest.Named(release, "registry.example/release:4.21.1"), nested, ocitest.Named(plain, "latest"), twice, same, sole, empty, unknown)

	for _, tt := range []struct {
		name string
		want oci.Want
		is   string // digest
		err  string
	}{
		{"image by its digest in the index", oci.Want{Digest: plain.Digest}, plain.Digest, ""},
		{"image below an index", oci.Want{Digest: arm.Digest}, arm.Digest, ""},
		{"image two indexes down", oci.Want{Digest: arm7.Digest}, arm7.Digest, ""},
		{"its own digest counts before the platform", oci.Want{Digest: arm.Digest, Platform: platform("amd64")}, arm.Digest, ""},
		{"index and platform", oci.Want{Digest: release.Digest, Platform: platform("linux/arm64")}, arm.Digest, ""},
		{"index and architecture", oci.Want{Digest: release.Digest, Platform: oci.Platform{Architecture: "amd64"}}, amd.Digest, ""},
		{"nested index and platform", oci.Want{Digest: nested.Digest, Platform: platform("linux/arm/v7")}, arm7.Digest, ""},
		{"nested index and system", oci.Want{Digest: nested.Digest, Platform: platform("windows/amd64")}, windows.Digest, ""},
		{"one image named twice", oci.Want{Digest: twice.Digest}, amd.Digest, ""},
		{"only image without a platform", oci.Want{Digest: sole.Digest, Platform: platform("s390x")}, plain.Digest, ""},

		{"no such digest", oci.Want{Digest: missing}, "", `there is no image "` + missing + `", but ` + release.Digest + " (registry.example/release:4.21.1), "},
		{"no such platform", oci.Want{Digest: release.Digest, Platform: platform("s390x")}, "", "there is no image for linux/s390x, but " + amd.Digest + " (linux/amd64), " + arm.Digest + " (linux/arm64/v8)"},
		{"other variant", oci.Want{Digest: release.Digest, Platform: platform("linux/arm64/v9")}, "", "there is no image for linux/arm64/v9"},
		{"no platform", oci.Want{Digest: release.Digest}, "", "one of 2 images must be chosen by its platform: " + amd.Digest + " (linux/amd64), "},
		{"two variants", oci.Want{Digest: same.Digest, Platform: platform("arm")}, "", "there are 2 images for linux/arm: "},
		{"no images", oci.Want{Digest: empty.Digest}, "", "there is no image"},
		{"one without a platform among several", oci.Want{Digest: unknown.Digest, Platform: platform("s390x")}, "", "there is no image for linux/s390x"},
		{"no digest", oci.Want{Digest: "sha256:../x"}, "", "invalid checksum digest length"},
		{"no digest at all", oci.Want{}, "", "digest \"\": "},
		{"weak digest", oci.Want{Digest: "md5:d41d8cd98f00b204e9800998ecf8427e"}, "", "unsupported digest algorithm"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			i, err := find(t, l, tt.want, oci.Limits{})
			switch {
			case tt.err != "":
				refused(t, err, "", tt.err)
			case err != nil || i.Digest != tt.is:
				t.Errorf("%+v, %v, want %s", i, err, tt.is)
			}
		})
	}
}

// An index tells more than platforms: what is no image, what has the same platform,
// one image for several.
func TestFindInIndex(t *testing.T) {
	l := ocitest.NewLayout()
	amd, arm := l.Image("linux/amd64", l.Layer(ocitest.File("x", ""))), l.Image("linux/arm64")
	about := l.JSON(oci.TypeManifest, oci.Manifest{MediaType: oci.TypeManifest, Subject: &amd})
	attestation, artifact, sbom := about, about, l.Blob("application/spdx+json", []byte("{}"))
	attestation.Annotations = map[string]string{"vnd.docker.reference.type": "attestation-manifest"}
	artifact.ArtifactType = "application/vnd.dev.sigstore.bundle.v0.3+json"
	image := amd
	image.ArtifactType = "application/vnd.oci.image.config.v1+json"
	both := amd
	both.Platform = &oci.Platform{OS: "linux", Architecture: "arm64"}
	older := l.Blob(oci.TypeManifest, bytes.Replace(l.FS[oci.BlobPath(amd.Digest)].Data, []byte("{"), []byte("{ "), 1))
	older.Platform = amd.Platform
	for _, tt := range []struct {
		name     string
		entries  []oci.Descriptor
		platform string
		is, err  string
	}{
		{"only one", []oci.Descriptor{amd}, "", amd.Digest, ""},
		{"beside what is about it", []oci.Descriptor{attestation, artifact, sbom, amd}, "", amd.Digest, ""},
		{"that says of what type it is", []oci.Descriptor{artifact, image}, "amd64", amd.Digest, ""},
		{"for two platforms, the first", []oci.Descriptor{amd, both}, "amd64", amd.Digest, ""},
		{"for two platforms, the second", []oci.Descriptor{amd, both}, "arm64", amd.Digest, ""},
		{"for two platforms, whichever", []oci.Descriptor{amd, both}, "", amd.Digest, ""},
		{"another index with it", []oci.Descriptor{arm, l.Index(arm, amd)}, "amd64", amd.Digest, ""},
		{"nothing but artifacts", []oci.Descriptor{artifact}, "amd64", "", "there is no image for linux/amd64, but none at all"},
		{"two of one platform", []oci.Descriptor{amd, older}, "amd64", "", "there are 2 images for linux/amd64: " + amd.Digest + " (linux/amd64), " + older.Digest + " (linux/amd64)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			index := l.Index(tt.entries...)
			l.Entries = nil
			l.Write(index)
			w := oci.Want{Digest: index.Digest}
			if tt.platform != "" {
				w.Platform = platform(tt.platform)
			}
			i, err := find(t, l, w, oci.Limits{})
			switch {
			case tt.err != "":
				refused(t, err, "", tt.err)
			case err != nil || i.Digest != tt.is || len(i.Layers) != 1 || i.Config == nil:
				t.Errorf("%+v, %v, want %s", i, err, tt.is)
			}
		})
	}
	// Fields that are not known here, such as a version of an operating system,
	// do not matter.
	l.Entries = nil
	index := l.Blob(oci.TypeIndex, fmt.Appendf(nil, `{"manifests":[{"mediaType":%q,"digest":%q,"size":%d,"platform":{"os":"windows","architecture":"amd64","os.version":"10.0.1","os.features":["x"]}},
		{"mediaType":%q,"digest":%q,"size":%d,"platform":{"os":"linux","architecture":"amd64","features":[]}}]}`, arm.MediaType, arm.Digest, arm.Size, amd.MediaType, amd.Digest, amd.Size))
	l.Write(index)
	for system, want := range map[string]string{"windows": arm.Digest, "linux": amd.Digest} {
		if i, err := find(t, l, oci.Want{Digest: index.Digest, Platform: platform(system + "/amd64")}, oci.Limits{}); err != nil || i.Digest != want {
			t.Error(system, i, err)
		}
	}
}

// Nothing below the digest that is wanted counts unless its bytes are those that
// were named.
func TestFindVerifies(t *testing.T) {
	damaged := func(l *ocitest.Layout, d oci.Descriptor) oci.Descriptor {
		l.FS[oci.BlobPath(d.Digest)].Data[5] ^= 1
		return d
	}
	resized := func(by int64) func(*ocitest.Layout) oci.Descriptor {
		return func(l *ocitest.Layout) oci.Descriptor {
			i := l.Image("linux/amd64")
			i.Size += by
			return l.Index(i)
		}
	}
	called := func(d oci.Descriptor, mediaType string) oci.Descriptor {
		d.MediaType = mediaType
		return d
	}
	for _, tt := range []struct {
		name string
		make func(l *ocitest.Layout) oci.Descriptor
		want string
	}{
		{"changed index", func(l *ocitest.Layout) oci.Descriptor { return damaged(l, l.Index(l.Image("linux/amd64"))) }, "blob differs from its descriptor"},
		{"changed image below an index", func(l *ocitest.Layout) oci.Descriptor { return l.Index(damaged(l, l.Image("linux/amd64"))) }, "blob differs from its descriptor"},
		{"another size", resized(1), "blob differs from its descriptor: it has "},
		{"too many bytes", resized(-1), "it has more than "},
		{"negative size", resized(-10_000), "blob of -"},
		{"missing blob", func(l *ocitest.Layout) oci.Descriptor {
			d := l.Image("linux/amd64")
			delete(l.FS, oci.BlobPath(d.Digest))
			return d
		}, "file does not exist"},
		{"index that is called a manifest", func(l *ocitest.Layout) oci.Descriptor {
			return l.Index(called(l.Index(l.Image("linux/amd64")), oci.TypeManifest))
		}, "but its descriptor says"},
		{"index without a type that is called a manifest", func(l *ocitest.Layout) oci.Descriptor {
			return l.Index(l.JSON(oci.TypeManifest, oci.Manifest{Manifests: []oci.Descriptor{l.Image("linux/amd64")}}))
		}, "it is called a manifest, but has manifests"},
		{"manifest without a type that is called an index", func(l *ocitest.Layout) oci.Descriptor {
			return l.Index(l.JSON(oci.TypeIndex, oci.Manifest{Layers: []oci.Descriptor{l.Layer()}}))
		}, "it is called an index, but has layers"},
		{"both", func(l *ocitest.Layout) oci.Descriptor {
			return l.JSON("", oci.Manifest{Manifests: []oci.Descriptor{l.Image("linux/amd64")}, Layers: []oci.Descriptor{l.Layer()}})
		}, "could be read as an index and as a manifest"},
		{"key twice", func(l *ocitest.Layout) oci.Descriptor { return l.Blob("", []byte(`{"layers":[],"layers":[]}`)) }, "duplicate"},
		{"another type", func(l *ocitest.Layout) oci.Descriptor { return l.JSON("", oci.Manifest{MediaType: "application/x"}) }, `the type "application/x" is that of no image`},
		{"index in the place of an image", func(l *ocitest.Layout) oci.Descriptor {
			return l.Index(called(l.Index(l.Image("linux/amd64")), ""))
		}, "is an index, which its entry does not say"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := ocitest.NewLayout()
			d := tt.make(l)
			l.Write(d)
			_, err := find(t, l, oci.Want{Digest: d.Digest, Platform: platform("amd64")}, oci.Limits{})
			refused(t, err, "", tt.want)
		})
	}
}

// A layout that holds only a part of what its indexes name is usable.
func TestFindInPartialLayout(t *testing.T) {
	l := ocitest.NewLayout()
	gone, here := l.Index(l.Image("linux/amd64")), l.Image("linux/arm64")
	delete(l.FS, oci.BlobPath(gone.Digest))
	l.Write(gone, l.Index(here))
	if i, err := find(t, l, oci.Want{Digest: here.Digest}, oci.Limits{}); err != nil || i.Digest != here.Digest {
		t.Error(i, err)
	}
	_, err := find(t, l, oci.Want{Digest: missing}, oci.Limits{})
	nf := (*oci.NotFoundError)(nil)
	checktest.FailIf(t, !errors.As(err, &nf) || nf.Want != missing || len(nf.Available) != 3, "%v", err)
}

func TestFindLimits(t *testing.T) {
	l := ocitest.NewLayout()
	image := l.Image("linux/amd64", l.Layer(), l.Layer())
	index := l.Index(l.Index(l.Index(image)))
	l.Write(index)
	w := oci.Want{Digest: index.Digest}
	checktest.Good(t, checktest.Err(find(t, l, w, oci.Limits{Layers: 2, Depth: 3, Manifests: 3})))
	for field, limits := range map[string]oci.Limits{
		"Depth": {Depth: 1}, "Manifests": {Manifests: 1}, "Layers": {Layers: 1}, "ManifestSize": {ManifestSize: 100}, "ManifestsSize": {ManifestsSize: 900},
	} {
		_, err := find(t, l, w, limits)
		refused(t, err, field, "")
	}
	_, err := find(t, l, w, oci.Limits{Depth: -1})
	refused(t, err, "", "Depth is negative")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	checktest.ErrorIs(t, context.Canceled, checktest.Err(oci.Find(ctx, in(l.FS), w, oci.Limits{})))
	l.FS["index.json"].Data = []byte(`{"manifests":[` + strings.Repeat("{},", 128<<10) + `{}]}`)
	_, err = oci.List(t.Context(), in(l.FS).Store.(*oci.Layout), oci.Limits{})
	refused(t, err, "Items", "")
}

// counting counts the bytes that are read of a store, and what is opened.
type counting struct {
	oci.Store
	read   int64
	opened int
}

type countingReader struct {
	io.ReadCloser
	c *counting
}

func (c *counting) Manifest(ctx context.Context, repository, digest string) (io.ReadCloser, error) {
	c.opened++
	r, err := c.Store.Manifest(ctx, repository, digest)
	return countingReader{r, c}, err
}

func (r countingReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.c.read += int64(n)
	return n, err
}

// What is read and cannot be used counts, in one search and over several, and is not
// read twice.
func TestFailedReadsCount(t *testing.T) {
	const size, most = 1000, 10_000
	l := ocitest.NewLayout()
	bad := l.Blob(oci.TypeIndex, bytes.Repeat([]byte(" "), size))
	var entries []oci.Descriptor
	for n := range 100 {
		d := bad
		d.Digest = fmt.Sprintf("sha256:%064x", n)
		l.FS[oci.BlobPath(d.Digest)] = l.FS[oci.BlobPath(bad.Digest)]
		entries = append(entries, d)
	}
	src := &counting{Store: in(l.FS).Store}
	b, err := oci.NewBudget(oci.Limits{ManifestsSize: most})
	checktest.OK(t, err)
	for n, d := range entries {
		for range 3 {
			if _, err = b.Manifest(t.Context(), oci.Repository{Store: src}, d); n < 10 && err == nil || n == 10 && !b.Exhausted() {
				t.Fatalf("%d: %v", n, err)
			}
		}
	}
	refused(t, err, "ManifestsSize", "")
	checktest.FailIf(t, src.read > most || src.opened != 10,
		"%d bytes were read of %d manifests", src.read, src.opened)
	_, err = oci.List(t.Context(), in(l.Write(entries...)).Store.(*oci.Layout), oci.Limits{ManifestsSize: most})
	refused(t, err, "ManifestsSize", "")
	// What is not there costs nothing: mirrors hold parts.
	for _, d := range entries {
		delete(l.FS, oci.BlobPath(d.Digest))
	}
	_, err = find(t, l, oci.Want{Digest: missing}, oci.Limits{ManifestsSize: most})
	notFound := (*oci.NotFoundError)(nil)
	checktest.FailIf(t, !errors.As(err, &notFound) || len(notFound.Available) != len(entries), "%v", err)
}

func TestParsePlatform(t *testing.T) {
	for s, want := range map[string]string{"amd64": "linux/amd64", "linux/arm64/v8": "linux/arm64/v8", "windows/amd64": "windows/amd64"} {
		if p, err := oci.ParsePlatform(s); err != nil || p.String() != want {
			t.Error(s, p, err)
		}
	}
	for _, s := range []string{"", "/", "linux/", "a/b/c/d"} {
		if p, err := oci.ParsePlatform(s); err == nil {
			t.Errorf("%q: %v", s, p)
		}
	}
}
