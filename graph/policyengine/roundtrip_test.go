package policyengine_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/graph/policyengine"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
)

// roundTrip asks for every graph as a cluster does, twice: it must be the one that
// is served.
func roundTrip(t *testing.T, s *service, g *graphdata.Snapshot, arches []string) {
	t.Helper()
	client := &graph.Client{Upstream: s.URL + "/api/v1/graph", Transport: http.DefaultTransport}
	for _, arch := range arches {
		for _, channel := range g.Channels(arch) {
			want := g.Graph(channel, arch)
			for range 2 {
				got, err := client.Fetch(t.Context(), graph.Query{Channel: channel, Arch: arch, Version: "4.1.0", ClusterID: clusterID})
				if err != nil {
					t.Fatalf("%s on %s: %v", channel, arch, err)
				}
				if !got.Equal(want) {
					t.Errorf("%s on %s: another graph", channel, arch)
				}
			}
		}
	}
}

// TestRoundTrip: what is served, package graph's client decodes, and its second
// request costs no body.
func TestRoundTrip(t *testing.T) {
	for _, compat := range []bool{false, true} {
		g := sample(t, "1.1.1", "1.2.0-rc.0")
		s := serve(t, policyengine.Options{Compat: compat, Mandatory: []string{"channel", "id", "version"}}, g)
		counted := 0
		inner := s.Config.Handler
		s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			recorded := httptest.NewRecorder()
			inner.ServeHTTP(recorded, r)
			if recorded.Code == http.StatusNotModified {
				counted++
			}
			for name, values := range recorded.Header() {
				w.Header()[name] = values
			}
			w.WriteHeader(recorded.Code)
			_, _ = w.Write(recorded.Body.Bytes())
		})
		roundTrip(t, s, g, g.Arches())
		checktest.Equal(t, 4, counted, "compat %v: answers were", compat)
	}
}

var allArches = []string{"amd64", "arm64", "multi", "ppc64le", "s390x"}

// realSnapshot is the graph of the maintainers' tree for some architectures, with
// releases for all versions of its channels and the predecessors that builds were
// told to name.
func realSnapshot(tb testing.TB, arches ...string) *graphdata.Snapshot {
	tb.Helper()
	tree, err := graphdata.Load(tb.Context(), os.DirFS(filepath.Join(testdata.Dir(tb), "graph-data")), graphdata.LoadOptions{})
	checktest.OK(tb, err)
	known := map[string]bool{}
	for _, c := range tree.Channels {
		for _, e := range c.Versions {
			v, _, _ := strings.Cut(e.Version, "+")
			known[v] = true
		}
	}
	var versions []string
	for v := range known {
		versions = append(versions, v)
	}
	slices.SortFunc(versions, graph.CompareVersions)
	var releases []graphdata.Release
	for _, arch := range arches {
		for _, v := range versions {
			releases = append(releases, graphdata.Release{Version: v, Arch: arch, Image: "registry.example/" + v + "-" + arch, Digest: "sha256:" + v + arch, Previous: tree.Suggested(v, arch, versions), Source: v + "-" + arch})
		}
	}
	s := checktest.Must(graphdata.Build(tree, releases, graphdata.BuildOptions{}))
	return s
}

// TestRealTree: every channel of the real tree comes through as it is.
func TestRealTree(t *testing.T) {
	arches := allArches
	if israce.Enabled {
		arches = []string{"arm64"} // the others are served alike
	}
	g := realSnapshot(t, arches...)
	s := serve(t, policyengine.Options{}, g)
	roundTrip(t, s, g, arches)
	t.Logf("%v bytes are kept", sampleValue(t, s.Samples(), "graph_cached_bytes"))
}
