package kubernetes_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes/internal/testserver"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/rules"
)

// TestPermissions applies the manifests of the README and works as their
// service accounts.
func TestPermissions(t *testing.T) {
	s := testserver.Start(t)
	admin := newAPI(t, s, kubernetes.Options{})
	define(t, admin, []schema.GroupVersionKind{
		configv1.GroupVersion.WithKind("ClusterVersion"), configv1.GroupVersion.WithKind("ClusterOperator"),
		configv1.GroupVersion.WithKind("FeatureGate"), mcfgv1.GroupVersion.WithKind("MachineConfigPool"),
	})
	newClusterVersion(t, admin)
	for _, name := range []string{"openshift-config", "openshift-config-managed", "openshift-cloud-credential-operator", "openshift-machine-config-operator", "openshift-managed-upgrade-operator"} {
		create(t, admin, object(t, `{apiVersion: v1, kind: Namespace, metadata: {name: %s}}`, name))
	}
	create(t, admin, object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: admin-gates, namespace: openshift-config-managed}}`))
	create(t, admin, object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: admin-acks, namespace: openshift-config}}`))
	create(t, admin, object(t, `{apiVersion: config.openshift.io/v1, kind: FeatureGate, metadata: {name: cluster}, spec: {}}`))
	files := checktest.Get(filepath.Glob("rbac/*.yaml"))(t)
	checktest.Equal(t, 6, len(files), "len(files) of %v", files)
	for _, file := range files {
		data := checktest.Get(os.ReadFile(file))(t)
		objects := checktest.Get(manifest.Parse(file, data, manifest.Limits{}))(t)
		for _, m := range objects {
			_, err := admin.Apply(t.Context(), m.Object(), clusterapi.ApplyOptions{FieldManager: "test"})
			checktest.FatalIf(t, err != nil, "%s: %v", m, err)
		}
	}
	t.Run("Reader", func(t *testing.T) { testReader(t, as(t, s, "reader")) })
	t.Run("Updater", func(t *testing.T) { testUpdater(t, as(t, s, "updater"), as(t, s, "reader")) })
}

// as acts for a service account of the manifests.
func as(t testing.TB, s *testserver.Server, account string) clusterapi.ClusterAPI {
	t.Helper()
	config := s.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:clusterupdate:" + account}
	return checktest.Get(kubernetes.New(config, kubernetes.Options{}))(t)
}

func testReader(t *testing.T, api clusterapi.ClusterAPI) {
	cv := checktest.Get(clusterapi.Get[configv1.ClusterVersion](t.Context(), api, clusterapi.Key("", "version")))(t)
	checks := slices.Concat(preconditions.Operator(), rules.Documented(rules.Options{}))
	report := checktest.Get(preconditions.Run(t.Context(), checks, &preconditions.Input{
		Reader: api, Now: time.Now(),
		Transition: preconditions.NewTransition(cv, configv1.Release{Version: "4.18.15", Image: "registry.example/release@sha256:1"}, false, preconditions.Full),
	}, preconditions.Options{}))(t)
	for _, r := range report.Results {
		if apierrors.IsForbidden(r.Err) || r.State == preconditions.Unknown && r.Findings[0].Reason == "NotAllowed" {
			t.Errorf("%s: %v", r.Check, r.Err)
		}
	}
	checktest.Good(t, checktest.Err(clusterapi.List[corev1.Node](t.Context(), api, clusterapi.ListOptions{})))
	for what, err := range map[string]error{
		"reading secrets":          second(api.List(t.Context(), schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, clusterapi.ListOptions{})),
		"reading other configmaps": second(api.List(t.Context(), configMaps, clusterapi.ListOptions{Namespace: "openshift-config"})),
		"requesting an update": second(clusterapi.Modify(t.Context(), api, clusterapi.Key("", "version"), clusterapi.ModifyOptions{}, func(cv *configv1.ClusterVersion) error {
			cv.Spec.Channel = "stable-4.18"
			return nil
		})),
	} {
		checktest.FailIf(t, !apierrors.IsForbidden(err), "%s: %v, want it forbidden", what, err)
	}
}

func second[T any](_ T, err error) error { return err }

// Roles that grant what their author lacks are the reason for cluster-admin.
func testUpdater(t *testing.T, updater, reader clusterapi.ClusterAPI) {
	role := object(t, `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: of-an-operator}
rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]
`)
	checktest.Good(t, checktest.Err(
		updater.Apply(t.Context(), role, clusterapi.ApplyOptions{FieldManager: clusterapi.ManagerPayload})))
	_, err := reader.Apply(t.Context(), role, clusterapi.ApplyOptions{FieldManager: clusterapi.ManagerPayload})
	checktest.FailIf(t, !apierrors.IsForbidden(err), "the reader: %v, want it forbidden", err)
}
