package sigstore_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/signature/sigstore"
)

const signatureType = "application/vnd.oci.image.manifest.v1+json"

// registry serves one repository, o/rel, as a registry does.
type registry struct {
	manifests map[string][]byte // by tag
	blobs     map[string][]byte // by digest
	referrers []byte            // nil: the API is not served
	types     map[string]string // media type by tag, if another
	redirect  string            // base of the host that has the blobs
	challenge string            // of those who come without want; empty: nobody is asked
	want      string            // Authorization header
	token     []byte            // what the token service says, at /token

	mu    sync.Mutex
	asked []string
}

func (r *registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	r.asked = append(r.asked, strings.TrimPrefix(req.URL.Path, "/v2/o/rel/"))
	r.mu.Unlock()
	what, ok := strings.CutPrefix(req.URL.Path, "/v2/o/rel/")
	kind, name, _ := strings.Cut(what, "/")
	if r.token != nil && req.URL.Path == "/token" {
		w.Write(r.token)
		return
	}
	if r.challenge != "" && req.Header.Get("Authorization") != r.want {
		w.Header().Set("WWW-Authenticate", r.challenge)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	var data []byte
	mediaType := "application/octet-stream"
	switch {
	case !ok:
	case kind == "manifests":
		if data = r.manifests[name]; r.types[name] != "" {
			mediaType = r.types[name]
		} else {
			mediaType = signatureType
		}
	case kind == "referrers":
		data, mediaType = r.referrers, "application/vnd.oci.image.index.v1+json"
	case kind == "blobs":
		if r.redirect != "" {
			http.Redirect(w, req, r.redirect+req.URL.Path, http.StatusTemporaryRedirect)
			return
		}
		data = r.blobs[name]
	}
	if data == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", mediaType)
	w.Write(data)
}

func newRegistry() *registry {
	return &registry{manifests: map[string][]byte{}, blobs: map[string][]byte{}, types: map[string]string{}}
}

func (r *registry) layer(a sigstore.Attachment) map[string]any {
	d := fmt.Sprintf("sha256:%x", sha256.Sum256(a.Payload))
	r.blobs[d] = a.Payload
	return map[string]any{"mediaType": sigstore.LayerType, "digest": d, "size": len(a.Payload), "annotations": a.Annotations}
}

func (r *registry) image(tag string, layers ...map[string]any) {
	r.manifests[tag] = must(json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": signatureType, "layers": layers}))
}

func (r *registry) referrer(artifactType string) []byte {
	return must(json.Marshal(map[string]any{"mediaType": "application/vnd.oci.image.index.v1+json", "manifests": []any{
		map[string]any{"mediaType": signatureType, "artifactType": artifactType, "digest": digestB, "size": 1},
	}}))
}

// serve returns a source over h that needs no network.
func serve(h http.Handler, o sigstore.RegistryOptions) *sigstore.Registry {
	o.Transport = roundTrip(func(req *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		resp := w.Result()
		resp.Request = req
		return resp, nil
	})
	return must(sigstore.NewRegistry("registry.example/o/rel", o))
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestRegistry(t *testing.T) {
	good := attach(ed(), payload(digestA, named))
	r := newRegistry()
	foreign := r.layer(attach(ed(), []byte("x")))
	foreign["mediaType"] = "application/octet-stream"
	r.image(tagOf(digestA), foreign, r.layer(attach(p256(), good.Payload)), r.layer(good))
	server := httptest.NewServer(r)
	defer server.Close()
	src := must(sigstore.NewRegistry(strings.TrimPrefix(server.URL, "http://")+"/o/rel", sigstore.RegistryOptions{PlainHTTP: true}))
	defer src.CloseIdleConnections()

	// A mirror serves it; the name that was signed is what counts.
	v, err := policy(ed()).Verify(t.Context(), repo+"@"+digestA, src)
	if err != nil {
		t.Fatal(err)
	}
	host := strings.TrimPrefix(server.URL, "http://")
	if s := v.Signers[0]; s.Number != 2 || s.Store != "registry "+host+"/o/rel" || s.Location != host+"/o/rel:"+tagOf(digestA)+" layer 3" || s.Reference != named {
		t.Errorf("%+v", s)
	}
	if got := list(t.Context(), src, digestA); len(got) != 3 || got[0] != "other application/octet-stream" {
		t.Error(got)
	}
	r.asked = nil
	if got := list(t.Context(), src, digestB); len(got) != 1 || got[0] != "none" {
		t.Error(got)
	}
	if diff := cmp.Diff([]string{"manifests/" + tagOf(digestB), "referrers/" + digestB, "manifests/" + strings.TrimSuffix(tagOf(digestB), ".sig")}, r.asked); diff != "" {
		t.Error(diff)
	}
	r.asked = nil
	if got := list(t.Context(), src, "sha256:../x"); len(got) != 1 || !strings.HasPrefix(got[0], "error ") || r.asked != nil {
		t.Error(got, r.asked)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := list(ctx, src, digestA); len(got) != 1 || got[0] != "error context canceled" {
		t.Error(got)
	}
}

func TestNewRegistry(t *testing.T) {
	var asked string
	o := sigstore.RegistryOptions{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		asked = r.URL.Scheme + "://" + r.URL.Host + r.URL.Path
		return nil, io.ErrUnexpectedEOF
	})}
	tag := "/manifests/" + tagOf(digestA)
	for repository, want := range map[string]string{
		"quay.io/o/rel":         "https://quay.io/v2/o/rel" + tag,
		"localhost:5000/o":      "https://localhost:5000/v2/o" + tag,
		"busybox":               "https://registry-1.docker.io/v2/library/busybox" + tag,
		"quay.io/o/rel:tag":     "",
		"quay.io/o@" + digestA:  "",
		"quay.io/o/../p":        "",
		"https://quay.io/o/rel": "",
		"":                      "",
	} {
		r, err := sigstore.NewRegistry(repository, o)
		if (err == nil) != (want != "") {
			t.Errorf("%q: %v", repository, err)
		}
		if err != nil {
			continue
		}
		got := list(t.Context(), r, digestA)
		if asked != want || len(got) != 1 || !strings.Contains(got[0], "unexpected EOF") {
			t.Errorf("%q: asked %s, %q", repository, asked, got)
		}
	}
}

// What a registry may have wrong: it is told, and the rest is used.
func TestRegistryFaults(t *testing.T) {
	good := attach(ed(), payload(digestA, named))
	tag := tagOf(digestA)
	for _, tt := range []struct {
		name string
		make func(r *registry)
		want string
	}{
		{"blob missing", func(r *registry) {
			d := r.layer(attach(ed(), []byte("other")))
			delete(r.blobs, d["digest"].(string))
			r.image(tag, d, r.layer(good))
		}, "error unable to read registry.example/o/rel:" + tag + " layer 1: response status 404\n2 "},
		{"blob altered", func(r *registry) {
			d := r.layer(attach(ed(), []byte("other")))
			r.blobs[d["digest"].(string)] = []byte("OTHER")
			r.image(tag, d, r.layer(good))
		}, "layer 1: blob differs from its descriptor\n"},
		{"blob larger than its size", func(r *registry) {
			d := r.layer(attach(ed(), []byte("other")))
			d["size"] = 4
			r.image(tag, d, r.layer(good))
		}, "layer 1: blob differs from its descriptor\n"},
		{"large blob, not asked for", func(r *registry) {
			d := r.layer(attach(ed(), []byte("other")))
			d["size"] = 65537
			r.image(tag, d, r.layer(good))
		}, "blob of 65537 bytes, more than the limit of 65536\n"},
		{"large blob that lies", func(r *registry) {
			d := r.layer(attach(ed(), []byte("other")))
			r.blobs[d["digest"].(string)] = make([]byte, 1<<20)
			r.image(tag, d, r.layer(good))
		}, "response body exceeds the limit of 65536 bytes\n"},
		{"path in a digest", func(r *registry) {
			d := r.layer(good)
			d["digest"] = "sha256:../../x"
			r.image(tag, d, r.layer(good))
		}, "invalid format"},
		{"manifest that is none", func(r *registry) { r.manifests[tag] = []byte("{") }, "error unable to read registry.example/o/rel:" + tag + ": unexpected end of JSON"},
		{"manifest of 4 MiB and more", func(r *registry) { r.manifests[tag] = make([]byte, 4<<20+1) }, "exceeds the limit of 4194304 bytes"},
		{"manifest of another type", func(r *registry) { r.manifests[tag] = []byte(`{"mediaType": "application/x"}`) }, "other application/x\n"},
		{"manifest of another type by the server's word", func(r *registry) { r.manifests[tag], r.types[tag] = []byte(`{}`), "application/y; charset=x" }, "other application/y\n"},
		{"many layers", func(r *registry) {
			var layers []map[string]any
			for range 40 {
				layers = append(layers, r.layer(good))
			}
			r.image(tag, layers...)
		}, "than the limit of 32"},
		{"newer bundle", func(r *registry) { r.referrers = r.referrer("application/vnd.dev.sigstore.bundle.v0.3+json") }, "other application/vnd.dev.sigstore.bundle.v0.3+json\nnone"},
		{"newer bundle under a tag", func(r *registry) {
			name := strings.TrimSuffix(tag, ".sig")
			r.manifests[name], r.types[name] = r.referrer("application/vnd.dev.sigstore.bundle.v0.3+json"), "application/vnd.oci.image.index.v1+json"
		}, "other application/vnd.dev.sigstore.bundle.v0.3+json\nnone"},
		{"another referrer", func(r *registry) { r.referrers = r.referrer("application/spdx+json") }, "none"},
		{"referrers that are none", func(r *registry) { r.referrers = []byte("[") }, "none"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRegistry()
			tt.make(r)
			got := strings.Join(list(t.Context(), serve(r, sigstore.RegistryOptions{}), digestA), "\n")
			if !strings.Contains(got, tt.want) {
				t.Errorf("%s\nwant %s", got, tt.want)
			}
		})
	}
	for _, status := range []int{401, 403, 429, 500} {
		h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		_, err := policy(ed()).Verify(t.Context(), repo+"@"+digestA, serve(h, sigstore.RegistryOptions{}))
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("A signature was required, but no signature exists: unable to read registry.example/o/rel:%s: response status %d", tag, status)) {
			t.Errorf("%d: %v", status, err)
		}
	}
}

// Who may know what: anonymous tokens, logins, and other hosts.
func TestRegistryAuthorization(t *testing.T) {
	const login = "Basic dXNlcjpzZWNyZXQ=" // user:secret
	ok := func(w http.ResponseWriter) { fmt.Fprint(w, `{"token": "abc.DEF-1_2~3+4/5="}`) }
	bearer := "Bearer abc.DEF-1_2~3+4/5="
	for _, tt := range []struct {
		name      string
		challenge string
		want      string // what the registry accepts
		login     bool
		answer    func(http.ResponseWriter) // of the token service; nil: it must not be asked
		service   string                    // the authorization that the token service sees
		query     string
		err       string
	}{
		{"anonymous token", `Bearer realm="https://registry.example/token?a=b",service="reg",scope="repository:else:push"`, bearer, false, ok, "", "a=b&scope=repository%3Ao%2Frel%3Apull&service=reg", ""},
		{"token by its other name", `bearer  Realm=https://registry.example/token , Service="re\"g"`, "Bearer x", false, func(w http.ResponseWriter) { fmt.Fprint(w, `{"access_token": "x"}`) }, "", "scope=repository%3Ao%2Frel%3Apull&service=re%22g", ""},
		{"token with a login", `Bearer realm="https://registry.example/token"`, bearer, true, ok, login, "scope=repository%3Ao%2Frel%3Apull", ""},
		{"another host's service sees no login", `Bearer realm="https://user:x@auth.example/token#f"`, bearer, true, ok, "", "scope=repository%3Ao%2Frel%3Apull", ""},
		{"login", `Basic realm="x"`, login, true, nil, "", "", ""},
		{"login that nobody has", `Basic realm="x"`, login, false, nil, "", "", "response status 401: the registry wants a login"},
		{"login that is wrong", `Basic realm="x"`, "Basic other", true, nil, "", "", "response status 401"},
		{"token that is refused", `Bearer realm="https://registry.example/token"`, "Bearer other", false, ok, "", "scope=repository%3Ao%2Frel%3Apull", "response status 401"},
		{"unknown scheme", `Negotiate`, "x", true, nil, "", "", "wants a login"},
		{"no realm", `Bearer service="x"`, "x", true, nil, "", "", "names no token service"},
		{"realm that is none", `Bearer realm="%zz"`, "x", true, nil, "", "", "names no token service"},
		{"realm without an end", `Bearer realm="https://registry.example`, "x", true, nil, "", "", "names no token service"},
		{"service without TLS", `Bearer realm="http://registry.example/token"`, "x", true, nil, "", "", `token service with scheme "http" refused`},
		{"service that fails", `Bearer realm="https://registry.example/token"`, "x", false, func(w http.ResponseWriter) { w.WriteHeader(503) }, "", "scope=repository%3Ao%2Frel%3Apull", "token service: response status 503"},
		{"no JSON", `Bearer realm="https://registry.example/token"`, "x", false, func(w http.ResponseWriter) { fmt.Fprint(w, "token") }, "", "scope=repository%3Ao%2Frel%3Apull", "token service: the answer is not JSON"},
		{"no token", `Bearer realm="https://registry.example/token"`, "x", false, func(w http.ResponseWriter) { fmt.Fprint(w, "{}") }, "", "scope=repository%3Ao%2Frel%3Apull", "no token in the answer"},
		{"token with a line", `Bearer realm="https://registry.example/token"`, "x", false, func(w http.ResponseWriter) { fmt.Fprint(w, `{"token": "a\nb"}`) }, "", "scope=repository%3Ao%2Frel%3Apull", "no token in the answer"},
		{"endless token", `Bearer realm="https://registry.example/token"`, "x", false, func(w http.ResponseWriter) { w.Write(bytes.Repeat([]byte(" "), 1<<20)) }, "", "scope=repository%3Ao%2Frel%3Apull", "exceeds the limit of 65536 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRegistry()
			r.challenge, r.want = tt.challenge, tt.want
			r.image(tagOf(digestA), r.layer(attach(ed(), payload(digestA, named))))
			tokens, logins := 0, 0
			h := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if req.URL.Path != "/token" {
					if req.Header.Get("Authorization") == login {
						logins++
					}
					r.ServeHTTP(w, req)
					return
				}
				tokens++
				if got := req.Header.Get("Authorization"); tt.answer == nil || got != tt.service || req.URL.RawQuery != tt.query || req.URL.User != nil {
					t.Errorf("asked for a token at %s with %q", req.URL, got)
					return
				}
				tt.answer(w)
			})
			var o sigstore.RegistryOptions
			if tt.login {
				o.Username, o.Password = "user", "secret"
			}
			src := serve(h, o)
			_, err := policy(ed()).Verify(t.Context(), repo+"@"+digestA, src)
			if tt.err == "" && (err != nil || tt.answer != nil && tokens != 1) || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("%d tokens, %v; want %q", tokens, err, tt.err)
			}
			if !strings.HasPrefix(tt.challenge, "Basic") && logins > 0 {
				t.Error("the login was sent without being asked for")
			}
			if err != nil && strings.Contains(signature.Chain(err), "secret") || strings.Contains(src.String(), "secret") {
				t.Error(err)
			}
		})
	}
}

// Blobs may lie on another host, which learns nothing of the authorization. It
// may neither ask for it nor send us out of TLS.
func TestRegistryRedirects(t *testing.T) {
	good := attach(ed(), payload(digestA, named))
	for _, tt := range []struct {
		name, redirect string
		asks, cdnAsks  bool // for a login
		want           string
	}{
		{"to the host of the blobs", "https://cdn.example", true, false, ""},
		{"which asks for a login, too", "https://cdn.example", true, true, "response status 401"},
		{"which alone asks for a login", "https://cdn.example", false, true, "response status 401"},
		{"out of TLS", "http://cdn.example", true, false, "redirect from https to another scheme refused"},
		{"without an end", "https://registry.example", true, false, "more redirects than the limit of 3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, cdn := newRegistry(), newRegistry()
			r.image(tagOf(digestA), r.layer(good))
			cdn.blobs = r.blobs
			r.redirect = tt.redirect
			if tt.asks {
				r.challenge, r.want = "Basic", "Basic dXNlcjpzZWNyZXQ="
			}
			if tt.cdnAsks {
				cdn.challenge, cdn.want = "Basic", "Basic dXNlcjpzZWNyZXQ="
			}
			h := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if req.URL.Host == "registry.example" {
					if !tt.asks && req.Header.Get("Authorization") != "" {
						t.Error("the login was sent without being asked for")
					}
					r.ServeHTTP(w, req)
					return
				}
				if a := req.Header.Get("Authorization"); a != "" {
					t.Errorf("the other host saw %q", a)
				}
				cdn.ServeHTTP(w, req)
			})
			_, err := policy(ed()).Verify(t.Context(), repo+"@"+digestA, serve(h, sigstore.RegistryOptions{Username: "user", Password: "secret"}))
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

// A registry that does not answer is given up, and its caller's context counts.
func TestRegistryTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := sigstore.RegistryOptions{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, &url.Error{Op: "Get", URL: "x", Err: r.Context().Err()}
		})}
		src := must(sigstore.NewRegistry("registry.example/o/rel", o))
		start := time.Now()
		if got := list(t.Context(), src, digestA); len(got) != 1 || !strings.Contains(got[0], "time-out of 30s") || time.Since(start) != 30*time.Second {
			t.Errorf("%s: %q", time.Since(start), got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start = time.Now()
		if got := list(ctx, src, digestA); len(got) != 1 || got[0] != "error context deadline exceeded" || time.Since(start) != time.Second {
			t.Errorf("%s: %q", time.Since(start), got)
		}
	})
}

// Nothing that a registry says makes the source panic, or read too much.
func FuzzRegistry(f *testing.F) {
	r := newRegistry()
	r.image(tagOf(digestA), r.layer(attach(ed(), payload(digestA, named))))
	f.Add(r.manifests[tagOf(digestA)], `Bearer realm="https://registry.example/token",service="x"`, []byte(`{"token": "x"}`))
	f.Add([]byte(`{"layers":[{"mediaType":"`+sigstore.LayerType+`","size":-1}]}`), `Bearer realm="\`, []byte("{"))
	f.Fuzz(func(t *testing.T, manifest []byte, challenge string, token []byte) {
		asked := 0
		h := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			asked++
			switch {
			case !strings.HasPrefix(req.URL.Path, "/v2/o/rel/"):
				w.Write(token)
			case req.Header.Get("Authorization") == "":
				w.Header()["Www-Authenticate"] = []string{challenge}
				w.WriteHeader(http.StatusUnauthorized)
			default:
				w.Header().Set("Content-Type", signatureType)
				w.Write(manifest)
			}
		})
		for a, err := range serve(h, sigstore.RegistryOptions{Username: "user"}).Attachments(t.Context(), digestA) {
			if err == nil && len(a.Payload) > sigstore.MaxPayload {
				t.Error("larger than the limit")
			}
		}
		if asked > 50 {
			t.Errorf("%d requests", asked)
		}
	})
}
