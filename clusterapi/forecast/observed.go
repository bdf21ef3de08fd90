package forecast

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/payload"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/mcp"
)

// The parts of an update that [DefaultTiming] describes: an hour of operators, then five
// minutes for each of three nodes.
const (
	documentedOperators = time.Hour
	documentedUpdate    = 75 * time.Minute
)

// longestWork is how long a node or an operator works at most: a longer time has a reason
// of its own.
const longestWork = 2 * time.Hour

// ObservedTiming returns what the cluster shows of its own updates, and the defaults for
// the rest. Each figure names its source. The order of the operators in running, the
// release of the newest completed update, shows how long each of them took; without it, nil
// or another release, only all of them together are known. Errors are those of reading the
// cluster; what is absent or was not collected is none.
func ObservedTiming(ctx context.Context, r clusterapi.Reader, running *payload.Image) (Timing, error) {
	t := DefaultTiming()
	cv, err := clusterapi.Get[configv1.ClusterVersion](ctx, r, clusterapi.Key("", "version"))
	if clusterapi.IsAbsent(err) {
		return t, nil
	}
	if err != nil {
		return t, err
	}
	updates := updatesOf(cv.Status.History)
	if len(updates) == 0 {
		return t, nil
	}
	operators, err := whole[configv1.ClusterOperator](ctx, r)
	if err != nil {
		return t, err
	}
	t.observeOperators(updates, operators)
	if running != nil && running.Version() == updates[0].Version {
		t.observeEach(updates[0], operators, running.Payload)
	}
	pools, err := whole[mcfgv1.MachineConfigPool](ctx, r)
	if err != nil {
		return t, err
	}
	nodes, err := whole[corev1.Node](ctx, r)
	if err != nil {
		return t, err
	}
	t.observeNodes(updates[0], pools, nodes)
	return t, nil
}

// whole returns all objects of a kind, and none if not all are known: times between some
// of them show nothing.
func whole[T any](ctx context.Context, r clusterapi.Reader) ([]T, error) {
	all, err := clusterapi.List[T](ctx, r, clusterapi.ListOptions{})
	if clusterapi.IsAbsent(err) {
		return nil, nil
	}
	return all, err
}

// updatesOf returns the completed updates of a history, the newest first. The oldest
// completed entry is an installation.
func updatesOf(history []configv1.UpdateHistory) (updates []configv1.UpdateHistory) {
	for _, h := range history {
		if h.State == configv1.CompletedUpdate && h.CompletionTime != nil && h.CompletionTime.After(h.StartedTime.Time) {
			updates = append(updates, h)
		}
	}
	return updates[:max(len(updates)-1, 0)]
}

// observeOperators scales the work of operators so that they take as long together as
// they did: in the newest update until the last of them was done, in older ones as the
// documentation divides an update.
func (t *Timing) observeOperators(updates []configv1.UpdateHistory, operators []configv1.ClusterOperator) {
	var took []time.Duration
	for _, u := range updates {
		share := float64(documentedOperators) / float64(documentedUpdate)
		took = append(took, time.Duration(float64(u.CompletionTime.Sub(u.StartedTime.Time))*share))
	}
	newest := updates[0]
	var last time.Time
	for _, at := range finishedAt(newest, operators) {
		if at.After(last) {
			last = at
		}
	}
	if !last.IsZero() {
		took[0] = last.Sub(newest.StartedTime.Time)
	}
	together := median(took)
	share := float64(together) / float64(documentedOperators)
	one := max(time.Duration(float64(t.Operator.Median)*share).Round(time.Second), time.Second)
	t.Operator = t.Operator.around(one,
		fmt.Sprintf("observed: %d updates of this cluster, in which all operators took %s", len(took), together.Round(time.Second)))
}

// finishedAt are the times at which operators were done with an update, by name: those of
// which that is known, without the one of machines, which waits for nodes.
func finishedAt(u configv1.UpdateHistory, operators []configv1.ClusterOperator) map[string]time.Time {
	done := make(map[string]time.Time)
	for _, co := range operators {
		p := openshift.FindCondition(co.Status.Conditions, configv1.OperatorProgressing)
		if co.Name == "machine-config" || p == nil || p.Status != configv1.ConditionFalse {
			continue
		}
		at := p.LastTransitionTime.Time
		if at.After(u.StartedTime.Time) && !at.After(u.CompletionTime.Time) {
			done[co.Name] = at
		}
	}
	return done
}

// observeEach learns how long each operator took: from when the last one of an earlier
// runlevel was done. An operator that was done after one of a later runlevel was at work
// again, such as for a node's reboot: it shows nothing.
func (t *Timing) observeEach(newest configv1.UpdateHistory, operators []configv1.ClusterOperator, p *manifest.Payload) {
	done := finishedAt(newest, operators)
	level := make(map[string]string, len(done)) // two digits
	for _, op := range p.Operators() {
		level[op.Name], _, _ = manifest.ParseName(op.Manifest.Filename)
	}
	known := maps.Clone(done)
	maps.DeleteFunc(known, func(name string, at time.Time) bool {
		for other, earlier := range done {
			if level[name] < level[other] && earlier.Before(at) {
				return true
			}
		}
		return level[name] == ""
	})
	t.Operators = make(map[string]Distribution)
	for name, at := range known {
		began := newest.StartedTime.Time
		for other, earlier := range known {
			if level[other] < level[name] && earlier.After(began) {
				began = earlier
			}
		}
		took := at.Sub(began)
		if took <= 0 || took > longestWork {
			continue
		}
		t.Operators[name] = t.Operator.around(took, "observed: in the update to "+newest.Version+", after the runlevels before")
	}
}

// observeNodes learns how long reboots take in pools whose nodes go one at a time: from
// one node's return to the next in the newest update. A pool shows nothing
// unless the nodes that it counts are known.
func (t *Timing) observeNodes(newest configv1.UpdateHistory, pools []mcfgv1.MachineConfigPool, nodes []corev1.Node) {
	state := mcp.NewState(mcp.Objects{Pools: pools, Nodes: nodes}, mcp.Options{})
	returned := make(map[string]time.Time, len(nodes))
	for i := range nodes {
		for _, c := range nodes[i].Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				returned[nodes[i].Name] = c.LastTransitionTime.Time
			}
		}
	}
	t.Reboots = make(map[string]Distribution)
	for _, pool := range state.Pools() {
		if state.Candidates(pool).MaxUnavailable != 1 || len(state.Nodes(pool)) != int(state.Pool(pool).Status.MachineCount) {
			continue
		}
		var at []time.Time
		for _, node := range state.Nodes(pool) {
			if when := returned[node]; when.After(newest.StartedTime.Time) {
				at = append(at, when)
			}
		}
		slices.SortFunc(at, time.Time.Compare)
		var took []time.Duration
		for i := 1; i < len(at); i++ {
			if d := at[i].Sub(at[i-1]); d <= longestWork {
				took = append(took, d)
			}
		}
		reboot := median(took) - t.Pull.Median - t.Drain.Median
		if reboot <= 0 {
			continue
		}
		t.Reboots[pool] = t.Reboot.around(reboot, fmt.Sprintf("observed: %d nodes that returned in the update to %s", len(at), newest.Version))
	}
}

// median returns the median of durations, the lower one of two, zero without any.
func median(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[(len(all)-1)/2]
}
