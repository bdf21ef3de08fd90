package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// release is a release's contents, named by their digest as an image is.
type release struct {
	fsys    fs.FS
	image   string
	payload *manifest.Payload
}

// openRelease reads a release laid out as in its image.
func openRelease(ctx context.Context, name string, fsys fs.FS) (*release, error) {
	digest, err := digestOf(fsys)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	r := &release{fsys: fsys, image: "registry.example/ocp/release@" + digest}
	filter := manifest.DefaultFilter()
	if r.payload, err = manifest.Load(ctx, fsys, manifest.LoadOptions{Image: r.image, Filter: filter, Dir: name}); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return r, nil
}

func (r *release) version() string { return r.payload.Release.Version }

// digestOf stands in for an image's digest: it covers every file.
func digestOf(fsys fs.FS) (string, error) {
	h := sha256.New()
	err := fs.WalkDir(fsys, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(fsys, path)
		fmt.Fprintf(h, "%s %d\n", path, len(data))
		h.Write(data)
		return err
	})
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), err
}

// payloads is the [manifest.PayloadSource] of the releases at hand. Like a
// registry it serves what a digest names, or nothing.
type payloads []*release

func (p payloads) Payload(ctx context.Context, want configv1.Release) (fs.FS, error) {
	for _, r := range p {
		if r.image != want.Image {
			continue
		}
		digest, err := digestOf(r.fsys)
		if err != nil {
			return nil, err
		}
		if r.image != "registry.example/ocp/release@"+digest {
			return nil, errors.New("the contents do not have the digest that the image names")
		}
		return r.fsys, ctx.Err()
	}
	return nil, fmt.Errorf("no release %s here", want.Image)
}

// fail makes an operator go Degraded in this release. It may be named as its
// ClusterOperator or as its component.
func fail(r *simulation.Release, ops []manifest.Operator, component string) error {
	for i, op := range ops {
		if op.Name == component || op.Component == component {
			r.Operators[i].Fault = &simulation.Fault{
				Kind: simulation.FaultDegraded, Reason: "Rehearsal", Message: "made to fail by -fail " + component,
			}
			return nil
		}
	}
	return fmt.Errorf("-fail %s: the release has no such operator", component)
}
