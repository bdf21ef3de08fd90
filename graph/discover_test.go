package graph_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/clusterupdate/clusterupdate/graph/internal/graphtest"

	"github.com/clusterupdate/clusterupdate/graph"
)

func TestDiscoverChannels(t *testing.T) {
	graphs := map[string]*graph.Graph{
		"stable-4.9":  graphtest.Sketch(t, "4.9.0", map[string]string{"4.9.0": "stable-4.9,stable-4.10"}),
		"stable-4.10": graphtest.Sketch(t, "4.10.0", map[string]string{"4.10.0": "stable-4.10,fast-4.10,gone-4.1,broken-4.1"}),
		"fast-4.10":   graphtest.Sketch(t, "4.10.0", nil),
		"gone-4.1":    graphtest.Sketch(t, "", nil),
	}
	broken := &graph.Error{Reason: "RemoteFailed", Message: "broken"}
	source := graph.SourceFunc(func(ctx context.Context, q graph.Query) (*graph.Graph, error) {
		if g := graphs[q.Channel]; g != nil {
			return g, ctx.Err()
		}
		return nil, broken
	})
	got, err := graph.DiscoverChannels(context.Background(), source, graph.Query{Channel: "stable-4.9", Arch: "amd64", Version: "4.9.0"})
	if !slices.Equal(got, []string{"stable-4.9", "fast-4.10", "stable-4.10"}) || !errors.Is(err, graph.ErrRemoteFailed) {
		t.Error(got, err)
	}
	// A source that knows ever more channels comes to an end.
	count := 0
	endless := graph.SourceFunc(func(context.Context, graph.Query) (*graph.Graph, error) {
		count++
		return graphtest.Sketch(t, "4.1.0", map[string]string{"4.1.0": fmt.Sprint("c-1.", count)}), nil
	})
	var limit *graph.LimitError
	if got, err := graph.DiscoverChannels(context.Background(), endless, graph.Query{Channel: "c-1.0"}); len(got) != 500 || !errors.As(err, &limit) {
		t.Error(len(got), err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if got, err := graph.DiscoverChannels(ctx, source, graph.Query{Channel: "stable-4.9"}); got != nil || !errors.Is(err, context.Canceled) {
		t.Error(got, err)
	}
}
