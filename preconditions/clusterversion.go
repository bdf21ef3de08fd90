package preconditions

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/graph"
)

// clusterVersionName is the name of the one ClusterVersion that counts.
const clusterVersionName = "version"

// getClusterVersion returns nil if there is none, or no such kind. The result must not
// be changed.
func getClusterVersion(ctx context.Context, r clusterapi.Reader) (*configv1.ClusterVersion, error) {
	return readOrNil[configv1.ClusterVersion](ctx, r, "", clusterVersionName)
}

// theClusterVersion fails as not applicable if there is none.
func theClusterVersion(ctx context.Context, in *Input) (*configv1.ClusterVersion, error) {
	cv, err := getClusterVersion(ctx, in.Reader)
	if err == nil && cv == nil {
		err = &NotApplicableError{Why: "the cluster has no ClusterVersion"}
	}
	return cv, err
}

func clusterVersionObject(field, value string) Object {
	return object[configv1.ClusterVersion]("", clusterVersionName, field, value, "")
}

// condition returns the condition of a type, or nil.
func condition(conditions []configv1.ClusterOperatorStatusCondition, t configv1.ClusterStatusConditionType) *configv1.ClusterOperatorStatusCondition {
	for i := range conditions {
		if conditions[i].Type == t {
			return &conditions[i]
		}
	}
	return nil
}

func isTrue(c *configv1.ClusterOperatorStatusCondition) bool {
	return c != nil && c.Status == configv1.ConditionTrue
}

func isFalse(c *configv1.ClusterOperatorStatusCondition) bool {
	return c != nil && c.Status == configv1.ConditionFalse
}

func hasUnmanagedOverride(cv *configv1.ClusterVersion) bool {
	return slices.ContainsFunc(cv.Spec.Overrides, func(o configv1.ComponentOverride) bool { return o.Unmanaged })
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
	var found findings
	if updating && (image != in.TargetImage || image == "") {
		found.addAt(blockMinor(in.Transition), "UpdateInProgress", "An update to "+version+" is in progress", "Wait until it is complete",
			clusterVersionObject("status.history[0]", version))
	}
	return found, nil
}

// updateChannel: the channel is one that leads to the target.
func updateChannel(ctx context.Context, in *Input) ([]Finding, error) {
	cv, err := theClusterVersion(ctx, in)
	if err != nil {
		return nil, err
	}
	name := cv.Spec.Channel
	var found findings
	add := func(s Severity, reason, meaning, remedy string) {
		found.addAt(s, reason, meaning, remedy, clusterVersionObject("spec.channel", name))
	}
	if name == "" {
		add(Info, "NoChannel", "No channel is set, so no updates are retrieved", "Set one with: oc adm upgrade channel NAME")
		return found, nil
	}
	if strings.HasPrefix(name, "candidate-") {
		add(Warning, "UnsupportedChannel", "Releases of channel "+name+" are not supported unless they are in another channel too", "Choose a fast, stable or eus channel")
	}
	if c, ok := graph.ParseChannel(name); ok && in.Target != nil && cmp.Or(cmp.Compare(c.Major, in.Target.Major()), cmp.Compare(c.Minor, in.Target.Minor())) < 0 {
		minor := minorText(in.Target)
		add(Warning, "ChannelBehindTarget", fmt.Sprintf("Channel %s has no releases of %s", name, minor), "Choose a channel of "+minor)
	}
	if c := condition(cv.Status.Conditions, configv1.RetrievedUpdates); isFalse(c) && c.Reason == "VersionNotFound" {
		add(Warning, "VersionNotFound", fmt.Sprintf("The current version %s is not in channel %s", cv.Status.Desired.Version, name), "Choose a channel that has the current version")
	}
	return found, nil
}

// featureSet: some feature sets end minor updates for good.
func featureSet(ctx context.Context, in *Input) ([]Finding, error) {
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

const multi = configv1.ClusterVersionArchitectureMulti

// multiArch: a cluster goes from the payload of one architecture to that of
// several, with its version as it is, and never back.
func multiArch(ctx context.Context, in *Input) ([]Finding, error) {
	cv, err := theClusterVersion(ctx, in)
	if err != nil {
		return nil, err
	}
	from := cmp.Or(in.CurrentArchitecture, cv.Status.Desired.Architecture)
	if from == "" && in.CurrentPayload != nil { // clusters can leave it out
		from = in.CurrentPayload.Release.Architecture
	}
	to := in.TargetArchitecture
	if in.TargetPayload != nil {
		to = in.TargetPayload.Release.Architecture
	}
	switch {
	case from != to && to == multi:
		return toMulti(ctx, in, cv)
	case from == to || from != multi:
		return nil, &NotApplicableError{Why: "the architecture of the release does not change"}
	case in.TargetPayload == nil && !knownSingle(cv, in):
		return nil, fmt.Errorf("%w, which would tell whether it is for several architectures, as that of the cluster is", &NoSourceError{Source: "TargetPayload"})
	}
	return toSingle(ctx, in), nil
}

// offeredReleases are those of both lists of updates.
func offeredReleases(cv *configv1.ClusterVersion) []configv1.Release {
	releases := slices.Clone(cv.Status.AvailableUpdates)
	for _, u := range cv.Status.ConditionalUpdates {
		releases = append(releases, u.Release)
	}
	return releases
}

// knownSingle reports whether the release is one of one architecture: an offer, on a
// cluster that tells the architectures of its offers, with the image that is wanted.
func knownSingle(cv *configv1.ClusterVersion, in *Input) bool {
	return in.TargetImage != "" && slices.ContainsFunc(offeredReleases(cv), func(r configv1.Release) bool {
		return r.Image == in.TargetImage && r.Architecture != multi
	})
}

func toSingle(ctx context.Context, in *Input) []Finding {
	// Nodes only make it clearer: what cannot be read changes nothing.
	nodes, _ := list[corev1.Node](ctx, in, clusterapi.ListOptions{})
	archs := map[string]bool{}
	var objects []Object
	for _, n := range nodes {
		arch := n.Labels[corev1.LabelArchStable]
		archs[arch] = true
		objects = append(objects, nodeObject(n, "metadata.labels["+corev1.LabelArchStable+"]", arch, arch))
	}
	if len(archs) < 2 {
		objects = nil
	}
	sortObjects(objects)
	f := newFinding(Blocking, "MultiToSingleArchitecture", "A cluster with the payload for several architectures cannot go back to that of one", objects,
		"Ask for a release for several architectures")
	f.Objects = append([]Object{clusterVersionObject("status.desired.architecture", string(multi))}, f.Objects...)
	return []Finding{f}
}

func toMulti(ctx context.Context, in *Input, cv *configv1.ClusterVersion) ([]Finding, error) {
	var found findings
	block := func(reason, meaning, remedy, field, value string) {
		found.addAt(Blocking, reason, meaning, remedy, clusterVersionObject(field, value))
	}
	current := in.Current
	if current == nil {
		current = versionOrNil(cv.Status.Desired.Version)
	}
	target := in.Target
	if target == nil {
		target = versionOrNil(in.targetVersion())
	}
	if current != nil && current.LessThan(versionOrNil("4.13.0")) {
		block("MultiNotSupported", fmt.Sprintf("Release %s cannot be migrated to several architectures: 4.13.0 is the first that can", current),
			"Update to 4.13.0 or later first", "status.desired.version", current.String())
	}
	if c := condition(cv.Status.Conditions, configv1.RetrievedUpdates); !isTrue(c) {
		status := "missing"
		if c != nil {
			status = string(c.Status)
		}
		block("MultiUpdatesNotRetrieved", "The update service has to be reached for the migration, and the condition RetrievedUpdates is "+status,
			"Set a channel, and see to it that the update service can be reached", "status.conditions", "RetrievedUpdates="+status)
	}
	if current != nil && target != nil && !current.Equal(target) {
		block("MultiVersionChange", fmt.Sprintf("A migration to several architectures keeps the version: that to %s would be left out", target),
			"Migrate at "+current.String()+" first, then update", "spec.desiredUpdate.version", target.String())
	}
	infrastructure, err := readInfrastructure(ctx, in)
	platforms := []configv1.PlatformType{
		configv1.AWSPlatformType, configv1.AzurePlatformType, configv1.GCPPlatformType, configv1.BareMetalPlatformType,
		configv1.NonePlatformType, configv1.PowerVSPlatformType,
	}
	if p := platformOf(infrastructure); infrastructure != nil && !slices.Contains(platforms, p) {
		found.addAt(Warning, "MultiPlatform", fmt.Sprintf("Nodes of several architectures are not supported on platform %q", string(p)),
			"Migrate only if no node of another architecture is to be added", infrastructureObject("status.platformStatus.type", string(p)))
	}
	return found, err
}
