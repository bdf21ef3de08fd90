package registry_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	local "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/internal/oci/ocitest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/manifest/image"
	"github.com/clusterupdate/clusterupdate/manifest/image/registry"
)

func check(err error) {
	if err != nil {
		panic(err) // a fault of the test
	}
}

func must[T any](v T, err error) T {
	check(err)
	return v
}

// release returns an index with a release for two architectures.
func release() v1.ImageIndex {
	index := v1.ImageIndex(empty.Index)
	for i, architecture := range []string{"amd64", "arm64"} {
		data := ocitest.Tar(ocitest.Files(testdata.Release(fmt.Sprint("1.0.", i)))...)
		layer := must(tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }))
		img := must(mutate.AppendLayers(empty.Image, layer))
		config := must(img.ConfigFile()).DeepCopy()
		config.OS, config.Architecture = "linux", architecture
		img = must(mutate.ConfigFile(img, config))
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}}})
	}
	return index
}

func digestOf(i interface{ Digest() (v1.Hash, error) }) string { return must(i.Digest()).String() }

// images returns those of an index.
func images(index v1.ImageIndex) []v1.Image {
	var out []v1.Image
	for _, d := range must(index.IndexManifest()).Manifests {
		out = append(out, must(index.Image(d.Digest)))
	}
	return out
}

// serve starts a registry that holds the release, behind a handler.
func serve(t *testing.T, tls bool, wrap func(http.Handler) http.Handler) (server *httptest.Server, host string, index v1.ImageIndex) {
	t.Helper()
	backend := local.New(local.Logger(log.New(io.Discard, "", 0)))
	filler := httptest.NewServer(backend)
	index = release()
	check(remote.WriteIndex(must(name.ParseReference(strings.TrimPrefix(filler.URL, "http://")+"/ocp/release:1")), index))
	filler.Close()
	var h http.Handler = backend
	if wrap != nil {
		h = wrap(backend)
	}
	server = httptest.NewUnstartedServer(h)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	if tls {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	host = must(url.Parse(server.URL)).Host
	if tls {
		certificates := x509.NewCertPool()
		certificates.AddCert(server.Certificate())
		pools.Store(host, certificates)
	}
	return server, host, index
}

func load(ctx context.Context, src manifest.PayloadSource, spec string) (string, error) {
	fsys, err := src.Payload(ctx, configv1.Release{Image: spec})
	if err != nil {
		return "", err
	}
	p, err := manifest.Load(ctx, fsys, manifest.LoadOptions{Image: spec})
	if err != nil {
		return "", err
	}
	return p.Release.Version, nil
}

var arm64 = image.Options{Platform: image.Platform{Architecture: "arm64"}}

func TestPull(t *testing.T) {
	_, host, index := serve(t, false, nil)
	repository := host + "/ocp/release"
	src := must(registry.New(registry.Options{PlainHTTP: true, Image: arm64}))
	for _, tt := range []struct{ digest, version, err string }{
		{digestOf(index), "1.0.1", ""},
		{digestOf(images(index)[0]), "1.0.0", ""},
		{ocitest.Digest([]byte("x")), "", "response status 404: MANIFEST_UNKNOWN"},
	} {
		version, err := load(t.Context(), src, repository+"@"+tt.digest)
		if version != tt.version || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s, %v; want %s %s", version, err, tt.version, tt.err)
		}
		if tt.err != "" && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v is not fs.ErrNotExist", err)
		}
	}
	s390x := must(registry.New(registry.Options{PlainHTTP: true, Image: image.Options{Platform: image.Platform{Architecture: "s390x"}}}))
	_, err := load(t.Context(), s390x, repository+"@"+digestOf(index))
	if refused := (*image.PlatformError)(nil); !errors.As(err, &refused) || len(refused.Available) != 2 {
		t.Error(err)
	}
	// From a mirror, under the name that the release has elsewhere.
	mirror := must(registry.New(registry.Options{PlainHTTP: true, Image: arm64, Mirrors: []string{repository}}))
	if version, err := load(t.Context(), mirror, "quay.io/openshift-release-dev/ocp-release@"+digestOf(index)); err != nil || version != "1.0.1" {
		t.Error(version, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := load(ctx, mirror, "quay.io/a/b@"+digestOf(index)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestOptions(t *testing.T) {
	for want, o := range map[string]registry.Options{
		"MaxRedirects is negative": {MaxRedirects: -1}, "Timeout is negative": {Timeout: -1}, "Image.Limits.Depth is negative": {Image: image.Options{Limits: image.Limits{Depth: -1}}},
		`repository "a b"`: {Mirrors: []string{"a/b", "a b"}}, `repository "x/y@`: {Mirrors: []string{"x/y@sha256:abc"}}, "Retries is negative": {Retries: -1},
	} {
		if _, err := registry.New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// What a registry serves is believed only if it is what was named, and no more than
// the limits allow is read of it.
func TestPullVerifies(t *testing.T) {
	var part string
	var change func([]byte) []byte
	_, host, index := serve(t, false, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if change == nil || !strings.Contains(r.URL.Path, part) {
				h.ServeHTTP(w, r)
				return
			}
			record := httptest.NewRecorder()
			h.ServeHTTP(record, r)
			_, _ = w.Write(change(record.Body.Bytes()))
		})
	})
	spec := host + "/ocp/release@" + digestOf(index)
	arm := images(index)[1]
	flip := func(data []byte) []byte {
		data = bytes.Clone(data)
		data[len(data)/2] ^= 1
		return data
	}
	longer := func(data []byte) []byte { return append(bytes.Clone(data), ' ') }
	shorter := func(data []byte) []byte { return data[:len(data)-1] }
	src := must(registry.New(registry.Options{PlainHTTP: true, Image: arm64}))
	for what, path := range map[string]string{
		"index": "/manifests/" + digestOf(index), "manifest": "/manifests/" + digestOf(arm), "layer": "/blobs/" + digestOf(must(arm.Layers())[0]),
	} {
		for how, f := range map[string]func([]byte) []byte{"changed": flip, "longer": longer, "shorter": shorter} {
			part, change = path, f
			_, err := load(t.Context(), src, spec)
			if mismatch := (*image.DigestError)(nil); !errors.As(err, &mismatch) {
				t.Errorf("%s %s: %v", what, how, err)
			}
		}
	}
	part, change = "/manifests/", func([]byte) []byte { return make([]byte, 5<<20) }
	_, err := load(t.Context(), src, spec)
	if passed := (*image.LimitError)(nil); !errors.As(err, &passed) || passed.Limit != "ManifestSize" {
		t.Error(err)
	}
	change = nil
	small := must(registry.New(registry.Options{PlainHTTP: true, Image: image.Options{Platform: arm64.Platform, Limits: image.Limits{TotalSize: 1000}}}))
	_, err = load(t.Context(), small, spec)
	if passed := (*image.LimitError)(nil); !errors.As(err, &passed) || passed.Limit != "TotalSize" {
		t.Error(err)
	}
	if version, err := load(t.Context(), src, spec); err != nil || version != "1.0.1" {
		t.Error(version, err)
	}
}

// keychain has one login for a host.
type keychain struct {
	host     string
	login    authn.AuthConfig
	resolved *atomic.Int32
}

func (k keychain) Resolve(r authn.Resource) (authn.Authenticator, error) {
	k.resolved.Add(1)
	if r.RegistryStr() == k.host {
		return authn.FromConfig(k.login), nil
	}
	return authn.Anonymous, nil
}

func TestBasicAuthorization(t *testing.T) {
	var tried atomic.Int32
	_, host, index := serve(t, true, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if user, password, _ := r.BasicAuth(); user != "me" || password != "secret" {
				tried.Add(1)
				w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			h.ServeHTTP(w, r)
		})
	})
	certificates := pool(t, host)
	spec := host + "/ocp/release@" + digestOf(index)
	var resolved atomic.Int32
	o := registry.Options{RootCAs: certificates, Image: arm64, Keychain: keychain{host, authn.AuthConfig{Username: "me", Password: "secret"}, &resolved}}
	store := must(registry.NewStore(o))
	src := must(image.FromStore(store, o.Image))
	for range 2 {
		if version, err := load(t.Context(), src, spec); err != nil || version != "1.0.1" {
			t.Fatal(version, err)
		}
	}
	if resolved.Load() != 1 || tried.Load() != 1 {
		t.Errorf("logged in %d times, %d requests without", resolved.Load(), tried.Load())
	}
	store.CloseIdleConnections()
	for _, login := range []authn.AuthConfig{{}, {Username: "me", Password: "secret2"}} {
		o.Keychain = keychain{host, login, &resolved}
		_, err := load(t.Context(), must(registry.New(o)), spec)
		refused := (*registry.StatusError)(nil)
		if !errors.As(err, &refused) || refused.Status != http.StatusUnauthorized || strings.Contains(err.Error(), "secret") {
			t.Error(err)
		}
	}
	o.Keychain = nil
	_, err := load(t.Context(), must(registry.New(o)), spec)
	if refused := (*registry.StatusError)(nil); !errors.As(err, &refused) || refused.Status != http.StatusUnauthorized {
		t.Error(err)
	}
}

var pools sync.Map // host to *x509.CertPool

func pool(t *testing.T, host string) *x509.CertPool {
	t.Helper()
	p, ok := pools.Load(host)
	if !ok {
		t.Fatal("no certificate of " + host)
	}
	return p.(*x509.CertPool)
}

// Credentials that change are asked for again, after a refusal.
func TestCredentialsAreRenewed(t *testing.T) {
	var password atomic.Value
	password.Store("old")
	_, host, index := serve(t, true, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, given, _ := r.BasicAuth(); given != password.Load() {
				w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			h.ServeHTTP(w, r)
		})
	})
	spec := host + "/ocp/release@" + digestOf(index)
	keys := func() authn.AuthConfig {
		return authn.AuthConfig{Username: "me", Password: password.Load().(string)}
	}
	src := must(registry.New(registry.Options{RootCAs: pool(t, host), Image: arm64, Keychain: changing(keys)}))
	if _, err := load(t.Context(), src, spec); err != nil {
		t.Fatal(err)
	}
	password.Store("new")
	if _, err := load(t.Context(), src, spec); err == nil {
		t.Error("no error with the old password")
	}
	if _, err := load(t.Context(), src, spec); err != nil {
		t.Error(err)
	}
}

type changing func() authn.AuthConfig

func (c changing) Resolve(authn.Resource) (authn.Authenticator, error) {
	return authn.FromConfig(c()), nil
}

func TestToken(t *testing.T) {
	var tokens, at atomic.Int32
	var self string
	_, host, index := serve(t, true, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path == "/token":
				tokens.Add(1)
				if user, password, _ := r.BasicAuth(); user != "me" || password != "secret" || r.FormValue("scope") != "repository:ocp/release:pull" {
					t.Errorf("token for %s %s", user, r.URL)
				}
				check(json.NewEncoder(w).Encode(map[string]string{"token": fmt.Sprint("t", at.Load())}))
			case r.Header.Get("Authorization") != fmt.Sprint("Bearer t", at.Load()):
				w.Header().Set("WWW-Authenticate", `Bearer realm="https://`+self+`/token",service="x",scope="repository:ocp/release:pull"`)
				w.WriteHeader(http.StatusUnauthorized)
			default:
				h.ServeHTTP(w, r)
			}
		})
	})
	self = host
	src := must(registry.New(registry.Options{RootCAs: pool(t, host), Image: arm64, Keychain: keychain{host, authn.AuthConfig{Username: "me", Password: "secret"}, new(atomic.Int32)}}))
	spec := host + "/ocp/release@" + digestOf(index)
	if _, err := load(t.Context(), src, spec); err != nil || tokens.Load() != 1 {
		t.Error(err, tokens.Load())
	}
	at.Add(1) // the token ends
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if _, err := load(t.Context(), src, spec); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if tokens.Load() != 2 {
		t.Error(tokens.Load())
	}
}

// Layers may lie elsewhere; credentials do not go there.
func TestRedirects(t *testing.T) {
	var target atomic.Value
	var behind http.Handler
	_, host, index := serve(t, true, func(h http.Handler) http.Handler {
		behind = h
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			to, _ := target.Load().(string)
			switch _, _, ok := r.BasicAuth(); {
			case !ok:
				w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
				w.WriteHeader(http.StatusUnauthorized)
			case strings.Contains(r.URL.Path, "/blobs/") && to != "":
				http.Redirect(w, r, to+r.URL.Path+"?signature=secret", http.StatusTemporaryRedirect)
			default:
				h.ServeHTTP(w, r)
			}
		})
	})
	var seen atomic.Int32
	elsewhere := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Add(1)
		if r.Header.Get("Authorization") != "" || r.Header.Get("Referer") != "" {
			t.Errorf("sent along: %v", r.Header)
		}
		if r.URL.Query().Get("signature") != "secret" {
			t.Error(r.URL)
		}
		behind.ServeHTTP(w, r)
	})
	other, plain := httptest.NewTLSServer(elsewhere), httptest.NewServer(elsewhere)
	t.Cleanup(other.Close)
	t.Cleanup(plain.Close)
	certificates := pool(t, host)
	certificates.AddCert(other.Certificate())
	// Both hosts have names, by which the transport finds them.
	dial := other.Client().Transport.(*http.Transport).Clone()
	dial.TLSClientConfig.RootCAs = certificates
	dial.TLSClientConfig.ServerName = "example.com" // as the certificates of httptest have it
	hosts := hostMap{"registry.example": host, "storage.example": must(url.Parse(other.URL)).Host, "plain.example": must(url.Parse(plain.URL)).Host}
	o := registry.Options{Transport: renaming{dial, hosts}, Image: arm64, Keychain: keychain{"registry.example", authn.AuthConfig{Username: "me", Password: "secret"}, new(atomic.Int32)}}
	spec := "registry.example/ocp/release@" + digestOf(index)
	src := must(registry.New(o))
	target.Store("https://storage.example")
	if version, err := load(t.Context(), src, spec); err != nil || version != "1.0.1" || seen.Load() == 0 {
		t.Error(version, err, seen.Load())
	}
	seen.Store(0)
	for to, want := range map[string]string{
		"http://plain.example": "redirect from https to another scheme refused", "https://registry.example": "more than 3 redirects",
		"https://169.254.169.254": "redirect to the private address 169.254.169.254 refused", "https://10.0.0.1": "redirect to the private address",
	} {
		target.Store(to)
		_, err := load(t.Context(), src, spec)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v, want %s", err, want)
		}
	}
	o.PlainHTTP = true
	target.Store("http://plain.example")
	if _, err := load(t.Context(), must(registry.New(o)), spec); err == nil || !strings.Contains(err.Error(), "another scheme refused") {
		t.Error(err)
	}
	if seen.Load() != 0 {
		t.Error("a refused redirect was followed")
	}
}

type hostMap map[string]string

// renaming sends requests for names to addresses.
type renaming struct {
	inner http.RoundTripper
	hosts hostMap
}

func (r renaming) RoundTrip(req *http.Request) (*http.Response, error) {
	out := req.Clone(req.Context())
	if to := r.hosts[out.URL.Host]; to != "" {
		out.URL.Host = to
	}
	resp, err := r.inner.RoundTrip(out)
	if resp != nil {
		resp.Request = req
	}
	return resp, err
}

// Plain http is for those who ask for it, also on this machine.
func TestPlainHTTP(t *testing.T) {
	_, host, index := serve(t, false, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { t.Errorf("asked for %s", r.URL) })
	})
	_, err := load(t.Context(), must(registry.New(registry.Options{Image: arm64})), host+"/ocp/release@"+digestOf(index))
	if err == nil {
		t.Error("no error")
	}
}

func TestFailingRegistry(t *testing.T) {
	_, host, index := serve(t, false, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v2/" {
				return
			}
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(`{"errors":[{"code":"UNAVAILABLE","message":"` + strings.Repeat("wait ", 1000) + `"}]}`))
		})
	})
	_, err := load(t.Context(), must(registry.New(registry.Options{Image: arm64, PlainHTTP: true})), host+"/ocp/release@"+digestOf(index))
	refused := (*registry.StatusError)(nil)
	if !errors.As(err, &refused) || refused.Status != 503 || !strings.HasPrefix(refused.Message, "UNAVAILABLE wait") || len(err.Error()) > 2000 || errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// Layouts as another implementation writes them.
func TestOtherWriter(t *testing.T) {
	index := release()
	dir := t.TempDir()
	must(layout.Write(filepath.Join(dir, "layout"), empty.Index))
	check(must(layout.FromPath(filepath.Join(dir, "layout"))).AppendIndex(index))
	img := images(index)[1]
	check(os.WriteFile(filepath.Join(dir, "layout.tar"), ocitest.Tar(ocitest.Files(os.DirFS(filepath.Join(dir, "layout")))...), 0o600))
	for _, place := range []string{"layout", "layout.tar"} {
		src := must(image.Open(filepath.Join(dir, place), arm64))
		for _, digest := range []string{digestOf(index), digestOf(img)} {
			if version, err := load(t.Context(), src, "quay.io/ocp/release@"+digest); err != nil || version != "1.0.1" {
				t.Error(place, version, err)
			}
		}
		check(src.Close())
	}
}
