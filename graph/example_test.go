package graph_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/risk"
)

const exampleGraph = `{
  "version": 1,
  "nodes": [
    {"version": "4.2.0", "payload": "example.com/release@sha256:0a"},
    {"version": "4.2.1", "payload": "example.com/release@sha256:1b"},
    {"version": "4.2.2", "payload": "example.com/release@sha256:2c"},
    {"version": "4.2.3", "payload": "example.com/release@sha256:3d"}
  ],
  "edges": [[0, 1], [1, 2]],
  "conditionalEdges": [
    {"edges": [{"from": "4.2.0", "to": "4.2.2"}],
     "risks": [{"name": "DiskFull", "url": "https://example.com/disk", "message": "Nodes with full disks do not come back.",
                "matchingRules": [{"type": "PromQL", "promql": {"promql": "max(disk_full)"}}]}]},
    {"edges": [{"from": "4.2.0", "to": "4.2.3"}],
     "risks": [{"name": "Odd", "url": "https://example.com/odd", "message": "Odd.", "matchingRules": [{"type": "Phase of the moon"}]}]}
  ]
}`

// From a source to the lists of a ClusterVersion.
func Example() {
	g, err := graph.Decode(strings.NewReader(exampleGraph), graph.DecodeOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	var source graph.Source = graph.Static(g) // or &graph.Client{}
	g, err = source.Fetch(context.Background(), graph.Query{
		Channel: "stable-4.2", Arch: "amd64", Version: "4.2.0", ClusterID: "3c5a1b2e-6f1d-4c7f-9a60-2b9d3c1e8f00",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	updates, err := g.Updates(graph.UpdatesQuery{Version: "4.2.0", Channel: "stable-4.2", Architecture: "amd64"})
	if err != nil {
		fmt.Println(err)
		return
	}
	available, conditional := risk.Evaluate(context.Background(), updates, graph.Facts{"max(disk_full)": 1}, nil, nil, time.Now())
	for _, r := range available {
		fmt.Println("available:", r.Version)
	}
	for _, c := range conditional {
		fmt.Println("conditional:", c.Release.Version, c.Conditions[0].Type, c.Conditions[0].Status, c.Conditions[0].Reason)
	}
	for _, d := range updates.Dropped {
		fmt.Println("not offered:", d.Release.Version, d.Cause)
	}
	// Output:
	// available: 4.2.1
	// conditional: 4.2.2 Recommended False DiskFull
	// not offered: 4.2.3 UnrecognizedRules
}

func ExampleGraph_Updates_notFound() {
	g, err := graph.Decode(strings.NewReader(exampleGraph), graph.DecodeOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = g.Updates(graph.UpdatesQuery{Version: "4.1.9", Channel: "stable-4.2"})
	var details *graph.NotFoundError
	if errors.Is(err, graph.ErrVersionNotFound) && errors.As(err, &details) {
		fmt.Println(err)
		fmt.Println(details)
	}
	// Output:
	// VersionNotFound: currently reconciling cluster version 4.1.9 not found in the "stable-4.2" channel
	// version 4.1.9 is not among the 4 releases of channel "stable-4.2", which has none of its minor; the lowest above is 4.2.0
}

func ExampleDecode_invalid() {
	_, err := graph.Decode(strings.NewReader(`{"nodes": [{"version": "4.2.0", "payload": "a"}], "edges": [[0, 1]]}`), graph.DecodeOptions{})
	fmt.Println(err)
	// Output:
	// edges[0]: index 1 is out of range: the graph has 1 nodes
}

func ExampleNextUpdate() {
	next, _ := graph.NextUpdate(graph.AutoState{
		Current:   "4.2.0",
		Available: []configv1.Release{{Version: "4.2.1", Image: "a"}, {Version: "4.3.0", Image: "b"}},
	}, graph.AutoPolicy{SameMinor: true})
	fmt.Println(next.Version)
	// Output:
	// 4.2.1
}

func ExampleParseChannel() {
	c, ok := graph.ParseChannel("eus-4.16")
	fmt.Println(c.Type, c.Major, c.Minor, ok)
	// Output:
	// eus 4 16 true
}
