package preconditions

import (
	"context"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func bootLoaderCheck() Check {
	return documented{Rule{
		Name: "BootLoader", Severities: []Severity{Info},
		Source: "Updating the boot loader on RHCOS nodes using bootupd", Link: docsPerforming,
		Reads: []schema.GroupVersionKind{gvkOf[configv1.ClusterVersion]()},
	}, bootLoader}
}

// bootLoader: updates leave the boot loader as it was installed. Nodes of a
// cluster that was installed with 4.4 or before have one that bootupd does not
// manage until it is told to.
func bootLoader(ctx context.Context, in *Input) ([]Finding, error) {
	cv, err := theClusterVersion(ctx, in)
	if err != nil {
		return nil, err
	}
	n := len(cv.Status.History)
	if n == 0 {
		return nil, nil
	}
	text := cv.Status.History[n-1].Version
	first, err := parseVersion(text)
	if err != nil {
		return nil, fmt.Errorf("the oldest version of the history, %q: %w", text, err)
	}
	if first.Major() > 4 || first.Major() == 4 && first.Minor() > 4 {
		return nil, nil
	}
	f := newFinding(Info, "BootLoaderNotAdopted", "The cluster was installed with "+text+", so bootupd may not manage the boot loader of its nodes", nil,
		"Look with: bootupctl status, on each node; then: bootupctl adopt-and-update")
	f.Objects = clusterVersionObject(fmt.Sprintf("status.history[%d].version", n-1), text)
	return []Finding{f}, nil
}
