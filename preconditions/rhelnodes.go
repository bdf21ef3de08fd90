package preconditions

import (
	"context"
	"fmt"
	"regexp"
	"slices"
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

// rhelNodes finds nodes with package-based RHEL, which are not supported from 4.19 on.
// Before, an administrator updates each with a playbook; those of RHEL 7 not even so.
func rhelNodes(ctx context.Context, in *Input) ([]Finding, error) {
	nodes, err := list[corev1.Node](ctx, in, clusterapi.ListOptions{})
	var blocking, others []Object
	var unknown []string
	for _, n := range nodes {
		image := n.Status.NodeInfo.OSImage
		if image == "" {
			unknown = append(unknown, n.Name)
			continue
		}
		if !packageRHEL(image) {
			continue
		}
		o := nodeObject(n, "status.nodeInfo.osImage", image, image)
		if rhel7(n) || in.crosses("4.19") {
			blocking = append(blocking, o)
		} else {
			others = append(others, o)
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		err = joinErrors(err, fmt.Errorf("the operating system of nodes is not known, since status.nodeInfo.osImage is empty: %s", strings.Join(unknown, ", ")))
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

// packageRHEL reports whether an OS image is RHEL made of packages. The node labels do
// not tell: since 4.19 RHCOS, too, has the ID rhel (OCPBUGS-53427).
func packageRHEL(osImage string) bool {
	return strings.HasPrefix(osImage, "Red Hat Enterprise Linux") && !strings.Contains(osImage, "CoreOS")
}

var rhel7Image = regexp.MustCompile(`^Red Hat Enterprise Linux( Server)? 7\b`)

func rhel7(n *corev1.Node) bool {
	return rhel7Image.MatchString(n.Status.NodeInfo.OSImage) || strings.HasPrefix(n.Labels["node.openshift.io/os_version"], "7")
}
