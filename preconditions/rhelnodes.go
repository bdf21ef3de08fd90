package preconditions

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

func rhelNodesCheck() Check {
	return documented{Rule{
		Name: "RHELNodes", Severities: []Severity{Warning, Blocking},
		Source: "Updating a cluster that includes RHEL compute machines", Link: docsPerforming,
		Reads: []schema.GroupVersionKind{gvkOf[corev1.Node]()},
	}, rhelNodes}
}

const (
	labelOSID      = "node.openshift.io/os_id"
	labelOSVersion = "node.openshift.io/os_version"
)

// rhelNodes: nodes with package-based RHEL are not supported from 4.19 on. Before,
// an administrator updates each with a playbook; those of RHEL 7 not even so.
func rhelNodes(ctx context.Context, in *Input) ([]Finding, error) {
	nodes, err := list[corev1.Node](ctx, in, clusterapi.ListOptions{})
	var blocking, others []Object
	for _, n := range nodes {
		if n.Labels[labelOSID] != "rhel" {
			continue
		}
		version := n.Labels[labelOSVersion]
		o := nodeObject(n, "metadata.labels["+labelOSID+"]", "rhel", "")
		if version != "" {
			o.Note = "RHEL " + version
		}
		if strings.HasPrefix(version, "7") || in.crosses("4.19") {
			blocking = append(blocking, o)
		} else {
			others = append(others, o)
		}
	}
	sortObjects(blocking)
	sortObjects(others)
	var findings []Finding
	if len(blocking) > 0 {
		findings = append(findings, newFinding(Blocking, "PackageModeNodes", "Nodes with package-based RHEL are not supported by this release", blocking,
			"Cordon, drain and delete each, and replace it by one with RHCOS"))
	}
	if len(others) > 0 {
		findings = append(findings, newFinding(Warning, "PackageModeNodes", "Nodes with package-based RHEL are not updated with the cluster", others,
			"Run the upgrade playbook as each turns NotReady, or replace them by nodes with RHCOS, which 4.19 requires"))
	}
	return findings, err
}
