package path_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/path"
)

// The way from one release to another over two channels, and why there is no
// shorter one.
func ExampleNetwork() {
	var graphs []path.ChannelGraph
	for channel, text := range map[string]string{
		"stable-4.1": `{"nodes": [{"version": "4.1.0", "payload": "a"}, {"version": "4.1.1", "payload": "b"}], "edges": [[0, 1]]}`,
		"stable-4.2": `{"nodes": [{"version": "4.1.1", "payload": "b"}, {"version": "4.2.0", "payload": "c"}], "edges": [[0, 1]]}`,
	} {
		g, err := graph.Decode(strings.NewReader(text), graph.DecodeOptions{})
		if err != nil {
			fmt.Println(err)
			return
		}
		graphs = append(graphs, path.ChannelGraph{Channel: channel, Arch: "amd64", Graph: g})
	}
	n, err := path.NewNetwork(context.Background(), path.NetworkOptions{Present: "stable-4.1"}, graphs...)
	if err != nil {
		fmt.Println(err)
		return
	}
	shortest, err := n.ShortestPath("4.1.0", "4.2.0", path.Policy{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, h := range shortest.Hops {
		fmt.Println(h.From, "->", h.To, "in", h.Channel)
	}
	why, err := n.Explain(path.ExplainQuery{From: "4.1.0", To: "4.2.0"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(why)
	// Output:
	// 4.1.0 -> 4.1.1 in stable-4.1
	// 4.1.1 -> 4.2.0 in stable-4.2
	// 4.1.0 cannot be updated to 4.2.0 (NoEdge): no update leads from 4.1.0 to 4.2.0 in stable-4.2, stable-4.1; only via 4.1.0 -> 4.1.1 -> 4.2.0
}
