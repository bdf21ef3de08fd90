package dump_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Masterminds/semver/v3"
	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/dump"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/clusterapi/view"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/rules"
)

// cutReader is a cluster of which the objects of a kind, or some of them, were not
// collected. It notes the kinds that it is asked for, and of which it is asked for a
// list.
type cutReader struct {
	clusterapi.Reader
	cut  schema.GroupKind
	some bool // objects of the kind are there, and there may be more

	mu            sync.Mutex
	hid           bool // whether an answer was cut
	asked, listed map[schema.GroupKind]bool
}

func without(r clusterapi.Reader, cut schema.GroupKind) *cutReader {
	return &cutReader{Reader: r, cut: cut, asked: map[schema.GroupKind]bool{}, listed: map[schema.GroupKind]bool{}}
}

func (r *cutReader) note(asked map[schema.GroupKind]bool, gvk schema.GroupVersionKind) (isCut bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	asked[gvk.GroupKind()] = true
	return gvk.GroupKind() == r.cut
}

func (r *cutReader) hide() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hid = true
}

func (r *cutReader) Get(
	ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName,
) (*unstructured.Unstructured, error) {
	if r.note(r.asked, gvk) && !r.some {
		r.hide()
		return nil, fmt.Errorf("%s: %w", gvk.Kind, clusterapi.ErrNotCollected)
	}
	return r.Reader.Get(ctx, gvk, key)
}

func (r *cutReader) List(
	ctx context.Context, gvk schema.GroupVersionKind, o clusterapi.ListOptions,
) (*unstructured.UnstructuredList, error) {
	r.note(r.asked, gvk)
	list := &unstructured.UnstructuredList{Items: []unstructured.Unstructured{}}
	var err error
	isCut := r.note(r.listed, gvk)
	if !isCut || r.some {
		list, err = r.Reader.List(ctx, gvk, o)
	}
	if isCut && err == nil {
		r.hide()
		err = fmt.Errorf("%s: %w", gvk.Kind, clusterapi.ErrNotCollected)
	}
	return list, err
}

// recordedClusters are the real ones, and a simulated one, of which all is recorded.
func recordedClusters(t *testing.T) map[string]clusterapi.Reader {
	t.Helper()
	simulated := checktest.Get(simulation.New(simulation.Options{
		Release:      simulation.Release{Version: "4.20.3"},
		ControlPlane: 3,
		Pools:        []simulation.Pool{{Name: "worker", Nodes: 2}},
	}))(t)
	clusters := map[string]clusterapi.Reader{"simulated": simulated.Cluster, "fork": memory.New(memory.Options{Base: simulated})}
	root := dataFolder(t, ".")
	dirs := checktest.Get(filepath.Glob(filepath.Join(root, "clusters", "*")))(t)
	for _, dir := range append(dirs, filepath.Join(root, "insights-4.7")) {
		clusters[filepath.Base(dir)] = mustOpen(t, os.DirFS(dir), dump.Options{})
	}
	return clusters
}

// helpful are kinds without which a check can pass, and why.
var helpful = map[string]string{
	"KubeletSkew MachineConfigPool": "the pool of a node stands in the text alone",
	"KubeletSkew ClusterOperator":   "the release gives the version of the API server, too",
}

// TestUnknownIsNotNone takes each kind out of each recorded cluster, whole or in part:
// no check that asks for the kind passes, or says that it does not apply, and the
// status of the update names the kind.
func TestUnknownIsNotNone(t *testing.T) {
	cuts := map[string]int{}
	for name, cluster := range recordedClusters(t) {
		t.Run(name, func(t *testing.T) {
			cv := checktest.Get(clusterapi.Get[configv1.ClusterVersion](t.Context(), cluster, clusterapi.Key("", "version")))(t)
			current := checktest.Get(semver.NewVersion(cv.Status.Desired.Version))(t)
			for _, target := range []semver.Version{current.IncPatch(), current.IncMinor()} {
				transition := preconditions.NewTransition(cv, configv1.Release{Version: target.String()}, false, preconditions.Full)
				for _, check := range rules.Default(rules.Options{}) {
					for _, gk := range cutCheck(t, cluster, transition, check) {
						cuts[gk.Kind]++
					}
				}
			}
			checkStatus(t, cluster)
		})
	}
	for _, kind := range []string{"ClusterOperator", "Node", "MachineConfigPool", "APIRequestCount", "ConfigMap", "PodDisruptionBudget"} {
		checktest.FailIf(t, cuts[kind] == 0, "no check was asked without %s: %v", kind, cuts)
	}
}

// cutCheck runs a check without each of the kinds that it asks for, and returns them.
func cutCheck(
	t *testing.T, cluster clusterapi.Reader, transition preconditions.Transition, check preconditions.Check,
) []schema.GroupKind {
	t.Helper()
	run := func(r *cutReader) {
		in := &preconditions.Input{Reader: r, Transition: transition}
		report := checktest.Get(preconditions.Run(t.Context(), []preconditions.Check{check}, in, preconditions.Options{}))(t)
		got := report.Results[0]
		passed := got.State == preconditions.Passed || got.State == preconditions.NotApplicable
		if r.hid && passed && helpful[check.Name()+" "+r.cut.Kind] == "" {
			t.Errorf("update to %s: %s is %s without %s (some: %t): %v",
				transition.Target, check.Name(), got.State, r.cut, r.some, got.Findings)
		}
	}
	spy := without(cluster, schema.GroupKind{})
	run(spy)
	asked := slices.SortedFunc(maps.Keys(spy.asked), func(a, b schema.GroupKind) int {
		return strings.Compare(a.String(), b.String())
	})
	for _, gk := range asked {
		run(without(cluster, gk))
		if spy.listed[gk] {
			partial := without(cluster, gk)
			partial.some = true
			run(partial)
		}
	}
	return asked
}

// checkStatus takes out each kind that a status is computed from.
func checkStatus(t *testing.T, cluster clusterapi.Reader) {
	t.Helper()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	read := func(r *cutReader) (*view.Status, error) {
		return view.ReadStatus(t.Context(), r, view.StatusOptions{Now: now})
	}
	spy := without(cluster, schema.GroupKind{})
	whole, err := read(spy)
	if err != nil { // without any ClusterOperator there is no status
		checktest.ErrorHas(t, "cluster operator", err)
		return
	}
	for gk := range spy.asked {
		s, err := read(without(cluster, gk))
		if gk.Kind == "ClusterVersion" {
			checktest.ErrorIs(t, clusterapi.ErrNotCollected, err)
			_, err := view.ReadSummary(t.Context(), without(cluster, gk))
			checktest.ErrorIs(t, clusterapi.ErrNotCollected, err)
			_, err = view.ReadRecommend(t.Context(), without(cluster, gk), view.RecommendOptions{})
			checktest.ErrorIs(t, clusterapi.ErrNotCollected, err)
			continue
		}
		if err != nil {
			checktest.Equal(t, "ClusterOperator", gk.Kind, "the kind without which there is no status: %v", err)
			continue
		}
		names := slices.ContainsFunc(s.Unknown, func(u view.Unknown) bool { return u.Kind == gk.Kind })
		if diff := cmp.Diff(whole, s); !names && diff != "" {
			t.Errorf("the status does not say that %s is missing: %v %s", gk, s.Unknown, diff)
		}
	}
}
