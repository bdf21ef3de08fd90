package remedy_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/rules"
)

// faults fails or conflicts the n-th write, before or after it takes effect.
type faults struct {
	at    int // from 1; 0: none
	what  string
	calls int
}

func (f *faults) intercept(ctx context.Context, call memory.Call, do func(context.Context) error) error {
	if call.Verb == "Get" || call.Verb == "List" || call.Verb == "Watch" {
		return do(ctx)
	}
	if f.calls++; f.calls != f.at {
		return do(ctx)
	}
	switch f.what {
	case "conflict":
		return apierrors.NewConflict(schema.GroupResource{Resource: "x"}, "x", errors.New("meanwhile"))
	case "after":
		if err := do(ctx); err != nil {
			return err
		}
	}
	return errors.New("connection lost")
}

// forkOf is a cluster that starts from objects, which stay as they are.
func forkOf(t testing.TB, f *faults, objects ...any) *memory.Cluster {
	t.Helper()
	base := memory.New(memory.Options{Lenient: true})
	for _, o := range objects {
		u, ok := o.(*unstructured.Unstructured)
		if !ok {
			var err error
			if u, err = clusterapi.ToUnstructured(o); err != nil {
				t.Fatal(err)
			}
		}
		checktest.OK(t, base.Load(u))
	}
	o := memory.Options{Lenient: true, Base: clusterapi.ReadOnly(base)}
	if f != nil {
		o.Intercept = f.intercept
	}
	return memory.New(o)
}

// eachFault calls do for a fault at each write, until there are no more writes; do
// repeats what failed.
func eachFault(t *testing.T, do func(t *testing.T, f *faults)) {
	t.Helper()
	for _, what := range []string{"before", "after", "conflict"} {
		for at := 1; ; at++ {
			f := &faults{at: at, what: what}
			t.Run(fmt.Sprintf("%s write %d", what, at), func(t *testing.T) { do(t, f) })
			if f.calls < at {
				if at == 1 {
					t.Error("nothing is written")
				}
				break
			}
		}
	}
}

// again repeats what failed.
func again(t *testing.T, do func() error) {
	t.Helper()
	var err error
	for range 3 {
		if err = do(); err == nil {
			return
		}
	}
	t.Fatal(err)
}

func clusterVersion(version string) *configv1.ClusterVersion {
	cv := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}}
	cv.Spec.ClusterID = "8d4c5c1a-8e0e-4bd9-9d5d-8d2a4c9f7f01"
	cv.Spec.Capabilities = &configv1.ClusterVersionCapabilitiesSpec{BaselineCapabilitySet: configv1.ClusterVersionCapabilitySetNone}
	cv.Status.Desired = configv1.Release{Version: version, Image: "A"}
	cv.Status.History = []configv1.UpdateHistory{{Version: version, Image: "A", State: configv1.CompletedUpdate}}
	cv.Status.Conditions = []configv1.ClusterOperatorStatusCondition{{Type: configv1.RetrievedUpdates, Status: configv1.ConditionTrue}}
	return cv
}

func infrastructure(p configv1.PlatformType) *configv1.Infrastructure {
	i := &configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
	i.Status.ControlPlaneTopology = configv1.HighlyAvailableTopologyMode
	i.Status.PlatformStatus = &configv1.PlatformStatus{Type: p}
	return i
}

// check runs one check on the way to a release.
func check(t *testing.T, r clusterapi.Reader, name string, target configv1.Release, edit func(*preconditions.Input)) preconditions.Result {
	t.Helper()
	cv := checktest.Get(clusterapi.Get[configv1.ClusterVersion](t.Context(), r, clusterapi.Key("", "version")))(t)
	in := &preconditions.Input{Reader: r, Transition: preconditions.NewTransition(cv, target, false, preconditions.Full)}
	if edit != nil {
		edit(in)
	}
	for _, c := range rules.Documented(rules.Options{}) {
		if c.Name() != name {
			continue
		}
		report := checktest.Get(preconditions.Run(t.Context(), []preconditions.Check{c}, in,
			preconditions.Options{}))(t)
		return report.Results[0]
	}
	t.Fatalf("no check %s", name)
	return preconditions.Result{}
}

// payload is a release with manifests in files.
func payload(t testing.TB, version string, manifests ...string) *manifest.Payload {
	t.Helper()
	p := checktest.Get(manifest.Load(t.Context(), testdata.Release(version, manifests...),
		manifest.LoadOptions{Image: "T", Filter: manifest.DefaultFilter()}))(t)
	return p
}
