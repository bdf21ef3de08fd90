package main

import (
	"context"
	"io"

	"github.com/clusterupdate/clusterupdate/olm/catalog"
)

// opener opens a catalog.
type opener func(ctx context.Context, place string, o catalog.Options) (*catalog.Catalog, error)

// task answers from a catalog.
type task func(ctx context.Context, c *catalog.Catalog, args []string, stdout io.Writer) error
