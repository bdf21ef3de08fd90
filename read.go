package clusterupdate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/panics"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// ErrNoRelease reports that it is not known what release the cluster runs: the
// history is empty, and Options.Own is not set or is not what ClusterOperators
// report.
var ErrNoRelease = errors.New("the cluster version has no history: set Options.Own to the release that the cluster runs")

var (
	versionKind   = configv1.GroupVersion.WithKind("ClusterVersion")
	operatorKind  = configv1.GroupVersion.WithKind("ClusterOperator")
	gateKind      = configv1.GroupVersion.WithKind("FeatureGate")
	configMapKind = corev1.SchemeGroupVersion.WithKind("ConfigMap")

	adminGates = clusterapi.Key("openshift-config-managed", "admin-gates")
	adminAcks  = clusterapi.Key("openshift-config", "admin-acks")
)

// reader reads what decisions are made from.
type reader struct {
	process *process
	fatal   func(error) // ends Run; nil elsewhere

	last       *object   // as read last; nil: it is to be read again
	lastRead   time.Time // when that was
	selfHosted bool      // the control plane is the cluster's own, as was read once

	known  configv1.Release // that the cluster was last seen at
	opened configv1.Release // an Own without a version, as its payload names it
	askErr error            // of asking what the cluster was installed with
	asks   int              // for that in vain
}

// readAgain is the longest time for which what was read of a cluster at rest holds,
// unless a watch shows that it has changed.
const readAgain = 10 * time.Minute

// holds reports whether what was read last holds as long as no watch shows a change.
func (r *reader) holds(now time.Time) bool {
	return r.last != nil && !now.Before(r.lastRead) && now.Before(r.lastRead.Add(readAgain))
}

// forget makes the next look read again.
func (r *reader) forget() { r.last = nil }

// version reads the ClusterVersion, and the parts of the cluster that an update puts
// at risk.
func (r *reader) version(ctx context.Context) (*object, error) {
	api := r.process.o.API
	shared, err := clusterapi.GetShared(ctx, api, versionKind, clusterVersionKey)
	if err != nil {
		return nil, fmt.Errorf("cluster version: %w", err)
	}
	cv, err := clusterapi.As[configv1.ClusterVersion](shared)
	if err != nil {
		return nil, fmt.Errorf("cluster version: %w", err)
	}
	if err := r.refuseHosted(ctx); err != nil {
		return nil, err
	}
	notUnderstood := clusterversion.NotUnderstood(shared.Unstructured())
	return &object{cv: cv, risks: readRisks(ctx, api), notUnderstood: notUnderstood}, nil
}

// refuseHosted ends an Updater of a cluster whose control plane is hosted elsewhere.
// A cluster is hosted from its beginning, or never: it is asked until it has answered.
func (r *reader) refuseHosted(ctx context.Context) error {
	if r.selfHosted {
		return nil
	}
	err := clusterversion.RefuseHosted(ctx, r.process.o.API)
	r.selfHosted = err == nil
	if errors.Is(err, clusterversion.ErrHostedControlPlane) && r.fatal != nil {
		r.fatal(err)
	}
	return err
}

// reports reads what ClusterOperators report if no update of o was ever completed, and
// returns whether the cluster ever ran a release.
func (r *reader) reports(o *object) (ran bool, err error) {
	if clusterversion.EverCompleted(o.cv) {
		return true, nil
	}
	o.operators, err = o.risks.reported()
	return o.operators.ran(o.cv.Status.History), err
}

// identify finds out what the cluster runs. ran reports whether it ever ran a release,
// and versionOf returns the version of an image that was loaded, empty if not known.
func (r *reader) identify(o *object, ran bool, versionOf func(image string) string) (err error) {
	o.own, err = r.own(o, ran, versionOf)
	if isLost(err) || errors.Is(err, ErrNoRelease) && len(o.operators) > 0 && r.cannotSay() && requestsImage(o) {
		o.lost, err = err, nil
	}
	return err
}

// cannotSay reports whether the source of payloads does not know what the cluster
// was installed with.
func (r *reader) cannotSay() bool {
	_, ok := r.process.o.Payloads.(manifest.InitialReleaser)
	return !ok
}

func requestsImage(o *object) bool {
	u := o.cv.Spec.DesiredUpdate
	return u != nil && u.Mode == "" && u.Image != "" && len(o.notUnderstood) == 0
}

// own returns the release that the cluster runs when nothing is asked for. An
// error of ErrNoRelease may mean that the source of payloads has to be asked. If the
// history was lost, operators must agree with it.
func (r *reader) own(o *object, ran bool, versionOf func(image string) string) (configv1.Release, error) {
	cv, operators := o.cv, o.operators
	for _, h := range cv.Status.History {
		if h.State == configv1.CompletedUpdate {
			return graph.FillRelease(configv1.Release{Version: h.Version, Image: h.Image}, r.process.o.Own, nil), nil
		}
	}
	own := r.process.o.Own
	if h := cv.Status.History; len(h) > 0 {
		// An installation of another release than Own ends when operators report one.
		if own.Image == "" || len(operators) > 0 && !operators.are(own.Version) {
			own = configv1.Release{Version: h[0].Version, Image: h[0].Image}
		}
		return own, nil
	}
	// The object was created again or lost its status; the cluster did not.
	if own.Image == "" || ran && len(operators) == 0 && r.known.Image != "" {
		own = r.known
	}
	if own.Version == "" && own.Image != "" {
		if version := versionOf(own.Image); version != "" {
			r.opened = configv1.Release{Version: version, Image: own.Image}
		}
		if r.opened.Image == own.Image {
			own.Version = r.opened.Version
		}
	}
	switch {
	case len(operators) > 0 && (own.Image == "" || own.Version != "" && !operators.are(own.Version)):
		lost := operators.lost(own)
		if operators[own.Version] == nil {
			own = configv1.Release{} // the cluster does not trust its keys
		}
		return own, lost
	case own.Image == "":
		return own, ErrNoRelease
	}
	return own, nil
}

// initialID tells the questions for the initial release apart, by how many of
// them failed before.
type initialID int

// findRelease asks the source of payloads what the cluster was installed with.
func (r *reader) findRelease(unknown error) (reconcile.Result, error) {
	source, ok := r.process.o.Payloads.(manifest.InitialReleaser)
	if !ok {
		if r.fatal != nil {
			r.fatal(unknown)
		}
		return reconcile.Result{}, unknown
	}
	if err := r.askErr; err != nil {
		r.askErr = nil
		r.asks++
		return reconcile.Result{}, fmt.Errorf("initial release: %w", err)
	}
	return reconcile.Result{Jobs: []reconcile.Job{{
		ID: initialID(r.asks),
		Run: func(ctx context.Context, _ func(any)) (found any, err error) {
			err = panics.Isolate(func() (err error) {
				found, err = source.InitialRelease(ctx)
				return err
			})
			return found, err
		},
		Done: func(found any, err error) []reconcile.Wake {
			r.known, _ = found.(configv1.Release)
			r.askErr = err
			return []reconcile.Wake{{Key: decideKey}}
		},
	}}}, nil
}

// gates are the feature set and gates that decide about the cluster's manifests.
type gates struct {
	featureSet   string
	enabled      sets.Set[string]
	acceptRisks  bool // ClusterUpdateAcceptRisks
	architecture bool // ImageStreamImportMode: releases tell their architecture
}

func (g gates) key() string {
	return g.featureSet + "/" + strings.Join(sets.List(g.enabled), ",")
}

// readGates reads the gates of the first of the versions that the cluster has gates
// for: an operator of a new release uses those of its own version.
func readGates(ctx context.Context, api clusterapi.Reader, versions ...string) (gates, error) {
	set, enabled, err := manifest.ReadGates(ctx, api, versions...)
	if err != nil && !errors.Is(err, clusterapi.ErrNotCollected) {
		return gates{}, err
	}
	return gates{
		featureSet: set, enabled: enabled,
		acceptRisks: enabled.Has("ClusterUpdateAcceptRisks"), architecture: enabled.Has("ImageStreamImportMode"),
	}, nil
}
