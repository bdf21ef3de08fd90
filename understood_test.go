package clusterupdate_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// newerAPI is a cluster whose definition of a ClusterVersion has more fields and
// values: it shows them in the request.
type newerAPI struct {
	*memory.Cluster
	fields map[string]any
}

func (n *newerAPI) Get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	u, err := n.Cluster.Get(ctx, gvk, key)
	if err != nil || gvk.Kind != "ClusterVersion" {
		return u, err
	}
	if desired, ok, _ := unstructured.NestedMap(u.Object, "spec", "desiredUpdate"); ok {
		maps.Copy(desired, n.fields)
		err = unstructured.SetNestedField(u.Object, desired, "spec", "desiredUpdate")
	}
	return u, err
}

func (n *newerAPI) GetShared(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*clusterapi.Object, error) {
	if gvk.Kind != "ClusterVersion" {
		return n.Cluster.GetShared(ctx, gvk, key)
	}
	u, err := n.Get(ctx, gvk, key)
	if err != nil {
		return nil, err
	}
	return clusterapi.NewObject(u), nil
}

// TestNotUnderstood: a request with something that this version does not know starts
// nothing, whatever else it names; the cluster is kept as it is, and a started update
// goes on.
func TestNotUnderstood(t *testing.T) {
	const unknown = "Forbidden: not understood by this version"
	for name, tt := range map[string]struct {
		fields map[string]any
		fault  string
	}{
		"another mode":         {map[string]any{"mode": "Other"}, "spec.desiredUpdate.mode: " + unknown},
		"unknown field":        {map[string]any{"window": "tonight"}, "spec.desiredUpdate.window: " + unknown},
		"unknown architecture": {map[string]any{"architecture": "arm64"}, "spec.desiredUpdate.architecture: " + unknown},
		"in accepted risks":    {map[string]any{"acceptRisks": []any{map[string]any{"name": "A", "until": "noon"}}}, "spec.desiredUpdate.acceptRisks[0].until: " + unknown},
	} {
		for i, request := range []configv1.Update{
			{Version: sample.ToVersion},
			{Version: sample.ToVersion, Image: sample.ToImage, Force: true},
		} {
			for _, auto := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %d auto %v", name, i, auto), func(t *testing.T) {
					api := &newerAPI{fields: tt.fields}
					withSample(t, func(o *clusterupdate.Options) { api.Cluster = o.API.(*memory.Cluster); o.API, o.Auto = api, auto }, func(s *sampleTest) {
						s.request(s.T, request)
						s.syncs(1)
						time.Sleep(time.Hour)
						s.sync()
						s.wantHistory("4.20.3 Completed")
						if got := condition(s.version(s), clusterversion.ConditionInvalid); !strings.Contains(got, tt.fault) || !strings.HasPrefix(got, "True InvalidClusterVersion: ") {
							s.Errorf("Invalid is %q", got)
						}
						if why := s.u.Explain().Resolution.Why; !strings.Contains(why, tt.fault) {
							s.Errorf("why is %q", why)
						}
						if got := s.saw(clusterupdate.EventRequestIgnored); len(got) != 1 {
							s.Errorf("told %q", got)
						}
						if n := len(s.version(s).Status.AvailableUpdates); n != 2 {
							s.Errorf("%d available updates", n)
						}
						// What the cluster runs is kept all the same.
						key := clusterapi.Key("openshift-dns-operator", "dns-operator")
						checktest.OK(s, s.Delete(s.Context(), deployments, key, clusterapi.DeleteOptions{}))
						time.Sleep(time.Hour)
						s.sync()
						checktest.Good(s, checktest.Err(s.Get(s.Context(), deployments, key)))
						// Without that, the request is what it says.
						api.fields = nil
						if r := s.syncs(5); !r.Done {
							s.Error(r.Failure)
						}
						s.wantHistory(completedHistory)
						s.wantCondition(clusterversion.ConditionInvalid, "")
					})
				})
			}
		}
	}
}

// TestNotUnderstoodInMidUpdate: an update that was accepted goes on, and is not turned
// around, by a request that is not understood, in the same process and in a later one.
func TestNotUnderstoodInMidUpdate(t *testing.T) {
	for _, image := range []string{sample.FromImage, sample.ToImage} {
		for _, restart := range []bool{false, true} {
			api := &newerAPI{}
			withSample(t, func(o *clusterupdate.Options) { api.Cluster = o.API.(*memory.Cluster); o.API = api }, func(s *sampleTest) {
				s.hold["dns"] = true
				s.request(s.T, configv1.Update{Version: sample.ToVersion})
				s.syncs(2)
				api.fields = map[string]any{"mode": "Other"}
				s.request(s.T, configv1.Update{Image: image, Force: true})
				s.syncs(2)
				if restart {
					s.restart(func(o *clusterupdate.Options) { o.API = api })
				}
				s.wantHistory("4.21.1 Partial, 4.20.3 Completed")
				s.hold["dns"] = false
				s.reportAll("dns")
				if r := s.syncs(5); !r.Done {
					s.Error(r.Failure)
				}
				s.wantHistory(completedHistory)
			})
		}
	}
}
