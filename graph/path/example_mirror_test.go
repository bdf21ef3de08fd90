package path_test

import (
	"context"
	"fmt"

	"github.com/Masterminds/semver/v3"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/path"
)

// What to mirror for clusters that go from 4.8.1 to 4.9.4.
func ExampleNetwork_MirrorRange() {
	release := func(version string) graph.Node {
		return graph.Node{Version: semver.MustParse(version), Image: "quay.io/r@sha256:" + version}
	}
	var graphs []path.ChannelGraph
	for channel, d := range map[string]graph.Data{
		"stable-4.8": {Nodes: []graph.Node{release("4.8.1"), release("4.8.5"), release("4.8.9")}, Edges: [][2]int{{0, 1}, {0, 2}, {1, 2}}},
		"stable-4.9": {Nodes: []graph.Node{release("4.8.9"), release("4.9.4")}, Edges: [][2]int{{0, 1}}},
	} {
		g, err := graph.New(d, graph.DecodeOptions{})
		if err != nil {
			fmt.Println(err)
			return
		}
		graphs = append(graphs, path.ChannelGraph{Channel: channel, Arch: "amd64", Graph: g})
	}
	n, err := path.NewNetwork(context.Background(), path.NetworkOptions{Present: "stable-4.8"}, graphs...)
	if err != nil {
		fmt.Println(err)
		return
	}
	releases, err := n.MirrorRange(path.MirrorQuery{Min: "4.8.1", Max: "4.9.4", ShortestPath: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range releases {
		fmt.Println(r.Version)
	}
	// Output:
	// 4.8.1
	// 4.8.9
	// 4.9.4
}
