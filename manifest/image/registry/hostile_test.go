package registry_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest/image/registry"
)

// What logging in may be led to is no more than a redirect of a blob may be, and
// nothing secret is told to others or in errors.
func TestHostileLogin(t *testing.T) {
	s, digest := published()
	reached := 0
	var challenge, token func(w http.ResponseWriter, r *http.Request)
	s.faults["other.example"] = func(_ http.ResponseWriter, r *http.Request) bool {
		reached++
		if r.Header.Get("Authorization") != "" || r.Body != nil {
			t.Errorf("sent along: %v", r.Header)
		}
		return true
	}
	s.faults["localhost"] = s.faults["other.example"]
	s.faults["registry.example"] = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/token" {
			token(w, r)
		} else {
			challenge(w, r)
		}
		return true
	}

	bearer := func(realm string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="`+realm+`",service="x"`)
			w.WriteHeader(http.StatusUnauthorized)
		}
	}
	to := func(target string, status int) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, target, status) }
	}
	says := func(status int, body string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	own := bearer("https://registry.example/token")
	password := authn.AuthConfig{Username: "me", Password: "secret"}
	for _, tt := range []struct {
		name             string
		challenge, token func(http.ResponseWriter, *http.Request)
		login            authn.AuthConfig
		reached          int
		err              string
	}{
		{"greeting leads to a private address", to("https://169.254.169.254/v2/", 302), nil, password, 0, "redirect to the private address 169.254.169.254 refused"},
		{"greeting leads to this machine", to("https://localhost/v2/", 302), nil, password, 0, "redirect to the private address localhost refused"},
		{"greeting leads to http", to("http://other.example/v2/?signature=secret", 302), nil, password, 0, "redirect from https to another scheme refused"},
		{"greeting in a circle", to("https://registry.example/v2/", 302), nil, password, 0, "more than 3 redirects"},
		{"greeting without an end", says(200, strings.Repeat(" ", 8<<20)), nil, password, 0, "registry: "},
		{"token at a private address", bearer("https://10.0.0.1/token"), nil, password, 0, "10.0.0.1"},
		{"token by http", bearer("http://other.example/token"), nil, password, 0, "http"},
		{"token redirected to a private address", own, to("https://192.168.0.1/token?signature=secret", 302), password, 0, "192.168.0.1"},
		{"token redirected to this machine", own, to("https://localhost/token", 302), password, 0, "redirect to the private address localhost refused"},
		{"token redirected", own, to("https://other.example/token", 302), password, 1, "unexpected end of JSON input"},
		{"login redirected", own, to("https://other.example/token", 307), authn.AuthConfig{IdentityToken: "secret"}, 0, "redirect to another host of a request that has credentials refused"},
		{"no token, but another secret", own, says(200, `{"refresh_token":"secret"}`), password, 0, "no token in bearer response"},
		{"token service that is down", own, says(503, `{"errors":[{"code":"UNAVAILABLE","message":"later"}]}`), password, 0, "response status 503: UNAVAILABLE later"},
		{"token service without an end", own, says(200, strings.Repeat(" ", 1<<20)), password, 0, "registry: "},
		{"nobody knows what it wants", says(401, ""), nil, password, 0, "registry: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			reached = 0
			challenge, token = tt.challenge, tt.token
			keys := keychain{"registry.example", func() authn.AuthConfig { return tt.login }, new(atomic.Int32)}
			_, err := load(t.Context(), must(registry.New(registry.Options{Transport: s, Keychain: keys})), "registry.example/o/r@"+digest)
			if err == nil || !strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), "secret") || len(err.Error()) > 4<<10 {
				t.Errorf("%v, want %s", err, tt.err)
			}
			if reached != tt.reached {
				t.Errorf("the other host was asked %d times", reached)
			}
		})
	}
}

// An answer that is refused is read no further than its error needs.
func TestLargeRefusals(t *testing.T) {
	s, digest := published()
	for _, tt := range []struct {
		status        int
		body, message string
	}{
		{http.StatusNotFound, strings.Repeat("\x00", 1<<20), "Not Found"},
		{http.StatusInternalServerError, `{"errors":[{"code":"UNAVAILABLE","message":"` + strings.Repeat("wait ", 1000) + `"}]}`, "UNAVAILABLE wait"},
	} {
		s.faults["a.example"] = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/v2/" {
				w.WriteHeader(tt.status)
				_, _ = w.Write([]byte(tt.body))
			}
			return true
		}
		_, err := load(t.Context(), must(registry.New(registry.Options{Transport: s})), "a.example/o/r@"+digest)
		refused, ok := errors.AsType[*registry.StatusError](err)
		if !ok || refused.Status != tt.status || !strings.HasPrefix(refused.Message, tt.message) || len(err.Error()) > 2000 || errors.Is(err, fs.ErrNotExist) != (tt.status == 404) {
			t.Error(err)
		}
	}
}

// A store that is asked for many repositories does not stay logged in to all.
func TestManyRepositories(t *testing.T) {
	s, digest := published()
	logins := 0
	s.faults["a.example"] = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/v2/" {
			logins++
		}
		return false
	}
	src := must(registry.New(registry.Options{Transport: s}))
	ask := func(i int) {
		checktest.Good(t, checktest.Err(load(t.Context(), src, fmt.Sprintf("a.example/o/r%d@%s", i, digest))))
	}
	for i := range 64 {
		ask(i)
	}
	ask(0)
	checktest.Equal(t, 64, logins, "logins")
	ask(64) // one too many
	ask(0)
	checktest.Equal(t, 66, logins, "logins")
}

// A registry that stops answering, in whatever place, holds nobody longer than the
// context or the timeout.
func TestSilentRegistry(t *testing.T) {
	for _, part := range []string{"/v2/", "/manifests/", "/blobs/"} {
		for _, begun := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, begun %t", part, begun), func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				host, index := serve(t, func(h http.Handler) http.Handler {
					return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						if part == "/v2/" && r.URL.Path != part || part != "/v2/" && !strings.Contains(r.URL.Path, part) {
							h.ServeHTTP(w, r)
							return
						}
						if begun {
							w.Header().Set("Content-Length", "1000000")
							_, _ = w.Write([]byte("{"))
							w.(http.Flusher).Flush()
						}
						cancel()
						<-r.Context().Done()
					})
				})
				src := must(registry.New(registry.Options{PlainHTTP: true, Image: arm64}))
				spec := host + "/ocp/release@" + digestOf(index)
				checktest.ErrorIs(t, context.Canceled, checktest.Err(load(ctx, src, spec)))
				if begun {
					return
				}
				src = must(registry.New(registry.Options{PlainHTTP: true, Image: arm64, Timeout: 20 * time.Millisecond}))
				checktest.ErrorHas(t, "timeout awaiting response headers", checktest.Err(load(t.Context(), src, spec)))
			})
		}
	}
}
