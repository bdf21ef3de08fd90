package upgradeconfig

import (
	"cmp"
	"context"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// Local is a [Provider] whose policy is the UpgradeConfig itself: an
// administrator writes it, and syncs leave it as it is, in any phase of its
// upgrade. It is safe for concurrent use.
type Local struct {
	// API is the cluster; required.
	API clusterapi.Reader
	// Namespace and Name of the UpgradeConfig; empty means [DefaultNamespace]
	// and [Name].
	Namespace, Name string
}

// Policies implements [Provider]. There is no policy without an UpgradeConfig or
// with one that is being deleted. Errors are those of the cluster.
func (l Local) Policies(ctx context.Context) ([]Policy, error) {
	list, err := l.API.List(ctx, gvk, clusterapi.ListOptions{Namespace: cmp.Or(l.Namespace, DefaultNamespace)})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		// Others are not looked at: they may be broken without harm.
		if list.Items[i].GetName() != cmp.Or(l.Name, Name) {
			continue
		}
		current, err := clusterapi.FromUnstructured[UpgradeConfig](&list.Items[i])
		if err != nil {
			return nil, err
		}
		if current.DeletionTimestamp != nil {
			return nil, nil
		}
		return []Policy{localPolicy(current)}, nil
	}
	return nil, nil
}

// String implements [Provider].
func (l Local) String() string { return sourceLocal }

func localPolicy(current *UpgradeConfig) Policy {
	p := Policy{ID: current.Name, Spec: current.Spec}
	if at, err := time.Parse(time.RFC3339, current.Spec.UpgradeAt); err == nil {
		p.NextRun = at
	}
	return p
}
