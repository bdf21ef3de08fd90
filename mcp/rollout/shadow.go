package rollout

import (
	"fmt"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/mcp"
)

// shadowKey is the key by which the reconciler of pools looks at decisions of the
// cluster's controller whose time to turn out right is over.
var shadowKey = reconcile.Key{Kind: "rollout"}

// change takes a change into the State. In shadow mode it is compared with what would
// have been decided here.
func (x *run) change(c mcp.Change) (pools []string) {
	if x.shadow == nil {
		return x.state.Apply(c)
	}
	pools, found := x.shadow.Apply(x.now, c)
	x.tellDifferences(found)
	return pools
}

// beginShadow begins to compare, once everything has been seen.
func (x *run) beginShadow() {
	if x.o.Shadow != nil {
		x.shadow = mcp.NewShadow(x.state, *x.o.Shadow, x.now)
	}
}

// checkShadow tells what has come out by now, and returns when to look again.
func (x *run) checkShadow() time.Time {
	if x.shadow == nil {
		return time.Time{}
	}
	x.tellDifferences(x.shadow.Check(x.now))
	return x.shadow.Next()
}

// shadowWakes make that look happen.
func (x *run) shadowWakes() []reconcile.Wake {
	if x.shadow == nil || x.shadow.Next().IsZero() {
		return nil
	}
	return []reconcile.Wake{{Reconciler: poolsName, Key: shadowKey, After: max(x.shadow.Next().Sub(x.now), 0)}}
}

func (x *run) tellDifferences(found []mcp.Difference) {
	for _, d := range found {
		text := fmt.Sprintf("the machine-config controller decided otherwise: pool %s", d.Pool)
		if d.Node != "" {
			text += ", node " + d.Node
		}
		text += fmt.Sprintf(": %s; here: %s", d.Theirs, d.Ours)
		if v := d.Verdict; v.Text != "" && d.Kind != "NotSelected" {
			text += fmt.Sprintf(" (%s: %s)", v.Kind, v.Text)
		}
		x.emit(EventDifference, EventData{Pool: d.Pool, Node: d.Node, Reason: d.Kind, Warning: true, Difference: &d}, text, nil)
	}
}
