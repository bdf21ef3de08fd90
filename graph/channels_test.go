package graph_test

import (
	stdcmp "cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/internal/graphtest"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func TestParseChannel(t *testing.T) {
	for name, want := range map[string]graph.Channel{
		"stable-4.8":      {Type: "stable", Major: 4, Minor: 8},
		"eus-4.16":        {Type: "eus", Major: 4, Minor: 16},
		"candidate-5.0":   {Type: "candidate", Major: 5},
		"my-own-one-4.10": {Type: "my-own-one", Major: 4, Minor: 10},
	} {
		if got, ok := graph.ParseChannel(name); !ok || got != want || got.String() != name {
			t.Errorf("%s: %+v, %v", name, got, ok)
		}
	}
	for _, name := range []string{"", "stable", "stable-4", "stable-scos-4", "-4.8", "stable-4.8.1", "stable-4.08", "stable-4.", "stable-.8", "stable-4.x", "stable-v4.8", "stable-4.8 ", "stable-+4.8", "stable-4.99999999999999999999"} {
		if got, ok := graph.ParseChannel(name); ok {
			t.Errorf("%q parses as %+v", name, got)
		}
	}
}

func TestCompareChannels(t *testing.T) {
	want := []string{"", "nightly", "stable-4", "candidate-4.9", "stable-4.9", "eus-4.10", "stable-4.10", "candidate-5.0"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, graph.CompareChannels)
	checktest.Same(t, want, got)
	for i := range want {
		for j := range want {
			if c := graph.CompareChannels(want[i], want[j]); (c < 0) != (i < j) || (c == 0) != (i == j) {
				t.Errorf("%q against %q: %d", want[i], want[j], c)
			}
		}
	}
}

func TestCompareVersions(t *testing.T) {
	// Each is below the next; what does not parse comes first, bytewise.
	order := []string{"", "4.1", "v4.1.0", "4.1.0-rc.1", "4.1.0", "4.9.0", "4.10.0-a", "4.10.0", "5.0.0"}
	for i, a := range order {
		for j, b := range order {
			checktest.Equal(t, stdcmp.Compare(i, j), graph.CompareVersions(a, b), "%q to %q", a, b)
		}
	}
	checktest.Equal(t, 0, graph.CompareVersions("4.1.0+a", "4.1.0+b"), "a build takes part")
}

func TestOfferedChannels(t *testing.T) {
	r := configv1.Release{Channels: []string{"stable-4.10", "fast-4.9", "stable-4.9"}}
	checktest.Same(t, []string{"fast-4.9", "stable-4.9", "stable-4.10"}, graph.OfferedChannels(r))
	checktest.Equal(t, "stable-4.10", r.Channels[0], "the release was changed")
}

func TestGraphChannels(t *testing.T) {
	g := checktest.Must(graph.DecodeBytes(graphtest.ReadGraph(t, graphtest.RealGraph), graph.DecodeOptions{}))
	want := []string{"candidate-4.7", "fast-4.7", "stable-4.7", "candidate-4.8", "eus-4.8", "fast-4.8", "stable-4.8", "candidate-4.9", "fast-4.9", "stable-4.9", "eus-4.10"}
	checktest.Same(t, want, g.Channels())
}

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
