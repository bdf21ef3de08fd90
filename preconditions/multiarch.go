package preconditions

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

const multi = configv1.ClusterVersionArchitectureMulti

func multiArchCheck() Check {
	return documented{Rule{
		Name: "MultiArch", Severities: []Severity{Warning, Blocking}, Scope: Scope{ArchitectureChange: true},
		Source: "Migrating to a cluster with multi-architecture compute machines", Link: docsPerforming,
		Reads: []schema.GroupVersionKind{gvkOf[configv1.ClusterVersion](), gvkOf[configv1.Infrastructure](), gvkOf[corev1.Node]()},
		Needs: []string{"TargetPayload", "CurrentPayload"},
	}, multiArch}
}

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
	unchanged := &NotApplicableError{Why: "the architecture of the release does not change"}
	switch {
	case from == to:
		return nil, unchanged
	case from == multi && in.TargetPayload == nil && !knownSingle(cv, in):
		return nil, fmt.Errorf("%w, which would tell whether it is for several architectures, as that of the cluster is", &NoSourceError{Source: "TargetPayload"})
	case from == multi:
		return []Finding{toSingle(ctx, in)}, nil
	case to != multi:
		return nil, unchanged
	}
	return toMulti(ctx, in, cv)
}

// knownSingle reports whether the release is one of one architecture: an offer, on a
// cluster that tells the architectures of its offers, with the image that is wanted.
func knownSingle(cv *configv1.ClusterVersion, in *Input) bool {
	releases := slices.Clone(cv.Status.AvailableUpdates)
	for _, u := range cv.Status.ConditionalUpdates {
		releases = append(releases, u.Release)
	}
	return in.TargetImage != "" && slices.ContainsFunc(releases, func(r configv1.Release) bool {
		return r.Image == in.TargetImage && r.Architecture != multi
	})
}

func toSingle(ctx context.Context, in *Input) Finding {
	// Nodes only make it clearer: what cannot be read changes nothing.
	nodes, _ := list[corev1.Node](ctx, in, clusterapi.ListOptions{})
	count := map[string]int{}
	for _, n := range nodes {
		count[n.Labels[corev1.LabelArchStable]]++
	}
	var objects []Object
	for _, n := range nodes {
		if arch := n.Labels[corev1.LabelArchStable]; len(count) > 1 {
			objects = append(objects, nodeObject(n, "metadata.labels["+corev1.LabelArchStable+"]", arch, arch))
		}
	}
	sortObjects(objects)
	f := newFinding(Blocking, "MultiToSingleArchitecture", "A cluster with the payload for several architectures cannot go back to that of one", objects,
		"Ask for a release for several architectures")
	f.Objects = append(clusterVersionObject("status.desired.architecture", string(multi)), f.Objects...)
	return f
}

func toMulti(ctx context.Context, in *Input, cv *configv1.ClusterVersion) ([]Finding, error) {
	var findings []Finding
	block := func(reason, meaning, remedy, field, value string) {
		f := newFinding(Blocking, reason, meaning, nil, remedy)
		f.Objects = clusterVersionObject(field, value)
		findings = append(findings, f)
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
		f := newFinding(Warning, "MultiPlatform", fmt.Sprintf("Nodes of several architectures are not supported on platform %q", string(p)), nil,
			"Migrate only if no node of another architecture is to be added")
		f.Objects = []Object{infrastructureObject("status.platformStatus.type", string(p))}
		findings = append(findings, f)
	}
	return findings, err
}
