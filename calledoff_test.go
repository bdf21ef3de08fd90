package clusterupdate_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// hanging is a cluster in which the Apply of one object does not return, not
// even when its context ends, until hang is closed.
type hanging struct {
	*testCluster
	hang    chan struct{}
	name    string // of the object
	version string // of the release

	mu      sync.Mutex
	applied []string // releases and objects, in the order of the calls
}

func (h *hanging) Apply(ctx context.Context, u *unstructured.Unstructured, o clusterapi.ApplyOptions) (*unstructured.Unstructured, error) {
	version := u.GetAnnotations()[annotationRelease]
	h.mu.Lock()
	h.applied = append(h.applied, version+" "+u.GetName())
	h.mu.Unlock()
	if u.GetName() == h.name && version == h.version {
		<-h.hang
		return nil, context.DeadlineExceeded
	}
	return h.testCluster.Apply(ctx, u, o)
}

// calls are those since the first n.
func (h *hanging) calls(n int) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.applied[n:])
}

// branchedReleases are toy releases with two components in one runlevel.
func branchedReleases(t *testing.T) []*toyRelease {
	releases := toyReleases(t)
	for i, r := range releases {
		files := maps.Clone(r.files.(fstest.MapFS))
		last := string(files["release-manifests/0000_90_config_00_config.yaml"].Data)
		files["release-manifests/0000_50_extra_00_config.yaml"] = &fstest.MapFile{Data: []byte(strings.Replace(last, "name: last", "name: extra", 1))}
		p := checktest.Get(manifest.Load(t.Context(), files, manifest.LoadOptions{Image: r.Image, Filter: manifest.DefaultFilter()}))(t)
		releases[i] = &toyRelease{Release: r.Release, files: files, payload: p}
	}
	return releases
}

// TestCalledOffPassEndsFirst: while a call of a pass that was called off is
// under way, no other pass makes one; decisions go on.
func TestCalledOffPassEndsFirst(t *testing.T) {
	releases := branchedReleases(t)
	for _, tc := range []struct {
		name    string
		change  func(*configv1.ClusterVersionSpec)
		history string
		version string // of the pass that follows
	}{
		{"another release", func(s *configv1.ClusterVersionSpec) { s.DesiredUpdate.Version = "1.0.2" },
			"1.0.2 Partial, 1.0.1 Partial, 1.0.0 Completed", "1.0.2"},
		{"the same release", func(s *configv1.ClusterVersionSpec) {
			s.Overrides = []configv1.ComponentOverride{{Kind: "ConfigMap", Namespace: "toy", Name: "last", Unmanaged: true}}
		}, "1.0.1 Partial, 1.0.0 Completed", "1.0.1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &hanging{hang: make(chan struct{}), name: "extra", version: "1.0.1"}
				h.testCluster = newTestCluster(t, releases[0].payload, releases[1].payload, func(cv *configv1.ClusterVersion) {
					cv.Spec.DesiredUpdate = &configv1.Update{Version: "1.0.1"}
				})
				u := checktest.Get(clusterupdate.New(clusterupdate.Options{
					API: h, Payloads: payloadsOf(releases), Graph: toyGraph(t, releases), Verifier: toyVerifier(releases), Workers: 4,
				}))(t)
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error)
				go func() { ended <- u.Run(ctx) }()
				time.Sleep(time.Second)
				before := len(h.calls(0))
				if !slices.Contains(h.calls(0), "1.0.1 extra") {
					t.Fatalf("the call did not hang: %v", h.calls(0))
				}
				modify(t, h.Cluster, false, func(cv *configv1.ClusterVersion) { tc.change(&cv.Spec) })
				time.Sleep(10 * time.Minute)
				if got := h.calls(before); len(got) > 0 {
					t.Errorf("calls besides the one that hangs: %v", got)
				}
				cv := h.testCluster.version(t)
				if got := historyOf(cv); got != tc.history || cv.Status.ObservedGeneration != cv.Generation {
					t.Errorf("history is %s, generation %d is seen of %d", got, cv.Status.ObservedGeneration, cv.Generation)
				}
				if !slices.ContainsFunc(u.Explain().Actions, func(a clusterupdate.Action) bool {
					return a.Step == "apply" && a.Waits && a.Reason == "calls of the pass before, which was called off, are under way"
				}) {
					t.Errorf("the plan does not say why nothing is applied: %+v", u.Explain().Actions)
				}
				close(h.hang)
				time.Sleep(time.Second)
				if got := h.calls(before); len(got) == 0 || got[0] != tc.version+" cluster-version-operator" {
					t.Errorf("the next pass made the calls %v", got)
				}
				cancel()
				checktest.Good(t, <-ended)
			})
		})
	}
}
