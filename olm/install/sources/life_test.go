package sources_test

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	local "github.com/google/go-containerregistry/pkg/registry"
	"github.com/operator-framework/operator-registry/pkg/api"
	"github.com/operator-framework/operator-registry/pkg/cache"
	"github.com/operator-framework/operator-registry/pkg/server"
	"google.golang.org/grpc"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/oci"
	"github.com/clusterupdate/clusterupdate/internal/oci/ocitest"
	"github.com/clusterupdate/clusterupdate/manifest/image"
	"github.com/clusterupdate/clusterupdate/manifest/image/registry"
	"github.com/clusterupdate/clusterupdate/olm/install/sources"
	"github.com/clusterupdate/clusterupdate/olm/install/sources/sourcestest"
)

// upstream is operator-registry's own server on loopback, whose catalog can be changed.
type upstream struct {
	api.RegistryServer
	mu      sync.Mutex
	address string
}

// serveRegistry starts the server with no catalog.
func serveRegistry(t *testing.T) *upstream {
	t.Helper()
	u := &upstream{}
	u.address = serve(t, u)
	return u
}

// serve serves a registry, and returns where.
func serve(t *testing.T, s api.RegistryServer, o ...grpc.ServerOption) string {
	t.Helper()
	listener := checktest.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	g := grpc.NewServer(o...)
	api.RegisterRegistryServer(g, s)
	done := make(chan error, 1)
	go func() { done <- g.Serve(listener) }()
	t.Cleanup(func() {
		g.Stop()
		checktest.OK(t, <-done)
	})
	return listener.Addr().String()
}

// load makes the server serve a file-based catalog.
func (u *upstream) load(t *testing.T, catalog string) {
	t.Helper()
	c := checktest.Get(cache.New(t.TempDir()))(t)
	t.Cleanup(func() { checktest.OK(t, c.Close()) })
	fsys := fstest.MapFS{"catalog.yaml": {Data: []byte(catalog)}}
	checktest.OK(t, cache.LoadOrRebuild(t.Context(), c, fsys))
	u.mu.Lock()
	defer u.mu.Unlock()
	u.RegistryServer = server.NewRegistryServer(c)
}

func (u *upstream) served() api.RegistryServer {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.RegistryServer
}

func (u *upstream) ListBundles(r *api.ListBundlesRequest, s api.Registry_ListBundlesServer) error {
	return u.served().ListBundles(r, s)
}

func (u *upstream) GetPackage(ctx context.Context, r *api.GetPackageRequest) (*api.Package, error) {
	return u.served().GetPackage(ctx, r)
}

// imageRegistry is a registry of images in this process.
type imageRegistry struct {
	t    *testing.T
	host string
}

func serveImages(t *testing.T) *imageRegistry {
	t.Helper()
	s := httptest.NewServer(local.New(local.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(s.Close)
	return &imageRegistry{t, strings.TrimPrefix(s.URL, "http://")}
}

// push stores an image and its blobs under a tag, and returns its pull spec by digest.
func (r *imageRegistry) push(l *ocitest.Layout, repository, tag string, d oci.Descriptor) string {
	r.t.Helper()
	for name, file := range l.FS {
		if sum, ok := strings.CutPrefix(name, "blobs/sha256/"); ok {
			r.send(http.MethodPost, repository+"/blobs/uploads/?digest=sha256:"+sum, "application/octet-stream", file.Data)
		}
	}
	r.send(http.MethodPut, repository+"/manifests/"+tag, d.MediaType, l.FS[oci.BlobPath(d.Digest)].Data)
	return r.host + "/" + repository + "@" + d.Digest
}

func (r *imageRegistry) send(method, path, mediaType string, data []byte) {
	r.t.Helper()
	req := checktest.Get(http.NewRequestWithContext(r.t.Context(), method, "http://"+r.host+"/v2/"+path, strings.NewReader(string(data))))(r.t)
	req.Header.Set("Content-Type", mediaType)
	resp := checktest.Get(http.DefaultClient.Do(req))(r.t)
	checktest.OK(r.t, resp.Body.Close())
	checktest.Equal(r.t, http.StatusCreated, resp.StatusCode, "%s", path)
}

// source reads from the registry.
func (r *imageRegistry) source() *image.Source {
	r.t.Helper()
	return checktest.Get(registry.New(registry.Options{PlainHTTP: true}))(r.t)
}

// An operator is installed, updated and uninstalled alike from a registry of OLM's with
// bundles in a registry of images, and from an image of a catalog in a layout with bundles
// in a mirror on disk.
func TestLife(t *testing.T) {
	images := sourcestest.NewImages()
	later := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	for name, world := range map[string]func(t *testing.T) sourcestest.World{
		"registries": func(t *testing.T) sourcestest.World {
			hub, index := serveImages(t), serveRegistry(t)
			pushed := map[string]string{}
			for operator, d := range images.Bundles {
				pushed[operator] = hub.push(images.Layout, sourcestest.Repository(operator), "v1", d)
			}
			c := checktest.Get(sources.NewRegistry(sources.RegistryOptions{Address: index.address, Clock: later}))(t)
			t.Cleanup(func() { checktest.OK(t, c.Close()) })
			return sourcestest.World{
				Catalog:  c,
				Unpacker: checktest.Get(sources.NewUnpacker(sources.UnpackerOptions{Source: hub.source()}))(t),
				Publish: func(level int) {
					index.load(t, sourcestest.Catalog(level, func(name string) string { return pushed[name] }))
				},
			}
		},
		"images on disk": func(t *testing.T) sourcestest.World {
			mirror := checktest.Get(image.FromFS(images.FS, image.Options{}))(t)
			hub := serveImages(t)
			c := checktest.Get(sources.NewImage(sources.ImageOptions{Source: hub.source(), Image: hub.host + "/org/index:latest", Clock: later}))(t)
			return sourcestest.World{
				Catalog:  c,
				Unpacker: checktest.Get(sources.NewUnpacker(sources.UnpackerOptions{Source: mirror}))(t),
				Publish: func(level int) {
					l := ocitest.NewLayout()
					text := sourcestest.Catalog(level, images.Spec)
					d := l.Labelled(map[string]string{configsLabel: "/configs"}, l.Layer(ocitest.File("configs/all.yaml", text)))
					hub.push(l, "org/index", "latest", d)
				},
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := world(t)
			publish := w.Publish
			w.Publish = func(level int) {
				publish(level)
				later.SetTime(later.Now().Add(time.Hour))
			}
			w.API = memory.NewOpenShift(memory.Options{})
			w.Collects = true
			sourcestest.Life(t, w)
		})
	}
}
