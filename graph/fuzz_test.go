package graph_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/path"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func FuzzDecode(f *testing.F) {
	f.Add([]byte(oneNode))
	f.Add([]byte(`{` + twoNodes + `,"edges":[[0,1]],"conditionalEdges":[{"edges":[{"from":"4.1.0","to":"4.1.1"}],"risks":[{"name":"A","url":"u","message":"m","matchingRules":[{"type":"PromQL","promql":{"promql":"up"}}]}]}]}`))
	f.Add([]byte(`{"version":1,"nodes":[{"version":"4.1.0+b","payload":"\ud83d\u0041\n","metadata":{"n":1e5,"o":{"":[null,true]},"io.openshift.upgrades.graph.release.channels":",a, b"}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		o := graph.DecodeOptions{MaxNodes: 100, MaxEdges: 1000}
		g, err := graph.DecodeBytes(text, o)
		compat, _ := graph.DecodeBytes(text, graph.DecodeOptions{MaxNodes: 100, MaxEdges: 1000, Compat: true})
		if err == nil {
			if !json.Valid(text) {
				t.Fatal("accepted what is not JSON")
			}
			encoded := checktest.Must(g.MarshalJSON())
			again, err := graph.DecodeBytes(encoded, o)
			if err != nil || !again.Equal(g) {
				t.Fatalf("decode(encode(g)) is not g: %v", err)
			}
		}
		for _, g := range []*graph.Graph{g, compat} {
			if g == nil {
				continue
			}
			g.Validate()
			g.Channels()
			for i, n := range g.Nodes() {
				for range g.Edges(i) {
				}
				g.Updates(graph.UpdatesQuery{Version: n.Version.Original(), Compat: g == compat})
			}
		}
	})
}

func FuzzParseVersion(f *testing.F) {
	for _, s := range []string{"4.1.0", "4.1.0-rc.1+b", "v4.1.0", "04.1.0", "4.1", "", "1.2.3-", "1.2.3+", "1.2.3-a..b", "1.2.3-01", " 1.2.3", "1..3", "99999999999999999999.0.0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := graph.ParseVersion(s)
		if err != nil {
			return
		}
		if v.Original() != s || v.String() != s {
			t.Errorf("%q became %q", s, v)
		}
		if strings.TrimSpace(s) != s || strings.Count(s, ".") < 2 || s[0] < '0' || s[0] > '9' {
			t.Errorf("%q accepted", s)
		}
		checktest.Equal(t, 0, graph.CompareVersions(s, s), "%q differs from itself", s)
	})
}

func FuzzParseChannel(f *testing.F) {
	for _, s := range []string{"stable-4.8", "eus-4.08", "a-b-4.5", "stable-4", "-4.8", "x-4.8.1", "x-\u0664.8"} {
		f.Add(s, "fast-4.9")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if c, ok := graph.ParseChannel(a); ok && c.String() != a {
			t.Errorf("%q became %q", a, c)
		}
		ab, ba := graph.CompareChannels(a, b), graph.CompareChannels(b, a)
		if ab != -ba || (ab == 0) != (a == b) {
			t.Errorf("%q against %q: %d, %d", a, b, ab, ba)
		}
	})
}

func FuzzRequestURL(f *testing.F) {
	f.Add("https://u.io/g?x=1&id=2#f", clusterID, "stable-4.1")
	f.Add("http://[::1]:80/%41", "urn:uuid:"+clusterID, "a&b=c")
	f.Fuzz(func(t *testing.T, upstream, id, channel string) {
		u, err := requested(t, upstream, graph.Query{Channel: channel, Arch: "amd64", Version: "4.1.0", ClusterID: id})
		if err != nil {
			return
		}
		q := u.Query()
		for key, want := range map[string]string{"arch": "amd64", "channel": channel, "version": "4.1.0"} {
			if len(q[key]) != 1 || q[key][0] != want {
				t.Errorf("%s is %q", key, q[key])
			}
		}
		if len(q["id"]) != 1 || len(q["id"][0]) != 36 || strings.ToLower(q["id"][0]) != q["id"][0] {
			t.Errorf("id is %q", q["id"])
		}
	})
}

// FuzzNetwork searches whatever graph decodes, also one that only Compat does.
func FuzzNetwork(f *testing.F) {
	f.Add([]byte(`{`+twoNodes+`,"edges":[[0,1]],"conditionalEdges":[{"edges":[{"from":"4.1.0","to":"4.1.1"}],"risks":[]}]}`), "4.1.0", "4.1.1")
	f.Add([]byte(`{"nodes":[{"version":"1.0.0+a"},{"version":"1.0.0+b"},{"version":"1.0.0+a"}],"edges":[[0,1],[1,0],[2,9]]}`), "1.0.0", "1.0.0+b")
	f.Fuzz(func(t *testing.T, text []byte, from, to string) {
		for _, compat := range []bool{false, true} {
			g, err := graph.DecodeBytes(text, graph.DecodeOptions{MaxNodes: 30, MaxEdges: 100, Compat: compat})
			if err != nil {
				continue
			}
			n, err := path.NewNetwork(context.Background(), path.NetworkOptions{}, path.ChannelGraph{Channel: "c", Graph: g}, path.ChannelGraph{Channel: "d", Graph: g})
			if err != nil {
				continue
			}
			policy := path.Policy{Edges: path.AnyEdge}
			shortest, err := n.ShortestPath(from, to, policy)
			paths, errAll := n.Paths(from, to, 3, path.Shortest, policy)
			if (err == nil) != (errAll == nil) || err == nil && paths[0].String() != shortest.String() {
				t.Fatalf("%v, %v, %v, %v", shortest, err, paths, errAll)
			}
			x, err := n.Explain(path.ExplainQuery{From: from, To: to, Policy: policy})
			if err == nil && x.String() == "" {
				t.Fatal("no explanation")
			}
			checktest.Must(n.Picture(path.PictureOptions{}))
		}
	})
}
