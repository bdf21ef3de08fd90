package registry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
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

	"github.com/clusterupdate/clusterupdate/internal/checktest"
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

func must[T any](v T, err error) T { return checktest.Must(v, err) }

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

// serve starts a registry of another implementation that holds the release, behind a
// handler.
func serve(t *testing.T, wrap func(http.Handler) http.Handler) (host string, index v1.ImageIndex) {
	t.Helper()
	backend := local.New(local.Logger(log.New(io.Discard, "", 0)))
	filler := httptest.NewServer(backend)
	index = release()
	check(remote.WriteIndex(must(name.ParseReference(strings.TrimPrefix(filler.URL, "http://")+"/ocp/release:1")), index))
	filler.Close()
	server := httptest.NewServer(wrap(backend))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://"), index
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
	host, index := serve(t, func(h http.Handler) http.Handler { return h })
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
	checktest.ErrorIs(t, context.Canceled, checktest.Err(load(ctx, mirror, "quay.io/a/b@"+digestOf(index))))
}

func TestOptions(t *testing.T) {
	must(registry.NewStore(registry.Options{})).CloseIdleConnections()
	for want, o := range map[string]registry.Options{
		"MaxRedirects is negative": {MaxRedirects: -1}, "Timeout is negative": {Timeout: -1}, "Image.Limits.Depth is negative": {Image: image.Options{Limits: image.Limits{Depth: -1}}},
		`repository "a b"`: {Mirrors: []string{"a/b", "a b"}}, `repository "x/y@`: {Mirrors: []string{"x/y@sha256:abc"}}, "Retries is negative": {Retries: -1},
	} {
		checktest.ErrorHas(t, want, checktest.Err(registry.New(o)))
	}
}

// What a registry serves is believed only if it is what was named, and no more than
// the limits allow is read of it.
func TestPullVerifies(t *testing.T) {
	s, digest := published()
	spec := "a.example/o/r@" + digest
	load := func(l image.Limits, part string, change func([]byte) []byte) error {
		s.broken = func(r *http.Request, body io.Reader) io.Reader {
			if !strings.Contains(r.URL.Path, part) {
				return body
			}
			return bytes.NewReader(change(must(io.ReadAll(body))))
		}
		_, err := load(t.Context(), must(registry.New(registry.Options{Transport: s, Image: image.Options{Limits: l}})), spec)
		return err
	}
	for _, part := range []string{"/manifests/", "/blobs/"} {
		for how, change := range map[string]func([]byte) []byte{
			"changed": func(data []byte) []byte { data[len(data)/2] ^= 1; return data },
			"longer":  func(data []byte) []byte { return append(data, ' ') },
			"shorter": func(data []byte) []byte { return data[:len(data)-1] },
		} {
			if err := load(image.Limits{}, part, change); !errors.As(err, new(*image.DigestError)) {
				t.Errorf("%s %s: %v", part, how, err)
			}
		}
	}
	same := func(data []byte) []byte { return data }
	for field, err := range map[string]error{
		"ManifestSize": load(image.Limits{}, "/manifests/", func([]byte) []byte { return make([]byte, 5<<20) }),
		"TotalSize":    load(image.Limits{TotalSize: 1000}, "", same),
	} {
		if passed, ok := errors.AsType[*image.LimitError](err); !ok || passed.Limit != field {
			t.Errorf("%v, want %s", err, field)
		}
	}
	checktest.Good(t, load(image.Limits{}, "", same))
}

// keychain has one login for a host.
type keychain struct {
	host     string
	login    func() authn.AuthConfig
	resolved *atomic.Int32
}

func (k keychain) Resolve(r authn.Resource) (authn.Authenticator, error) {
	k.resolved.Add(1)
	if r.RegistryStr() == k.host {
		return authn.FromConfig(k.login()), nil
	}
	return authn.Anonymous, nil
}

func login(user, password string) func() authn.AuthConfig {
	return func() authn.AuthConfig { return authn.AuthConfig{Username: user, Password: password} }
}

// wantsBasic refuses requests without the password of the user me.
func wantsBasic(password *string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		user, given, _ := r.BasicAuth()
		if user == "me" && given == *password {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
}

// A login is looked up once; after a refusal, again.
func TestBasicAuthorization(t *testing.T) {
	s, digest := published()
	password := "secret"
	s.faults["a.example"] = wantsBasic(&password)
	spec := "a.example/o/r@" + digest
	var resolved atomic.Int32
	known := password
	o := registry.Options{Transport: s, Keychain: keychain{"a.example", func() authn.AuthConfig { return login("me", known)() }, &resolved}}
	src := must(registry.New(o))
	for range 2 {
		if _, err := load(t.Context(), src, spec); err != nil || resolved.Load() != 1 {
			t.Fatal(err, resolved.Load())
		}
	}
	password = "renewed"
	checktest.Fails(t, checktest.Err(load(t.Context(), src, spec)), "no error with the old password")
	known = password
	checktest.Good(t, checktest.Err(load(t.Context(), src, spec)))
	for _, keys := range []authn.Keychain{nil, keychain{"a.example", login("", ""), &resolved}, keychain{"a.example", login("me", "secret2"), &resolved}} {
		_, err := load(t.Context(), must(registry.New(registry.Options{Transport: s, Keychain: keys})), spec)
		if refused, ok := errors.AsType[*registry.StatusError](err); !ok || refused.Status != http.StatusUnauthorized || strings.Contains(err.Error(), "secret") {
			t.Error(err)
		}
	}
}

// A token is asked for with the login, of the service that the registry names, and again
// when it ends.
func TestToken(t *testing.T) {
	s, digest := published()
	tokens, at := 0, 0
	s.faults["auth.example"] = func(w http.ResponseWriter, r *http.Request) bool {
		tokens++
		if user, password, _ := r.BasicAuth(); user != "me" || password != "secret" || r.FormValue("scope") != "repository:o/r:pull" {
			t.Errorf("token for %s %s", user, r.URL)
		}
		check(json.NewEncoder(w).Encode(map[string]string{"token": fmt.Sprint("t", at)}))
		return true
	}
	s.faults["a.example"] = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") == fmt.Sprint("Bearer t", at) {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Bearer realm="https://auth.example/token",service="x",scope="repository:o/r:pull"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	src := must(registry.New(registry.Options{Transport: s, Keychain: keychain{"a.example", login("me", "secret"), new(atomic.Int32)}}))
	for want := 1; want < 3; want++ {
		if _, err := load(t.Context(), src, "a.example/o/r@"+digest); err != nil || tokens != want {
			t.Error(err, tokens)
		}
		at++ // the token ends
	}
}

// Layers may lie elsewhere; credentials do not go there.
func TestRedirects(t *testing.T) {
	s, digest := published()
	password, target := "secret", ""
	wants := wantsBasic(&password)
	s.faults["a.example"] = func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case wants(w, r):
		case strings.Contains(r.URL.Path, "/blobs/"):
			http.Redirect(w, r, target+r.URL.Path+"?signature=secret", http.StatusTemporaryRedirect)
		default:
			return false
		}
		return true
	}
	s.faults["storage.example"] = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") != "" || r.Header.Get("Referer") != "" || r.URL.Query().Get("signature") != "secret" {
			t.Errorf("%s, sent along: %v", r.URL, r.Header)
		}
		return false
	}
	for _, tt := range []struct {
		target         string
		plain, private bool
		err            string
	}{
		{"https://storage.example", false, false, ""},
		{"http://storage.example", false, false, "redirect from https to another scheme refused"},
		{"http://storage.example", true, false, "another scheme refused"},
		{"https://a.example", false, false, "more than 3 redirects"},
		{"https://169.254.169.254", false, false, "redirect to the private address 169.254.169.254 refused"},
		{"https://10.0.0.1", false, false, "redirect to the private address"},
		{"https://10.0.0.1", false, true, ""},
	} {
		target = tt.target
		s.asked = nil
		src := must(registry.New(registry.Options{
			Transport: s, PlainHTTP: tt.plain, PrivateRedirects: tt.private, Keychain: keychain{"a.example", login("me", "secret"), new(atomic.Int32)},
		}))
		_, err := load(t.Context(), src, "a.example/o/r@"+digest)
		if (err == nil) != (tt.err == "") || err != nil && (!strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: %v, want %s", tt.target, err, tt.err)
		}
		checktest.Equal(t, (tt.err == ""), s.asked[len(s.asked)-1] != "a.example", "%s: asked %v", tt.target, s.asked)
	}
}

// Plain http is for those who ask for it, also on this machine.
func TestPlainHTTP(t *testing.T) {
	host, index := serve(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { t.Errorf("asked for %s", r.URL) })
	})
	checktest.Fails(t, checktest.Err(
		load(t.Context(), must(registry.New(registry.Options{Image: arm64})),
			host+"/ocp/release@"+digestOf(index))), "no error")
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
