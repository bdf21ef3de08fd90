package preconditions

import (
	"context"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

func cgroupV1Check() Check {
	return documented{Rule{
		Name: "CgroupV1", Scope: Scope{Crossing: "4.19"}, Severities: []Severity{Blocking},
		Source: "OpenShift Container Platform 4.19 release notes, Deprecated and removed features",
		Link:   docs + "4.19/html/release_notes/ocp-4-19-release-notes",
		Reads:  []schema.GroupVersionKind{gvkOf[configv1.Node]()},
	}, cgroupV1}
}

const cgroupModeV1 = "v1"

// cgroupV1 finds clusters whose nodes use cgroup v1, which is gone in 4.19: the
// machine-config operator of 4.18 does not let them leave it.
func cgroupV1(ctx context.Context, in *Input) ([]Finding, error) {
	config, err := clusterapi.Read[configv1.Node](ctx, in.Reader, clusterapi.Key("", "cluster"))
	if apierrors.IsNotFound(err) {
		return nil, nil // the default, v2
	}
	if err != nil {
		return nil, optionalAPI(err, "configuration of nodes")
	}
	if config.Spec.CgroupMode != cgroupModeV1 {
		return nil, nil
	}
	o := Object{GVK: gvkOf[configv1.Node](), Name: "cluster", FieldPath: "spec.cgroupMode", Value: cgroupModeV1, Note: "spec.cgroupMode v1"}
	return []Finding{newFinding(Blocking, "CgroupV1", "The nodes use cgroup v1, which the target does not have", []Object{o},
		`Migrate to cgroup v2, from which there is no way back, and which reboots the nodes: oc patch nodes.config cluster --type=merge -p '{"spec":{"cgroupMode":"v2"}}'`)}, nil
}
