package rehearsal

import (
	"context"
	"errors"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func TestRequestRun(t *testing.T) {
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	offered := func(cv *configv1.ClusterVersion) {
		cv.Status.AvailableUpdates = []configv1.Release{{Version: "4.21.1", Image: "r@sha256:1"}}
	}
	condition := func(name, reason string, status configv1.ConditionStatus) func(*configv1.ClusterVersion) {
		return func(cv *configv1.ClusterVersion) {
			cv.Status.Conditions = []configv1.ClusterOperatorStatusCondition{{Type: configv1.ClusterStatusConditionType(name), Status: status, Reason: reason, Message: "because", LastTransitionTime: metav1.NewTime(start)}}
		}
	}
	completed := func(cv *configv1.ClusterVersion) {
		cv.Status.History = []configv1.UpdateHistory{{Version: "4.21.1", State: configv1.CompletedUpdate, StartedTime: metav1.NewTime(start), CompletionTime: new(metav1.NewTime(start))}}
	}
	over := errors.New("no more time")
	for _, tt := range []struct {
		name    string
		changes []func(*configv1.ClusterVersion) // one in each wait
		want    string
		waits   int
	}{
		{"not offered", nil, "no more time", 1},
		{"refused", []func(*configv1.ClusterVersion){offered, condition("ReleaseAccepted", "RetrievePayload", "False")}, "refused: RetrievePayload: because", 2},
		{"stuck", []func(*configv1.ClusterVersion){offered, condition("Failing", "ClusterOperatorDegraded", "True")}, "stuck: ClusterOperatorDegraded: because", 31},
		{"done", []func(*configv1.ClusterVersion){offered, completed}, "<nil>", 3}, // the pool is late
	} {
		t.Run(tt.name, func(t *testing.T) {
			api := memory.NewOpenShift(memory.Options{})
			cv := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}, Spec: configv1.ClusterVersionSpec{ClusterID: "8d4c5c1a-8e0e-4bd9-9d5d-8d2a4c9f7f01"}}
			checktest.OK(t, checktest.Err(clusterapi.Create(t.Context(), api, cv, clusterapi.CreateOptions{})))
			pool := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: "worker"}}
			checktest.OK(t, checktest.Err(clusterapi.Create(t.Context(), api, pool, clusterapi.CreateOptions{})))
			waits, now := 0, start
			err := Request{API: api, Version: "4.21.1", Now: func() time.Time { return now }, Wait: func(d time.Duration) error {
				waits, now = waits+1, now.Add(d)
				if len(tt.changes) == 0 && waits > 0 {
					return over
				}
				if waits <= len(tt.changes) {
					_, err := clusterapi.Modify(t.Context(), api, clusterapi.Key("", "version"), clusterapi.ModifyOptions{Status: true}, func(cv *configv1.ClusterVersion) error {
						tt.changes[waits-1](cv)
						return nil
					})
					return err
				}
				if tt.name == "done" {
					_, err := clusterapi.Modify(t.Context(), api, clusterapi.Key("", "worker"), clusterapi.ModifyOptions{Status: true}, func(p *mcfgv1.MachineConfigPool) error {
						p.Status.Conditions = []mcfgv1.MachineConfigPoolCondition{{Type: mcfgv1.MachineConfigPoolUpdated, Status: "True"}}
						return nil
					})
					return err
				}
				return nil
			}}.Run(t.Context())
			got := "<nil>"
			if err != nil {
				got = err.Error()
			}
			if got != tt.want || waits != tt.waits {
				t.Errorf("%s after %d waits, want %s after %d", got, waits, tt.want, tt.waits)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	checktest.Fails(t, (Request{API: memory.NewOpenShift(memory.Options{})}).Run(ctx),
		"a context that has ended gives no error")
}
