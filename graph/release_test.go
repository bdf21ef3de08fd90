package graph_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// node returns the node of a graph of one, with metadata as JSON.
func node(t *testing.T, metadata string) graph.Node {
	t.Helper()
	g, err := graph.Decode(strings.NewReader(`{"nodes":[{"version":"4.1.0+b","payload":"q.io/r@sha256:1","metadata":`+metadata+`}]}`), graph.DecodeOptions{})
	checktest.OK(t, err)
	return g.Node(0)
}

func TestRelease(t *testing.T) {
	const channels = "io.openshift.upgrades.graph.release.channels"
	for _, tt := range []struct {
		name, metadata string
		want           configv1.Release // version and image apart
		errs           []string
	}{
		{"none", `null`, configv1.Release{}, nil},
		{"all", `{"url":"https://x.io/a","release.openshift.io/architecture":"multi","` + channels + `":"stable-4.9,fast-4.9,stable-4.10"}`,
			configv1.Release{URL: "https://x.io/a", Architecture: "Multi", Channels: []string{"fast-4.9", "stable-4.10", "stable-4.9"}}, nil},
		{"trimmed, each once", `{"` + channels + `":"b, a,b,a "}`, configv1.Release{Channels: []string{"a", "b"}}, nil},
		{"relative url", `{"url":"errata/1"}`, configv1.Release{URL: "errata/1"}, nil},
		{"empty url", `{"url":""}`, configv1.Release{}, nil},
		{"url number", `{"url":1000000}`, configv1.Release{}, []string{"URL is not a string: 1e+06"}},
		{"url null", `{"url":null}`, configv1.Release{}, []string{"URL is not a string: <nil>"}},
		{"url invalid", `{"url":"https://x.io/%zz"}`, configv1.Release{}, []string{`invalid release URL: parse "https://x.io/%zz": invalid URL escape "%zz"`}},
		{"architecture object", `{"release.openshift.io/architecture":{"a":1}}`, configv1.Release{}, []string{"release.openshift.io/architecture is not a string: map[a:1]"}},
		{"architecture unknown", `{"release.openshift.io/architecture":"Multi"}`, configv1.Release{}, []string{`unrecognized release.openshift.io/architecture value "Multi"`}},
		{"channels array", `{"` + channels + `":["a"]}`, configv1.Release{}, []string{channels + " is not a string: [a]"}},
		{"channels empty", `{"` + channels + `":""}`, configv1.Release{}, []string{channels + " is an empty string"}},
		{"channels with empty items", `{"` + channels + `":",b,,a"}`, configv1.Release{Channels: []string{"a", "b"}}, []string{
			channels + ` entry 2 is an empty string: ",b,,a"`, channels + ` entry 0 is an empty string: ",b,,a"`}},
		{"channels of nothing", `{"` + channels + `":","}`, configv1.Release{}, []string{
			channels + ` entry 1 is an empty string: ","`, channels + ` entry 0 is an empty string: ","`, "no non-empty channels in " + channels + " []"}},
		{"all wrong, in order", `{"` + channels + `":1,"url":true,"release.openshift.io/architecture":"x"}`, configv1.Release{}, []string{
			"URL is not a string: true", `unrecognized release.openshift.io/architecture value "x"`, channels + " is not a string: 1"}},
		{"what could be read", `{"` + channels + `":"a","url":true}`, configv1.Release{Channels: []string{"a"}}, []string{"URL is not a string: true"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.want.Version, tt.want.Image = "4.1.0+b", "q.io/r@sha256:1"
			r, err := node(t, tt.metadata).Release()
			checktest.Same(t, tt.want, r)
			got := ""
			if err != nil {
				got = err.Error()
			}
			checktest.Same(t, strings.Join(tt.errs, "\n"), got)
		})
	}
}

func TestSameDigest(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"q.io/a:1", "q.io/a:1", true},
		{"q.io/a@sha256:1", "mirror/b@sha256:1", true},
		{"q.io/a@sha256:1", "q.io/a@sha256:2", false},
		{"q.io/a:1", "mirror/a:1", false},
		{"q.io/a@x@sha256:1", "q.io/b@x@sha256:1", false},
		{"q.io/a@x@sha256:1", "q.io/b@sha256:1", false},
	} {
		checktest.Equal(t, tt.want, graph.SameDigest(tt.a, tt.b), "SameDigest(%q, %q) =", tt.a, tt.b)
		checktest.Equal(t, tt.want, graph.SameDigest(tt.b, tt.a), "SameDigest(%q, %q) =", tt.b, tt.a)
	}
}

func TestFillRelease(t *testing.T) {
	current := configv1.Release{Version: "4.1.0", Image: "q.io/r@sha256:1", URL: "u1", Architecture: "Multi", Channels: []string{"c1"}}
	available := []configv1.Release{{Version: "4.1.1", Image: "q.io/r@sha256:2", URL: "u2", Channels: []string{"c2"}}, {Version: "4.1.9", Image: "q.io/r@sha256:2", URL: "u3"}}
	for _, tt := range []struct {
		name     string
		in, want configv1.Release
	}{
		{"from current by digest", configv1.Release{Image: "m/r@sha256:1"}, configv1.Release{Image: "m/r@sha256:1", Version: "4.1.0", URL: "u1", Architecture: "Multi", Channels: []string{"c1"}}},
		{"own fields stay", configv1.Release{Image: "m/r@sha256:1", Version: "4.1.0-x", URL: "own", Channels: []string{"own"}}, configv1.Release{Image: "m/r@sha256:1", Version: "4.1.0-x", URL: "own", Architecture: "Multi", Channels: []string{"own"}}},
		{"from the first available", configv1.Release{Image: "m/r@sha256:2"}, configv1.Release{Image: "m/r@sha256:2", Version: "4.1.1", URL: "u2", Channels: []string{"c2"}}},
		{"equal version, other digest", configv1.Release{Image: "m/r@sha256:3", Version: "4.1.0"}, configv1.Release{Image: "m/r@sha256:3", Version: "4.1.0"}},
		{"no image", configv1.Release{Version: "4.1.0"}, configv1.Release{Version: "4.1.0"}},
	} {
		checktest.SameIn(t, tt.name, tt.want, graph.FillRelease(tt.in, current, available))
	}
}

func TestMetadata(t *testing.T) {
	m := node(t, `{"b":"x","a":[1, 2]}`).Metadata
	var keys []string
	for k := range m.All() {
		keys = append(keys, k)
	}
	if diff := cmp.Diff([]string{"a", "b"}, keys); diff != "" || m.Len() != 2 {
		t.Error(m.Len(), diff)
	}
	if v, ok := m.Get("a"); !ok || !cmp.Equal(v, []any{1.0, 2.0}) || m.Text("a") != "" {
		t.Errorf("a is %v, %v", v, ok)
	}
	if _, ok := m.Get("c"); ok || m.Text("b") != "x" {
		t.Error("c is there, or b is not x")
	}
}
