package rules

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/internal/facts"
)

// versionOverrides: no resource of the payload is left unmanaged.
func versionOverrides(ctx context.Context, in *preconditions.Input) ([]preconditions.Finding, error) {
	cv, err := theClusterVersion(ctx, in)
	if err != nil {
		return nil, err
	}
	var objects []preconditions.Object
	for _, o := range cv.Spec.Overrides {
		if o.Unmanaged {
			at := clusterVersionObject("spec.overrides", "unmanaged")
			at.Note = o.Kind + " " + strings.TrimPrefix(o.Namespace+"/"+o.Name, "/")
			objects = append(objects, at)
		}
	}
	var found findings
	found.add(blockMinor(in.Transition), "ClusterVersionOverridesSet", "Overrides keep resources from being updated", objects,
		"Remove spec.overrides of the ClusterVersion")
	return found, nil
}

// updateInProgress: a minor update starts from a settled cluster.
func updateInProgress(ctx context.Context, in *preconditions.Input) ([]preconditions.Finding, error) {
	cv, err := theClusterVersion(ctx, in)
	if err != nil {
		return nil, err
	}
	image, version := cv.Status.Desired.Image, cv.Status.Desired.Version
	updating := facts.IsTrue(openshift.FindCondition(cv.Status.Conditions, configv1.OperatorProgressing))
	if len(cv.Status.History) > 0 {
		newest := cv.Status.History[0]
		image, version = newest.Image, newest.Version
		updating = updating || newest.State == configv1.PartialUpdate
	}
	var found findings
	if updating && !isTarget(in, image, version) {
		found.addAt(blockMinor(in.Transition), "UpdateInProgress", "An update to "+version+" is in progress", "Wait until it is complete",
			clusterVersionObject("status.history[0]", version))
	}
	return found, nil
}

// isTarget reports whether a release is the one asked for: by their images or, if one is
// not known, by their versions.
func isTarget(in *preconditions.Input, image, version string) bool {
	if image != "" && in.TargetImage != "" {
		return graph.SameDigest(image, in.TargetImage)
	}
	v := facts.VersionOrNil(version)
	return v != nil && in.Target != nil && v.Equal(in.Target)
}

// updateChannel: the channel is one that leads to the target.
func updateChannel(ctx context.Context, in *preconditions.Input) ([]preconditions.Finding, error) {
	cv, err := theClusterVersion(ctx, in)
	if err != nil {
		return nil, err
	}
	name := cv.Spec.Channel
	var found findings
	add := func(s preconditions.Severity, reason, meaning, remedy string) {
		found.addAt(s, reason, meaning, remedy, clusterVersionObject("spec.channel", name))
	}
	if name == "" {
		add(preconditions.Info, "NoChannel", "No channel is set, so no updates are retrieved", "Set one with: oc adm upgrade channel NAME")
		return found, nil
	}
	if strings.HasPrefix(name, "candidate-") {
		add(preconditions.Warning, "UnsupportedChannel", "Releases of channel "+name+" are not supported unless they are in another channel too", "Choose a fast, stable or eus channel")
	}
	if c, ok := graph.ParseChannel(name); ok && in.Target != nil && cmp.Or(cmp.Compare(c.Major, in.Target.Major()), cmp.Compare(c.Minor, in.Target.Minor())) < 0 {
		minor := openshift.MinorOf(in.Target).String()
		add(preconditions.Warning, "ChannelBehindTarget", fmt.Sprintf("Channel %s has no releases of %s", name, minor), "Choose a channel of "+minor)
	}
	if c := openshift.FindCondition(cv.Status.Conditions, configv1.RetrievedUpdates); facts.IsFalse(c) && c.Reason == "VersionNotFound" {
		add(preconditions.Warning, "VersionNotFound", fmt.Sprintf("The current version %s is not in channel %s", cv.Status.Desired.Version, name), "Choose a channel that has the current version")
	}
	return found, nil
}

// featureSet: some feature sets end minor updates for good.
func featureSet(ctx context.Context, in *preconditions.Input) ([]preconditions.Finding, error) {
	gate, err := readCluster[configv1.FeatureGate](ctx, in, "FeatureGates")
	if gate == nil {
		return nil, err // without one it is the default set
	}
	var found findings
	switch set := gate.Spec.FeatureSet; set {
	case configv1.TechPreviewNoUpgrade, configv1.DevPreviewNoUpgrade, configv1.CustomNoUpgrade:
		found.addAt(blockMinor(in.Transition), "FeatureSetNoUpgrade", fmt.Sprintf("Feature set %s prevents updates to other minor versions", set),
			"There is none: the feature set cannot be undone; install a new cluster",
			object[configv1.FeatureGate]("", "cluster", "spec.featureSet", string(set), ""))
	}
	return found, err
}
