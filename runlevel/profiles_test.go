package runlevel

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// TestProfilesOnMemory installs real payloads, or updates to them, under every
// cluster profile, on clusters that enforce schemas: a pass comes to its end
// without an error, and what it has written is what is included.
func TestProfilesOnMemory(t *testing.T) {
	t.Parallel()
	for i, tt := range []struct {
		payload, profile, featureSet, capabilities string
		state                                      State
	}{
		{"payload-4.17.30", "self-managed-high-availability", "", "None", Initializing},
		{"payload-4.17.30", "hypershift", "", "vCurrent", Initializing},
		{"payload-4.17.30", "ibm-cloud-managed", "TechPreviewNoUpgrade", "v4.11", Initializing},
		{"payload-4.17.30", "single-node-developer", "DevPreviewNoUpgrade", "None", Updating},
		{"payload-4.18.15", "self-managed-high-availability", "CustomNoUpgrade", "vCurrent", Initializing},
		{"payload-4.18.15", "hypershift", "TechPreviewNoUpgrade", "None", Updating},
		{"payload-4.18.15", "ibm-cloud-managed", "", "v4.14", Updating},
		{"payload-4.18.15", "single-node-developer", "", "vCurrent", Initializing},
	} {
		if israce.Enabled && i%4 != 1 {
			continue
		}
		t.Run(fmt.Sprintf("%s/%s/%s/%s/%s", tt.payload, tt.profile, tt.featureSet, tt.capabilities, tt.state), func(t *testing.T) {
			f := manifest.DefaultFilter()
			f.Profile, f.FeatureSet = &tt.profile, &tt.featureSet
			p := checktest.Get(manifest.Load(t.Context(), os.DirFS(filepath.Join(testdata.Dir(t), tt.payload)), manifest.LoadOptions{Image: "example.com/release@sha256:abc", Filter: f}))(t)
			capabilities := manifest.ResolveCapabilities(&configv1.ClusterVersionCapabilitiesSpec{BaselineCapabilitySet: configv1.ClusterVersionCapabilitySet(tt.capabilities)}, nil, nil)
			profilePass(t, p, tt.state, manifest.Filter{Gates: sets.New[string](), Capabilities: &capabilities})
		})
	}
}

func profilePass(t *testing.T, p *manifest.Payload, state State, f manifest.Filter) {
	included, excluded := p.Included(f)
	want, gone := sets.New[manifest.Identity](), sets.New[manifest.Identity]()
	for _, m := range included {
		if m.Annotations()["release.openshift.io/delete"] == "" {
			want.Insert(m.Identity())
		} else if state == Updating { // an installation deletes nothing
			gone.Insert(m.Identity())
		}
	}
	var mu sync.Mutex
	written, deleted := sets.New[manifest.Identity](), sets.New[manifest.Identity]()
	ready := false
	c := memory.NewOpenShift(memory.Options{Intercept: func(ctx context.Context, call memory.Call, do func(context.Context) error) error {
		mu.Lock()
		id := manifest.Identity{Group: call.GVK.Group, Kind: call.GVK.Kind, Namespace: call.Key.Namespace, Name: call.Key.Name}
		switch {
		case !ready:
		case call.Verb == "Delete":
			deleted.Insert(id)
		case call.Verb != "Get" && call.Verb != "List" && call.Verb != "Watch":
			written.Insert(id)
		}
		mu.Unlock()
		return do(ctx)
	}})
	if p.Release.Version == "4.17.30" { // whose OLM is not yet of v1; no manifest defines it
		olm := schema.GroupVersionKind{Group: "operator.openshift.io", Version: "v1alpha1", Kind: "OLM"}
		checktest.Get(c.Apply(t.Context(), memory.Definition(olm, "Cluster"), clusterapi.ApplyOptions{FieldManager: "test"}))(t)
	}
	operators := *p
	operators.Manifests = included
	checktest.OK(t, c.Load(operatorsAt(t, &operators)...))
	others := notIncluded(p, excluded)
	all, old := append(included, others...), sets.New[manifest.Identity]() // what earlier releases have left
	for _, m := range all {
		if m.Annotations()["release.openshift.io/delete"] != "" && c.Load(m.Object().DeepCopy()) == nil {
			old.Insert(m.Identity())
		}
	}
	ready = true
	res := checktest.Get(Run(t.Context(), p.Tasks(), Options{
		API: c, State: state, Filter: f, Backoff: &Backoff{Steps: 1}, Owner: &metav1.OwnerReference{Name: "version", UID: "uid"},
	}))(t)
	if res.Done != len(included) || res.Skipped != len(excluded) || res.Total != len(p.Manifests) || res.Report != nil {
		t.Errorf("%+v; %d included and %d excluded", res, len(included), len(excluded))
	}
	for id := range want {
		if id.Kind == "ClusterOperator" {
			written.Insert(id) // is there already, where it is only looked at
		}
	}
	if diff := cmp.Diff(want, written); diff != "" {
		t.Errorf("what is included (-) and what was written (+): %s", diff)
	}
	if diff := cmp.Diff(gone.Intersection(old), deleted); diff != "" {
		t.Errorf("what is to be deleted (-) and what was (+): %s", diff)
	}
	for _, m := range all {
		id := m.Identity()
		u, err := c.Get(t.Context(), m.GVK(), clusterapi.KeyOf(m.Object()))
		ours := err == nil && len(u.GetOwnerReferences()) > 0
		switch {
		case want.Has(id):
			if err != nil || !ours && id.Kind != "ClusterOperator" && m.Annotations()["release.openshift.io/create-only"] == "" {
				t.Errorf("%s is not there, or has no owner: %v", m, err)
			}
		case old.Has(id) && !gone.Has(id):
			if err != nil || ours {
				t.Errorf("%s was touched: %v", m, err)
			}
		case id.Kind == "CustomResourceDefinition" && err == nil: // of the cluster itself
			if ours {
				t.Errorf("%s was applied", m)
			}
		case !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err):
			t.Errorf("%s is there: %v", m, err)
		}
	}
	t.Logf("%d written, %d deleted, %d skipped, %d not loaded", len(written), len(deleted), res.Skipped, len(p.Excluded))
}

// notIncluded are the manifests of a payload that a pass skips, and those that were
// not loaded.
func notIncluded(p *manifest.Payload, skipped []manifest.Exclusion) (out []*manifest.Manifest) {
	for _, e := range append(skipped, p.Excluded...) {
		out = append(out, e.Manifest)
	}
	return out
}
