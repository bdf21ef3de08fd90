package clusterversion_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
)

var key = clusterapi.Key("", "version")

// clusterWith returns a cluster whose ClusterVersion has that spec.desiredUpdate,
// as it is.
func clusterWith(t interface{ Fatal(...any) }, desired map[string]any) *memory.Cluster {
	spec := map[string]any{"clusterID": "b2d0a7a5-2a39-4a5c-9e1d-0123456789ab", "future": "stays"}
	if desired != nil {
		spec["desiredUpdate"] = desired
	}
	cluster := memory.New(memory.Options{Lenient: true}) // without a definition, it keeps fields that are not known
	if err := cluster.Load(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", "metadata": map[string]any{"name": "version"}, "spec": spec,
	}}); err != nil {
		t.Fatal(err)
	}
	return cluster
}

func storedSpec(t *rapid.T, cluster *memory.Cluster) map[string]any {
	kind, err := clusterapi.KindOf[configv1.ClusterVersion]()
	if err != nil {
		t.Fatal(err)
	}
	u, err := cluster.Get(t.Context(), kind, key)
	if err != nil {
		t.Fatal(err)
	}
	return u.Object["spec"].(map[string]any)
}

// TestNothingIsLeft: whatever stood in spec.desiredUpdate, a request is all that
// stands there afterwards, and a change that is not a request leaves it as it was.
func TestNothingIsLeft(t *testing.T) {
	risks := func(t *rapid.T, name string) (out []configv1.AcceptRisk) {
		for _, risk := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"A", "B", "C"}), 0, 3, rapid.ID).Draw(t, name) {
			out = append(out, configv1.AcceptRisk{Name: risk})
		}
		return out
	}
	rapid.Check(t, func(t *rapid.T) {
		old := map[string]any{}
		for _, f := range []struct {
			name  string
			value any
		}{
			{"version", "4.20.3"}, {"image", "old"}, {"architecture", "Multi"}, {"force", true}, {"mode", "Preflight"}, {"dryRun", "All"},
			{"acceptRisks", []any{map[string]any{"name": "Old", "until": "tomorrow"}}}, {"nested", map[string]any{"a": int64(1)}},
		} {
			if rapid.Bool().Draw(t, f.name) {
				old[f.name] = f.value
			}
		}
		want := configv1.Update{
			Version: rapid.SampledFrom([]string{"4.20.3", "4.20.4", ""}).Draw(t, "version"), Image: rapid.SampledFrom([]string{"", "old", "new"}).Draw(t, "image"),
			Force: rapid.Bool().Draw(t, "force"), AcceptRisks: risks(t, "risks"),
		}
		cluster := clusterWith(t, old)
		_, err := clusterversion.Modify(t.Context(), cluster, clusterapi.ModifyOptions{}, func(cv *configv1.ClusterVersion) (bool, error) {
			cv.Spec.Channel = "stable-4.20"
			return false, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(old, storedSpec(t, cluster)["desiredUpdate"]); diff != "" {
			t.Errorf("a change of the channel changed the request: %s", diff)
		}

		got, err := clusterversion.Modify(t.Context(), cluster, clusterapi.ModifyOptions{}, func(cv *configv1.ClusterVersion) (bool, error) {
			clusterversion.SetDesired(cv, want)
			return true, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		spec := storedSpec(t, cluster)
		if spec["future"] != "stays" || spec["channel"] != "stable-4.20" {
			t.Errorf("the spec is %v", spec)
		}
		if want.Version == "" && want.Image == "" && len(want.AcceptRisks) == 0 {
			if _, there := spec["desiredUpdate"]; there || got.Spec.DesiredUpdate != nil {
				t.Errorf("left is %v", spec["desiredUpdate"])
			}
			return
		}
		if diff := cmp.Diff(&want, got.Spec.DesiredUpdate); diff != "" {
			t.Error(diff)
		}
		clean := clusterWith(t, nil)
		if _, err := clusterversion.Modify(t.Context(), clean, clusterapi.ModifyOptions{}, func(cv *configv1.ClusterVersion) (bool, error) {
			clusterversion.SetDesired(cv, want)
			return true, nil
		}); err != nil {
			t.Fatal(err)
		}
		fresh, is := storedSpec(t, clean)["desiredUpdate"].(map[string]any), spec["desiredUpdate"].(map[string]any)
		for name := range is {
			if _, ok := fresh[name]; !ok {
				t.Errorf("left of the earlier request: %s", name)
			}
		}
	})
}

// TestAsks: a request that is not understood as an update to the release does not
// ask for it.
func TestAsks(t *testing.T) {
	for _, tt := range []struct {
		name           string
		u              *configv1.Update
		at             configv1.ClusterVersionArchitecture
		version, image string
		want           bool
	}{
		{name: "none", version: "4.20.3"},
		{name: "version", u: &configv1.Update{Version: "4.20.3"}, version: "4.20.3", want: true},
		{name: "version with its image", u: &configv1.Update{Version: "4.20.3", Image: "a"}, version: "4.20.3", want: true},
		{name: "another version", u: &configv1.Update{Version: "4.20.4"}, version: "4.20.3"},
		{name: "image", u: &configv1.Update{Image: "a"}, version: "4.20.3", image: "a", want: true},
		{name: "another image", u: &configv1.Update{Version: "4.20.3", Image: "b"}, version: "4.20.3", image: "a"},
		{name: "risks alone", u: &configv1.Update{AcceptRisks: []configv1.AcceptRisk{{Name: "A"}}}},
		{name: "a check", u: &configv1.Update{Version: "4.20.3", Mode: configv1.UpdateModePreflight}, version: "4.20.3"},
		{name: "a migration", u: &configv1.Update{Version: "4.20.3", Architecture: "Multi"}, version: "4.20.3"},
		{name: "of a cluster that has migrated", u: &configv1.Update{Version: "4.20.3", Architecture: "Multi"}, at: "Multi", version: "4.20.3", want: true},
	} {
		cv := &configv1.ClusterVersion{}
		cv.Spec.DesiredUpdate, cv.Status.Desired.Architecture = tt.u, tt.at
		if got := clusterversion.Asks(cv, tt.version, tt.image); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

func TestModifyErrors(t *testing.T) {
	cluster := clusterWith(t, map[string]any{"version": "4.20.3", "dryRun": "All"})
	refused := errors.New("refused")
	_, err := clusterversion.Modify(t.Context(), cluster, clusterapi.ModifyOptions{}, func(cv *configv1.ClusterVersion) (bool, error) {
		clusterversion.SetDesired(cv, configv1.Update{})
		return true, refused
	})
	if !errors.Is(err, refused) {
		t.Errorf("error %v", err)
	}
	if _, err := clusterversion.Modify(t.Context(), cluster, clusterapi.ModifyOptions{Status: true}, nil); err == nil {
		t.Error("a request in the status is accepted")
	}
	cv, err := clusterapi.Get[configv1.ClusterVersion](t.Context(), cluster, key)
	if err != nil || cv.Spec.DesiredUpdate == nil {
		t.Errorf("%v, %v", cv, err)
	}
	cv.Spec.DesiredUpdate.AcceptRisks = []configv1.AcceptRisk{{Name: "A"}}
	clusterversion.AcceptedRisks(cv)[0].Name = "B"
	if cv.Spec.DesiredUpdate.AcceptRisks[0].Name != "A" || clusterversion.AcceptedRisks(&configv1.ClusterVersion{}) != nil {
		t.Errorf("risks are %v", cv.Spec.DesiredUpdate.AcceptRisks)
	}
}

// TestGet: a request that is not understood asks for nothing; all else is read.
func TestGet(t *testing.T) {
	for _, c := range []struct {
		desired map[string]any
		asks    bool
	}{
		{nil, false},
		{map[string]any{"version": "4.20.4"}, true},
		{map[string]any{"version": "4.20.4", "dryRun": true}, false},
		{map[string]any{"version": "4.20.4", "mode": "Preflight"}, false},
		{map[string]any{"version": "4.20.4", "architecture": "s390x"}, false},
	} {
		cluster := clusterWith(t, c.desired)
		cv, err := clusterversion.Get(t.Context(), cluster)
		if err != nil {
			t.Fatal(err)
		}
		if got := clusterversion.Asks(cv, "4.20.4", ""); got != c.asks {
			t.Errorf("%v asks for 4.20.4: %v", c.desired, got)
		}
		if cv.Spec.ClusterID == "" {
			t.Errorf("%v: the rest of the spec is lost", c.desired)
		}
	}
	if _, err := clusterversion.Get(t.Context(), memory.NewOpenShift(memory.Options{})); !apierrors.IsNotFound(err) {
		t.Errorf("without a ClusterVersion: %v", err)
	}
}
