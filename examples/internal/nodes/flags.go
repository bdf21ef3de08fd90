// Package nodes has the flags of the example programs that describe nodes and pools,
// and what breaks them.
package nodes

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
)

// Flags describe pools, by name.
type Flags struct {
	Nodes  map[string]int
	Limits map[string]*intstr.IntOrString // how many nodes go down at a time
}

// Declare declares the flags.
func (f *Flags) Declare(set *flag.FlagSet) {
	f.Nodes, f.Limits = map[string]int{}, map[string]*intstr.IntOrString{}
	set.Func("nodes", "nodes of a pool: `POOL=N`; may be repeated", pairs("POOL=N", func(pool, text string) bool {
		n, err := strconv.Atoi(text)
		f.Nodes[pool] = n
		return err == nil && n >= 0
	}))
	const form = "POOL=N or POOL=N%, N above 0"
	set.Func("max-unavailable", "how many nodes of a pool go down at a time: `POOL=N`, or POOL=N%; may be repeated",
		pairs(form, func(pool, text string) bool {
			limit := intstr.Parse(text)
			n, err := intstr.GetScaledValueFromIntOrPercent(&limit, 100, true)
			f.Limits[pool] = &limit
			return err == nil && n > 0
		}))
}

// DeclareFaults declares a flag of nodes and what is wrong with them.
func DeclareFaults(set *flag.FlagSet, faults map[string]simulation.Fault) {
	kinds := []string{
		string(simulation.FaultNodeDegraded), string(simulation.FaultNodeUnreconcilable),
		string(simulation.FaultNodeStaysNotReady), string(simulation.FaultNodeReturnsOld), string(simulation.FaultNodeVanishes),
	}
	form := "NODE=FAULT with one of " + strings.Join(kinds, ", ")
	set.Func("break", "what is wrong with a node, as `worker-1=NodeDegraded`; may be repeated",
		pairs(form, func(node, kind string) bool {
			faults["node/"+node] = simulation.Fault{Kind: simulation.FaultKind(kind)}
			return slices.Contains(kinds, kind)
		}))
}

// DeclareSizes declares a flag of sizes of groups.
func DeclareSizes(set *flag.FlagSet, sizes *[]int) {
	set.Func("canary", "update the pool worker by a plan, in groups of these `sizes`, as 1,2", func(value string) error {
		for text := range strings.SplitSeq(value, ",") {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 {
				return fmt.Errorf("%s is not a number above 0", text)
			}
			*sizes = append(*sizes, n)
		}
		return nil
	})
}

// pairs reads texts NAME=VALUE, separated by commas, each name once. form describes what a
// pair has to be.
func pairs(form string, add func(name, value string) bool) func(string) error {
	seen := map[string]bool{}
	return func(value string) error {
		for text := range strings.SplitSeq(value, ",") {
			name, value, _ := strings.Cut(text, "=")
			switch {
			case validation.IsDNS1123Subdomain(name) != nil || !add(name, value):
				return fmt.Errorf("not %s", form)
			case seen[name]:
				return fmt.Errorf("%s comes twice", name)
			}
			seen[name] = true
		}
		return nil
	}
}
