package clusterupdate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/risk"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/preconditions"
)

// ErrNoRelease says that it is not known what release the cluster runs: the history
// is empty, and Options.Own is not set or is not what ClusterOperators report.
var ErrNoRelease = errors.New("the cluster version has no history: set Options.Own to the release that the cluster runs")

// own returns the release that the cluster runs when nothing is asked for. An
// error of ErrNoRelease may mean that the source of payloads has to be asked. Where
// the history was lost, operators must agree with it.
func (r *decider) own(cv *configv1.ClusterVersion, operators reported) (configv1.Release, error) {
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
	if own.Image == "" || r.applier.work.ran && len(operators) == 0 && r.known.Image != "" {
		own = r.known
	}
	if own.Version == "" && own.Image != "" {
		if version := r.loader.loads.version(own.Image); version != "" {
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

// clusterRisks answers the reads of the sources of risks in the cluster from
// what was read before, and with any ClusterVersion.
type clusterRisks struct {
	answers map[read]answer
	version *clusterapi.Object
}

type read struct {
	gvk schema.GroupVersionKind
	key types.NamespacedName // empty: all of the kind
}

type answer struct {
	objects []*clusterapi.Object
	err     error
}

var (
	versionKind   = configv1.GroupVersion.WithKind("ClusterVersion")
	operatorKind  = configv1.GroupVersion.WithKind("ClusterOperator")
	gateKind      = configv1.GroupVersion.WithKind("FeatureGate")
	configMapKind = corev1.SchemeGroupVersion.WithKind("ConfigMap")

	adminGates = clusterapi.Key("openshift-config-managed", "admin-gates")
	adminAcks  = clusterapi.Key("openshift-config", "admin-acks")
)

// readRisks reads what the sources of risks look at. A read that fails is an
// answer too: the sources say what it means.
func readRisks(ctx context.Context, api clusterapi.Reader) clusterRisks {
	r := clusterRisks{answers: make(map[read]answer)}
	operators, err := clusterapi.ListShared(ctx, api, operatorKind, clusterapi.ListOptions{})
	r.answers[read{gvk: operatorKind}] = answer{operators, err}
	for _, key := range []types.NamespacedName{adminGates, adminAcks} {
		o, err := clusterapi.GetShared(ctx, api, configMapKind, key)
		r.answers[read{configMapKind, key}] = answer{[]*clusterapi.Object{o}, err}
	}
	return r
}

// upgradeable computes the condition Upgradeable of a ClusterVersion, and the risks
// behind it.
func (r clusterRisks) upgradeable(cv *configv1.ClusterVersion, own string, deletions []string, style preconditions.ReasonStyle) preconditions.Upgradeability {
	versions := risk.TargetVersions(cv.Status.AvailableUpdates, cv.Status.ConditionalUpdates)
	asked := *cv // without the long lists, at which no source looks
	asked.ManagedFields, asked.Status.History, asked.Status.AvailableUpdates, asked.Status.ConditionalUpdates = nil, nil, nil, nil
	u, err := clusterapi.ToUnstructured(&asked)
	if err != nil {
		return preconditions.Upgradeability{} // it was read from one
	}
	r.version = clusterapi.NewObject(u)
	sources := preconditions.Sources(preconditions.RiskOptions{Reader: r, OwnVersion: own, Deletions: func() []string { return deletions }})
	return preconditions.Upgradeable(context.Background(), sources, versions, style, nil)
}

// GetShared implements [clusterapi.Shared].
func (r clusterRisks) GetShared(_ context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*clusterapi.Object, error) {
	if gvk == versionKind && key == clusterVersionKey {
		return r.version, nil
	}
	a, ok := r.answers[read{gvk, key}]
	if !ok {
		return nil, fmt.Errorf("%s %s was not read", gvk.Kind, key)
	}
	return a.objects[0], a.err
}

// ListShared implements [clusterapi.Shared].
func (r clusterRisks) ListShared(_ context.Context, gvk schema.GroupVersionKind, _ clusterapi.ListOptions) ([]*clusterapi.Object, error) {
	a, ok := r.answers[read{gvk: gvk}]
	if !ok {
		return nil, fmt.Errorf("%s were not read", gvk.Kind)
	}
	return a.objects, a.err
}

// Get implements [clusterapi.Reader].
func (r clusterRisks) Get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	o, err := r.GetShared(ctx, gvk, key)
	if err != nil {
		return nil, err
	}
	return o.Unstructured().DeepCopy(), nil
}

// List implements [clusterapi.Reader].
func (r clusterRisks) List(ctx context.Context, gvk schema.GroupVersionKind, opts clusterapi.ListOptions) (*unstructured.UnstructuredList, error) {
	objects, err := r.ListShared(ctx, gvk, opts)
	if err != nil && !errors.Is(err, clusterapi.ErrNotCollected) {
		return nil, err
	}
	list := &unstructured.UnstructuredList{}
	for _, o := range objects {
		list.Items = append(list.Items, *o.Unstructured().DeepCopy())
	}
	return list, err
}
