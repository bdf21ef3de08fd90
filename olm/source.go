package olm

import (
	"context"
	"io/fs"
	"sync"
)

// FS returns the catalog in a tree of files. It is read when its contents are
// first asked for, and not again after that succeeded. Safe for concurrent use.
func FS(fsys fs.FS, o LoadOptions) Catalog { return &fsCatalog{fsys: fsys, options: o} }

// Loaded returns a catalog with these contents.
func Loaded(c *Contents) Catalog { return loaded{c} }

type loaded struct{ contents *Contents }

func (l loaded) Contents(context.Context) (*Contents, error) { return l.contents, nil }

type fsCatalog struct {
	fsys    fs.FS
	options LoadOptions

	mu       sync.Mutex
	contents *Contents
}

// Contents reads the tree, or returns what was read before.
func (c *fsCatalog) Contents(ctx context.Context) (*Contents, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.contents != nil {
		return c.contents, nil
	}
	contents, err := Load(ctx, c.fsys, c.options)
	if err != nil {
		return nil, err
	}
	c.contents = contents
	return contents, nil
}
