package path_test

import (
	"context"
	"fmt"

	"github.com/Masterminds/semver/v3"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/path"
)

// What to mirror for clusters that go from 4.8 to 4.9.
func ExampleMirrorChannels() {
	release := func(version string) graph.Node {
		return graph.Node{Version: semver.MustParse(version), Image: "quay.io/r@sha256:" + version}
	}
	graphs := map[string]*graph.Graph{}
	for channel, d := range map[string]graph.Data{
		"stable-4.8": {Nodes: []graph.Node{release("4.8.1"), release("4.8.5"), release("4.8.9")}, Edges: [][2]int{{0, 1}, {0, 2}, {1, 2}}},
		"stable-4.9": {Nodes: []graph.Node{release("4.8.9"), release("4.9.4")}, Edges: [][2]int{{0, 1}}},
	} {
		g, err := graph.New(d, graph.DecodeOptions{})
		if err != nil {
			fmt.Println(err)
			return
		}
		graphs[channel] = g
	}
	source := graph.SourceFunc(func(_ context.Context, q graph.Query) (*graph.Graph, error) { return graphs[q.Channel], nil })
	selection, err := path.MirrorChannels(context.Background(), source, graph.Query{Arch: "amd64", Version: "4.8.1"}, []path.MirrorChannel{
		{Name: "stable-4.8", Min: "4.8.1", Max: "4.8.1"},
		{Name: "stable-4.9"},
	}, path.MirrorOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range selection.Releases {
		fmt.Println(r.Version)
	}
	// Output:
	// 4.8.1
	// 4.8.9
	// 4.9.4
}
