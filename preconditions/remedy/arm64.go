package remedy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	machinev1 "github.com/openshift/api/machine/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/machinehealth"
)

// ControlPlaneArm64 moves a control plane on AWS from x86 to arm64 machines.
type ControlPlaneArm64 struct {
	// InstanceType is one with an arm64 processor, such as m6g.xlarge; required.
	InstanceType string
	// AMI is the boot image. Empty: the one for the cluster's region in the
	// ConfigMap coreos-bootimages.
	AMI string
}

// The steps of a [ControlPlaneArm64], in their order.
const (
	stepPayload      = "Payload"      // the cluster runs the release for several architectures
	stepImageStreams = "ImageStreams" // they are imported for all of them
	stepBootImage    = "BootImage"    // the boot image is known
	stepMachineSet   = "MachineSet"   // the control plane machine set has it, and the instance type
	stepNodes        = "Nodes"        // all control plane nodes are arm64
)

// Arm64Step is one step. It is plain data.
type Arm64Step struct {
	// ID is Payload, ImageStreams, BootImage, MachineSet or Nodes.
	ID, Title string
	Done      bool
	// Manual: an administrator has to do it, or it comes by waiting.
	Manual bool
	// Command does it by hand.
	Command string
	// State is what was found.
	State string
}

// Arm64Plan is what is done and what is left. It is plain data.
type Arm64Plan struct {
	Steps []Arm64Step
	// ami is what the machine set is to have.
	ami string
}

// Next is the first step that is left; nil where all are done. What cannot be seen in
// the cluster, ImageStreams, is never done and holds nothing up.
func (p *Arm64Plan) Next() *Arm64Step {
	for i := range p.Steps {
		if s := &p.Steps[i]; !s.Done && s.ID != stepImageStreams {
			return s
		}
	}
	return nil
}

var machineSetKind = schema.GroupVersionKind{Group: "machine.openshift.io", Version: "v1", Kind: "ControlPlaneMachineSet"}

// Plan reads how far the cluster is; it writes nothing. Errors are those of reading, of
// an instance type that is not arm64, and of a cluster that is not on AWS or has no
// control plane machine set.
func (a ControlPlaneArm64) Plan(ctx context.Context, r clusterapi.Reader) (*Arm64Plan, error) {
	if err := a.validate(); err != nil {
		return nil, err
	}
	p, err := a.plan(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("control plane on arm64: %w", err)
	}
	return p, nil
}

func (a ControlPlaneArm64) plan(ctx context.Context, r clusterapi.Reader) (*Arm64Plan, error) {
	infrastructure, err := clusterapi.Read[configv1.Infrastructure](ctx, r, clusterapi.Key("", "cluster"))
	if err != nil {
		return nil, err
	}
	s := infrastructure.Status.PlatformStatus
	if s == nil || s.Type != configv1.AWSPlatformType || s.AWS == nil {
		return nil, errors.New("the cluster is not on AWS")
	}
	cv, err := clusterapi.Read[configv1.ClusterVersion](ctx, r, clusterapi.Key("", "version"))
	if err != nil {
		return nil, err
	}
	nodes, err := clusterapi.ReadAll[corev1.Node](ctx, r, clusterapi.ListOptions{})
	if err != nil {
		return nil, err
	}
	set, err := clusterapi.GetShared(ctx, r, machineSetKind, clusterapi.Key(machinehealth.Namespace, "cluster"))
	if err != nil {
		return nil, err
	}
	image, err := a.bootImage(ctx, r, s.AWS.Region)
	if err != nil {
		return nil, err
	}
	field := func(path ...string) string {
		value, _, _ := unstructured.NestedString(set.Unstructured().Object, path...)
		return value
	}
	instance, ami := field(append(slices.Clone(providerSpec), "instanceType")...), field(append(slices.Clone(providerSpec), "ami", "id")...)
	migrated := cv.Status.Desired.Architecture == multi && len(cv.Status.History) > 0 && cv.Status.History[0].State == configv1.CompletedUpdate
	changed := instance == a.InstanceType && ami == image && image != ""
	arm, total := controlPlaneNodes(nodes)
	return &Arm64Plan{ami: image, Steps: []Arm64Step{
		{ID: stepPayload, Title: "The cluster runs the release for several architectures", Done: migrated, State: "architecture " + text(string(cv.Status.Desired.Architecture)), Command: "oc adm upgrade --to-multi-arch"},
		{ID: stepImageStreams, Title: "Image streams are imported for all architectures", Manual: true, State: "not visible in the cluster", Command: "oc import-image NAME -n NAMESPACE --import-mode=PreserveOriginal"},
		{ID: stepBootImage, Title: "The arm64 boot image is known", Done: image != "", Manual: image == "", State: "region " + s.AWS.Region + ", image " + text(image),
			Command: "oc -n openshift-machine-config-operator get configmap coreos-bootimages -o jsonpath='{.data.stream}'"},
		{ID: stepMachineSet, Title: "The control plane machine set asks for arm64 machines", Done: changed, State: fmt.Sprintf("instance type %s, image %s, state %s", text(instance), text(ami), text(field("spec", "state"))),
			Command: "oc -n openshift-machine-api edit controlplanemachineset cluster"},
		{ID: stepNodes, Title: "All nodes of the control plane are arm64", Done: total > 0 && arm == total, Manual: true, State: fmt.Sprintf("%d of %d", arm, total), Command: "oc get nodes -o wide"},
	}}, nil
}

// controlPlaneNodes counts the nodes of the control plane, and those that are arm64.
func controlPlaneNodes(nodes []*corev1.Node) (arm, total int) {
	for _, n := range nodes {
		_, master := n.Labels["node-role.kubernetes.io/master"]
		_, controlPlane := n.Labels["node-role.kubernetes.io/control-plane"]
		if !master && !controlPlane {
			continue
		}
		total++
		if n.Labels[corev1.LabelArchStable] == "arm64" {
			arm++
		}
	}
	return arm, total
}

func text(s string) string { return cmp.Or(s, "none") }

// providerSpec is where a control plane machine set has the machine's specification.
var providerSpec = []string{"spec", "template", "machines_v1beta1_machine_openshift_io", "spec", "providerSpec", "value"}

// validate refuses instance types that do not have an arm64 processor: their family
// has a g after its generation, or is a1.
func (a ControlPlaneArm64) validate() error {
	if regexp.MustCompile(`^(a1|[a-z]+[0-9]+g[a-z]*(-[a-z0-9]+)?|x2gd|im4gn|is4gen)\.[a-z0-9-]+$`).MatchString(a.InstanceType) {
		return nil
	}
	return fmt.Errorf("control plane on arm64: %q is not an instance type with an arm64 processor, such as m6g.xlarge", a.InstanceType)
}

// bootImage is the image of the region; empty where the ConfigMap has none.
func (a ControlPlaneArm64) bootImage(ctx context.Context, r clusterapi.Reader, region string) (string, error) {
	if a.AMI != "" {
		return a.AMI, nil
	}
	cm, err := clusterapi.Read[corev1.ConfigMap](ctx, r, clusterapi.Key("openshift-machine-config-operator", "coreos-bootimages"))
	if clusterapi.IsMissing(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var stream struct {
		Architectures map[string]struct {
			Images struct {
				AWS struct {
					Regions map[string]struct {
						Image string `json:"image"`
					} `json:"regions"`
				} `json:"aws"`
			} `json:"images"`
		} `json:"architectures"`
	}
	if err := json.Unmarshal([]byte(cm.Data["stream"]), &stream); err != nil {
		return "", fmt.Errorf("ConfigMap coreos-bootimages, stream: %w", err)
	}
	return stream.Architectures["aarch64"].Images.AWS.Regions[region].Image, nil
}

// Step carries out the next step, if the cluster's API can, and returns the plan as it
// is then: an administrator, or time, does the others. Errors are those of Plan, of
// [MultiArch.Start], and of writing.
func (a ControlPlaneArm64) Step(ctx context.Context, api clusterapi.ClusterAPI) (*Arm64Plan, error) {
	p, err := a.Plan(ctx, api)
	if err != nil {
		return nil, err
	}
	next := p.Next()
	switch {
	case next == nil || next.Manual:
		return p, nil
	case next.ID == stepPayload:
		_, err = MultiArch{}.Start(ctx, api)
	case next.ID == stepMachineSet:
		err = a.change(ctx, api, p.ami)
	}
	if err != nil {
		return p, err
	}
	return a.Plan(ctx, api)
}

// change writes instance type and image.
func (a ControlPlaneArm64) change(ctx context.Context, api clusterapi.ClusterAPI, ami string) error {
	_, err := clusterapi.Modify(ctx, api, clusterapi.Key(machinehealth.Namespace, "cluster"), clusterapi.ModifyOptions{}, func(set *machinev1.ControlPlaneMachineSet) error {
		machine := set.Spec.Template.OpenShiftMachineV1Beta1Machine
		if machine == nil || machine.Spec.ProviderSpec.Value == nil {
			return errors.New("it has no specification of machines")
		}
		var spec map[string]any
		if err := json.Unmarshal(machine.Spec.ProviderSpec.Value.Raw, &spec); err != nil {
			return fmt.Errorf("its providerSpec: %w", err)
		}
		spec["instanceType"] = a.InstanceType
		spec["ami"] = map[string]any{"id": ami}
		raw, err := json.Marshal(spec)
		machine.Spec.ProviderSpec.Value.Raw = raw
		return err
	})
	return wrap("ControlPlaneMachineSet cluster", err)
}
