package plan_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/clusterapi"
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

// eachNode is a plan that takes nodes out of service one by one, as those of hosts
// do.
func eachNode(nodes []string, drains bool) plan.Plan {
	p := custom("p", manual("prepare"))
	for _, n := range nodes {
		step := func(what string, kind plan.StepKind, args plan.Args) {
			p.Steps = append(p.Steps, plan.Step{ID: what + "-" + n, Kind: kind, Args: args})
		}
		step("before", plan.Hook, plan.Args{Node: n, Action: "act", Parameters: map[string]string{"k": "v"}})
		step("cordon", plan.Cordon, plan.Args{Node: n})
		if drains {
			step("drain", plan.Drain, plan.Args{Node: n})
		}
		step("act", plan.Hook, plan.Args{Node: n, Action: "act"})
		step("ready", plan.CheckAll, plan.Args{Checks: []plan.Check{{Kind: "NodesReady", Nodes: []string{n}}}})
		step("by-hand", plan.Manual, plan.Args{Node: n, Text: "look"})
		step("uncordon", plan.Uncordon, plan.Args{Node: n})
		step("after", plan.Hook, plan.Args{Node: n, Action: "act"})
	}
	p.Steps = append(p.Steps, plan.Step{ID: "end", Kind: plan.CheckAll, Args: plan.Args{Checks: []plan.Check{{Kind: "NodesReady", Nodes: nodes}}}})
	return p
}

// Steps that repeat are read as they were written, in every mixture.
func TestRepeatedSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := custom("p")
		for i := range rapid.IntRange(1, 3).Draw(t, "parts") {
			var nodes []string
			for n := range rapid.IntRange(1, 70).Draw(t, "nodes") {
				nodes = append(nodes, fmt.Sprint(rapid.SampledFrom([]string{"w-", "w-", "w-", "v-1."}).Draw(t, "prefix"), i*100+n))
			}
			part := eachNode(nodes, rapid.Bool().Draw(t, "drains")).Steps
			for _, s := range part[1 : len(part)-1] {
				switch rapid.IntRange(0, 150).Draw(t, "change") {
				case 0:
					s.ID += "x"
				case 1:
					s.Needs = []plan.Check{{Kind: "NodesReady", Nodes: []string{"w-0"}}}
				case 2:
					continue
				}
				p.Steps = append(p.Steps, s)
			}
		}
		if p.Validate() != nil {
			return
		}
		text := checktest.Get(plan.Encode(p))(t)
		checktest.Same(t, p, checktest.Get(plan.Decode(text))(t))
	})
}

// The record holds a plan that acts on 10,000 nodes, one by one: its text and, as
// a smaller plan shows, its progress.
func TestRecordOfHosts(t *testing.T) {
	var many []string
	for i := range 10_000 {
		many = append(many, fmt.Sprint("worker-", i, ".cluster.example.com"))
	}
	large := eachNode(many, true)
	text := checktest.Get(plan.Encode(large))(t)
	if !reflect.DeepEqual(large, checktest.Get(plan.Decode(text))(t)) {
		t.Error("the plan is not read as it was written")
	}

	const few = 80
	var objects []any
	for _, name := range many[:few] {
		n := mcptest.Worker(name)
		objects = append(objects, &n)
	}
	pool := resting("worker")
	w := alone(t, append(objects, &pool)...)
	defer w.Close()
	p := eachNode(many[:few], false)
	calls := map[string]int{}
	act := map[string]plan.Action{"act": plan.ActionFunc(func(_ context.Context, c plan.Call) (plan.Outcome, error) {
		calls[c.Step.ID]++
		return plan.Outcome{Done: true}, nil
	})}
	w.start("runner", plan.Options{Plan: p, Actions: act})
	w.pass(t, time.Minute)
	checktest.OK(t, plan.Confirm(w.context(), w.memory, "", "p", "prepare"))
	size := 0
	for i, name := range many[:few] {
		checktest.OK(t, plan.Confirm(w.context(), w.memory, "", "p", "by-hand-"+name))
		w.pass(t, time.Minute)
		if i == few/2 { // another runner continues
			w.Stop("runner")
			w.start("second", plan.Options{Plan: p, Actions: act, Claim: plan.TakeOver})
		}
		record := checktest.Get(clusterapi.Get[corev1.ConfigMap](w.context(), w.memory, clusterapi.Key("openshift-config", "rollout-p")))(t)
		for key, text := range record.Data {
			if key != "plan" {
				size = max(size, len(text))
			}
		}
	}
	w.pass(t, 5*time.Minute)
	loaded, progress, err := plan.Load(w.context(), w.memory, "", "p")
	checktest.OK(t, err)
	checktest.Same(t, p, loaded)
	checktest.Equal(t, plan.StateFinished, progress.State, "state\n%s", strings.Join(w.last(5), "\n"))
	for _, s := range p.Steps {
		checktest.Equal(t, "Done", progress.Steps[s.ID].State, "step %s", s.ID)
		if n := calls[s.ID]; s.Kind == plan.Hook && n != 1 {
			t.Errorf("step %s was called %d times", s.ID, n)
		}
	}
	if size > 2<<10 {
		t.Errorf("the progress of %d nodes takes %d bytes", few, size)
	}
}
