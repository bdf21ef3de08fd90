package sources_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/oci"
	"github.com/clusterupdate/clusterupdate/internal/oci/ocitest"
	"github.com/clusterupdate/clusterupdate/manifest/image"
	"github.com/clusterupdate/clusterupdate/olm/catalog"
	"github.com/clusterupdate/clusterupdate/olm/install/sources"
	"github.com/clusterupdate/clusterupdate/olm/install/sources/sourcestest"
)

const (
	configsLabel  = "operators.operatorframework.io.index.configs.v1"
	databaseLabel = "operators.operatorframework.io.index.database.v1"
)

// counted is a store that counts how often layers and configurations are read.
type counted struct {
	image.Store
	blobs atomic.Int64
	fail  error
}

func (c *counted) Blob(ctx context.Context, repository, digest string) (io.ReadCloser, error) {
	c.blobs.Add(1)
	if c.fail != nil {
		return nil, c.fail
	}
	return c.Store.Blob(ctx, repository, digest)
}

// count returns a source that reads from a layout, and its store.
func count(t *testing.T, l *ocitest.Layout) (*image.Source, *counted) {
	t.Helper()
	c := &counted{Store: checktest.Get(oci.OpenLayout(l.FS, "layout", oci.Limits{}))(t)}
	return checktest.Get(image.FromStore(c, image.Options{}))(t), c
}

// indexImage is an image of a catalog in a directory.
func indexImage(l *ocitest.Layout, label, dir, text string) oci.Descriptor {
	return l.Labelled(map[string]string{configsLabel: label}, l.Layer(ocitest.File(dir+"/a/catalog.yaml", text), ocitest.File("other.yaml", "x")))
}

// A catalog is read again only if the tag has another image, and not before it is time.
func TestImageIsReadAgain(t *testing.T) {
	text := func(level int) string {
		return sourcestest.Catalog(level, func(string) string { return "r.example/x" })
	}
	l := ocitest.NewLayout()
	first, second := indexImage(l, "/configs/", "configs", text(1)), indexImage(l, "srv/c", "srv/c", text(2))
	l.Write(ocitest.Named(first, "latest"))
	source, store := count(t, l)
	now := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	c := checktest.Get(sources.NewImage(sources.ImageOptions{Source: source, Image: "r.example/index:latest", Clock: now}))(t)
	bundles := func() int {
		t.Helper()
		return len(checktest.Get(c.Contents(t.Context()))(t).Package("mesh").Bundles)
	}
	move := func(d oci.Descriptor) {
		l.Entries = nil
		l.Write(ocitest.Named(d, "latest"))
	}
	checktest.Equal(t, 1, bundles(), "at first")
	reads := store.blobs.Load()
	now.SetTime(now.Now().Add(time.Hour))
	checktest.Equal(t, 1, bundles(), "the same image")
	checktest.Equal(t, reads, store.blobs.Load(), "blobs read")
	move(second)
	checktest.Equal(t, 1, bundles(), "before it is time")
	now.SetTime(now.Now().Add(time.Hour))
	checktest.Equal(t, 2, bundles(), "another image")
	move(first)
	now.SetTime(now.Now().Add(-time.Minute))
	checktest.Equal(t, 1, bundles(), "after the clock was set back")

	l.Entries = nil
	l.Write()
	now.SetTime(now.Now().Add(time.Hour))
	checktest.ErrorHas(t, "file does not exist", checktest.Err(c.Contents(t.Context())))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	checktest.ErrorIs(t, context.Canceled, checktest.Err(c.Contents(ended)))
	checktest.OK(t, c.Close())
}

// Who waits for another one that reads stops waiting with its context.
func TestCatalogWaits(t *testing.T) {
	release := make(chan struct{})
	l := ocitest.NewLayout()
	l.Write(ocitest.Named(indexImage(l, "configs", "configs", ""), "latest"))
	store := slow{checktest.Get(oci.OpenLayout(l.FS, "layout", oci.Limits{}))(t), make(chan struct{}), release}
	source := checktest.Get(image.FromStore(store, image.Options{}))(t)
	c := checktest.Get(sources.NewImage(sources.ImageOptions{Source: source, Image: "r.example/index:latest"}))(t)
	done := make(chan error)
	go func() { done <- checktest.Err(c.Contents(context.Background())) }()
	<-store.began
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	checktest.ErrorIs(t, context.DeadlineExceeded, checktest.Err(c.Contents(ctx)))
	close(release)
	checktest.OK(t, <-done)
}

// slow is a store whose manifests wait.
type slow struct {
	image.Store
	began, release chan struct{}
}

func (s slow) Manifest(ctx context.Context, repository, reference string) (io.ReadCloser, error) {
	select {
	case <-s.began:
	default:
		close(s.began)
	}
	<-s.release
	return s.Store.Manifest(ctx, repository, reference)
}

func TestImageRefuses(t *testing.T) {
	l := ocitest.NewLayout()
	yaml := sourcestest.Catalog(1, func(string) string { return "r.example/x" })
	for _, tt := range map[string]struct {
		image oci.Descriptor
		o     catalog.Options
		want  string
	}{
		"no label":          {image: l.Labelled(nil, l.Layer()), want: "it is not a catalog: it has no label " + configsLabel},
		"database":          {image: l.Labelled(map[string]string{databaseLabel: "/d"}, l.Layer()), want: "it holds a database"},
		"whole image":       {image: indexImage(l, "/", "configs", yaml), want: `"/" is not a directory of its own`},
		"leads out":         {image: indexImage(l, "/../configs", "configs", yaml), want: "is not a directory of its own"},
		"nothing there":     {image: indexImage(l, "/other", "configs", yaml), want: "file does not exist"},
		"strict":            {image: indexImage(l, "/configs", "configs", "{schema: olm.package}"), o: catalog.Options{Strict: true}, want: "no name"},
		"limit":             {image: indexImage(l, "/configs", "configs", yaml), o: catalog.Options{MaxDocuments: 1}, want: "MaxDocuments"},
		"layer of no image": {image: l.Labelled(map[string]string{configsLabel: "/configs"}, l.Blob("text/plain", nil)), want: "media type"},
	} {
		source, _ := count(t, l)
		c := checktest.Get(sources.NewImage(sources.ImageOptions{Source: source, Image: "r.example/x@" + tt.image.Digest, Catalog: tt.o}))(t)
		err := checktest.Err(c.Contents(t.Context()))
		checktest.ErrorHas(t, tt.want, err)
		checktest.ErrorHas(t, `catalog image "r.example/x@`, err)
	}
	source, store := count(t, l)
	good := indexImage(l, "/configs", "configs", yaml)
	c := checktest.Get(sources.NewImage(sources.ImageOptions{Source: source, Image: "r.example/x@" + good.Digest}))(t)
	store.fail = errors.New("away")
	checktest.ErrorHas(t, "away", checktest.Err(c.Contents(t.Context())))
	store.fail = nil
	names := []string{}
	for _, p := range checktest.Get(c.Contents(t.Context()))(t).Packages() {
		names = append(names, p.Name)
	}
	checktest.Equal(t, "mesh tracing", strings.Join(slices.Sorted(slices.Values(names)), " "), "packages")
}

// hanging is a store that never answers.
type hanging struct{}

func (hanging) Manifest(ctx context.Context, _, _ string) (io.ReadCloser, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (h hanging) Blob(ctx context.Context, repository, digest string) (io.ReadCloser, error) {
	return h.Manifest(ctx, repository, digest)
}

func sorted(words string) string {
	return strings.Join(slices.Sorted(slices.Values(strings.Fields(words))), " ")
}
