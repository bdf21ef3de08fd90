package path_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/Masterminds/semver/v3"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/internal/graphtest"
	"github.com/clusterupdate/clusterupdate/graph/path"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/limittest"
)

func TestLimits(t *testing.T) {
	const mib = 1 << 20
	ctx := context.Background()
	releases := func(minor int) path.ChannelGraph {
		var d graph.Data
		for i := range 99_999 {
			d.Nodes = append(d.Nodes, graph.Node{Version: semver.MustParse(fmt.Sprintf("4.%d.%d", minor, i)), Image: "i"})
		}
		g := checktest.Must(graph.New(d, graph.DecodeOptions{}))
		return path.ChannelGraph{Channel: fmt.Sprint("c-4.", minor), Graph: g}
	}
	var channels []path.ChannelGraph
	for minor := range 11 {
		channels = append(channels, releases(minor))
	}
	crossed := graphtest.Fan(t, 8_000, graphtest.ManyRisks(501, "m"))

	limittest.Walk(t, []limittest.Case{
		{Limit: "releases in a network", Default: 1 << 20, Bytes: 400 * mib, Run: func(t *testing.T) int64 {
			_, err := path.NewNetwork(ctx, path.NetworkOptions{}, channels...)
			graphtest.WantLimit(t, err, "releases in all channels", 1<<20)
			return 0
		}},
		{Limit: "risks on a network's edges", Default: 4_000_000, Bytes: 400 * mib, Run: func(t *testing.T) int64 {
			_, err := path.NewNetwork(ctx, path.NetworkOptions{}, path.ChannelGraph{Channel: "c", Graph: crossed})
			graphtest.WantLimit(t, err, "risks on all edges", 4_000_000)
			return 0
		}},
	})
}
