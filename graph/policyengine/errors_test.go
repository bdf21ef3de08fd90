package policyengine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/graph/policyengine"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

const (
	noChannel = "mandatory client parameters missing: channel"
	noMatch   = `invalid client parameters: channel '%' does not match regex '^[0-9a-z\-\.]+$'`
	noArch    = `invalid client parameters: arch '%' does not match regex '^[0-9a-z]+$'`
)

// TestErrors: status, kind and text of each error, and which of several comes first.
func TestErrors(t *testing.T) {
	text := func(form, value string) string { return strings.Replace(form, "%", value, 1) }
	for _, tt := range []struct {
		name, mandatory, query, accept string
		code                           int
		kind, value                    string // of 200: empty
	}{
		{"fine", "", "channel=fast-1.1&arch=amd64&id=" + clusterID + "&version=1.0.0", plain, 200, "", ""},
		{"nothing", "", "", plain, 400, "missing_params", noChannel},
		{"an empty channel", "", "channel=", plain, 400, "invalid_params", text(noMatch, "")},
		{"a channel alone", "", "channel", plain, 400, "invalid_params", text(noMatch, "")},
		{"capital", "", "channel=Fast-1.1", plain, 400, "invalid_params", text(noMatch, "Fast-1.1")},
		{"a blank", "", "channel=fast-4+9", plain, 400, "invalid_params", text(noMatch, "fast-4 9")},
		{"underscore", "", "channel=a_b", plain, 400, "invalid_params", text(noMatch, "a_b")},
		{"markup", "", "channel=%3Cb%3E%22", plain, 400, "invalid_params", text(noMatch, `<b>"`)},
		{"no UTF-8", "", "channel=%ff", plain, 400, "invalid_params", text(noMatch, "\uFFFD")},
		{"no escape", "", "channel=%zz", plain, 400, "invalid_params", text(noMatch, "%zz")},
		{"escapes", "", "ch%61nnel=%66ast-1.1", plain, 200, "", ""},
		{"the last counts", "", "channel=B&channel=fast-1.1", plain, 200, "", ""},
		{"the last is wrong", "", "channel=fast-1.1&channel=B", plain, 400, "invalid_params", text(noMatch, "B")},
		{"arch", "", "channel=fast-1.1&arch=AMD64", plain, 400, "invalid_params", text(noArch, "AMD64")},
		{"empty arch", "", "channel=fast-1.1&arch=", plain, 400, "invalid_params", text(noArch, "")},
		{"arch with a dash", "", "channel=fast-1.1&arch=a-b", plain, 400, "invalid_params", text(noArch, "a-b")},
		{"channel before arch", "", "channel=B&arch=B", plain, 400, "invalid_params", text(noMatch, "B")},
		{"others are not looked at", "", "channel=fast-1.1&id=%00&version=x&z=%%%&=&&", plain, 200, "", ""},
		{"unknown channel", "", "channel=none", plain, 200, "", ""},
		{"unknown architecture", "", "channel=fast-1.1&arch=riscv64", plain, 200, "", ""},
		{"semicolon", "", "channel=fast-1.1;arch=B", plain, 400, "invalid_params", text(noMatch, "fast-1.1;arch=B")},
		{"mandatory", "id channel version", "version=1", plain, 400, "missing_params", "mandatory client parameters missing: channel, id"},
		{"mandatory, and empty", "id version", "version=1&id&channel=fast-1.1", plain, 200, "", ""},
		{"mandatory before wrong", "id", "channel=B", plain, 400, "missing_params", "mandatory client parameters missing: id"},
		{"Accept before mandatory", "id", "", "x", 406, "invalid_content_type", "invalid Content-Type requested"},
		{"a long channel", "", "channel=" + strings.Repeat("a", 129), plain, 400, "invalid_params", "invalid client parameters: channel is longer than 128 bytes"},
		{"not too long a channel", "", "channel=" + strings.Repeat("a", 128), plain, 200, "", ""},
		{"a long arch", "", "channel=a&arch=" + strings.Repeat("a", 33), plain, 400, "invalid_params", "invalid client parameters: arch is longer than 32 bytes"},
		{"not too long an arch", "", "channel=a&arch=" + strings.Repeat("a", 32), plain, 200, "", ""},
		{"a long query", "", "channel=a&b=" + strings.Repeat("a", 4085), "x", 414, "invalid_params", "invalid client parameters: the query is longer than 4096 bytes"},
		{"not too long a query", "", "channel=a&b=" + strings.Repeat("a", 4084), plain, 200, "", ""},
		{"a long head", "", "channel=a", strings.Repeat("x", 16<<10), 414, "invalid_params", "invalid client parameters: the head is longer than 16384 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, compat := range []bool{false, true} {
				for _, there := range []bool{true, false} {
					var g policyengine.Grapher
					code, body := tt.code, failed(tt.kind, tt.value)
					if there {
						g = sample(t)
					} else if tt.code == 200 || compat && tt.code == 400 && (tt.kind != "missing_params" || tt.mandatory == "") {
						code, body = 503, failed("failed_upstream_fetch", "failed to fetch upstream graph: there is no graph yet")
						if compat {
							code = 500
						}
					}
					s := serve(t, policyengine.Options{Compat: compat, Mandatory: strings.Fields(tt.mandatory)}, g)
					for _, path := range []string{"/api/graph", "/api/v1/graph"} {
						got := s.get(t, path+"?"+tt.query, "Accept", tt.accept)
						checktest.Equal(t, code, got.code, "compat %v, graph %v: %d %s", compat, there, got.code, got.body)
						if code == 200 {
							continue
						}
						if got.body != body || got.Get("Content-Type") != plain || got.Get("Cache-Control") != "no-store" {
							t.Errorf("compat %v, graph %v: %s %v, want %s", compat, there, got.body, got.Header, body)
						}
						retry := ""
						if code == 503 || code == 500 {
							retry = "10"
						}
						if got.Get("Retry-After") != retry || got.Get("ETag") != "" {
							t.Errorf("compat %v, graph %v: %v", compat, there, got.Header)
						}
					}
				}
			}
		})
	}
}

// TestStale: the last graph is served for so long, and says how old it is.
func TestStale(t *testing.T) {
	s := serve(t, policyengine.Options{}, sample(t))
	const path = "/api/graph?channel=fast-1.1"
	s.clock.SetTime(start.Add(24 * time.Hour))
	if got := s.get(t, path); got.code != 200 || got.Get("X-Graph-Age") != "86400" {
		t.Errorf("%d, Age %s", got.code, got.Get("X-Graph-Age"))
	}
	s.clock.SetTime(start.Add(24*time.Hour + 1))
	if got := s.get(t, path); got.code != 503 || got.Get("Retry-After") != "10" || got.body != failed("failed_upstream_fetch", "failed to fetch upstream graph: the graph is older than 24h0m0s") {
		t.Errorf("%d %s", got.code, got.body)
	}
	s.Set(sample(t))
	if got := s.get(t, path); got.code != 200 || got.Get("X-Graph-Age") != "0" {
		t.Errorf("%d, Age %s", got.code, got.Get("X-Graph-Age"))
	}
	s.clock.SetTime(start) // set back
	if got := s.get(t, path); got.code != 200 || got.Get("X-Graph-Age") != "0" {
		t.Errorf("%d, Age %s", got.code, got.Get("X-Graph-Age"))
	}
	for _, none := range []policyengine.Grapher{nil, (*graphdata.Snapshot)(nil)} {
		s.Set(sample(t))
		s.Set(none)
		if got := s.get(t, path); got.code != 503 || s.Revision() != "" {
			t.Errorf("%d %s", got.code, got.body)
		}
	}
}

// broken is a Grapher of which one graph panics and another is nil.
type broken struct{}

func (broken) Arches() []string         { return []string{"amd64"} }
func (broken) Channels(string) []string { return []string{"bad-1", "nil-1"} }
func (broken) Revision() string         { return "1" }
func (broken) Nodes() int               { return 0 }
func (broken) Graph(channel, _ string) *graph.Graph {
	if channel == "bad-1" {
		panic("it broke")
	}
	return nil
}

// TestBrokenGrapher: what a Grapher does wrong is an error of that graph alone.
func TestBrokenGrapher(t *testing.T) {
	s := serve(t, policyengine.Options{}, broken{})
	for range 2 {
		if got := s.get(t, "/api/graph?channel=bad-1"); got.code != 500 || got.body != failed("failed_plugin_execution", "failed to execute plugins: the graph cannot be made") {
			t.Errorf("%d %s", got.code, got.body)
		}
	}
	if got := s.get(t, "/api/graph?channel=nil-1"); got.code != 200 || got.body != nothing {
		t.Errorf("%d %s", got.code, got.body)
	}
}
