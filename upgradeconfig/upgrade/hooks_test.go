package upgrade_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/upgrade"
)

func TestOperatorHealth(t *testing.T) {
	cluster := serving(memory.NewOpenShift(memory.Options{}))
	for name, conditions := range map[string][]configv1.ClusterOperatorStatusCondition{
		"dns":     {{Type: configv1.OperatorDegraded, Status: configv1.ConditionTrue}, {Type: configv1.OperatorAvailable, Status: configv1.ConditionTrue}},
		"console": {{Type: configv1.OperatorAvailable, Status: configv1.ConditionFalse}},
		"ingress": {{Type: configv1.OperatorAvailable, Status: configv1.ConditionUnknown}, {Type: configv1.OperatorDegraded, Status: configv1.ConditionUnknown}},
		"etcd":    {{Type: configv1.OperatorAvailable, Status: configv1.ConditionTrue}, {Type: configv1.OperatorDegraded, Status: configv1.ConditionFalse}},
	} {
		o := &configv1.ClusterOperator{}
		o.Name, o.Status.Conditions = name, conditions
		u, err := clusterapi.ToUnstructured(o)
		if err == nil {
			err = cluster.Load(u)
		}
		checktest.OK(t, err)
	}
	got, err := upgrade.OperatorHealth(cluster)(t.Context(), nil)
	if diff := cmp.Diff([]string{"ClusterOperator console is not available", "ClusterOperator dns is degraded"}, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
}

// TestTwoControllers: of two that look at one object, one request and one set
// of notifications come.
func TestTwoControllers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSite(t, nil)
		m, a := w.operator(upgrade.Options{})
		_, b := w.operator(upgrade.Options{})
		must(m.Sync(t.Context()))
		for range 200 {
			p, _ := a.Sync(t.Context())
			if q, _ := b.Sync(t.Context()); q.Phase == upgradeconfig.PhaseUpgraded {
				break
			}
			time.Sleep(min(p.After, time.Minute))
			w.play()
		}
		if diff := cmp.Diff(startedAndCompleted, w.provider.told); diff != "" || w.entry().Phase != upgradeconfig.PhaseUpgraded || w.requested != 1 {
			t.Errorf("%s, %d requests, %s", w.entry().Phase, w.requested, diff)
		}
	})
}
