package preconditions

import (
	"context"
	"fmt"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/graph"
)

var configMapKind = corev1.SchemeGroupVersion.WithKind("ConfigMap")

func versionOverridesCheck() Check {
	return documented{Rule{
		Name: "VersionOverrides", Severities: []Severity{Warning, Blocking},
		Source: "Config APIs, ClusterVersion, spec.overrides", Link: docs418 + "config_apis/clusterversion-config-openshift-io-v1",
		Reads: []schema.GroupVersionKind{gvkOf[configv1.ClusterVersion]()},
	}, versionOverrides}
}

// versionOverrides: no resource of the payload is left unmanaged.
func versionOverrides(ctx context.Context, in *Input) ([]Finding, error) {
	cv, err := theClusterVersion(ctx, in)
	if err != nil {
		return nil, err
	}
	var objects []Object
	for _, o := range cv.Spec.Overrides {
		if o.Unmanaged {
			name := o.Name
			if o.Namespace != "" {
				name = o.Namespace + "/" + name
			}
			object := clusterVersionObject("spec.overrides", "unmanaged")[0]
			object.Note = o.Kind + " " + name
			objects = append(objects, object)
		}
	}
	if len(objects) == 0 {
		return nil, nil
	}
	sortObjects(objects)
	return []Finding{newFinding(blockMinor(in.Transition), "ClusterVersionOverridesSet", "Overrides keep resources from being updated", objects,
		"Remove spec.overrides of the ClusterVersion")}, nil
}

func updateInProgressCheck() Check {
	return documented{Rule{
		Name: "UpdateInProgress", Severities: []Severity{Warning, Blocking},
		Source: "Understanding cluster Operator condition types", Link: docsUnderstanding,
		Reads: []schema.GroupVersionKind{gvkOf[configv1.ClusterVersion]()},
	}, updateInProgress}
}

// updateInProgress: a minor update starts from a settled cluster.
func updateInProgress(ctx context.Context, in *Input) ([]Finding, error) {
	cv, err := theClusterVersion(ctx, in)
	if err != nil {
		return nil, err
	}
	image, version := cv.Status.Desired.Image, cv.Status.Desired.Version
	updating := isTrue(condition(cv.Status.Conditions, configv1.OperatorProgressing))
	if len(cv.Status.History) > 0 {
		newest := cv.Status.History[0]
		image, version = newest.Image, newest.Version
		updating = updating || newest.State == configv1.PartialUpdate
	}
	if !updating || image == in.TargetImage && image != "" {
		return nil, nil
	}
	f := newFinding(blockMinor(in.Transition), "UpdateInProgress", "An update to "+version+" is in progress", nil,
		"Wait until it is complete")
	f.Objects = clusterVersionObject("status.history[0]", version)
	return []Finding{f}, nil
}

func updateChannelCheck() Check {
	return documented{Rule{
		Name: "Channel", Severities: []Severity{Info, Warning},
		Source: "Understanding update channels and releases", Link: docsUnderstanding,
		Reads: []schema.GroupVersionKind{gvkOf[configv1.ClusterVersion]()},
	}, updateChannel}
}

// updateChannel: the channel is one that leads to the target.
func updateChannel(ctx context.Context, in *Input) ([]Finding, error) {
	cv, err := theClusterVersion(ctx, in)
	if err != nil {
		return nil, err
	}
	name := cv.Spec.Channel
	var findings []Finding
	add := func(s Severity, reason, meaning, remedy string) {
		f := newFinding(s, reason, meaning, nil, remedy)
		f.Objects = clusterVersionObject("spec.channel", name)
		findings = append(findings, f)
	}
	if name == "" {
		add(Info, "NoChannel", "No channel is set, so no updates are retrieved", "Set one with: oc adm upgrade channel NAME")
		return findings, nil
	}
	if strings.HasPrefix(name, "candidate-") {
		add(Warning, "UnsupportedChannel", "Releases of channel "+name+" are not supported unless they are in another channel too", "Choose a fast, stable or eus channel")
	}
	if c, ok := graph.ParseChannel(name); ok && in.Target != nil &&
		(c.Major < in.Target.Major() || c.Major == in.Target.Major() && c.Minor < in.Target.Minor()) {
		add(Warning, "ChannelBehindTarget", fmt.Sprintf("Channel %s has no releases of %d.%d", name, in.Target.Major(), in.Target.Minor()),
			fmt.Sprintf("Choose a channel of %d.%d", in.Target.Major(), in.Target.Minor()))
	}
	if c := condition(cv.Status.Conditions, configv1.RetrievedUpdates); c != nil && c.Status == configv1.ConditionFalse && c.Reason == "VersionNotFound" {
		add(Warning, "VersionNotFound", fmt.Sprintf("The current version %s is not in channel %s", cv.Status.Desired.Version, name), "Choose a channel that has the current version")
	}
	return findings, nil
}

func featureSetCheck() Check {
	return documented{Rule{
		Name: "FeatureSet", Severities: []Severity{Warning, Blocking},
		Source: "Nodes, Enabling features using feature gates", Link: docs418 + "nodes/working-with-clusters",
		Reads: []schema.GroupVersionKind{gvkOf[configv1.FeatureGate]()},
	}, featureSet}
}

// featureSet: some feature sets end minor updates for good.
func featureSet(ctx context.Context, in *Input) ([]Finding, error) {
	gate, err := clusterapi.Read[configv1.FeatureGate](ctx, in.Reader, clusterapi.Key("", "cluster"))
	if apierrors.IsNotFound(err) {
		return nil, nil // the default set
	}
	if err != nil {
		return nil, optionalAPI(err, "FeatureGates")
	}
	switch set := gate.Spec.FeatureSet; set {
	case configv1.TechPreviewNoUpgrade, configv1.DevPreviewNoUpgrade, configv1.CustomNoUpgrade:
		f := newFinding(blockMinor(in.Transition), "FeatureSetNoUpgrade", fmt.Sprintf("Feature set %s prevents updates to other minor versions", set), nil,
			"There is none: the feature set cannot be undone; install a new cluster")
		f.Objects = []Object{{GVK: configv1.GroupVersion.WithKind("FeatureGate"), Name: "cluster", FieldPath: "spec.featureSet", Value: string(set)}}
		return []Finding{f}, nil
	}
	return nil, nil
}
