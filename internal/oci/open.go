package oci

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// Open opens the images in a directory or tar file as [OpenLayout] does. Links that
// lead out of the directory are not followed. Close what it returns when it is no longer
// read. Errors are also those of [OpenTar].
func Open(place, name string, l Limits) (*Layout, io.Closer, error) {
	info, err := os.Stat(place)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case info.IsDir():
		root, err := os.OpenRoot(place)
		if err != nil {
			return nil, nil, err
		}
		layout, err := OpenLayout(root.FS(), name, l)
		return closing(layout, root, err)
	case info.Mode().IsRegular():
		f, err := os.Open(place)
		if err != nil {
			return nil, nil, err
		}
		files, err := OpenTar(f, info.Size(), l)
		if err != nil {
			return closing(nil, f, fmt.Errorf("%s: %w", name, err))
		}
		layout, err := OpenLayout(files, name, l)
		return closing(layout, f, err)
	}
	return nil, nil, fmt.Errorf("%s is neither a directory nor a regular file", place)
}

// closing closes what a layout reads from if the layout could not be opened.
func closing(l *Layout, place io.Closer, err error) (*Layout, io.Closer, error) {
	if err != nil {
		return nil, nil, errors.Join(err, place.Close())
	}
	return l, place, nil
}
