package preconditions

import (
	"context"
	"errors"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
	"github.com/clusterupdate/clusterupdate/preconditions/internal/facts"
)

// AllowUnlisted returns the check ReleasePrevious of [AtLoad] as it lets
// releases pass that do not list the current version, such as hotfixes outside the graph,
// with a note. Without Input.TargetPayload it is Unknown.
func AllowUnlisted() Check { return releasePreviousCheck(true) }

// releasePreviousCheck asks the target itself: its release-metadata may list the
// versions that it can be updated from ("previous"). The cluster-version operator never
// reads that list. It does not concern rollbacks and the same version.
func releasePreviousCheck(allowUnlisted bool) check {
	rule := Rule{
		Name: "ReleasePrevious", Kinds: []Kind{Patch, Minor, Major}, Severities: []Severity{Info, Blocking},
		Reads: []schema.GroupVersionKind{gvkOf[configv1.ClusterVersion]()}, Needs: []string{"TargetPayload"},
		Source: "release-metadata of the target, field previous",
	}
	return check{rule, func(ctx context.Context, in *Input) ([]Finding, error) {
		return releasePrevious(ctx, in, allowUnlisted)
	}}
}

func releasePrevious(ctx context.Context, in *Input, allowUnlisted bool) ([]Finding, error) {
	if in.TargetPayload == nil {
		return nil, &NoSourceError{Source: "TargetPayload"}
	}
	previous := in.TargetPayload.Previous
	target := in.targetVersion()
	note := func(format string, args ...any) ([]Finding, error) {
		return []Finding{{Severity: Info, Reason: "ReleaseApplicable", Message: fmt.Sprintf(format, args...)}}, nil
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
	cv, err := facts.ClusterVersion(ctx, in.Reader)
	if err != nil {
		return nil, err
	}
	if current == "" {
		if cv == nil {
			return nil, &NotApplicableError{Why: "the cluster has no ClusterVersion"}
		}
		current = cv.Status.Desired.Version
		if current == "" {
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
	case allowUnlisted:
		return note("release %s does not list %s among its %d previous versions; unlisted versions are allowed", target, current, len(previous))
	}
	return []Finding{{
		Severity: Blocking, Reason: "ReleaseNotApplicable",
		Message: fmt.Sprintf("release %s lists %d previous versions and %s is not among them", target, len(previous), current),
		Remedy:  "update to one of the versions that the release lists first, or, for a hotfix, set the check ReleasePrevious aside",
	}}, nil
}

// listed compares by precedence, and as text if a version does not parse.
func listed(previous []string, version string) bool {
	v := facts.VersionOrNil(version)
	return slices.ContainsFunc(previous, func(p string) bool {
		pv := facts.VersionOrNil(p)
		return p == version || pv != nil && v != nil && pv.Equal(v)
	})
}

// offered reports whether the lists of available or conditional updates have the
// release.
func offered(cv *configv1.ClusterVersion, version, image string) bool {
	return cv != nil && slices.ContainsFunc(offeredReleases(cv), func(r configv1.Release) bool {
		return r.Version == version && (image == "" || r.Image == "" || graph.SameDigest(r.Image, image))
	})
}

// releaseNewerCheck warns if the target has the version that the cluster runs but is
// another image, without being its multi-architecture payload. If an image is not known
// there is nothing to compare.
func releaseNewerCheck() check {
	return check{Rule{Name: "ReleaseNewer", Kinds: []Kind{Same}, Severities: []Severity{Warning}}, func(_ context.Context, in *Input) ([]Finding, error) {
		if in.Kind != Same {
			return nil, &NotApplicableError{Why: "the versions of the step are not known"}
		}
		if in.TargetImage == "" || in.CurrentImage == "" || graph.SameDigest(in.TargetImage, in.CurrentImage) {
			return nil, nil
		}
		return []Finding{{
			Severity: Warning, Reason: "SameVersionOtherImage",
			Message: fmt.Sprintf("release %s is the version that the cluster runs, but of another image: %s instead of %s", in.targetVersion(), in.TargetImage, in.CurrentImage),
			Remedy:  "make sure that the image is the one that you want: its version does not tell it from the current one",
		}}, nil
	}}
}

// skipsMinorsCheck warns of a step from 4.y to 5.0 that leaves out minor versions. The
// cluster-version operator lets it pass from any 4.y.
func skipsMinorsCheck() check {
	return check{Rule{Name: "SkipsMinors", Kinds: []Kind{Major}, Severities: []Severity{Warning}}, func(_ context.Context, in *Input) ([]Finding, error) {
		if in.Current == nil || in.Target == nil {
			return nil, &NotApplicableError{Why: "the versions of the step are not known"}
		}
		from := openshift.MinorOf(in.Current)
		to := openshift.MinorOf(in.Target)
		steps := from.Steps(to)
		if steps <= 1 {
			return nil, nil
		}
		return []Finding{{
			Severity: Warning, Reason: "MinorVersionsSkipped",
			Message: fmt.Sprintf("%s is %d minor versions after %s, and updates lead from one minor version to the next", to, steps, from),
			Remedy:  fmt.Sprintf("update to %s first", from.Next()[0]),
		}}, nil
	}}
}

// Require returns a function that runs the checks of the version operator on a
// cluster, [Operator], and refuses an update that they block with the decision's
// summary. It fits Preconditions of the upgrade package's Options. Errors are
// the refusal, and those of [Run].
func Require(r clusterapi.Reader) func(ctx context.Context, cv *configv1.ClusterVersion, target configv1.Release) error {
	return func(ctx context.Context, cv *configv1.ClusterVersion, target configv1.Release) error {
		in := &Input{Reader: r, Transition: NewTransition(cv, target, false, Full)}
		report, err := Run(ctx, Operator(), in, Options{})
		if err != nil {
			return err
		}
		if decision := report.Decide(Policy{}); decision.Blocked {
			return errors.New(decision.Summary)
		}
		return nil
	}
}
