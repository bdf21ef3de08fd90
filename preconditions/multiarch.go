package preconditions

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
	"github.com/clusterupdate/clusterupdate/preconditions/internal/facts"
)

const multi = configv1.ClusterVersionArchitectureMulti

// multiArchCheck returns the check MultiArch, which the documentation asks for too.
func multiArchCheck() Check {
	return NewCheck(Rule{
		Name: "MultiArch", ArchitectureChange: true, Severities: []Severity{Warning, Blocking},
		Needs: []string{"TargetPayload", "CurrentPayload"},
		Reads: []schema.GroupVersionKind{
			gvkOf[configv1.ClusterVersion](), gvkOf[configv1.Infrastructure](), gvkOf[corev1.Node](),
		},
		Source: "Migrating to a cluster with multi-architecture compute machines",
		Link:   facts.Docs + "4.18/html/updating_clusters/performing-a-cluster-update",
	}, multiArch)
}

// multiArch: a cluster goes from the payload for one architecture to the payload
// for several, with its version unchanged, and never back.
func multiArch(ctx context.Context, in *Input) ([]Finding, error) {
	cv, err := facts.ClusterVersion(ctx, in.Reader)
	if err != nil {
		return nil, err
	}
	if cv == nil {
		return nil, &NotApplicableError{Why: "the cluster has no ClusterVersion"}
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
// cluster that lists the architectures of its offers, with the image that is wanted.
func knownSingle(cv *configv1.ClusterVersion, in *Input) bool {
	return in.TargetImage != "" && slices.ContainsFunc(offeredReleases(cv), func(r configv1.Release) bool {
		return graph.SameDigest(r.Image, in.TargetImage) && r.Architecture != multi
	})
}

func toSingle(ctx context.Context, in *Input) []Finding {
	const remedy = "Ask for a release for several architectures"
	message := "A cluster with the payload for several architectures cannot go back to that of one"
	// Nodes only make it clearer: what cannot be read changes nothing.
	nodes, _ := facts.List[corev1.Node](ctx, in.Reader, clusterapi.ListOptions{})
	archs := map[string]bool{}
	var names []string
	var objects []Object
	for _, n := range nodes {
		arch := n.Labels[corev1.LabelArchStable]
		archs[arch] = true
		o := Object{GVK: gvkOf[corev1.Node](), Name: n.Name, FieldPath: "metadata.labels[" + corev1.LabelArchStable + "]", Value: arch, Note: arch}
		objects = append(objects, o)
		name := n.Name
		if arch != "" {
			name += " (" + arch + ")"
		}
		names = append(names, name)
	}
	if len(archs) < 2 {
		objects = nil
	} else {
		message += ": " + strings.Join(names, ", ")
	}
	return []Finding{{
		Severity: Blocking, Reason: "MultiToSingleArchitecture", Message: message + ". " + remedy, Remedy: remedy,
		Objects: append([]Object{clusterVersionObject("status.desired.architecture", string(multi))}, objects...),
	}}
}

func toMulti(ctx context.Context, in *Input, cv *configv1.ClusterVersion) ([]Finding, error) {
	var found []Finding
	add := func(s Severity, reason, meaning, remedy string, at Object) {
		found = append(found, Finding{Severity: s, Reason: reason, Message: meaning + ". " + remedy, Remedy: remedy, Objects: []Object{at}})
	}
	block := func(reason, meaning, remedy, field, value string) {
		add(Blocking, reason, meaning, remedy, clusterVersionObject(field, value))
	}
	current := cmp.Or(in.Current, facts.VersionOrNil(cv.Status.Desired.Version))
	target := in.Target
	if current != nil && current.LessThan(facts.VersionOrNil("4.13.0")) {
		block("MultiNotSupported", fmt.Sprintf("Release %s cannot be migrated to several architectures: 4.13.0 is the first that can", current),
			"Update to 4.13.0 or later first", "status.desired.version", current.String())
	}
	if c := openshift.FindCondition(cv.Status.Conditions, configv1.RetrievedUpdates); !facts.IsTrue(c) {
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
	infrastructure, err := facts.Infrastructure(ctx, in.Reader)
	platforms := []configv1.PlatformType{
		configv1.AWSPlatformType, configv1.AzurePlatformType, configv1.GCPPlatformType, configv1.BareMetalPlatformType,
		configv1.NonePlatformType, configv1.PowerVSPlatformType,
	}
	if p := facts.Platform(infrastructure); infrastructure != nil && !slices.Contains(platforms, p) {
		add(Warning, "MultiPlatform", fmt.Sprintf("Nodes of several architectures are not supported on platform %q", string(p)),
			"Migrate only if no node of another architecture is to be added", Object{GVK: gvkOf[configv1.Infrastructure](), Name: "cluster", FieldPath: "status.platformStatus.type", Value: string(p)})
	}
	return found, err
}
