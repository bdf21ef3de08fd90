package clusterupdate_test

import (
	"context"
	"errors"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/cvtest"
	"github.com/clusterupdate/clusterupdate/signature"
)

func infrastructureOf(topology configv1.TopologyMode) *configv1.Infrastructure {
	i := &configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
	i.Status.ControlPlaneTopology = topology
	return i
}

// hostedCluster is a cluster of a topology that notes what is written to it.
func hostedCluster(t *testing.T, topology configv1.TopologyMode, readFails *error) (*memory.Cluster, *[]string) {
	t.Helper()
	var writes []string
	api := memory.NewOpenShift(memory.Options{Intercept: func(ctx context.Context, call memory.Call, do func(context.Context) error) error {
		switch call.Verb {
		case "Get", "List", "Watch":
			if readFails != nil && *readFails != nil && call.GVK.Kind == "Infrastructure" {
				return *readFails
			}
		default:
			writes = append(writes, call.Verb+" "+call.GVK.Kind)
		}
		return do(ctx)
	}})
	for _, o := range []any{cvtest.Requestable(), infrastructureOf(topology)} {
		checktest.OK(t, api.Load(checktest.Get(clusterapi.ToUnstructured(o))(t)))
	}
	return api, &writes
}

// TestHosted: a cluster whose control plane is hosted elsewhere is refused, whatever is
// asked for, and nothing is written.
func TestHosted(t *testing.T) {
	api, writes := hostedCluster(t, configv1.ExternalTopologyMode, nil)
	for _, r := range []clusterversion.Request{clusterversion.UpdateRequest{To: "4.20.4"}, clusterversion.ChannelRequest{Name: "fast-4.20"}, clusterversion.RollbackRequest{}, clusterversion.UpdateRequest{ToMultiArch: true}} {
		_, err := clusterversion.Submit(t.Context(), api, r)
		if refused := new(clusterversion.RefusedError); !errors.As(err, &refused) || refused.Reason != clusterversion.RefusedHosted || err.Error() != clusterversion.ErrHostedControlPlane.Error() {
			t.Errorf("%T: %v", r, err)
		}
	}
	for name, run := range map[string]func(*clusterupdate.Updater, context.Context) error{
		"Run":  func(u *clusterupdate.Updater, ctx context.Context) error { return u.Run(ctx) },
		"Sync": func(u *clusterupdate.Updater, ctx context.Context) error { _, err := u.Sync(ctx); return err },
	} {
		u := checktest.Get(clusterupdate.New(clusterupdate.Options{API: api, Payloads: sampleSource(), Verifier: signature.Insecure()}))(t)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		if err := run(u, ctx); !errors.Is(err, clusterversion.ErrHostedControlPlane) || ctx.Err() != nil {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
	if len(*writes) > 0 {
		t.Errorf("written: %v", *writes)
	}
}

// TestNotHosted: other topologies are not refused, nor is what cannot be read, for ever.
func TestNotHosted(t *testing.T) {
	for _, topology := range []configv1.TopologyMode{"", configv1.HighlyAvailableTopologyMode, configv1.SingleReplicaTopologyMode} {
		api, _ := hostedCluster(t, topology, nil)
		if _, err := clusterversion.Submit(t.Context(), api, clusterversion.UpdateRequest{To: "4.20.4"}); err != nil {
			t.Errorf("%q: %v", topology, err)
		}
	}
	fault := error(apierrors.NewServiceUnavailable("away"))
	api, _ := hostedCluster(t, configv1.HighlyAvailableTopologyMode, &fault)
	if _, err := clusterversion.Submit(t.Context(), api, clusterversion.UpdateRequest{To: "4.20.4"}); err != nil {
		t.Errorf("not readable: %v", err)
	}
	from := loadSample(t, sample.From(), sample.FromImage)
	u := checktest.Get(clusterupdate.New(clusterupdate.Options{API: api, Payloads: sampleSource(), Verifier: signature.Insecure(), Own: from.Release}))(t)
	if _, err := u.Sync(t.Context()); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("an Updater that does not know: %v", err)
	}
	fault = nil
	if _, err := u.Sync(t.Context()); apierrors.IsServiceUnavailable(err) || errors.Is(err, clusterversion.ErrHostedControlPlane) {
		t.Errorf("once it knows: %v", err)
	}
}
