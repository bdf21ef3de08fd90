package oci_test

import (
	"bytes"
	"context"
	"crypto/sha512"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/oci"
	"github.com/clusterupdate/clusterupdate/internal/oci/ocitest"
)

func find(t *testing.T, l *ocitest.Layout, w oci.Want, limits oci.Limits) (*oci.Image, error) {
	t.Helper()
	layout := &oci.Layout{FS: l.FS, Name: "dir"}
	entries, err := layout.Entries(oci.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return oci.Find(t.Context(), layout, entries, w, limits)
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
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("%v, want %s", err, tt.err)
				}
			case err != nil || i.Descriptor.Digest != tt.is:
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
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("%v, want %s", err, tt.err)
				}
			case err != nil || i.Descriptor.Digest != tt.is || len(i.Layers) != 1 || i.Config == nil:
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
		if i, err := find(t, l, oci.Want{Digest: index.Digest, Platform: platform(system + "/amd64")}, oci.Limits{}); err != nil || i.Descriptor.Digest != want {
			t.Error(system, i, err)
		}
	}
}

// Nothing below the digest that is wanted counts unless its bytes are those that
// were named.
func TestFindVerifies(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func(l *ocitest.Layout) (digest string)
		want string
	}{
		{"changed index", func(l *ocitest.Layout) string {
			d := l.Index(l.Image("linux/amd64"))
			l.FS[oci.BlobPath(d.Digest)].Data[5] ^= 1
			l.Write(d)
			return d.Digest
		}, "blob differs from its descriptor"},
		{"changed image below an index", func(l *ocitest.Layout) string {
			i := l.Image("linux/amd64")
			l.FS[oci.BlobPath(i.Digest)].Data[5] ^= 1
			d := l.Index(i)
			l.Write(d)
			return d.Digest
		}, "blob differs from its descriptor"},
		{"another size", func(l *ocitest.Layout) string {
			d := l.Image("linux/amd64")
			d.Size++
			l.Write(d)
			return d.Digest
		}, "blob differs from its descriptor: it has "},
		{"too many bytes", func(l *ocitest.Layout) string {
			d := l.Image("linux/amd64")
			d.Size--
			l.Write(d)
			return d.Digest
		}, "it has more than "},
		{"negative size", func(l *ocitest.Layout) string {
			d := l.Image("linux/amd64")
			d.Size = -1
			l.Write(d)
			return d.Digest
		}, "more than the limit"},
		{"missing blob", func(l *ocitest.Layout) string {
			d := l.Image("linux/amd64")
			delete(l.FS, oci.BlobPath(d.Digest))
			l.Write(d)
			return d.Digest
		}, "file does not exist"},
		{"index that is called a manifest", func(l *ocitest.Layout) string {
			d := l.Index(l.Image("linux/amd64"))
			d.MediaType = oci.TypeManifest
			l.Write(d)
			return d.Digest
		}, "but its descriptor says"},
		{"index without a type that is called a manifest", func(l *ocitest.Layout) string {
			d := l.JSON(oci.TypeManifest, oci.Manifest{Manifests: []oci.Descriptor{l.Image("linux/amd64")}})
			l.Write(d)
			return d.Digest
		}, "it is called a manifest, but has manifests"},
		{"manifest without a type that is called an index", func(l *ocitest.Layout) string {
			d := l.JSON(oci.TypeIndex, oci.Manifest{Layers: []oci.Descriptor{l.Layer()}})
			l.Write(d)
			return d.Digest
		}, "it is called an index, but has layers"},
		{"both", func(l *ocitest.Layout) string {
			i := l.Image("linux/amd64")
			d := l.JSON("", oci.Manifest{Manifests: []oci.Descriptor{i}, Layers: []oci.Descriptor{l.Layer()}})
			l.Write(d)
			return d.Digest
		}, "could be read as an index and as a manifest"},
		{"key twice", func(l *ocitest.Layout) string {
			d := l.Blob("", []byte(`{"layers":[],"layers":[]}`))
			l.Write(d)
			return d.Digest
		}, "duplicate"},
		{"another type", func(l *ocitest.Layout) string {
			d := l.Blob("application/x", []byte(`{}`))
			l.Write(d)
			return d.Digest
		}, `the type "application/x" is that of no image`},
		{"index in the place of an image", func(l *ocitest.Layout) string {
			inner := l.Index(l.Image("linux/amd64"))
			inner.MediaType = ""
			d := l.Index(inner)
			l.Write(d)
			return d.Digest
		}, "is an index, which its entry does not say"},
		{"unread index that may have it", func(l *ocitest.Layout) string {
			d := l.Index(l.Image("linux/amd64"))
			l.FS[oci.BlobPath(d.Digest)].Data[5] ^= 1
			l.Write(d)
			return missing
		}, "; not all could be read: unable to read manifest"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := ocitest.NewLayout()
			digest := tt.make(l)
			i, err := find(t, l, oci.Want{Digest: digest, Platform: platform("amd64")}, oci.Limits{})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%+v, %v, want %s", i, err, tt.want)
			}
		})
	}
}

// A layout that holds only a part of what its indexes name is usable.
func TestFindInPartialLayout(t *testing.T) {
	l := ocitest.NewLayout()
	gone, here := l.Index(l.Image("linux/amd64")), l.Image("linux/arm64")
	delete(l.FS, oci.BlobPath(gone.Digest))
	l.Write(gone, l.Index(here))
	if i, err := find(t, l, oci.Want{Digest: here.Digest}, oci.Limits{}); err != nil || i.Descriptor.Digest != here.Digest {
		t.Error(i, err)
	}
	_, err := find(t, l, oci.Want{Digest: missing}, oci.Limits{})
	if nf := (*oci.NotFoundError)(nil); !errors.As(err, &nf) || nf.Want != missing || len(nf.Available) != 3 {
		t.Error(err)
	}
}

// Manifests that are had elsewhere are known by the digest of any algorithm.
func TestOverlay(t *testing.T) {
	l := ocitest.NewLayout()
	image := l.Image("linux/amd64")
	data := l.FS[oci.BlobPath(image.Digest)].Data
	for _, digest := range []string{image.Digest, fmt.Sprintf("sha384:%x", sha512.Sum384(data)), fmt.Sprintf("sha512:%x", sha512.Sum512(data))} {
		src, entries := oci.Overlay(nil, [][]byte{[]byte("{}"), data}, digest)
		i, err := oci.Find(t.Context(), src, entries, oci.Want{Digest: digest}, oci.Limits{})
		if err != nil || i.Descriptor.Digest != digest || i.Config == nil {
			t.Errorf("%s: %+v, %v", digest, i, err)
		}
	}
	if _, entries := oci.Overlay(nil, [][]byte{data}, missing); len(entries) > 0 {
		t.Error(entries)
	}
}

func TestFindLimits(t *testing.T) {
	l := ocitest.NewLayout()
	image := l.Image("linux/amd64", l.Layer(), l.Layer())
	index := l.Index(l.Index(l.Index(image)))
	l.Write(index)
	for _, w := range []oci.Want{{Digest: image.Digest}, {Digest: index.Digest}} {
		if _, err := find(t, l, w, oci.Limits{Layers: 2, Depth: 4, Manifests: 4}); err != nil {
			t.Error(err)
		}
		for field, limits := range map[string]oci.Limits{
			"Depth": {Depth: 1}, "Manifests": {Manifests: 1}, "Layers": {Layers: 1}, "ManifestSize": {ManifestSize: 100}, "ManifestsSize": {ManifestsSize: 900},
		} {
			_, err := find(t, l, w, limits)
			if passed := (*oci.LimitError)(nil); !errors.As(err, &passed) || passed.Limit != field {
				t.Errorf("%s: %v", field, err)
			}
		}
	}
	if _, err := find(t, l, oci.Want{Digest: image.Digest}, oci.Limits{Depth: -1}); err == nil || !strings.Contains(err.Error(), "Depth is negative") {
		t.Error(err)
	}
	l.FS["index.json"].Data = []byte(`{"manifests":[` + strings.Repeat("{},", 128<<10) + `{}]}`)
	_, err := (&oci.Layout{FS: l.FS}).Entries(oci.Limits{})
	if passed := (*oci.LimitError)(nil); !errors.As(err, &passed) || passed.Limit != "Items" {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := oci.Find(ctx, &oci.Layout{FS: l.FS}, []oci.Descriptor{index}, oci.Want{Digest: index.Digest}, oci.Limits{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// counting counts the bytes that are read of a source.
type counting struct {
	oci.Source
	read int64
}

type countingReader struct {
	io.ReadCloser
	c *counting
}

func (c *counting) Open(ctx context.Context, d oci.Descriptor) (io.ReadCloser, error) {
	r, err := c.Source.Open(ctx, d)
	return countingReader{r, c}, err
}

func (r countingReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.c.read += int64(n)
	return n, err
}

// What is read and cannot be used counts, in one search and over several.
func TestFailedReadsCount(t *testing.T) {
	const size, limit = 1000, 10_000
	l := ocitest.NewLayout()
	bad := l.Blob(oci.TypeIndex, bytes.Repeat([]byte(" "), size))
	var entries []oci.Descriptor
	for n := range 100 {
		d := bad
		d.Digest = fmt.Sprintf("sha256:%064x", n)
		l.FS[oci.BlobPath(d.Digest)] = l.FS[oci.BlobPath(bad.Digest)]
		entries = append(entries, d)
	}
	passes := func(err error) bool {
		var passed *oci.LimitError
		return errors.As(err, &passed) && passed.Limit == "ManifestsSize"
	}
	for name, read := range map[string]func(*counting, *oci.Budget) error{
		"one search": func(src *counting, b *oci.Budget) error {
			_, err := b.Find(t.Context(), src, entries, oci.Want{Digest: missing})
			return err
		},
		"many searches": func(src *counting, b *oci.Budget) error {
			for _, d := range entries {
				if _, err := b.Find(t.Context(), src, []oci.Descriptor{d}, oci.Want{Digest: d.Digest}); passes(err) || err == nil {
					return err
				}
			}
			return nil
		},
		"files": func(src *counting, b *oci.Budget) error {
			for _, d := range entries {
				if err := b.ReadJSON(t.Context(), src, d, new(any)); passes(err) || err == nil {
					return err
				}
			}
			return nil
		},
	} {
		src := &counting{Source: &oci.Layout{FS: l.FS}}
		b, err := oci.NewBudget(oci.Limits{ManifestsSize: limit})
		if err != nil {
			t.Fatal(err)
		}
		if err := read(src, b); !passes(err) || !b.Exhausted() {
			t.Errorf("%s: %v, exhausted %v", name, err, b.Exhausted())
		}
		if src.read > limit {
			t.Errorf("%s: %d bytes were read", name, src.read)
		}
	}
	// What is not there costs nothing: mirrors hold parts.
	for _, d := range entries {
		delete(l.FS, oci.BlobPath(d.Digest))
	}
	b, err := oci.NewBudget(oci.Limits{ManifestsSize: limit})
	if err != nil {
		t.Fatal(err)
	}
	var notFound *oci.NotFoundError
	if _, err := b.Find(t.Context(), &oci.Layout{FS: l.FS}, entries, oci.Want{Digest: missing}); !errors.As(err, &notFound) {
		t.Error(err)
	}
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
