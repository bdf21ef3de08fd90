package mcp

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// MaxUnavailable returns how many of a pool's nodes may be unavailable at a
// time; nodes counts all of them, available or not. Absent means 1, a
// percentage is rounded down, and zero becomes 1, since it never stops a pool.
// The arbiter pool has 1 always.
//
// A negative value, and a string that is not a percentage, is an error that is
// [ErrInvalidMaxUnavailable]. Values that are accepted but dangerous come with
// warnings.
func MaxUnavailable(pool *mcfgv1.MachineConfigPool, nodes int) (limit int, warnings []string, err error) {
	limit, err = maxUnavailable(pool, nodes)
	if err != nil {
		return 0, nil, err
	}
	v := pool.Spec.MaxUnavailable
	if v == nil || pool.Name == PoolArbiter {
		return limit, nil, nil
	}
	if percent(v) < 0 {
		return 0, nil, &maxUnavailableError{fmt.Errorf("%s is negative: the pool would never update", v)}
	}
	if pool.Name == PoolMaster && limit > 1 {
		warnings = append(warnings, fmt.Sprintf(
			"maxUnavailable %s lets %d control plane nodes go down at a time: etcd may lose its quorum", v, limit))
	}
	if nodes > 0 && limit >= nodes {
		warnings = append(warnings, fmt.Sprintf(
			"maxUnavailable %s lets all %d nodes of pool %s go down at a time", v, nodes, pool.Name))
	}
	return limit, warnings, nil
}

// maxUnavailable is the controller's own reading: negative values pass.
func maxUnavailable(pool *mcfgv1.MachineConfigPool, nodes int) (int, error) {
	v := pool.Spec.MaxUnavailable
	if v == nil || pool.Name == PoolArbiter {
		return 1, nil
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(v, nodes, false)
	if err != nil {
		return 0, &maxUnavailableError{err}
	}
	switch {
	case n == 0:
		return 1, nil
	case n < 0 && percent(v) > 0, n > math.MaxInt32: // more than any pool has, and the product may overflow
		return math.MaxInt32, nil
	}
	return n, nil
}

// percent returns the number of a percentage, or the value itself: its sign is the
// sign of v, also if a percentage of few nodes would be rounded to zero.
func percent(v *intstr.IntOrString) int {
	if v.Type == intstr.Int {
		return v.IntValue()
	}
	n, _ := strconv.Atoi(strings.TrimSuffix(v.StrVal, "%"))
	return n
}
