package upgradeconfig_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
)

// Whatever a cluster stores as an UpgradeConfig is refused with an error or
// decided about, and comes back as it was.
func FuzzUpgradeConfig(f *testing.F) {
	f.Add([]byte(`{"apiVersion":"upgrade.managed.openshift.io/v1alpha1","kind":"UpgradeConfig","metadata":{"name":"managed-upgrade-config"},` +
		`"spec":{"desired":{"version":"4.20.3"},"upgradeAt":"2031-02-04T03:00:00+02:00","PDBForceDrainTimeout":45,"type":"OSD"},` +
		`"status":{"history":[{"version":"4.20.3","phase":"Upgrading","startTime":"2031-02-04T03:00:00Z","conditions":[{"type":"UpgradeCommenced","status":"True"}]}]}}`))
	f.Add([]byte(`{"kind":"UpgradeConfig","spec":{"desired":{},"PDBForceDrainTimeout":4294967296},"status":{"history":[null]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		u := &unstructured.Unstructured{}
		if u.UnmarshalJSON(data) != nil {
			return
		}
		c, err := clusterapi.FromUnstructured[upgradeconfig.UpgradeConfig](u)
		if err != nil {
			return
		}
		kind := upgradeconfig.Diff(c, []upgradeconfig.Spec{c.Spec}, upgradeconfig.DiffOptions{Update: true}).Kind
		checktest.Equal(t, c.DeletionTimestamp == nil, kind == "", "%s", kind)
		upgradeconfig.InProgress(c)
		once := again(t, c)
		if d := cmp.Diff(once, again(t, once)); d != "" || once.Spec != c.Spec {
			t.Fatalf("(-want +got):\n%s", d)
		}
	})
}

func again(t *testing.T, c *upgradeconfig.UpgradeConfig) *upgradeconfig.UpgradeConfig {
	u := must(clusterapi.ToUnstructured(c))
	out := must(clusterapi.FromUnstructured[upgradeconfig.UpgradeConfig](u))
	return out
}
