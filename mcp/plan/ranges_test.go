package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
)

// Lists of nodes are read as they were written, whatever their names and their order are.
func TestRanges(t *testing.T) {
	name := rapid.OneOf(
		rapid.StringMatching(`[a-c][0-9]{1,2}`),
		rapid.StringMatching(`w(-[0-9a]{1,2}){1,2}(\.x)?`),
		rapid.StringMatching(`ip-10-0-[0-3]-[0-9]{1,3}\.ec2\.internal`),
		rapid.Custom(func(t *rapid.T) string { return fmt.Sprint("n-", rapid.IntRange(0, 40).Draw(t, "n")) }),
	)
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.SliceOfNDistinct(name, 1, 90, rapid.ID).Draw(t, "nodes")
		p := custom("p", plan.Step{ID: "a", Kind: plan.LabelNodes,
			Args: plan.Args{Pool: "worker", Nodes: nodes, Add: map[string]string{"k": "v"}},
			Done: plan.Check{Kind: "NodesReady", Nodes: nodes}})
		text := checktest.Get(plan.Encode(p))(t)
		checktest.Same(t, p, checktest.Get(plan.Decode(text))(t))
	})
}

// The record holds a canary rollout of 10,000 nodes, however a platform names them.
func TestTenThousandNodes(t *testing.T) {
	for platform, name := range map[string]func(i int) string{
		"numbers": func(i int) string { return fmt.Sprint("worker-", i, ".cluster.example.com") },
		"padded":  func(i int) string { return fmt.Sprintf("w%05d", i) },
		"aws":     func(i int) string { return fmt.Sprintf("ip-10-0-%d-%d.us-east-2.compute.internal", i/250, i%250) },
		"machine sets": func(i int) string {
			const letters = "bcdfghjklmnpqrstvwxz2456789"
			suffix := make([]byte, 5)
			for j, rest := 0, i*7919; j < len(suffix); j++ {
				suffix[j] = letters[rest%len(letters)]
				rest /= len(letters)
			}
			return fmt.Sprintf("production-7xk2p-worker-europe-west4-%c-%s", 'a'+i%3, suffix)
		},
	} {
		c := clusterOf(0)
		c.Nodes = c.Nodes[:0]
		for i := range 10_000 {
			c.Nodes = append(c.Nodes, mcptest.Worker(name(i), mcptest.Zone(fmt.Sprint("z", i%3))))
		}
		p, _, err := plan.PlanCanary(c, plan.CanaryOptions{ID: "p", Pool: "worker", Sizes: []int{100, 900, 4000, 5000}})
		checktest.OK(t, err)
		text := checktest.Get(plan.Encode(p))(t)
		checktest.Same(t, p, checktest.Get(plan.Decode(text))(t))
		if size := len(text); size > 300<<10 {
			t.Errorf("%s: %d bytes", platform, size)
		}
		if !strings.Contains(string(text), "{") {
			t.Errorf("%s: no ranges", platform)
		}
	}
}
