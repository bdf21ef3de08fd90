// Package nodes reads nodes and pools, and what breaks them, from the command line.
package nodes

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
)

// ParseLimit reads how many nodes go down at a time: a number or a percentage. Empty
// is nil.
func ParseLimit(text string) (*intstr.IntOrString, error) {
	if text == "" {
		return nil, nil
	}
	limit := intstr.Parse(text)
	if n, err := intstr.GetScaledValueFromIntOrPercent(&limit, 100, true); err != nil || n < 1 {
		return nil, fmt.Errorf("%s: not a number above 0 or a percentage", text)
	}
	return &limit, nil
}

// ParsePools reads pools and how many nodes they have, as in infra=2.
func ParsePools(texts []string, limit *intstr.IntOrString) ([]simulation.Pool, error) {
	var pools []simulation.Pool
	for _, text := range texts {
		name, count, _ := strings.Cut(text, "=")
		n, err := strconv.Atoi(count)
		if err != nil || n < 0 || name == "" {
			return nil, fmt.Errorf("%s: not as infra=2", text)
		}
		pools = append(pools, simulation.Pool{Name: name, Nodes: n, MaxUnavailable: limit})
	}
	return pools, nil
}

// ParseSizes reads sizes of groups.
func ParseSizes(texts []string) ([]int, error) {
	var sizes []int
	for _, text := range texts {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%s: not a number above 0", text)
		}
		sizes = append(sizes, n)
	}
	return sizes, nil
}

// faults are what can be wrong with a simulated node.
var faults = []simulation.FaultKind{
	simulation.FaultNodeDegraded, simulation.FaultNodeUnreconcilable, simulation.FaultNodeStaysNotReady,
	simulation.FaultNodeReturnsOld, simulation.FaultNodeVanishes,
}

// ParseFaults reads nodes and what is wrong with them, as in worker-1=NodeDegraded.
func ParseFaults(texts []string) (map[string]simulation.Fault, error) {
	out := map[string]simulation.Fault{}
	for _, text := range texts {
		node, kind, _ := strings.Cut(text, "=")
		if !slices.Contains(faults, simulation.FaultKind(kind)) || node == "" {
			var names []string
			for _, f := range faults {
				names = append(names, string(f))
			}
			return nil, fmt.Errorf("%s: not a node and one of %s", text, strings.Join(names, ", "))
		}
		out["node/"+node] = simulation.Fault{Kind: simulation.FaultKind(kind)}
	}
	return out, nil
}
