package oci

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// DockerArchive is what docker save writes: manifest.json, and for each image a
// configuration and layers. It keeps neither the manifests by whose digests
// registries know images, nor layers as they are stored there. So an image in it
// is known by the digest of its configuration, which names its layers, or by the
// digest of a manifest that is had elsewhere, which names the configuration. It
// is safe for concurrent use if FS is.
type DockerArchive struct {
	FS   fs.FS
	Name string // what errors call it
}

// dockerImage is an entry of manifest.json.
type dockerImage struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// dockerConfig is a configuration, as far as it matters here.
type dockerConfig struct {
	OS           string `json:"os"`
	Architecture string `json:"architecture"`
	Variant      string `json:"variant"`
	RootFS       struct {
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
}

// Unpack returns the file system of the image that is wanted by its digest, as
// the function [Unpack] does. manifests are those that the archive does not keep:
// of the image, and of the index that names it. Errors are those of [Find] and
// [Unpack].
func (a *DockerArchive) Unpack(ctx context.Context, w Want, manifests [][]byte, paths []string, l Limits) (fs.FS, error) {
	limits, err := l.complete()
	if err != nil {
		return nil, err
	}
	if err := CheckDigest(w.Digest); err != nil {
		return nil, err
	}
	config, err := wantedConfig(ctx, w, manifests, l)
	if err != nil {
		return nil, err
	}
	images, err := a.images(limits)
	if err != nil {
		return nil, err
	}
	var available []string
	left := limits.ManifestsSize
	for _, image := range images {
		data, err := a.config(ctx, image, left, limits)
		if err != nil {
			return nil, err
		}
		left -= int64(len(data))
		got := digestOf(data, config)
		if got == config {
			return a.unpack(ctx, image, data, paths, limits)
		}
		available = append(available, describe(dockerDescriptor(image, got, data)))
	}
	err = &NotFoundError{Want: config, Available: available}
	if config != w.Digest {
		return nil, fmt.Errorf("%s has the configuration of %s: %w", a.Name, w.Digest, err)
	}
	return nil, fmt.Errorf("%s is one without manifests, so that an image's digest shows only with a manifest from elsewhere: %w", a.Name, err)
}

// Images returns what the archive holds, by the digests (sha256) of
// configurations. The media type of such a descriptor is empty.
func (a *DockerArchive) Images(ctx context.Context, l Limits) ([]Descriptor, error) {
	l, err := l.complete()
	if err != nil {
		return nil, err
	}
	images, err := a.images(l)
	if err != nil {
		return nil, err
	}
	var out []Descriptor
	left := l.ManifestsSize
	for _, image := range images {
		data, err := a.config(ctx, image, left, l)
		if err != nil {
			return nil, err
		}
		left -= int64(len(data))
		out = append(out, dockerDescriptor(image, digestOf(data, "sha256:"), data))
	}
	return out, nil
}

// wantedConfig returns the digest of the configuration of the image that is
// wanted. It is the digest that is wanted if no manifest has that.
func wantedConfig(ctx context.Context, w Want, manifests [][]byte, l Limits) (string, error) {
	src, entries := Overlay(nil, manifests, w.Digest)
	if len(entries) == 0 {
		return w.Digest, nil
	}
	image, err := Find(ctx, src, entries, w, l)
	if err != nil {
		return "", err
	}
	if image.Config == nil {
		return "", fmt.Errorf("manifest %s names no configuration", image.Descriptor.Digest)
	}
	return image.Config.Digest, CheckDigest(image.Config.Digest)
}

// images returns the entries of manifest.json.
func (a *DockerArchive) images(l Limits) ([]dockerImage, error) {
	data, err := ReadFile(a.FS, "manifest.json", l.ManifestSize)
	if errors.Is(err, ErrTooLarge) {
		err = manifestSizeError(l.ManifestSize)
	}
	if err != nil {
		return nil, fmt.Errorf("%s is not an archive of docker save: %w", a.Name, err)
	}
	var images []dockerImage
	if err := Decode(data, &images); err != nil {
		return nil, fmt.Errorf("%s: manifest.json: %w", a.Name, err)
	}
	if len(images) > l.Manifests {
		return nil, fmt.Errorf("%s: %w", a.Name, &LimitError{Limit: "Manifests", Max: int64(l.Manifests), What: "images in manifest.json"})
	}
	return images, nil
}

// config returns the configuration of an image. left is how many bytes those of
// further images may have.
func (a *DockerArchive) config(ctx context.Context, image dockerImage, left int64, l Limits) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	data, err := ReadFile(a.FS, image.Config, min(l.ManifestSize, left))
	switch {
	case errors.Is(err, ErrTooLarge) && left < l.ManifestSize:
		err = manifestsSizeError(l.ManifestsSize)
	case errors.Is(err, ErrTooLarge):
		err = manifestSizeError(l.ManifestSize)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.Name, err)
	}
	return data, nil
}

// dockerDescriptor describes an image by its configuration.
func dockerDescriptor(image dockerImage, digest string, config []byte) Descriptor {
	var c dockerConfig
	d := Descriptor{Digest: digest, Size: int64(len(config))}
	if Decode(config, &c) == nil && c.Architecture != "" {
		d.Platform = &Platform{OS: c.OS, Architecture: c.Architecture, Variant: c.Variant}
	}
	if len(image.RepoTags) > 0 {
		d.Annotations = map[string]string{RefName: image.RepoTags[0]}
	}
	return d
}

// HasLayout and HasDockerArchive report whether a file system holds an image
// layout, or what docker save writes. New versions write both in one.
func HasLayout(fsys fs.FS) bool { return has(fsys, "oci-layout") }

func HasDockerArchive(fsys fs.FS) bool { return has(fsys, "manifest.json") }

func has(fsys fs.FS, name string) bool {
	info, err := fs.Stat(fsys, name)
	return err == nil && info.Mode().IsRegular()
}
