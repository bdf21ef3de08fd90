package preflight

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/Masterminds/semver/v3"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/rules"
)

// Options are the options of [Run] and [Submit]. The zero
// value works: all checks run on what the cluster itself has. It is plain data.
type Options struct {
	// Checks to run. Nil: [rules.Default].
	Checks []preconditions.Check
	// Input is what checks judge by besides the cluster: payloads, alerts, backups and
	// so on. Its Reader and Transition are set by the function. A zero Now means the
	// cluster's time ([clusterapi.TimeOf]), or else the real one.
	Input preconditions.Input
	// Payloads supplies the payloads that Input lacks, where their images are
	// known. Nil: checks that need them are Unknown.
	Payloads manifest.PayloadSource
	// Profile is the cluster profile; empty: self-managed-high-availability.
	Profile string
	// Plan describes how the pools follow the control plane, and PlanTarget at which
	// version that ends, which may be more steps away than this one. Nil: not known.
	Plan       preconditions.Plan
	PlanTarget *semver.Version
	// Policy decides what blocks.
	Policy preconditions.Policy
	// Run limits the run.
	Run preconditions.Options
}

// Run runs checks on the step from what a cluster runs to a release, which may be
// given by its version or its image alone: the cluster's lists of updates and its
// history complete it. It writes nothing, and can be called concurrently. Errors are
// those of reading the ClusterVersion, of the payloads, which must be of the
// release, and of [preconditions.Run], with a report if that has one.
func Run(ctx context.Context, r clusterapi.Reader, target configv1.Release, o Options) (*preconditions.Report, error) {
	cv, err := clusterapi.Read[configv1.ClusterVersion](ctx, r, clusterapi.Key("", "version"))
	if err != nil {
		return nil, fmt.Errorf("reading the ClusterVersion: %w", err)
	}
	return o.run(ctx, r, cv, target, false)
}

// run runs the checks on the step from what cv is at to target.
func (o *Options) run(
	ctx context.Context, r clusterapi.Reader, cv *configv1.ClusterVersion, target configv1.Release, force bool,
) (*preconditions.Report, error) {
	// If that cannot be read, the checks that need it report so.
	if err := clusterversion.RefuseHosted(ctx, r); errors.Is(err, clusterversion.ErrHostedControlPlane) {
		return nil, err
	}
	target = completeRelease(cv, target)
	in := o.Input
	in.Reader = r
	if in.Now.IsZero() {
		in.Now = clusterapi.TimeOf(r)
	}
	if in.Now.IsZero() {
		in.Now = clock.RealClock{}.Now()
	}
	var err error
	in.TargetPayload, err = o.payload(ctx, r, cv, in.TargetPayload, target)
	if err != nil {
		return nil, err
	}
	in.CurrentPayload, err = o.payload(ctx, r, cv, in.CurrentPayload, cv.Status.Desired)
	if err != nil {
		return nil, err
	}
	if p := in.TargetPayload; p != nil {
		if want := target.Version; want != "" && p.Release.Version != "" && p.Release.Version != want {
			return nil, fmt.Errorf("the payload is of release %s, not of %s", p.Release.Version, want)
		}
		target.Version = cmp.Or(p.Release.Version, target.Version)
		target.Architecture = cmp.Or(target.Architecture, p.Release.Architecture)
	}
	in.Transition = preconditions.NewTransition(cv, target, force, o.Plan)
	in.Transition.PlanTarget = o.PlanTarget
	checks := o.Checks
	if checks == nil {
		checks = rules.Default(rules.Options{})
	}
	return preconditions.Run(ctx, checks, &in, o.Run)
}

// completeRelease fills in what the cluster knows of a release.
func completeRelease(cv *configv1.ClusterVersion, target configv1.Release) configv1.Release {
	known := []configv1.Release{cv.Status.Desired}
	known = append(known, cv.Status.AvailableUpdates...)
	for _, u := range cv.Status.ConditionalUpdates {
		known = append(known, u.Release)
	}
	for _, h := range cv.Status.History {
		known = append(known, configv1.Release{Version: h.Version, Image: h.Image})
	}
	multi := target.Architecture != ""
	for _, k := range known {
		sameImage := target.Image != "" && graph.SameDigest(k.Image, target.Image)
		sameVersion := target.Image == "" && k.Version == target.Version && (!multi || k.Architecture == target.Architecture)
		if !sameImage && !sameVersion {
			continue
		}
		target.Version = cmp.Or(target.Version, k.Version)
		target.Image = cmp.Or(target.Image, k.Image)
		target.Architecture = cmp.Or(target.Architecture, k.Architecture)
	}
	return target
}

// payload loads the payload of a release, unless there is one.
func (o *Options) payload(
	ctx context.Context, r clusterapi.Reader, cv *configv1.ClusterVersion, have *manifest.Payload, release configv1.Release,
) (*manifest.Payload, error) {
	if have != nil || release.Image == "" || o.Payloads == nil {
		return have, nil
	}
	featureSet, gates, err := manifest.ReadGates(ctx, r, release.Version, cv.Status.Desired.Version)
	if err != nil && !errors.Is(err, clusterapi.ErrNotCollected) {
		return nil, err
	}
	fsys, err := o.Payloads.Payload(ctx, release)
	if err != nil {
		return nil, fmt.Errorf("the payload of %s: %w", release.Image, err)
	}
	filter := manifest.DefaultFilter()
	filter.FeatureSet, filter.Gates = &featureSet, gates
	if o.Profile != "" {
		filter.Profile = &o.Profile
	}
	p, err := manifest.Load(ctx, fsys, manifest.LoadOptions{Image: release.Image, Filter: filter})
	if err != nil {
		return nil, fmt.Errorf("the payload of %s: %w", release.Image, err)
	}
	return p, nil
}

// Submit is [clusterversion.Submit] for requests of an update or a rollback that are
// carried out only if checks allow it: all of them run before spec.desiredUpdate is
// written, on what would be written there. The report is nil for a request that needs no
// checks, because it asks for nothing new. If the ClusterVersion changes meanwhile, it is
// decided again; checks run again only for another target.
//
// The error is from clusterversion.Submit or [Run], or a [*clusterversion.RefusedError]
// with the reason clusterversion.RefusedPreconditions and the decision's summary. It can
// be called concurrently.
func Submit(
	ctx context.Context, api clusterapi.ReadWriter, r clusterversion.Request, o Options,
) (clusterversion.Answer, *preconditions.Report, error) {
	var (
		report  *preconditions.Report
		checked configv1.Update
	)
	out, err := clusterversion.SubmitIf(ctx, api, r, func(cv, edited *configv1.ClusterVersion) error {
		want := edited.Spec.DesiredUpdate
		if !asksForUpdate(cv, want) {
			report = nil
			return nil
		}
		if report == nil || !sameTarget(checked, *want) {
			target := configv1.Release{Version: want.Version, Image: want.Image, Architecture: want.Architecture}
			var err error
			report, err = o.run(ctx, api, cv, target, want.Force)
			if err != nil {
				return err
			}
			checked = *want
		}
		if decision := report.Decide(o.Policy); decision.Blocked {
			return &clusterversion.RefusedError{Reason: clusterversion.RefusedPreconditions, Message: decision.Summary}
		}
		return nil
	})
	return out, report, err
}

// asksForUpdate reports whether a desired update asks for something that the
// cluster is not at.
func asksForUpdate(cv *configv1.ClusterVersion, want *configv1.Update) bool {
	if want == nil || want.Mode != "" || want.Version == "" && want.Image == "" && want.Architecture == "" {
		return false
	}
	at := cv.Status.Desired
	return want.Image != "" && want.Image != at.Image || want.Image == "" && want.Version != at.Version ||
		want.Architecture != "" && want.Architecture != at.Architecture
}

func sameTarget(a, b configv1.Update) bool {
	return a.Version == b.Version && a.Image == b.Image && a.Architecture == b.Architecture && a.Force == b.Force
}
