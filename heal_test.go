package clusterupdate_test

import (
	"context"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// TestHealsWhileWaiting: what somebody deletes comes back though an operator is
// waited for, be it that operator's own workload in an update, or another
// component's while the cluster is only kept as it is.
func TestHealsWhileWaiting(t *testing.T) {
	deployment := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	from, to := loadSample(t, sample.From(), sample.FromImage), loadSample(t, sample.To(), sample.ToImage)
	for _, tc := range []struct {
		name   string
		update bool
		waits  string
	}{
		{"updating", true, "etcd"},
		{"reconciling", false, "dns"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ctx := context.WithValue(t.Context(), reactionKey{}, true)
			c := newTestCluster(t, from, to, func(cv *configv1.ClusterVersion) {
				if tc.update {
					cv.Spec.DesiredUpdate = &configv1.Update{Version: sample.ToVersion}
				}
			})
			c.hold[tc.waits] = tc.update
			v := virtually(t, c, sampleOptions(t), reconcile.VirtualOptions{Seed: 1})
			v.after(t, 10*time.Minute)
			if !tc.update {
				checktest.Get(clusterapi.Modify(ctx, c.Cluster, clusterapi.Key("", tc.waits), clusterapi.ModifyOptions{Status: true}, func(co *configv1.ClusterOperator) error {
					for i := range co.Status.Conditions {
						if co.Status.Conditions[i].Type == configv1.OperatorDegraded {
							co.Status.Conditions[i].Status = configv1.ConditionTrue
						}
					}
					return nil
				}))(t)
				v.after(t, 10*time.Minute)
			}
			key := clusterapi.Key("openshift-etcd-operator", "etcd-operator")
			checktest.OK(t, c.Delete(ctx, deployment, key, clusterapi.DeleteOptions{}))
			v.after(t, 20*time.Minute)
			if _, err := c.Get(ctx, deployment, key); err != nil {
				t.Errorf("after 20 minutes: %v", err)
			}
			if tc.update && historyOf(c.version(t)) == completedHistory {
				t.Error("the update did not wait")
			}
		})
	}
}
