package payload

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/internal/regular"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// repository is the made-up place of images that were read from files.
const repository = "registry.example/ocp/release"

// Image is a release whose contents are at hand, laid out as in its image. It is
// plain data: safe to read from many goroutines at a time.
type Image struct {
	FS fs.FS
	// PullSpec names the image by a digest of its files, as if it were in a
	// registry.
	PullSpec string
	Payload  *manifest.Payload
}

// Open reads the release in a file system: the directories manifests and
// release-manifests at its root. name is what errors call it. Errors are those of
// reading files and of [manifest.Load].
func Open(ctx context.Context, name string, fsys fs.FS) (*Image, error) {
	if _, err := fs.Stat(fsys, "release-manifests"); err != nil {
		return nil, fmt.Errorf("%s does not hold a release: %w", name, err)
	}
	digest, err := digestOf(fsys)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	i := &Image{FS: fsys, PullSpec: repository + "@" + digest}
	i.Payload, err = manifest.Load(ctx, fsys, manifest.LoadOptions{Image: i.PullSpec, Filter: manifest.DefaultFilter(), Dir: name})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return i, nil
}

// Version returns the release's version.
func (i *Image) Version() string { return i.Payload.Release.Version }

// Digest returns the digest in the PullSpec.
func (i *Image) Digest() string { return i.PullSpec[len(repository)+1:] }

// Tag returns a pull spec by the release's version, as signatures name a release.
func (i *Image) Tag() string { return repository + ":" + i.Version() }

// digestOf stands in for an image's digest: it covers every file.
func digestOf(fsys fs.FS) (string, error) {
	h := sha256.New()
	err := fs.WalkDir(fsys, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := regular.Open(fsys, path)
		if err != nil {
			return err
		}
		defer f.Close()
		data, err := io.ReadAll(f)
		fmt.Fprintf(h, "%s %d\n", path, len(data))
		h.Write(data)
		return err
	})
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), err
}

// Images is the [manifest.PayloadSource] of the images at hand. Like a registry
// it serves what a digest names, or nothing. It is safe for concurrent use.
type Images []*Image

// Graph returns an update graph in JSON, schema version 1, in which each image
// leads to the next one, and all are in one channel.
func (all Images) Graph(channel string) []byte {
	var g struct {
		Version int         `json:"version"`
		Nodes   []graphNode `json:"nodes"`
		Edges   [][2]int    `json:"edges"`
	}
	g.Version = 1
	for i, image := range all {
		g.Nodes = append(g.Nodes, graphNode{image.Version(), image.PullSpec, map[string]string{
			"url": string(image.Payload.Release.URL), "io.openshift.upgrades.graph.release.channels": channel,
		}})
		if i > 0 {
			g.Edges = append(g.Edges, [2]int{i - 1, i})
		}
	}
	data, err := json.Marshal(g)
	if err != nil {
		panic(err) // strings and numbers can be written
	}
	return data
}

type graphNode struct {
	Version  string            `json:"version"`
	Payload  string            `json:"payload"`
	Metadata map[string]string `json:"metadata"`
}

// Payload implements [manifest.PayloadSource]. It fails for an image that is
// not among them, and for one whose files have changed.
func (all Images) Payload(ctx context.Context, want configv1.Release) (fs.FS, error) {
	for _, i := range all {
		if i.PullSpec != want.Image {
			continue
		}
		digest, err := digestOf(i.FS)
		if err != nil {
			return nil, err
		}
		if digest != i.Digest() {
			return nil, errors.New("the contents do not have the digest that the image names")
		}
		return i.FS, ctx.Err()
	}
	return nil, fmt.Errorf("no release %s here", want.Image)
}
