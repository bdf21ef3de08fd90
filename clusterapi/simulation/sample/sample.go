package sample

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
)

// The versions and images of the two releases. To is a minor update of From
// and names it among its previous versions.
const (
	FromVersion = "4.20.3"
	ToVersion   = "4.21.1"
	FromImage   = "registry.example/ocp/release@sha256:818ed045948bb53337aa38a58bc7cd813142a0c721f3ea390f4fba9380431436"
	ToImage     = "registry.example/ocp/release@sha256:6ab330b5205a6a0cb64d0e3c3a5a04278d90cb85e128e3b5317cdfba22bef41d"
)

// Channel is the channel that every node of [Graph] is in.
const Channel = "stable-4.21"

//go:embed from to graph.json
var files embed.FS

// From returns the release that a cluster starts with, [FromVersion].
func From() fs.FS { return sub("from") }

// To returns the release to update to, [ToVersion].
func To() fs.FS { return sub("to") }

// Graph returns an update graph, schema version 1, of four releases: both of
// this package, 4.20.4, and 4.21.0, which is offered with a risk that always
// applies.
func Graph() []byte {
	data, err := files.ReadFile("graph.json")
	if err != nil {
		panic(err) // embedded: cannot be absent
	}
	return slices.Clone(data)
}

// Payload returns the contents of the release image with the given pull spec. For
// any other the error wraps [fs.ErrNotExist].
func Payload(image string) (fs.FS, error) {
	switch image {
	case FromImage:
		return From(), nil
	case ToImage:
		return To(), nil
	}
	return nil, fmt.Errorf("sample: no release image %q: %w", image, fs.ErrNotExist)
}

func sub(dir string) fs.FS {
	fsys, err := fs.Sub(files, dir)
	if err != nil {
		panic(err) // a constant, valid path
	}
	return fsys
}
