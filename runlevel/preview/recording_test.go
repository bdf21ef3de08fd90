package preview_test

import (
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/dump"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/runlevel"
	"github.com/clusterupdate/clusterupdate/runlevel/preview"
)

// A recording of a cluster gives the preview that the cluster itself gives, but
// for Secrets, which are not recorded.
func TestRecorded(t *testing.T) {
	t.Parallel()
	if israce.Enabled {
		t.Skip("it takes long, and nothing here runs at the same time as something else")
	}
	old, target := loadReal(t, "payload-4.17.30"), loadReal(t, "payload-4.18.15")
	c := apply(t, old)
	dir := filepath.Join(t.TempDir(), "recording")
	kinds := make(map[schema.GroupVersionKind]bool)
	for _, m := range slices.Concat(old.Manifests, target.Manifests) {
		kinds[m.GVK()] = true
	}
	checktest.OK(t, dump.Record(t.Context(), c, dir, dump.RecordOptions{Kinds: slices.Collect(maps.Keys(kinds))}))
	recording := open(t, dir)
	text := func(r clusterapi.Reader) (*preview.Preview, string) {
		p := checktest.Get(preview.Run(t.Context(), target.Tasks(), preview.Options{Reader: r, Payload: target, Running: old, Owner: owner}))(t)
		var out strings.Builder
		checktest.OK(t, p.Text(&out, preview.TextOptions{}))
		return p, out.String()
	}
	live, wanted := text(c)
	recorded, got := text(recording)
	if diff := cmp.Diff(counts(live), counts(recorded)); diff != "" {
		t.Errorf("actions (-live +recorded): %s", diff)
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Errorf("text (-live +recorded): %.2000s", diff)
	}
	if moved, err := live.Check(t.Context(), recording); err != nil || len(moved) > 0 {
		t.Errorf("the cluster's preview does not hold for its recording: %d %v", len(moved), err)
	}
}

func open(t *testing.T, dir string) *dump.Recording {
	t.Helper()
	r := checktest.Get(dump.Open(t.Context(), os.DirFS(dir), dump.Options{}))(t)
	return r
}

// Dumps of real clusters hold few kinds: what they do not have is unknown, and
// the ClusterOperators that they have are awaited.
func TestRealDumps(t *testing.T) {
	t.Parallel()
	target := loadReal(t, "payload-4.18.15")
	for _, tt := range []struct {
		name      string
		operators int // that the dump has, and the release too
	}{
		{"4.14.1-degraded", 33}, {"4.14.1-workers-started-updating-multiple-pools", 33}, {"4.15.0-ec2-early", 33}, {"not-upgrading", 33}, {"recommend", 0},
	} {
		if israce.Enabled && tt.operators > 0 && tt.name != "not-upgrading" {
			continue // it takes long
		}
		t.Run(tt.name, func(t *testing.T) {
			recording := open(t, filepath.Join(testdata.Dir(t), "clusters", tt.name))
			p := checktest.Get(preview.Run(t.Context(), target.Tasks(), preview.Options{Reader: recording, Payload: target, Owner: owner}))(t)
			operators, _ := clusterapi.List[configv1.ClusterOperator](t.Context(), recording, clusterapi.ListOptions{})
			collected := make(map[string]bool)
			for _, o := range operators {
				collected["ClusterOperator "+o.Name] = true
			}
			kept, created := 0, 0
			for _, c := range p.Changes {
				switch {
				case c.Action == "Excluded":
				case c.Object.Kind == "ClusterOperator" && tt.operators > 0 && c.Action == preview.Create:
					created++ // all are collected, and this one is not there
				case collected[c.Object.String()]:
					if kept++; c.Action != "Keep" || len(c.Awaited) == 0 {
						t.Errorf("%s: %s %s", c.Object, c.Action, c.Reason)
					}
				case c.Action != preview.Unknown || c.Reason == "":
					t.Errorf("%s: %s %s", c.Object, c.Action, c.Reason)
				}
			}
			if kept != tt.operators || created != min(kept, 1) || len(p.Unknowns) < 100 {
				t.Errorf("%d operators are kept, %d created, %d calls of oc adm inspect are named", kept, created, len(p.Unknowns))
			}
		})
	}
}

var namespaces = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}

// Where kinds are missing, whichever they are, a preview says the same as with
// all of them, or that it does not know.
func TestCut(t *testing.T) {
	t.Parallel()
	old, target := loadReal(t, "payload-4.17.30"), loadReal(t, "payload-4.18.15")
	c := apply(t, old)
	for _, m := range old.Manifests { // of operators, and of Kubernetes itself
		ns := m.Identity().Namespace
		if _, err := c.Get(t.Context(), namespaces, clusterapi.Key("", ns)); ns != "" && apierrors.IsNotFound(err) {
			checktest.OK(t, c.Load(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": ns}}}))
		}
	}
	for _, mode := range []runlevel.Mode{runlevel.ApplyServerSide, runlevel.ApplyMerge} {
		if israce.Enabled && mode == runlevel.ApplyMerge {
			continue // it takes long
		}
		o := preview.Options{Reader: c, Payload: target, Running: old, Owner: owner, Mode: mode}
		whole := checktest.Get(preview.Run(t.Context(), target.Tasks(), o))(t)
		actions := make(map[preview.Object]preview.Action)
		kinds := make(map[string]bool)
		for _, change := range whole.Changes {
			actions[change.Object] = change.Action
			kinds[change.Object.Kind] = true
		}
		seeds := uint64(8)
		if israce.Enabled {
			seeds = 1
		}
		for seed := range seeds {
			random := rand.New(rand.NewPCG(seed, 0))
			missing := make(map[string]error)
			for _, kind := range slices.Sorted(maps.Keys(kinds)) {
				if random.Float64() < 0.1+0.8*float64(seed)/float64(seeds) {
					missing[kind] = clusterapi.ErrNotCollected
				}
			}
			o.Reader = reader{c, missing, nil}
			cut := checktest.Get(preview.Run(t.Context(), target.Tasks(), o))(t)
			unknown := 0
			for _, change := range cut.Changes {
				switch want := actions[change.Object]; {
				case change.Action == preview.Unknown && missing[change.Object.Kind] != nil:
					unknown++
				case change.Action != want:
					t.Errorf("%s, seed %d: %s: %s (%s), want %s", mode, seed, change.Object, change.Action, change.Reason, want)
				}
			}
			if unknown == 0 || len(cut.Unknowns) == 0 {
				t.Errorf("%s, seed %d: %d are unknown, %d calls to collect them", mode, seed, unknown, len(cut.Unknowns))
			}
		}
	}
}
