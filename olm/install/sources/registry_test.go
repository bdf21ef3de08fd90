package sources_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/operator-registry/pkg/api"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/manifest/image"
	"github.com/clusterupdate/clusterupdate/olm"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
	"github.com/clusterupdate/clusterupdate/olm/catalog"
	"github.com/clusterupdate/clusterupdate/olm/install/sources"
	"github.com/clusterupdate/clusterupdate/olm/install/sources/sourcestest"
)

// answers is a registry that says what it is told to.
type answers struct {
	api.UnimplementedRegistryServer
	bundles  []*api.Bundle
	packages map[string]*api.Package
	err      error // at the end of the bundles
	hangs    bool  // after them
	refused  error // for every package
}

func (a *answers) ListBundles(_ *api.ListBundlesRequest, s api.Registry_ListBundlesServer) error {
	for _, b := range a.bundles {
		if err := s.Send(b); err != nil {
			return err
		}
	}
	if a.hangs {
		<-s.Context().Done()
	}
	return a.err
}

func (a *answers) GetPackage(_ context.Context, r *api.GetPackageRequest) (*api.Package, error) {
	if a.refused != nil {
		return nil, a.refused
	}
	if p := a.packages[r.GetName()]; p != nil {
		return p, nil
	}
	return nil, status.Error(codes.Unknown, "package "+r.GetName()+" not found")
}

func connect(t *testing.T, o sources.RegistryOptions) *sources.Catalog {
	t.Helper()
	c := checktest.Get(sources.NewRegistry(o))(t)
	t.Cleanup(func() { checktest.OK(t, c.Close()) })
	return c
}

// show lists what a resolution looks at.
func show(t *testing.T, c *olm.Contents) map[string][]string {
	out := map[string][]string{}
	for _, p := range c.Packages() {
		lines := []string{fmt.Sprintf("default %s, deprecation %q", p.DefaultChannel, p.Deprecation)}
		for _, ch := range p.Channels {
			lines = append(lines, fmt.Sprintf("channel %s, deprecation %q, ordered %v", ch.Name, ch.Deprecation, ch.Err == nil))
			for _, e := range ch.Entries {
				skips := slices.Sorted(slices.Values(e.Skips))
				lines = append(lines, fmt.Sprintf("entry %s %s %q %s %s", ch.Name, e.Name, e.Replaces, skips, e.SkipRange))
			}
		}
		for _, b := range p.Bundles {
			lines = append(lines, fmt.Sprintf("bundle %s %s %v %q %v", b.Name, b.Image, b.Version, b.Deprecation, b.Err))
			for _, property := range b.Properties {
				var value any // whatever the order of keys is
				checktest.OK(t, json.Unmarshal(property.Value, &value))
				text := checktest.Get(json.Marshal(value))(t)
				lines = append(lines, fmt.Sprintf("property %s %s %s", b.Name, property.Type, text))
			}
		}
		slices.Sort(lines)
		out[p.Name] = lines
	}
	return out
}

// What operator-registry serves of a real catalog is what package catalog reads of it.
func TestRegistryServesCommunityCatalog(t *testing.T) {
	data := checktest.Get(os.ReadFile(filepath.Join(testdata.Dir(t), "catalogs", "community.jsonl")))(t)
	whole := checktest.Get(catalog.Read(t.Context(), bytes.NewReader(data), "community", catalog.Options{}))(t)
	bad := map[string]bool{} // packages that the server refuses to serve
	for _, p := range whole.Problems() {
		bad[p.Package] = true
	}
	var good []string
	for line := range strings.Lines(string(data)) {
		var blob struct{ Schema, Package, Name string }
		checktest.OK(t, json.Unmarshal([]byte(line), &blob))
		if !bad[cmp.Or(blob.Package, blob.Name)] {
			good = append(good, line)
		}
	}
	text := strings.Join(good, "")
	want := show(t, checktest.Get(catalog.Read(t.Context(), strings.NewReader(text), "good", catalog.Options{}))(t).Contents)
	if len(want) < 50 {
		t.Fatalf("only %d packages have no problem", len(want))
	}
	server := serveRegistry(t)
	server.load(t, text)
	c := connect(t, sources.RegistryOptions{Address: server.address})
	read := checktest.Get(c.Read(t.Context()))(t)
	checktest.Same(t, want, show(t, read.Contents))
	checktest.Equal(t, 0, len(read.Problems()), "problems")
}

func bundle(pkg, channel, name string, change ...func(*api.Bundle)) *api.Bundle {
	b := &api.Bundle{PackageName: pkg, ChannelName: channel, CsvName: name, Version: "1.0.0", BundlePath: "r.example/" + name}
	for _, f := range change {
		f(b)
	}
	return b
}

// What registries of other ages say becomes what a file-based catalog would.
func TestRegistryAnswers(t *testing.T) {
	required := &api.GroupVersionKind{Group: "g", Version: "v1", Kind: "K"}
	message := &api.Deprecation{Message: "old"}
	a := &answers{
		bundles: []*api.Bundle{
			bundle("a", "x", "a.v1", func(b *api.Bundle) {
				b.ProvidedApis = []*api.GroupVersionKind{required}
				b.Deprecation = message
			}),
			bundle("a", "y", "a.v1"),
			bundle("a", "x", "a.v2", func(b *api.Bundle) {
				b.Replaces, b.Skips, b.SkipRange = "a.v1", []string{"a.v0"}, "<1.0.0"
				b.RequiredApis = []*api.GroupVersionKind{required}
				b.BundlePath, b.Object = "", []string{"{}"}
			}),
			bundle("a", "y", "a.v3", func(b *api.Bundle) { b.BundlePath, b.CsvJson = "", `{"kind":"x"}` }),
			bundle("b", "x", "b.v1"),
			bundle("a", "z", "a.v4", func(b *api.Bundle) { b.Dependencies = []*api.Dependency{{Type: "olm.gvk", Value: "1"}} }),
		},
		packages: map[string]*api.Package{"a": {Name: "a", DefaultChannelName: "y", Deprecation: message,
			Channels: []*api.Channel{{Name: "x", Deprecation: message}, {Name: "unknown", Deprecation: message}}}},
	}
	c := connect(t, sources.RegistryOptions{Address: serve(t, a)})
	read := checktest.Get(c.Read(t.Context()))(t)
	identity := `olm.package {"packageName":"a","version":"1.0.0"}`
	checktest.Same(t, map[string][]string{"a": {
		`bundle a.v1 r.example/a.v1 1.0.0 "old" <nil>`,
		`bundle a.v2  1.0.0 "" <nil>`,
		`bundle a.v3  1.0.0 "" <nil>`,
		`channel x, deprecation "old", ordered true`,
		`channel y, deprecation "", ordered false`,
		`channel z, deprecation "", ordered true`,
		`default y, deprecation "old"`,
		`entry x a.v1 "" [] `,
		`entry x a.v2 "a.v1" [a.v0] <1.0.0`,
		`entry y a.v1 "" [] `,
		`entry y a.v3 "" [] `,
		`entry z a.v4 "" [] `,
		`property a.v1 olm.gvk {"group":"g","kind":"K","version":"v1"}`,
		"property a.v1 " + identity,
		`property a.v2 olm.bundle.object {"data":"e30="}`,
		`property a.v2 olm.gvk.required {"group":"g","kind":"K","version":"v1"}`,
		"property a.v2 " + identity,
		`property a.v3 olm.bundle.object {"data":"eyJraW5kIjoieCJ9"}`,
		"property a.v3 " + identity,
	}}, show(t, read.Contents))
	var problems []string
	for _, p := range read.Problems() {
		problems = append(problems, p.Message)
	}
	checktest.Has(t, strings.Join(problems, "\n"), `unknown package "b" for bundle "b.v1"`, "no olm.bundle blobs found", "multiple channel heads")
}

// The properties of a bundle are those that a file-based catalog would give it.
func TestRegistryProperties(t *testing.T) {
	apis := func(kind string) []*api.GroupVersionKind {
		return []*api.GroupVersionKind{{Group: "g", Version: "v", Kind: kind}}
	}
	gvk := func(property, kind string) string {
		return property + ` {"group":"g","kind":"` + kind + `","version":"v"}`
	}
	for name, tt := range map[string]struct {
		bundle *api.Bundle
		want   []string
	}{
		"APIs alone": {
			bundle: &api.Bundle{ProvidedApis: apis("A"), RequiredApis: apis("B")},
			want:   []string{gvk("olm.gvk", "A"), gvk("olm.gvk.required", "B")},
		},
		"dependencies": {
			bundle: &api.Bundle{RequiredApis: apis("B"), Dependencies: []*api.Dependency{
				{Type: "olm.gvk", Value: `{"group":"g","kind":"A","version":"v"}`},
				{Type: "olm.package", Value: `{"packageName":"p","version":">=1.0.0"}`},
				{Type: "olm.label", Value: `{"label":"l"}`},
				{Type: "olm.constraint", Value: `{"all":{}}`},
			}},
			want: []string{
				`olm.constraint {"all":{}}`, gvk("olm.gvk.required", "A"), `olm.label.required {"label":"l"}`,
				`olm.package.required {"packageName":"p","versionRange":"\u003e=1.0.0"}`,
			},
		},
		"properties count, and nothing comes twice": {
			bundle: &api.Bundle{ProvidedApis: apis("A"), RequiredApis: apis("B"), Properties: []*api.Property{
				{Type: "x", Value: "1"}, {Type: "olm.gvk.required", Value: `{ "version":"v","kind":"B","group":"g"}`},
			}},
			want: []string{gvk("olm.gvk.required", "B"), "x 1"},
		},
		"dependencies of unknown types do not count, and hide the required APIs": {
			bundle: &api.Bundle{ProvidedApis: apis("A"), RequiredApis: apis("B"), Dependencies: []*api.Dependency{{Type: "olm.crd", Value: `{}`}}},
			want:   []string{gvk("olm.gvk", "A")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := bundle("a", "x", "a.v1", func(b *api.Bundle) {
				b.ProvidedApis, b.RequiredApis = tt.bundle.ProvidedApis, tt.bundle.RequiredApis
				b.Properties, b.Dependencies = tt.bundle.Properties, tt.bundle.Dependencies
			})
			served := &answers{bundles: []*api.Bundle{b}, packages: map[string]*api.Package{"a": {Name: "a", DefaultChannelName: "x"}}}
			read := checktest.Get(connect(t, sources.RegistryOptions{Address: serve(t, served)}).Read(t.Context()))(t)
			var got []string
			for _, line := range show(t, read.Contents)["a"] {
				if text, ok := strings.CutPrefix(line, "property a.v1 "); ok && !strings.HasPrefix(text, "olm.package ") {
					got = append(got, text)
				}
			}
			checktest.SameIn(t, "properties", tt.want, got)
		})
	}
}

// Bad answers, limits, and those who do not answer are errors that say so, in time.
func TestRegistryRefuses(t *testing.T) {
	good := []*api.Bundle{bundle("a", "x", "a.v1"), bundle("a", "x", "a.v2")}
	nobody := checktest.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	checktest.OK(t, nobody.Close())
	silent := checktest.Get(net.Listen("tcp", "127.0.0.1:0"))(t) // accepts, and never answers
	t.Cleanup(func() { silent.Close() })
	for _, tt := range []struct {
		name string
		a    *answers
		o    sources.RegistryOptions
		want string
	}{
		{name: "bundles", a: &answers{bundles: good}, o: sources.RegistryOptions{MaxBundles: 1}, want: "more than 1 bundles (limit MaxBundles)"},
		{name: "bytes", a: &answers{bundles: good}, o: sources.RegistryOptions{MaxBytes: 60}, want: "more than 60 bytes of all bundles (limit MaxBytes)"},
		{name: "message", a: &answers{bundles: good}, o: sources.RegistryOptions{MaxMessageBytes: 20}, want: "ResourceExhausted"},
		{name: "property", a: &answers{bundles: []*api.Bundle{bundle("a", "x", "a.v1", func(b *api.Bundle) {
			b.Properties = []*api.Property{{Type: "t", Value: "[" + strings.Repeat("{},", 4<<20) + "{}]"}}
		})}}, o: sources.RegistryOptions{MaxMessageBytes: 32 << 20}, want: `bundle "a.v1": property of type "t": more than`},
		{name: "breaks off", a: &answers{bundles: good, err: status.Error(codes.Internal, "out of\x1bmemory")}, want: "listing bundles: Internal: out of"},
		{name: "no packages", a: &answers{bundles: good}, want: `package "a": Unknown: package a not found`},
		{name: "no rights", a: &answers{bundles: good, refused: status.Error(codes.PermissionDenied, "no")}, want: `package "a": PermissionDenied: no`},
		{name: "another service", a: nil, want: "Unimplemented"},
		{name: "hangs in the middle", a: &answers{bundles: good, hangs: true}, o: sources.RegistryOptions{Timeout: 50 * time.Millisecond}, want: "no whole answer within 50ms"},
		{name: "nobody listens", o: sources.RegistryOptions{Address: nobody.Addr().String()}, want: "connection refused"},
		{name: "never answers", o: sources.RegistryOptions{Address: silent.Addr().String(), Timeout: 50 * time.Millisecond}, want: "no whole answer within 50ms"},
		{name: "no connection", o: sources.RegistryOptions{Address: "somewhere", Dial: func(_ context.Context, address string) (net.Conn, error) {
			return nil, errors.New("no way to " + address)
		}}, want: "no way to somewhere"},
		{name: "TLS", a: &answers{bundles: good}, o: sources.RegistryOptions{TLS: &tls.Config{}}, want: "Unavailable"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.o.Address == "" && tt.a != nil {
				tt.o.Address = serve(t, tt.a)
			} else if tt.o.Address == "" {
				tt.o.Address = serve(t, api.UnimplementedRegistryServer{})
			}
			c := connect(t, tt.o)
			checktest.ErrorHas(t, tt.want, checktest.Err(c.Contents(t.Context())))
		})
	}
	hanging := connect(t, sources.RegistryOptions{Address: serve(t, &answers{hangs: true})})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	checktest.ErrorIs(t, context.DeadlineExceeded, checktest.Err(hanging.Contents(ctx)))
}

// A registry is reached by TLS, and by whatever Dial connects to.
func TestRegistryConnections(t *testing.T) {
	authority := httptest.NewTLSServer(nil)
	defer authority.Close()
	a := &answers{bundles: []*api.Bundle{bundle("a", "x", "a.v1")}, packages: map[string]*api.Package{"a": {Name: "a"}}}
	secured := serve(t, a, grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: authority.TLS.Certificates})))
	roots := authority.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	for _, o := range []sources.RegistryOptions{
		{Address: secured, TLS: &tls.Config{RootCAs: roots}},
		{Address: "catalog.ns.svc:50051", Dial: func(ctx context.Context, address string) (net.Conn, error) {
			checktest.Equal(t, "catalog.ns.svc:50051", address, "address")
			return new(net.Dialer).DialContext(ctx, "tcp", serve(t, a))
		}},
	} {
		contents := checktest.Get(connect(t, o).Contents(t.Context()))(t)
		checktest.Equal(t, 1, len(contents.Packages()), "packages")
	}
	closed := checktest.Get(sources.NewRegistry(sources.RegistryOptions{Address: secured}))(t)
	checktest.OK(t, closed.Close())
	checktest.ErrorHas(t, "the client connection is closing", checktest.Err(closed.Contents(t.Context())))
}

func TestAddress(t *testing.T) {
	c := &olmapi.CatalogSource{}
	c.Namespace, c.Name = "ns", "c"
	checktest.Equal(t, "c.ns.svc:50051", sources.Address(c), "without more")
	c.Status.ConnectionState = &olmapi.CatalogConnectionState{Address: "state:1"}
	checktest.Equal(t, "state:1", sources.Address(c), "with a connection")
	c.Spec.Address = "spec:1"
	checktest.Equal(t, "spec:1", sources.Address(c), "with an address")
}

func TestOptions(t *testing.T) {
	images := checktest.Get(image.FromFS(sourcestest.NewImages().FS, image.Options{}))(t)
	for _, tt := range []struct {
		err  error
		want string
	}{
		{checktest.Err(sources.NewRegistry(sources.RegistryOptions{})), "Address is required"},
		{checktest.Err(sources.NewRegistry(sources.RegistryOptions{Address: "a", MaxBytes: -1})), "MaxBytes is negative"},
		{checktest.Err(sources.NewRegistry(sources.RegistryOptions{Address: "%"})), `registry "%"`},
		{checktest.Err(sources.NewImage(sources.ImageOptions{Image: "a"})), "are required"},
		{checktest.Err(sources.NewImage(sources.ImageOptions{Source: images})), "are required"},
		{checktest.Err(sources.NewImage(sources.ImageOptions{Source: images, Image: "a", Refresh: -1})), "Refresh is negative"},
		{checktest.Err(sources.NewUnpacker(sources.UnpackerOptions{})), "Source is required"},
		{checktest.Err(sources.NewUnpacker(sources.UnpackerOptions{Source: images, MaxFiles: -1})), "MaxFiles is negative"},
	} {
		checktest.ErrorHas(t, tt.want, tt.err)
	}
}
