package graph_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/internal/graphtest"
	"github.com/clusterupdate/clusterupdate/graph/path"
	"github.com/clusterupdate/clusterupdate/graph/risk"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// A number below zero is refused with the name of its field.
func TestNegativeOptions(t *testing.T) {
	ctx := context.Background()
	g := graphtest.Sketch(t, "4.1.0>4.1.1", nil)
	network, err := path.NewNetwork(ctx, path.NetworkOptions{}, path.ChannelGraph{Channel: "stable-4.1", Graph: g})
	checktest.OK(t, err)
	fetch := func(c *graph.Client) error {
		_, err := c.Fetch(ctx, graph.Query{Channel: "stable-4.1", Arch: "amd64", Version: "4.1.0", ClusterID: clusterID})
		return err
	}
	for want, ask := range map[string]func() error{
		"graph.Client: Timeout is negative: -1s":        func() error { return fetch(&graph.Client{Timeout: -time.Second}) },
		"graph.Client: Kept is negative: -1":            func() error { return fetch(&graph.Client{Kept: -1}) },
		"graph.Client: Decode.MaxNodes is negative: -1": func() error { return fetch(&graph.Client{Decode: graph.DecodeOptions{MaxNodes: -1}}) },
		"graph.DecodeOptions: MaxBytes is negative: -1": func() error {
			_, err := graph.Decode(strings.NewReader("{}"), graph.DecodeOptions{MaxBytes: -1})
			return err
		},
		"graph.DecodeOptions: MaxEdges is negative: -1": func() error { _, err := graph.DecodeBytes([]byte("{}"), graph.DecodeOptions{MaxEdges: -1}); return err },
		"graph.DecodeOptions: MaxRisks is negative: -1": func() error { _, err := graph.New(graph.Data{}, graph.DecodeOptions{MaxRisks: -1}); return err },
		"graph.UpdatesQuery: MaxBytes is negative: -1":  func() error { _, err := g.Updates(graph.UpdatesQuery{Version: "4.1.0", MaxBytes: -1}); return err },
		"risk.Cache: MinFor is negative: -1h0m0s": func() error {
			_, err := (&risk.Cache{Matcher: graphtest.Facts, MinFor: -time.Hour}).Match(ctx, graphtest.PromQL("T"))
			return err
		},
		"risk.Prometheus: MaxSamples is negative: -1":   func() error { _, err := (&risk.Prometheus{MaxSamples: -1}).Query(ctx, "up"); return err },
		"path.PictureOptions: MaxNodes is negative: -1": func() error { _, err := network.Picture(path.PictureOptions{MaxNodes: -1}); return err },
	} {
		if err := ask(); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
