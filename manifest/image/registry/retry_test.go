package registry_test

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/checktest"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/internal/oci"
	"github.com/clusterupdate/clusterupdate/internal/oci/ocitest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/manifest/image"
	"github.com/clusterupdate/clusterupdate/manifest/image/registry"
	"github.com/clusterupdate/clusterupdate/signature/signaturetest"
	"github.com/clusterupdate/clusterupdate/signature/sigstore"
)

// served are images that hosts serve without a network: each host greets, and has
// what a layout has unless its fault answers first.
type served struct {
	layout *ocitest.Layout
	faults map[string]func(w http.ResponseWriter, r *http.Request) bool // by host
	broken func(r *http.Request, body io.Reader) io.Reader              // may be nil
	asked  []string
}

func (s *served) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	what := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	if r.URL.Path != "/v2/" {
		s.asked = append(s.asked, r.URL.Host+strings.TrimSuffix(" "+r.Header.Get("Range"), " "))
	}
	fault := s.faults[r.URL.Host]
	switch {
	case fault != nil && fault(w, r):
	case r.URL.Path == "/v2/":
	default:
		digest := what
		for _, d := range s.layout.Entries {
			if d.Annotations[oci.RefName] == what {
				digest = d.Digest
			}
		}
		file := s.layout.FS[oci.BlobPath(digest)]
		if file == nil {
			w.WriteHeader(http.StatusNotFound)
			break
		}
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(string(file.Data)))
	}
	resp := w.Result()
	resp.Request = r
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if s.broken != nil && r.URL.Path != "/v2/" {
		resp.Body = io.NopCloser(s.broken(r, resp.Body))
	}
	return resp, nil
}

// published returns a release image of one architecture, and its digest.
func published() (*served, string) {
	l := ocitest.NewLayout()
	d := l.Image("linux/amd64", l.Layer(ocitest.Files(testdata.Release("1.0.0"))...))
	return &served{layout: l, faults: map[string]func(http.ResponseWriter, *http.Request) bool{}}, d.Digest
}

// fails answers the first n requests for images with a status.
func fails(n, status int, header ...string) func(w http.ResponseWriter, r *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/v2/" || n == 0 {
			return false
		}
		n--
		for _, h := range header {
			name, value, _ := strings.Cut(h, ": ")
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		return true
	}
}

// Mirrors are asked in their order, once; then those that failed for the moment again,
// after the time that they ask for.
func TestMirrorsAndRetries(t *testing.T) {
	const a, b = "a.example", "b.example"
	type faults = map[string]func(http.ResponseWriter, *http.Request) bool
	always := func(status int, header ...string) func(http.ResponseWriter, *http.Request) bool {
		return fails(-1, status, header...)
	}
	for _, tt := range []struct {
		name    string
		faults  faults
		retries int
		asked   []string // for the manifest
		waits   time.Duration
		err     string
		missing bool // the error is that nothing exists
	}{
		{"the first has it", nil, 0, []string{a}, 0, "", false},
		{"the second has it", faults{a: always(404)}, 0, []string{a, b}, 0, "", false},
		{"the second works", faults{a: always(503)}, 5, []string{a, b}, 0, "", false},
		{"nobody has it", faults{a: always(404), b: always(404)}, 5, []string{a, b}, 0, "b.example/o/r@sha256:", true},
		{"one has it not, one fails", faults{a: always(404), b: always(503)}, 0, []string{a, b}, 0, "response status 503: Service Unavailable\na.example/o/r@sha256:", false},
		{"one fails for good", faults{a: always(403), b: fails(1, 502)}, 1, []string{a, b, b}, time.Second, "", false},
		{"both fail twice", faults{a: fails(2, 429), b: fails(2, 504)}, 2, []string{a, b, a, b, a}, 3 * time.Second, "", false},
		{"a time is asked for", faults{a: fails(1, 429, "Retry-After: 7"), b: always(404)}, 1, []string{a, b, a}, 7 * time.Second, "", false},
		{"a date is asked for", faults{a: fails(1, 503, "Retry-After: Thu, 01 Jan 2026 00:00:09 GMT", "Date: Thu, 01 Jan 2026 00:00:00 GMT"), b: always(404)}, 1, []string{a, b, a}, 9 * time.Second, "", false},
		{"a long time is asked for", faults{a: always(429, "Retry-After: 121"), b: always(404)}, 9, []string{a, b}, 0, "response status 429", false},
		{"too few retries", faults{a: always(503), b: always(404)}, 2, []string{a, b, a, a}, 3 * time.Second, "response status 503", false},
		{"other statuses are not tried again", faults{a: always(500), b: always(401)}, 9, []string{a, b}, 0, "response status 500", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, digest := published()
				s.faults = tt.faults
				store := must(registry.NewStore(registry.Options{Transport: s, Mirrors: []string{a + "/o/r", b + "/o/r"}, Retries: tt.retries}))
				start := time.Now()
				f, err := store.Manifest(t.Context(), "quay.io/x/y", digest)
				if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) || errors.Is(err, fs.ErrNotExist) != tt.missing {
					t.Errorf("%v, want %s", err, tt.err)
				}
				if err == nil {
					check(f.Close())
				}
				if diff := cmp.Diff(tt.asked, s.asked); diff != "" || time.Since(start) != tt.waits {
					t.Errorf("%s after %s, want %s", diff, time.Since(start), tt.waits)
				}
			})
		})
	}
	// The end of the context ends a wait.
	synctest.Test(t, func(t *testing.T) {
		s, digest := published()
		s.faults["a.example"] = always(503)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		_, err := must(registry.NewStore(registry.Options{Transport: s, Retries: 9})).Manifest(ctx, "a.example/o/r", digest)
		checktest.ErrorIs(t, context.DeadlineExceeded, err)
	})
}

// A blob continues where its connection broke, as often as a request is sent again.
func TestBlobsContinue(t *testing.T) {
	cut := errors.New("unexpected EOF")
	// breaks cuts the first n bodies of layers after 100 bytes.
	breaks := func(n int) func(*http.Request, io.Reader) io.Reader {
		return func(r *http.Request, body io.Reader) io.Reader {
			if n == 0 || !strings.Contains(r.URL.Path, "/blobs/") {
				return body
			}
			n--
			return io.MultiReader(io.LimitReader(body, 100), iotest.ErrReader(cut))
		}
	}
	ignores := func(w http.ResponseWriter, r *http.Request) bool { r.Header.Del("Range"); return false }
	another := func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Range") != "" {
			r.Header.Set("Range", "bytes=7-")
		}
		return false
	}
	for _, tt := range []struct {
		name    string
		breaks  int
		retries int
		fault   func(http.ResponseWriter, *http.Request) bool
		ranges  []string
		err     string
	}{
		{"whole", 0, 2, nil, []string{""}, ""},
		{"twice", 2, 2, nil, []string{"", " bytes=100-", " bytes=200-"}, ""},
		{"too often", 3, 2, nil, []string{"", " bytes=100-", " bytes=200-"}, "unexpected EOF"},
		{"no retries", 1, 0, nil, []string{""}, "unexpected EOF"},
		{"a registry without ranges", 1, 1, ignores, []string{"", " bytes=100-"}, ""},
		{"another part", 1, 1, another, []string{"", " bytes=100-"}, "asked for the bytes from 100 on, got another part"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, digest := published()
			s.broken = breaks(tt.breaks)
			if tt.fault != nil {
				s.faults["a.example"] = tt.fault
			}
			src := must(registry.New(registry.Options{Transport: s, Retries: tt.retries}))
			_, err := load(t.Context(), src, "a.example/o/r@"+digest)
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%v, want %s", err, tt.err)
			}
			var ranges []string
			for _, asked := range s.asked[1:] { // after the manifest
				ranges = append(ranges, strings.TrimPrefix(asked, "a.example"))
			}
			if diff := cmp.Diff(tt.ranges, ranges); diff != "" && tt.fault == nil {
				t.Error(diff)
			}
		})
	}
}

// A login goes out when the registry asks for it, be it with its greeting or later.
func TestLoginIsAskedFor(t *testing.T) {
	for name, asks := range map[string]func(r *http.Request) bool{
		"never": func(*http.Request) bool { return false }, "for images": func(r *http.Request) bool { return r.URL.Path != "/v2/" }, "always": func(*http.Request) bool { return true },
	} {
		t.Run(name, func(t *testing.T) {
			s, digest := published()
			logins := 0
			s.faults["a.example"] = func(w http.ResponseWriter, r *http.Request) bool {
				if _, password, ok := r.BasicAuth(); ok {
					logins++
					return password != "secret"
				}
				if asks(r) {
					w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
					w.WriteHeader(http.StatusUnauthorized)
				}
				return asks(r)
			}
			keys := keychain{"a.example", login("me", "secret"), new(atomic.Int32)}
			checktest.Good(t, checktest.Err(
				load(t.Context(), must(registry.New(registry.Options{Transport: s, Keychain: keys})),
					"a.example/o/r@"+digest)))
			if (logins > 0) != (name != "never") || keys.resolved.Load() > 1 {
				t.Errorf("%d logins", logins)
			}
		})
	}
}

// Cosign signatures of an image lie in its repository.
func TestOpenSource(t *testing.T) {
	const digest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	private := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	files := must(signaturetest.CosignLayout(private, digest, "quay.io/o/r:1"))
	der := must(x509.MarshalPKIXPublicKey(private.Public()))
	key := must(sigstore.ParseKey(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})))
	policy := &sigstore.Policy{Name: "p", Keys: []*sigstore.Key{key}}
	dir := t.TempDir()
	check(os.CopyFS(dir, files))
	s, _ := published()
	layout := must(image.Open(dir, image.Options{}))
	for _, e := range must(layout.List(t.Context())) {
		s.layout.Write(ocitest.Named(oci.Descriptor{Digest: e.Digest}, e.Name))
	}
	check(layout.Close())
	for name, file := range files {
		s.layout.FS[name] = file
	}
	o := registry.Options{Transport: s}
	for _, place := range []string{"docker://mirror.example/x/y", dir} {
		v := checktest.Get(policy.Verify(t.Context(), "quay.io/o/r@"+digest,
			must(registry.OpenSource(place, o, sigstore.Limits{}))))(t)
		checktest.Equal(t, 1, len(v.Signers), "len(v.Signers) of %v, %v", place, v)
	}
	other := "sha256:" + strings.Repeat("b", 64)
	_, err := policy.Verify(t.Context(), "quay.io/o/r@"+other, must(registry.OpenSource("docker://mirror.example/x/y", o, sigstore.Limits{})))
	if err == nil || err.Error() != "A signature was required, but no signature exists" {
		t.Error(err)
	}
	s.faults["mirror.example"] = fails(-1, 503)
	_, err = policy.Verify(t.Context(), "quay.io/o/r@"+digest, must(registry.OpenSource("docker://mirror.example/x/y", o, sigstore.Limits{})))
	if want := fmt.Sprintf("unable to read mirror.example/x/y:sha256-%s.sig: ", digest[7:]); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "response status 503") {
		t.Errorf("%v, want %s", err, want)
	}
	for place, want := range map[string]string{"docker://quay.io/a:tag": "neither tag nor digest", "ftp://x": "OCI image layout"} {
		if _, err := registry.OpenSource(place, o, sigstore.Limits{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", place, err, want)
		}
	}
	checktest.Fails(t, checktest.Err(
		registry.OpenSource("docker://quay.io/a", registry.Options{Retries: -1},
			sigstore.Limits{})), "a negative option is taken")
}
