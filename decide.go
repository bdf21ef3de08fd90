package clusterupdate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/panics"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// origin says how a release came to be wanted, and so how far it is trusted.
type origin string

const (
	running   origin = "running"   // the cluster runs it already
	resumed   origin = "resumed"   // an update to it had been accepted before
	requested origin = "requested" // somebody asks for it
)

// facts are what a decision is made from.
type facts struct {
	cv        *configv1.ClusterVersion
	own       configv1.Release
	gates     gates
	applied   configv1.Release // what passes apply, as its payload has it
	unfetched bool             // the lists of updates are about to be retrieved for the first time
}

// decision is what a pass is to do about the ClusterVersion.
type decision struct {
	faults     field.ErrorList
	cleared    *configv1.ClusterVersion
	resolution Resolution
	own, base  configv1.Release
	want       configv1.Release
	origin     origin
	baseOrigin origin
	verified   bool // resumed: it was verified when it was accepted
	installing bool // no release was ever completed
	gates      gates
}

// decide answers a ClusterVersion. It is a pure function.
func decide(f facts) decision {
	d := decision{own: f.own, gates: f.gates, installing: !everCompleted(f.cv)}
	d.faults = Validate(f.cv, f.gates.acceptRisks)
	d.cleared = Clear(f.cv, d.faults)
	faulty := f.cv.Spec.DesiredUpdate != nil && d.cleared.Spec.DesiredUpdate == nil
	if faulty && f.unfetched && notAvailable(d.faults) {
		// The version may well be available: not known is not invalid.
		d.faults = slices.DeleteFunc(d.faults, isNotAvailable)
		faulty = false
	}

	d.base, d.baseOrigin = f.own, running
	if h := started(f.cv, f.own); h != nil {
		d.base, d.baseOrigin, d.verified = configv1.Release{Version: h.Version, Image: h.Image}, resumed, h.Verified
	}
	d.base = graph.FillRelease(graph.FillRelease(d.base, f.applied, nil), f.cv.Status.Desired, nil)

	d.resolution = Resolve(d.cleared, d.base, faulty)
	if d.resolution.Outcome == Resolved && d.installing {
		d.resolution = Resolution{Outcome: OwnRelease, Release: d.base, Why: "the cluster is still being installed"}
	}
	d.want, d.origin = d.resolution.Release, d.baseOrigin
	if d.resolution.Outcome == Resolved {
		d.origin = requested
	}
	return d
}

const notAvailableDetail = "when image is empty the update must be an available update"

func isNotAvailable(err *field.Error) bool { return err.Detail == notAvailableDetail }

func notAvailable(errs field.ErrorList) bool { return slices.ContainsFunc(errs, isNotAvailable) }

func everCompleted(cv *configv1.ClusterVersion) bool {
	return slices.ContainsFunc(cv.Status.History, func(h configv1.UpdateHistory) bool {
		return h.State == configv1.CompletedUpdate
	})
}

// ErrNoRelease says that it is not known what release the cluster runs.
var ErrNoRelease = errors.New("the cluster version has no history: set Options.Own to the release that the cluster runs")

// own returns the release that the cluster runs when nothing is asked for.
func (l *loop) own(ctx context.Context, cv *configv1.ClusterVersion) (configv1.Release, error) {
	for _, h := range cv.Status.History {
		if h.State == configv1.CompletedUpdate {
			return graph.FillRelease(configv1.Release{Version: h.Version, Image: h.Image}, l.o.Own, nil), nil
		}
	}
	switch {
	case l.o.Own.Image != "":
		return l.o.Own, nil
	case len(cv.Status.History) > 0:
		h := cv.Status.History[0]
		return configv1.Release{Version: h.Version, Image: h.Image}, nil
	case l.s.work != nil: // the object was made anew, the cluster was not
		return l.s.work.release, nil
	}
	if i, ok := l.o.Payloads.(manifest.InitialReleaser); ok {
		var r configv1.Release
		err := panics.Isolate(func() (err error) {
			r, err = i.InitialRelease(ctx)
			return err
		})
		if err != nil {
			return configv1.Release{}, fmt.Errorf("initial release: %w", err)
		}
		return r, nil
	}
	return configv1.Release{}, ErrNoRelease
}

// started returns the entry of an update that was begun, nil where there is
// none. What has been going on since the installation is no update.
func started(cv *configv1.ClusterVersion, own configv1.Release) *configv1.UpdateHistory {
	h := cv.Status.History
	if len(h) == 0 || h[0].State == configv1.CompletedUpdate || h[0].Image == own.Image || !everCompleted(cv) {
		return nil
	}
	return &h[0]
}

// reconciledVersion is the version that the cluster is at, or on its way to.
func reconciledVersion(cv *configv1.ClusterVersion, own configv1.Release) string {
	if h := started(cv, own); h != nil {
		return h.Version
	}
	return own.Version
}

// gates are the feature set and gates that the cluster's manifests go by.
type gates struct {
	featureSet   string
	enabled      sets.Set[string]
	acceptRisks  bool // ClusterUpdateAcceptRisks
	architecture bool // ImageStreamImportMode: releases tell their architecture
}

func (g gates) key() string {
	return g.featureSet + "/" + strings.Join(sets.List(g.enabled), ",")
}

// readGates reads the gates of the first of the versions that the cluster has
// gates for: an operator of a new release goes by those of its own.
func (u *Updater) readGates(ctx context.Context, versions ...string) (gates, error) {
	fg, err := clusterapi.Get[configv1.FeatureGate](ctx, u.o.API, clusterapi.Key("", "cluster"))
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) || errors.Is(err, clusterapi.ErrNotCollected) {
		return gates{enabled: sets.New[string]()}, nil
	}
	if err != nil {
		return gates{}, fmt.Errorf("feature gates: %w", err)
	}
	version := ""
	for _, v := range slices.Backward(versions) {
		if slices.ContainsFunc(fg.Status.FeatureGates, func(d configv1.FeatureGateDetails) bool { return d.Version == v }) {
			version = v
		}
	}
	set, enabled := manifest.ReleaseGates(fg, version)
	return gates{
		featureSet: set, enabled: enabled,
		acceptRisks: enabled.Has("ClusterUpdateAcceptRisks"), architecture: enabled.Has("ImageStreamImportMode"),
	}, nil
}
