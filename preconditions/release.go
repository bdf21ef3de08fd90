package preconditions

import (
	"context"
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
)

// ReleasePrevious asks the target itself: its release-metadata may list the
// versions that it can be updated from ("previous"). The cluster-version
// operator never reads that list.
type ReleasePrevious struct {
	// AllowUnlisted lets releases pass that do not list the current version,
	// such as hotfixes outside the graph, with a note.
	AllowUnlisted bool
}

// Name returns ReleasePrevious.
func (ReleasePrevious) Name() string { return "ReleasePrevious" }

// Applies is false for rollbacks and for the same version.
func (ReleasePrevious) Applies(t Transition) bool {
	return t.Kind == Patch || t.Kind == Minor || t.Kind == Major || t.Kind == ""
}

// Run judges. Without a target payload the error is a [*NoSourceError].
func (c ReleasePrevious) Run(ctx context.Context, in *Input) ([]Finding, error) {
	if in.TargetPayload == nil {
		return nil, &NoSourceError{Source: "TargetPayload"}
	}
	previous := in.TargetPayload.Previous
	target := in.targetVersion()
	note := func(format string, args ...any) ([]Finding, error) {
		return []Finding{{
			Severity: Info, Reason: "ReleaseApplicable", Message: fmt.Sprintf(format, args...), Source: previousSource,
		}}, nil
	}
	if len(previous) == 0 {
		return note("release %s lists no previous versions", target)
	}
	current := in.currentText
	if current == "" && in.Current != nil {
		current = in.Current.String()
	}
	if listed(previous, current) {
		return nil, nil
	}
	cv, err := getClusterVersion(ctx, in.Reader)
	if err != nil {
		return nil, err
	}
	if current == "" {
		if cv == nil {
			return nil, &NotApplicableError{Why: "the cluster has no ClusterVersion"}
		}
		if current = cv.Status.Desired.Version; current == "" {
			return nil, errors.New("the cluster does not say what version it runs")
		}
		if listed(previous, current) {
			return nil, nil
		}
	}
	completed := in.Completed
	switch {
	case in.Kind == Patch && completed != nil && in.Current != nil && !completed.Equal(in.Current) && listed(previous, completed.String()):
		return note("release %s lists %s, the version that the update in progress started from, but not %s", target, completed, current)
	case offered(cv, target, in.TargetImage):
		return note("release %s does not list %s among its %d previous versions, but the update service offers it", target, current, len(previous))
	case c.AllowUnlisted:
		return note("release %s does not list %s among its %d previous versions; unlisted versions are allowed", target, current, len(previous))
	}
	return []Finding{{
		Severity: Blocking, Reason: "ReleaseNotApplicable",
		Message: fmt.Sprintf("release %s lists %d previous versions and %s is not among them", target, len(previous), current),
		Remedy:  "update to one of the versions that the release lists first, or set AllowUnlisted for a hotfix",
		Source:  previousSource,
	}}, nil
}

const previousSource = "release-metadata of the target, field previous"

// listed compares by precedence, and as text where a version does not parse.
func listed(previous []string, version string) bool {
	v := versionOrNil(version)
	for _, p := range previous {
		if p == version {
			return true
		}
		if pv := versionOrNil(p); pv != nil && v != nil && pv.Equal(v) {
			return true
		}
	}
	return false
}

// offered says whether the lists of available or conditional updates have the
// release.
func offered(cv *configv1.ClusterVersion, version, image string) bool {
	if cv == nil {
		return false
	}
	is := func(r configv1.Release) bool {
		return r.Version == version && (image == "" || r.Image == "" || r.Image == image)
	}
	for _, r := range cv.Status.AvailableUpdates {
		if is(r) {
			return true
		}
	}
	for _, u := range cv.Status.ConditionalUpdates {
		if is(u.Release) {
			return true
		}
	}
	return false
}

// ReleaseNewer warns where the target has the version that the cluster runs but
// is another image, without being its multi-architecture payload.
type ReleaseNewer struct{}

// Name returns ReleaseNewer.
func (ReleaseNewer) Name() string { return "ReleaseNewer" }

// Applies is true for the same version.
func (ReleaseNewer) Applies(t Transition) bool { return t.Kind == Same }

// Run judges and never returns an error. Where an image is not known there is
// nothing to compare.
func (ReleaseNewer) Run(_ context.Context, in *Input) ([]Finding, error) {
	if in.TargetImage == "" || in.CurrentImage == "" || in.TargetImage == in.CurrentImage {
		return nil, nil
	}
	return []Finding{{
		Severity: Warning, Reason: "SameVersionOtherImage",
		Message: fmt.Sprintf("release %s is the version that the cluster runs, but of another image: %s instead of %s", in.targetVersion(), in.TargetImage, in.CurrentImage),
		Remedy:  "make sure that the image is the one that you want: its version does not tell it from the current one",
	}}, nil
}
