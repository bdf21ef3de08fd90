package sources

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/options"
	"github.com/clusterupdate/clusterupdate/manifest/image"
	"github.com/clusterupdate/clusterupdate/olm/catalog"
)

// The labels of a catalog's image: the directory of a file-based catalog, and the file of
// the database that older images have.
const (
	labelConfigs  = "operators.operatorframework.io.index.configs.v1"
	labelDatabase = "operators.operatorframework.io.index.database.v1"
)

// ImageOptions are those of [NewImage].
type ImageOptions struct {
	// Source has the image. Required. The largest catalogs have files of more bytes than
	// its limits allow unless they are set.
	Source *image.Source
	// Image is its pull spec, by digest or tag. Required.
	Image string
	// Catalog are the options by which the catalog is read.
	Catalog catalog.Options
	// Refresh is the time after which the image behind a tag is looked at again; 0: 10
	// minutes. An image that has not changed is not read again.
	Refresh time.Duration
	// Clock is the time; nil means the real one.
	Clock clock.PassiveClock
}

// NewImage returns a file-based catalog in an image: what lies in the directory that the
// label operators.operatorframework.io.index.configs.v1 names. Nothing is read yet. The
// error names an option that is missing or negative.
func NewImage(o ImageOptions) (*Catalog, error) {
	if o.Source == nil || o.Image == "" {
		return nil, errors.New("sources: ImageOptions.Source and Image are required")
	}
	if err := options.NonNegative(o); err != nil {
		return nil, err
	}
	var pinned string // the pull spec of the image read last
	read := func(ctx context.Context, last *catalog.Catalog) (*catalog.Catalog, error) {
		spec, err := o.Source.Resolve(ctx, o.Image)
		if err == nil && (last == nil || spec != pinned) {
			last, err = o.load(ctx, spec)
		}
		if err != nil {
			return nil, fmt.Errorf("catalog image %s: %w", bounded.Quote(o.Image), err)
		}
		pinned = spec
		return last, nil
	}
	return newCatalog(read, o.Refresh, o.Clock), nil
}

func (o *ImageOptions) load(ctx context.Context, spec string) (*catalog.Catalog, error) {
	i, err := o.Source.Image(ctx, spec)
	if err != nil {
		return nil, err
	}
	label := i.Labels[labelConfigs]
	switch {
	case label == "" && i.Labels[labelDatabase] != "":
		return nil, errors.New("it holds a database, which a registry has to serve, and no file-based catalog")
	case label == "":
		return nil, fmt.Errorf("it is not a catalog: it has no label %s", labelConfigs)
	}
	dir, err := directory(label)
	if err != nil {
		return nil, fmt.Errorf("label %s: %w", labelConfigs, err)
	}
	files, err := i.Files(ctx, dir)
	if err != nil {
		return nil, err
	}
	if _, err := fs.Stat(files, dir); err != nil {
		return nil, fmt.Errorf("label %s: %w", labelConfigs, err)
	}
	configs, err := fs.Sub(files, dir)
	if err != nil {
		return nil, err
	}
	return catalog.Load(ctx, configs, o.Catalog)
}

// directory returns the path that a label has, as one of package fs. The error is about one
// that is the whole image, or leads out of it.
func directory(label string) (string, error) {
	dir := strings.TrimPrefix(path.Clean("/"+label), "/")
	if dir == "" || strings.Contains("/"+label+"/", "/../") || !fs.ValidPath(dir) {
		return "", fmt.Errorf("%s is not a directory of its own", bounded.Quote(label))
	}
	return dir, nil
}
