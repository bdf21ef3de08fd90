package preconditions

import (
	"context"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

func singleNodeCheck() Check {
	return documented{Rule{
		Name: "SingleNode", Severities: []Severity{Info},
		Source: "Performing a cluster update, Updating a single-node cluster", Link: docsPerforming,
		Reads: []schema.GroupVersionKind{gvkOf[configv1.Infrastructure](), gvkOf[corev1.Node]()},
	}, singleNodeUpdate}
}

// singleNodeUpdate: a cluster with one control plane node is down while that node
// is updated.
func singleNodeUpdate(ctx context.Context, in *Input) ([]Finding, error) {
	size, err := clusterSize(ctx, in)
	if !size.single() {
		return nil, err
	}
	f := newFinding(Info, "SingleNode", "The cluster has a single control plane node: it is down while that is updated, and no node is drained", nil,
		"Plan the downtime; restoring a backup is not supported here")
	if size.singleReplica {
		f.Objects = append(f.Objects, infrastructureObject("status.controlPlaneTopology", string(configv1.SingleReplicaTopologyMode)))
	}
	if size.node != "" {
		f.Objects = append(f.Objects, Object{GVK: gvkOf[corev1.Node](), Name: size.node})
	}
	return []Finding{f}, nil
}

// size is what is special about the size of a cluster.
type size struct {
	singleReplica bool   // the control plane is one node, other nodes may be added
	node          string // the only one in all
}

func (s size) single() bool { return s.singleReplica || s.node != "" }

// notDrained says that the nodes of a single-node cluster are not drained, added
// ones neither.
func (s size) notDrained() error {
	return &NotApplicableError{Why: "the cluster has a single control plane node: no node is drained"}
}

// clusterSize looks at the topology and at the nodes. Where either is not known
// the error says so, and what the other says counts.
func clusterSize(ctx context.Context, in *Input) (size, error) {
	var s size
	infrastructure, err := readInfrastructure(ctx, in)
	if infrastructure != nil {
		s.singleReplica = infrastructure.Status.ControlPlaneTopology == configv1.SingleReplicaTopologyMode
	}
	nodes, nodesErr := list[corev1.Node](ctx, in, clusterapi.ListOptions{})
	if nodesErr == nil && len(nodes) == 1 {
		s.node = nodes[0].Name
	}
	if err == nil {
		err = nodesErr
	}
	return s, err
}

// onlyNode is the name of the only node in all; empty where there are more, or it is
// not known.
func onlyNode(ctx context.Context, in *Input) string {
	nodes, err := list[corev1.Node](ctx, in, clusterapi.ListOptions{})
	if err != nil || len(nodes) != 1 {
		return ""
	}
	return nodes[0].Name
}

// readInfrastructure returns nil where there is none, or no such kind.
func readInfrastructure(ctx context.Context, in *Input) (*configv1.Infrastructure, error) {
	i, err := clusterapi.Read[configv1.Infrastructure](ctx, in.Reader, clusterapi.Key("", "cluster"))
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	return i, err
}

func infrastructureObject(field, value string) Object {
	return Object{GVK: gvkOf[configv1.Infrastructure](), Name: "cluster", FieldPath: field, Value: value}
}
