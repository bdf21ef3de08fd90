package upgrade_test

import (
	"context"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
)

var objectKey = clusterapi.Key(upgradeconfig.DefaultNamespace, upgradeconfig.Name)

var specA = upgradeconfig.Spec{
	Desired:              upgradeconfig.Update{Version: "4.20.3", Channel: "stable-4.20"},
	UpgradeAt:            "2031-02-04T03:00:00Z",
	PDBForceDrainTimeout: 45,
	Type:                 upgradeconfig.OSD,
	CapacityReservation:  true,
}

func policies(specs ...upgradeconfig.Spec) upgradeconfig.ProviderFunc {
	var out []upgradeconfig.Policy
	for _, s := range specs {
		out = append(out, upgradeconfig.Policy{ID: "p-" + s.Desired.Version, Spec: s, State: "scheduled"})
	}
	return func(context.Context) ([]upgradeconfig.Policy, error) { return out, nil }
}

func object(spec upgradeconfig.Spec, status upgradeconfig.Status) *upgradeconfig.UpgradeConfig {
	c := &upgradeconfig.UpgradeConfig{Spec: spec, Status: status}
	c.Namespace, c.Name = objectKey.Namespace, objectKey.Name
	return c
}

// underWay is the status of an upgrade that is in progress.
func underWay(version string) upgradeconfig.Status {
	return upgradeconfig.Status{History: []upgradeconfig.HistoryEntry{{
		Version: version,
		Phase:   upgradeconfig.PhaseUpgrading,
		Conditions: []upgradeconfig.Condition{
			{Type: upgradeconfig.StartedNotificationSent, Status: metav1.ConditionTrue},
		},
	}}}
}

// store creates an object with its status.
func store(t *testing.T, api clusterapi.ClusterAPI, c *upgradeconfig.UpgradeConfig) *upgradeconfig.UpgradeConfig {
	t.Helper()
	if _, err := clusterapi.Create(t.Context(), api, c, clusterapi.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return setStatus(t, api, c.Status)
}

func setStatus(t *testing.T, api clusterapi.ClusterAPI, status upgradeconfig.Status) *upgradeconfig.UpgradeConfig {
	t.Helper()
	c, err := clusterapi.Modify(t.Context(), api, objectKey, clusterapi.ModifyOptions{Status: true}, func(c *upgradeconfig.UpgradeConfig) error {
		c.Status = status
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// stored returns the object, nil if there is none.
func stored(t *testing.T, r clusterapi.Reader) *upgradeconfig.UpgradeConfig {
	t.Helper()
	c, err := clusterapi.Get[upgradeconfig.UpgradeConfig](context.WithoutCancel(t.Context()), r, objectKey)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// newCluster returns a cluster with a ClusterVersion that is Progressing or not.
func newCluster(t *testing.T, o memory.Options, progressing bool) *memory.Cluster {
	t.Helper()
	c := serving(memory.NewOpenShift(o))
	cv := &configv1.ClusterVersion{}
	cv.Name = upgradeconfig.ClusterVersionName
	cv.Spec.ClusterID = "b2d0a7a5-2a39-4a5c-9e1d-0123456789ab"
	status := configv1.ConditionFalse
	if progressing {
		status = configv1.ConditionTrue
	}
	cv.Status.Conditions = []configv1.ClusterOperatorStatusCondition{{Type: configv1.OperatorProgressing, Status: status, LastTransitionTime: metav1.Unix(0, 0)}}
	u, err := clusterapi.ToUnstructured(cv)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Load(u); err != nil {
		t.Fatal(err)
	}
	return c
}

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t
}

// serving adds the kind UpgradeConfig to a cluster.
func serving(c *memory.Cluster) *memory.Cluster {
	if err := c.Load(upgradeconfig.Definition()); err != nil {
		panic(err)
	}
	return c
}

// looseDefinition is the definition without what its schema says of fields: to
// validate them takes a third of the time of an upgrade.
func looseDefinition() *unstructured.Unstructured {
	u := upgradeconfig.Definition()
	versions := u.Object["spec"].(map[string]any)["versions"].([]any)
	versions[0].(map[string]any)["schema"] = map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}
	return u
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// history makes entries of a ClusterVersion: version, and when it completed;
// empty for one that has not.
func history(entries ...[2]string) []configv1.UpdateHistory {
	var out []configv1.UpdateHistory
	for _, e := range entries {
		h := configv1.UpdateHistory{Version: e[0], State: configv1.PartialUpdate, StartedTime: metav1.Unix(0, 0)}
		if e[1] != "" {
			h.State, h.CompletionTime = configv1.CompletedUpdate, &metav1.Time{Time: at(e[1])}
		}
		out = append(out, h)
	}
	return out
}

func configMap(namespace, text string) *corev1.ConfigMap {
	m := &corev1.ConfigMap{Data: map[string]string{upgradeconfig.ConfigMapKey: text}}
	m.Namespace, m.Name = namespace, upgradeconfig.ConfigMapName
	return m
}

// must returns what a constructor made.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
