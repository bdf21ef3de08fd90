package graphdata_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/limit"
	"github.com/clusterupdate/clusterupdate/internal/oci"
	"github.com/clusterupdate/clusterupdate/internal/oci/ocitest"
)

const metadataPath = "release-manifests/release-metadata"

// says is the release metadata of a version.
func says(version, more string) string {
	return `{"kind": "cincinnati-metadata-v0", "version": "` + version + `"` + more + `}`
}

// imageOf adds an image whose configuration names an architecture.
func imageOf(l *ocitest.Layout, arch string, layers ...oci.Descriptor) oci.Descriptor {
	config := l.Blob("application/vnd.oci.image.config.v1+json", fmt.Appendf(nil, `{"architecture": %q}`, arch))
	return l.JSON(oci.TypeManifest, oci.Manifest{MediaType: oci.TypeManifest, Config: &config, Layers: layers})
}

// on gives an entry of an index its platform.
func on(d oci.Descriptor, platform string) oci.Descriptor {
	os, arch, _ := strings.Cut(platform, "/")
	d.Platform = &oci.Platform{OS: os, Architecture: arch}
	return d
}

func TestLayout(t *testing.T) {
	l := ocitest.NewLayout()
	layer := func(name, text string) oci.Descriptor { return l.Layer(ocitest.File(name, text)) }
	plain := layer(metadataPath, says("1.0.0", `, "previous": ["0.9.0"], "next": ["1.1.0"], "metadata": {"url": "u"}`))
	other := layer("etc/passwd", "")
	wrong := layer(metadataPath, says("1.0.8", `, "previous": ["1.0"]`))
	broken := l.Layer(ocitest.File(metadataPath, says("1.0.9", "")))
	image := imageOf(l, "amd64", other, plain, other)
	above := imageOf(l, "arm64", layer(metadataPath, says("1.0.1", "")), layer("./"+metadataPath, says("1.0.2", "")))
	below := imageOf(l, "arm64", layer("/"+metadataPath, says("1.0.3", "")), wrong, l.Blob(ocitest.TypeLayerGzip, []byte("no gzip")))
	single := l.Index(on(imageOf(l, "x", layer(metadataPath, says("1.0.4", ""))), "linux/s390x"))
	ofMulti := `, "metadata": {"release.openshift.io/architecture": "multi"}`
	several := l.Index(
		on(imageOf(l, "amd64", layer(metadataPath, says("1.0.5", ofMulti))), "linux/amd64"),
		on(imageOf(l, "arm64", layer(metadataPath, says("1.0.6", ofMulti))), "linux/arm64"),
		on(imageOf(l, "", other), "unknown/unknown"),
	)
	lost := imageOf(l, "amd64", plain, broken)
	files := l.Write(image, image, above, below, single, several, imageOf(l, "amd64", other), on(imageOf(l, "amd64", other), "unknown/unknown"),
		imageOf(l, "amd64", wrong), imageOf(l, "", plain), l.Index(), l.Index(l.Index(image)), lost)
	files[oci.BlobPath(broken.Digest)].Data = bytes.Repeat([]byte{0}, int(broken.Size))

	want := []graphdata.Release{
		{Version: "1.0.0", Arch: "amd64", Digest: image.Digest, Previous: []string{"0.9.0"}, Next: []string{"1.1.0"}, Metadata: map[string]string{"url": "u"}},
		{Version: "1.0.2", Arch: "arm64", Digest: above.Digest},
		{Version: "1.0.3", Arch: "arm64", Digest: below.Digest},
		{Version: "1.0.4", Arch: "s390x", Digest: single.Digest},
		{Version: "1.0.6", Arch: "multi", Digest: several.Digest, Metadata: map[string]string{graph.MetadataArchitecture: "multi"}},
	}
	for i := range want {
		want[i].Image = "registry.example/release@" + want[i].Digest
		want[i].Source = "mirror@" + want[i].Digest
		if want[i].Metadata == nil {
			want[i].Metadata = map[string]string{}
		}
	}
	tarred := checktest.Must(graphdata.OpenLayout(sized(ocitest.Tar(ocitest.Files(files)...))))
	for _, source := range []graphdata.Layout{
		{FS: files, Name: "mirror", Repository: "registry.example/release"},
		{FS: tarred, Name: "mirror", Repository: "registry.example/release"},
	} {
		releases, problems, err := graphdata.Collect(t.Context(), source)
		checktest.OK(t, err)
		checktest.Same(t, want, releases)
		var texts []string
		for _, p := range problems {
			texts = append(texts, p.Message)
			if !strings.HasPrefix(p.File, "mirror@sha256:") {
				t.Errorf("%v has no place", p)
			}
		}
		faults := []string{
			`release-metadata: "1.0" is not a valid semver`,
			"the image's configuration names no architecture",
			"an index without images",
			"an index within an index",
			"layer 1: ",
		}
		if len(texts) == len(faults) && strings.HasPrefix(texts[4], faults[4]) {
			texts[4] = faults[4]
		}
		checktest.Same(t, faults, texts)
	}
}

func sized(text []byte) (*bytes.Reader, int64) { return bytes.NewReader(text), int64(len(text)) }

// TestLayoutShards: the parts of a release for several architectures are none of
// their own, and what is served of it is named by the index.
func TestLayoutShards(t *testing.T) {
	l := ocitest.NewLayout()
	shard := func(arch string) oci.Descriptor {
		return on(imageOf(l, arch, l.Layer(ocitest.File(metadataPath, says("1.0.0", `, "metadata": {"release.openshift.io/architecture": "multi"}`)))), "linux/"+arch)
	}
	amd64, arm64 := shard("amd64"), shard("arm64")
	index := l.Index(amd64, arm64)
	releases, problems, err := graphdata.Collect(t.Context(), graphdata.Layout{FS: l.Write(amd64, arm64, index), Repository: "r"})
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	tree := &graphdata.Tree{Channels: []graphdata.Channel{{Name: "a-1", Versions: entries("1.0.0")}}}
	s := build(t, tree, releases, graphdata.BuildOptions{})
	if diff := cmp.Diff([]string{"multi"}, s.Arches()); diff != "" || s.Graph("a-1", "multi").Node(0).Image != "r@"+index.Digest {
		t.Errorf("%v: -want +got\n%s", s.Full().Nodes, diff)
	}
}

func TestLayoutFaults(t *testing.T) {
	l := ocitest.NewLayout()
	image := imageOf(l, "amd64", l.Layer(ocitest.File(metadataPath, says("1.0.0", ""))))
	files := l.Write(image, l.Index(image))
	delete(files, "oci-layout")
	_, problems, err := graphdata.Collect(t.Context(), graphdata.Layout{FS: files})
	if err != nil || len(problems) != 1 || !strings.HasPrefix(problems[0].String(), "the layout holds no images: ") {
		t.Errorf("%v, %v", err, problems)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := graphdata.Collect(ctx, graphdata.Layout{FS: l.Write()}); err == nil {
		t.Error("the end of the context is no error")
	}
	if _, err := graphdata.OpenLayout(sized([]byte("no tar file"))); err == nil {
		t.Error("what is no tar file is opened")
	}
}

// TestLayoutMirrors: of a mirror on disk, the images with the tag of a release are looked
// at, in the repositories of releases; in another mirror, all images.
func TestLayoutMirrors(t *testing.T) {
	l := ocitest.NewLayout()
	release := imageOf(l, "amd64", l.Layer(ocitest.File(metadataPath, says("1.0.0", ""))))
	part := imageOf(l, "amd64", l.Layer(ocitest.File(metadataPath, says("9.9.9", ""))))
	mirror := func(repository string) fstest.MapFS {
		files := l.Mirror(repository, ":", "1.0.0-x86_64", release.Digest)
		maps.Copy(files, l.Mirror(repository, ":", "1.0.0-x86_64-cli", part.Digest))
		maps.Copy(files, l.Mirror("openshift/other", ":", "9-x86_64", part.Digest))
		return files
	}
	storage := l.Storage("openshift/release-images", "1.0.0-x86_64", release.Digest, part.Digest)
	lost := maps.Clone(storage)
	maps.DeleteFunc(lost, func(name string, _ *fstest.MapFile) bool { return strings.HasSuffix(name, release.Digest[7:]+"/data") })
	for _, tt := range []struct {
		name  string
		files fstest.MapFS
		want  string
	}{
		{"oc", mirror("openshift/release"), "1.0.0"},
		{"oc, to a repository of another name", mirror("my/releases"), "1.0.0 9.9.9"},
		{"cache of oc-mirror", storage, "1.0.0"},
		{"archives of oc-mirror", fstest.MapFS{"mirror_000001.tar": {Data: ocitest.Tar(ocitest.Files(storage)...)}}, "1.0.0"},
		{"release in an earlier archive", lost, "archives of oc-mirror are incremental"},
	} {
		releases, problems, err := graphdata.Collect(t.Context(), graphdata.Layout{FS: tt.files})
		checktest.OK(t, err)
		var got []string
		for _, r := range releases {
			got = append(got, r.Version)
		}
		for _, p := range problems {
			got = append(got, p.Message)
		}
		slices.Sort(got)
		if text := strings.Join(got, " "); text != tt.want && (len(problems) == 0 || !strings.Contains(text, tt.want)) {
			t.Errorf("%s: %s, want %s", tt.name, text, tt.want)
		}
	}
}

// TestLayoutBudget: what the images of a layout may take is for all of them
// together, those that are not releases, too.
func TestLayoutBudget(t *testing.T) {
	const mib = 1 << 20
	l := ocitest.NewLayout()
	var entries []oci.Descriptor
	for n := range 40 {
		text := fmt.Sprint(n) + strings.Repeat("x", mib)
		entries = append(entries, imageOf(l, "amd64", l.Layer(ocitest.File("other", text))))
	}
	_, problems, err := graphdata.Collect(t.Context(), graphdata.Layout{FS: l.Write(entries...), MaxBytes: 10 * mib})
	var passed *limit.LimitError
	if err != nil || len(problems) != 1 || !errors.As(problems[0].Err, &passed) || passed.Limit != "TotalSize" {
		t.Errorf("%v, %v", problems, err)
	}
	if _, problems, err := graphdata.Collect(t.Context(), graphdata.Layout{FS: l.Write(entries...)}); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	if _, problems, err := graphdata.Collect(t.Context(), graphdata.Layout{FS: l.Write(entries...), MaxBytes: -1}); err != nil || len(problems) != 1 {
		t.Errorf("a negative limit: %v, %v", problems, err)
	}
}
