package catalog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Open reads a catalog from a file, or from a folder and all below it. Errors
// are those of opening, of [Read] and of [Load], and a folder that holds no
// catalog.
func Open(ctx context.Context, place string, o Options) (*Catalog, error) {
	info, err := os.Stat(place)
	if p := new(fs.PathError); errors.As(err, &p) {
		return nil, fmt.Errorf("%s: %w", place, p.Err)
	} else if err != nil {
		return nil, err
	}
	if info.IsDir() {
		c, err := Load(ctx, os.DirFS(place), o)
		if err == nil && len(c.Packages()) == 0 && len(c.Problems()) == 0 {
			return nil, fmt.Errorf("%s: the folder holds no catalog", place)
		}
		return c, err
	}
	f, err := os.Open(place)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Read(ctx, f, place, o)
}
