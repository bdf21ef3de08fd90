package path_test

import (
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/graph/internal/graphtest"

	"github.com/clusterupdate/clusterupdate/graph/path"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func TestExplain(t *testing.T) {
	four := graphtest.Sketch(t, "4.1.0>4.1.1 4.1.1>4.2.0:T 4.1.0>4.1.1 4.1.0>4.2.0:CEL 4.1.1>4.2.1:F 4.1.1>4.2.1:U 4.2.0>4.3.0 4.1.1>4.2.2:F 4.2.2>4.3.0 4.3.0>4.3.1-rc.1",
		map[string]string{"4.3.0": "stable-4.3, fast-4.3"})
	five := graphtest.Sketch(t, "5.0.0 4.3.0>5.0.0 4.1.1>4.3.0", nil)
	n := network(t, path.NetworkOptions{Matcher: graphtest.Facts}, path.ChannelGraph{Channel: "stable-4.3", Arch: "amd64", Graph: four}, path.ChannelGraph{Channel: "stable-5.0", Arch: "amd64", Graph: five})
	arm := network(t, path.NetworkOptions{}, path.ChannelGraph{Channel: "stable-4.3", Arch: "arm64", Graph: graphtest.Sketch(t, "4.1.7", nil)})
	for name, test := range map[string]struct {
		q         path.ExplainQuery
		block     string
		text      string
		downgrade bool
		skips     bool
	}{
		"recommended": {q: path.ExplainQuery{From: "4.1.0", To: "4.1.1"}, text: "4.1.0 can be updated to 4.1.1: the update is recommended"},
		"same":        {q: path.ExplainQuery{From: "4.1.0", To: "4.1.0"}, block: "SameVersion", text: "4.1.0 cannot be updated to 4.1.0 (SameVersion): 4.1.0 is the same release"},
		"not in graph": {q: path.ExplainQuery{From: "4.1.0", To: "4.1.7"}, block: "NotInGraph",
			text: `4.1.0 cannot be updated to 4.1.7 (NotInGraph): version 4.1.7 is not among the 8 releases of channel "stable-5.0, stable-4.3"; nearest are 4.1.1 and 4.2.0`},
		"another architecture": {q: path.ExplainQuery{From: "4.1.0", To: "4.1.7", Others: []*path.Network{arm}}, block: "WrongArchitecture",
			text: "4.1.0 cannot be updated to 4.1.7 (WrongArchitecture): 4.1.7 does not exist for amd64; there it does for arm64"},
		"cluster of another architecture": {q: path.ExplainQuery{From: "4.1.0", To: "4.1.1", Architecture: "Multi"}, block: "WrongArchitecture",
			text: "4.1.0 cannot be updated to 4.1.1 (WrongArchitecture): the cluster is multi-architecture, 4.1.1 is for amd64; the update is in channel stable-4.3"},
		"not in channel": {q: path.ExplainQuery{From: "4.3.0", To: "5.0.0", Channel: "stable-4.3"}, block: "NotInChannel",
			text: "4.3.0 cannot be updated to 5.0.0 (NotInChannel): 5.0.0 is not in channel stable-4.3; it is in stable-5.0; the update is in channel stable-5.0"},
		"edge in another channel": {q: path.ExplainQuery{From: "4.1.1", To: "4.3.0", Channel: "stable-4.3"}, block: "NoEdge", skips: true,
			text: "4.1.1 cannot be updated to 4.3.0 (NoEdge): channel stable-4.3 has no update from 4.1.1 to 4.3.0; there is one in stable-5.0; the update is in channel stable-5.0"},
		"no edge": {q: path.ExplainQuery{From: "4.1.0", To: "4.2.2"}, block: "NoEdge",
			text: "4.1.0 cannot be updated to 4.2.2 (NoEdge): no update leads from 4.1.0 to 4.2.2 in stable-5.0, stable-4.3; only via 4.1.0 -> 4.1.1 -> 4.2.2"},
		"skips a minor": {q: path.ExplainQuery{From: "4.1.0", To: "4.3.0"}, block: "NoEdge", skips: true,
			text: "4.1.0 cannot be updated to 4.3.0 (NoEdge): no update leads from 4.1.0 to 4.3.0 in stable-5.0, stable-4.3; it would skip a minor version; only via 4.1.0 -> 4.1.1 -> 4.3.0"},
		"skips across majors": {q: path.ExplainQuery{From: "4.2.2", To: "5.0.0"}, block: "NoEdge", skips: true,
			text: "4.2.2 cannot be updated to 5.0.0 (NoEdge): no update leads from 4.2.2 to 5.0.0 in stable-5.0, stable-4.3; it would skip a minor version; only via 4.2.2 -> 4.3.0 -> 5.0.0"},
		"start not in graph": {q: path.ExplainQuery{From: "4.1.7", To: "4.1.1"}, block: "NotInGraph", downgrade: true,
			text: `4.1.7 cannot be updated to 4.1.1 (NotInGraph): version 4.1.7 is not among the 8 releases of channel "stable-5.0, stable-4.3"; nearest are 4.1.1 and 4.2.0`},
		"neither of the architecture": {q: path.ExplainQuery{From: "4.1.0", To: "4.1.1", Architecture: "s390x"}, block: "WrongArchitecture",
			text: "4.1.0 cannot be updated to 4.1.1 (WrongArchitecture): the cluster is s390x, 4.1.1 is for amd64; the update is in channel stable-4.3"},
		"of the architecture":      {q: path.ExplainQuery{From: "4.1.0", To: "4.1.1", Architecture: "amd64"}, text: "4.1.0 can be updated to 4.1.1: the update is recommended"},
		"in the channel asked for": {q: path.ExplainQuery{From: "4.1.0", To: "4.1.1", Channel: "stable-4.3"}, text: "4.1.0 can be updated to 4.1.1: the update is recommended"},
		"in a channel without a graph": {q: path.ExplainQuery{From: "4.3.0", To: "4.3.1-rc.1", Channel: "fast-4.3"}, block: "NotInChannel",
			text: "4.3.0 cannot be updated to 4.3.1-rc.1 (NotInChannel): 4.3.0 is not in channel fast-4.3; it is in stable-4.3, stable-5.0; the update is in channel stable-4.3"},
		"downgrade": {q: path.ExplainQuery{From: "4.2.0", To: "4.1.0"}, block: "NoEdge", downgrade: true,
			text: "4.2.0 cannot be updated to 4.1.0 (NoEdge): no update leads from 4.2.0 to 4.1.0 in stable-5.0, stable-4.3; it would be a downgrade; no path from 4.2.0 to 4.1.0: the highest version that can be reached is 5.0.0; nothing leads to 4.1.0"},
		"pruned": {q: path.ExplainQuery{From: "4.1.0", To: "4.2.0", Policy: path.Policy{Edges: path.AcceptRisks, Risks: []string{"T"}}}, block: "UnrecognizedRules",
			text: `4.1.0 cannot be updated to 4.2.0 (UnrecognizedRules): clusters are not offered it: channel "stable-4.3": risk "CEL": skipping unrecognized cluster condition type "CEL"; only via 4.1.0 -> 4.1.1 -> 4.2.0`},
		"duplicate": {q: path.ExplainQuery{From: "4.1.1", To: "4.2.1"}, block: "DuplicateTarget",
			text: `4.1.1 cannot be updated to 4.2.1 (DuplicateTarget): clusters are not offered it: channel "stable-4.3": 2 conditional entries lead to it; no path from 4.1.1 to 4.2.1: the highest version that can be reached is 5.0.0; nothing leads to 4.2.1`},
		"filtered": {q: path.ExplainQuery{From: "4.3.0", To: "4.3.1-rc.1", Policy: path.Policy{NoPreReleases: true}}, block: "Filtered",
			text: "4.3.0 cannot be updated to 4.3.1-rc.1 (Filtered): 4.3.1-rc.1 is left out by the policy: it is a pre-release; no path from 4.3.0 to 4.3.1-rc.1: the highest version that can be reached is 5.0.0; nothing leads to 4.3.1-rc.1"},
		"risk": {q: path.ExplainQuery{From: "4.1.1", To: "4.2.0"}, block: "Risk",
			text: "4.1.1 cannot be updated to 4.2.0 (Risk): risk T applies: " + graphtest.Risk("T", "-").Message + " " + graphtest.Risk("T", "-").URL + "; no path from 4.1.1 to 4.2.0: the highest version that can be reached is 5.0.0; nothing leads to 4.2.0"},
		"risk that does not apply": {q: path.ExplainQuery{From: "4.1.1", To: "4.2.2"},
			text: "4.1.1 can be updated to 4.2.2: the policy allows the update; it is conditional: risk F does not apply: " + graphtest.Risk("F", "-").Message + " " + graphtest.Risk("F", "-").URL},
	} {
		t.Run(name, func(t *testing.T) {
			x := checktest.Must(n.Explain(test.q))
			if x.Block != test.block || x.String() != test.text || x.Downgrade != test.downgrade || x.SkipsMinor != test.skips {
				t.Errorf("%s %v %v: %s\nwant %s: %s", x.Block, x.Downgrade, x.SkipsMinor, x, test.block, test.text)
			}
		})
	}
	for want, q := range map[string]path.ExplainQuery{
		`from "4.1": `: {From: "4.1", To: "4.1.1"}, `to "v4.1.1": `: {From: "4.1.0", To: "v4.1.1"}, "policy: ": {From: "4.1.0", To: "4.1.1", Policy: path.Policy{Edges: "None"}},
	} {
		if _, err := n.Explain(q); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// Multi-architecture releases are for multi-architecture clusters.
func TestExplainMulti(t *testing.T) {
	multi := `={"release.openshift.io/architecture":"multi"}`
	g := graphtest.Build(t, "4.1.0"+multi+" 4.1.1"+multi+" 4.1.2", "[0,1],[0,2]", "")
	for name, tt := range map[string]struct{ graphs, cluster, to, want string }{
		"by the graph":       {"multi", "amd64", "4.1.2", "the cluster is amd64, 4.1.2 is multi-architecture"},
		"by the release":     {"", "amd64", "4.1.1", "the cluster is amd64, 4.1.1 is multi-architecture"},
		"multi to multi":     {"", "Multi", "4.1.1", ""},
		"by name":            {"multi", "multi", "4.1.2", ""},
		"multi to single":    {"", "Multi", "4.1.2", "the cluster is multi-architecture, 4.1.2 is for a single architecture"},
		"nothing is known":   {"", "arm64", "4.1.2", ""},
		"no cluster's given": {"arm64", "", "4.1.2", ""},
	} {
		t.Run(name, func(t *testing.T) {
			n := network(t, path.NetworkOptions{}, path.ChannelGraph{Channel: "c", Arch: tt.graphs, Graph: g})
			x, err := n.Explain(path.ExplainQuery{From: "4.1.0", To: tt.to, Architecture: tt.cluster})
			if err != nil || (x.Block == "WrongArchitecture") != (tt.want != "") || tt.want != "" && x.Detail != tt.want {
				t.Errorf("%s %s, %v, want %s", x.Block, x.Detail, err, tt.want)
			}
		})
	}
}
