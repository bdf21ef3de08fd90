package oci

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/regular"
)

func (a *DockerArchive) unpack(ctx context.Context, image dockerImage, config []byte, paths []string, l Limits) (fs.FS, error) {
	layers, err := a.layers(image, config, l)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.Name, err)
	}
	b, err := NewBudget(l)
	if err != nil {
		return nil, err
	}
	fsys, err := unpack(ctx, dockerSource{a.FS}, layers, paths, b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.Name, err)
	}
	return fsys, nil
}

// layers returns those of an image, whose configuration has their digests.
func (a *DockerArchive) layers(image dockerImage, config []byte, l Limits) ([]Layer, error) {
	var c dockerConfig
	if err := Decode(config, &c); err != nil {
		return nil, fmt.Errorf("%s: %w", bounded.Quote(image.Config), err)
	}
	if len(c.RootFS.DiffIDs) != len(image.Layers) {
		return nil, fmt.Errorf("%s names %d layers, but manifest.json %d", bounded.Quote(image.Config), len(c.RootFS.DiffIDs), len(image.Layers))
	}
	if len(image.Layers) > l.Layers {
		return nil, layersError(l)
	}
	var layers []Layer
	for i, name := range image.Layers {
		layer := Layer{DiffID: c.RootFS.DiffIDs[i]}
		if err := a.describe(&layer, name); err != nil {
			return nil, fmt.Errorf("layer %d: %w", i+1, err)
		}
		layers = append(layers, layer)
	}
	return layers, nil
}

// layerFile is the annotation that names a layer's file.
const layerFile = "file"

// describe finds out size and compression of a layer.
func (a *DockerArchive) describe(layer *Layer, name string) error {
	f, err := regular.Open(a.FS, name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	layer.Size, layer.Annotations = info.Size(), map[string]string{layerFile: name}
	begin := make([]byte, maxMagic)
	n, err := io.ReadFull(f, begin)
	if err != nil && err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	switch packed := compression(begin[:n]); packed {
	case "", "gzip":
		layer.MediaType = layerTypes[packed]
		return nil
	default:
		return fmt.Errorf("%s is compressed with %s, which is not supported", bounded.Quote(name), packed)
	}
}

// dockerSource opens layers.
type dockerSource struct{ fsys fs.FS }

func (s dockerSource) Open(_ context.Context, d Descriptor) (io.ReadCloser, error) {
	return regular.Open(s.fsys, d.Annotations[layerFile])
}

// maxMagic is how many bytes of a file tell how it is compressed.
const maxMagic = 6

// compression tells by its first bytes how a file is compressed: gzip, zstd, bzip2,
// xz, or "" for none of these.
func compression(begin []byte) string {
	for _, c := range []struct{ magic, name string }{
		{"\x1f\x8b", "gzip"}, {"\x28\xb5\x2f\xfd", "zstd"}, {"BZh", "bzip2"}, {"\xfd7zXZ\x00", "xz"},
	} {
		if strings.HasPrefix(string(begin), c.magic) {
			return c.name
		}
	}
	return ""
}
