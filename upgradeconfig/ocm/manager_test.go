package ocm_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/ocm"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/ocm/ocmtest"
)

// scene is a cluster whose Manager follows a fake OCM.
type scene struct {
	t       *testing.T
	server  *ocmtest.Server
	cluster *memory.Cluster
	manager *upgradeconfig.Manager
	writes  int
}

func newScene(t *testing.T, o ocm.Options, list ...ocmtest.Policy) *scene {
	s := &scene{t: t, server: newServer(list...)}
	s.cluster = serving(memory.NewOpenShift(memory.Options{Intercept: func(ctx context.Context, call memory.Call, do func(context.Context) error) error {
		switch call.Verb {
		case "Get", "List":
		default:
			s.writes++
		}
		return do(ctx)
	}}))
	for _, object := range ocmtest.Objects(uuid, token) {
		must(s.cluster.Create(t.Context(), object, clusterapi.CreateOptions{}))
	}
	config := &corev1.ConfigMap{Data: map[string]string{"config.yaml": "upgradeType: OSD\nconfigManager: {source: OCM, ocmBaseUrl: 'https://ocm.example', watchInterval: 60}\n"}}
	config.Namespace, config.Name = upgradeconfig.DefaultNamespace, "managed-upgrade-operator-config"
	must(clusterapi.Create(t.Context(), s.cluster, config, clusterapi.CreateOptions{}))
	o.Base, o.Rand = ocmtest.Transport(s.server), func(n int64) int64 { return n / 2 }
	s.manager = must(upgradeconfig.NewManager(upgradeconfig.ManagerOptions{
		API: s.cluster, FromConfig: ocm.FromConfig(s.cluster, o), NoJitter: true,
	}))

	s.writes = 0
	return s
}

// object is the UpgradeConfig, nil if there is none.
func (s *scene) object() *upgradeconfig.UpgradeConfig {
	c, err := clusterapi.Get[upgradeconfig.UpgradeConfig](s.t.Context(), s.cluster, clusterapi.Key(upgradeconfig.DefaultNamespace, upgradeconfig.Name))
	if apierrors.IsNotFound(err) {
		return nil
	}
	checktest.OK(s.t, err)
	return c
}

func (s *scene) sync() upgradeconfig.Result {
	s.t.Helper()
	r := must(s.manager.Sync(s.t.Context()))
	return r
}

// TestFollowsOCM: a policy appears, moves, is cancelled, comes back and goes.
func TestFollowsOCM(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, ocm.Options{}, p7)
		if r := s.sync(); !r.Changed || cmp.Diff(p7Spec, s.object().Spec) != "" || s.writes != 1 {
			t.Errorf("%+v, %d writes", r, s.writes)
		}
		if r := s.sync(); r.Changed || s.writes != 1 {
			t.Errorf("%+v, %d writes for no change", r, s.writes)
		}
		first := s.object().UID

		moved := p7
		moved.NextRun = "2031-02-04T04:00:00Z"
		s.server.SetPolicy(clusterID, moved)
		s.sync()
		if c := s.object(); c.UID == first || c.Spec.UpgradeAt != moved.NextRun {
			t.Errorf("%+v", c)
		}
		moved.State = "Cancelled"
		s.server.SetPolicy(clusterID, moved)
		if s.sync(); s.object() != nil {
			t.Error("a cancelled policy counts")
		}
		// Pending, and a later one that is not.
		moved.State = "pending"
		s.server.SetPolicy(clusterID, moved)
		s.server.SetPolicy(clusterID, pol("p-8", "4.17.5", "2031-03-01T00:00:00Z", "scheduled"))
		if s.sync(); s.object().Spec.Desired.Version != "4.17.5" {
			t.Errorf("%+v", s.object())
		}
		s.server.RemovePolicy(clusterID, "p-8")
		if r := s.sync(); !r.Changed || s.object() != nil {
			t.Errorf("%+v", r)
		}
	})
}

// TestOutage: the object stays, Run tries again, and no request is one too many.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, ocm.Options{}, p7)
		s.sync()
		version, start := s.object().ResourceVersion, time.Now()
		s.server.Forget()
		s.server.RemovePolicy(clusterID, "p-7") // which nobody learns
		s.server.Fail(ocmtest.Fault{Path: "/clusters", Status: 500, Times: 8})

		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.manager.Run(ctx) }()
		// 1 before the first try, then 1 2 4 8 16 32 60 60 after the failures.
		for i, wait := range []time.Duration{1, 1, 2, 4, 8, 16, 32, 60} {
			time.Sleep(wait * time.Minute)
			synctest.Wait()
			if n := len(s.server.Requests()); n != i+1 || s.object() == nil || s.object().ResourceVersion != version {
				t.Fatalf("%d requests after %s, object %v", n, time.Since(start), s.object())
			}
		}
		time.Sleep(59 * time.Minute)
		synctest.Wait()
		if s.object() == nil {
			t.Error("deleted too early")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if s.object() != nil {
			t.Error("a policy that is gone stays")
		}
		cancel()
		checktest.ErrorIs(t, context.Canceled, <-done)
	})
}

// TestBusy: 503 twice, then an answer, make one sync.
func TestBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, ocm.Options{}, p7)
		s.server.Fail(ocmtest.Fault{Path: "/upgrade_policies", Status: 503, Times: 2})
		start := time.Now()
		if r := s.sync(); !r.Changed || time.Since(start) != 12*time.Second || len(s.server.Requests()) != 5 {
			t.Errorf("%+v after %s and %v", r, time.Since(start), asked(s.server))
		}
	})
}

// TestNotConnected: what authenticates is missing; the error says what, and
// nothing is asked or changed.
func TestNotConnected(t *testing.T) {
	s := newScene(t, ocm.Options{}, p7)
	s.sync()
	s.server.Forget()
	secret, err := s.cluster.Get(t.Context(), ocmtest.PullSecret(nil).GroupVersionKind(), clusterapi.Key("openshift-config", "pull-secret"))
	checktest.OK(t, err)
	secret.Object["data"] = ocmtest.PullSecret([]byte(`{"auths":{"quay.io":{"auth":"eDp5"}}}`)).Object["data"]
	must(s.cluster.Update(t.Context(), secret, clusterapi.UpdateOptions{}))
	_, err = s.manager.Sync(t.Context())
	if err == nil || err.Error() != "failed to retrieve cluster access token: unable to find pull secret auth key 'cloud.openshift.com' in pull secret" {
		t.Error(err)
	}
	if s.object() == nil || len(s.server.Requests()) != 0 {
		t.Errorf("%v after %v", s.object(), asked(s.server))
	}
}

// TestCauseIsKept: the error of a sync says what OCM said.
func TestCauseIsKept(t *testing.T) {
	s := newScene(t, ocm.Options{}, p7)
	s.server.Fail(ocmtest.Fault{Path: "/state", Status: http.StatusInternalServerError, Body: `{"kind":"Error","code":"CLUSTERS-MGMT-500","reason":"out of memory","operation_id":"op"}`})
	_, err := s.manager.Sync(t.Context())
	request := new(ocm.RequestError)
	if !errors.Is(err, upgradeconfig.ErrRetrievePolicies) || !errors.As(err, &request) || request.Reason != "out of memory" || !strings.Contains(fmt.Sprint(err), "CLUSTERS-MGMT-500: out of memory") {
		t.Error(err)
	}
}
