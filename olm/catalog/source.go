package catalog

import (
	"context"
	"io/fs"
	"sync"

	"github.com/clusterupdate/clusterupdate/olm"
)

// FS returns the catalog in a tree of files. It is read when its contents are
// first asked for, and not again after that succeeded. Safe for concurrent use.
func FS(fsys fs.FS, o Options) olm.Catalog { return &fsCatalog{fsys: fsys, options: o} }

type fsCatalog struct {
	fsys    fs.FS
	options Options

	mu       sync.Mutex
	contents *olm.Contents
}

// Contents reads the tree, or returns what was read before.
func (c *fsCatalog) Contents(ctx context.Context) (*olm.Contents, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.contents != nil {
		return c.contents, nil
	}
	read, err := Load(ctx, c.fsys, c.options)
	if err != nil {
		return nil, err
	}
	c.contents = read.Contents
	return c.contents, nil
}
