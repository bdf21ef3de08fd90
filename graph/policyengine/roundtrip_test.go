package policyengine_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/graph/policyengine"
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
		if counted != 4 {
			t.Errorf("compat %v: %d answers were not modified", compat, counted)
		}
	}
}

var allArches = []string{"amd64", "arm64", "multi", "ppc64le", "s390x"}

// realSnapshot is the graph of the maintainers' tree for some architectures, with
// releases for all versions of its channels and the predecessors that builds were
// told to name.
func realSnapshot(tb testing.TB, arches ...string) *graphdata.Snapshot {
	tb.Helper()
	tree, err := graphdata.Load(tb.Context(), os.DirFS(filepath.Join(testdata.Dir(tb), "graph-data")), graphdata.LoadOptions{})
	if err != nil {
		tb.Fatal(err)
	}
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
	s, err := graphdata.Build(tree, releases, graphdata.BuildOptions{})
	if err != nil {
		tb.Fatal(err)
	}
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

// TestServedProperties: of any tree, a served graph has no update from or to what is
// not in it, none twice, none that a drop matches, and channels within each other
// have graphs within each other.
func TestServedProperties(t *testing.T) {
	versions := []string{"1.0.0", "1.0.1", "1.0.2", "1.1.0", "1.1.1"}
	h, err := policyengine.New(policyengine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		tree := &graphdata.Tree{}
		in := versions
		for _, name := range []string{"candidate-1.1", "fast-1.1", "stable-1.1"} {
			if len(in) > 0 {
				in = rapid.SliceOfDistinct(rapid.SampledFrom(in), rapid.ID[string]).Draw(t, name)
			}
			channel := graphdata.Channel{File: name, Name: name}
			for _, v := range in {
				channel.Versions = append(channel.Versions, graphdata.Entry{Version: v})
			}
			tree.Channels = append(tree.Channels, channel)
		}
		dropped := map[string]bool{}
		for _, v := range rapid.SliceOfDistinct(rapid.SampledFrom(versions), rapid.ID[string]).Draw(t, "dropped") {
			dropped[v] = true
			tree.Drops = append(tree.Drops, graphdata.BlockedEdge{File: v, To: v, From: ".*"})
		}
		var releases []graphdata.Release
		for i, v := range versions {
			for _, arch := range []string{"amd64", "s390x"} {
				if rapid.IntRange(0, 4).Draw(t, "there") > 0 {
					releases = append(releases, graphdata.Release{Version: v, Arch: arch, Image: v, Previous: versions[:rapid.IntRange(0, i).Draw(t, "previous")], Source: v + arch})
				}
			}
		}
		g, err := graphdata.Build(tree, releases, graphdata.BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		h.Set(g)
		for _, arch := range []string{"amd64", "s390x"} {
			var outer map[[2]string]bool
			for _, c := range tree.Channels {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest("GET", "/graph?channel="+c.Name+"&arch="+arch, nil))
				served, err := graph.DecodeBytes(w.Body.Bytes(), graph.DecodeOptions{})
				if err != nil {
					t.Fatalf("%v: %s", err, w.Body)
				}
				pairs := map[[2]string]bool{}
				for i, n := range served.Nodes() {
					v := n.Version.Original()
					if !slices.ContainsFunc(c.Versions, func(e graphdata.Entry) bool { return e.Version == v }) {
						t.Fatalf("%s is not in %s", v, c.Name)
					}
					for e := range served.Edges(i) {
						to := served.Node(e.To).Version.Original()
						if pairs[[2]string{v, to}] || dropped[to] {
							t.Fatalf("%s: %s → %s", c.Name, v, to)
						}
						pairs[[2]string{v, to}] = true
					}
				}
				if outer != nil {
					for p := range pairs {
						if !outer[p] {
							t.Fatalf("%s has %v alone", c.Name, p)
						}
					}
				}
				outer = pairs
			}
		}
	})
}
