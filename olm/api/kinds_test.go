package api_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
)

// wire converts an object as a cluster has it, and back: what the type knows
// must come out as it went in.
func wire[T any](t *testing.T, text string) *T {
	t.Helper()
	var u unstructured.Unstructured
	data := checktest.Get(yaml.YAMLToJSON([]byte(text)))(t)
	checktest.OK(t, u.UnmarshalJSON(data))
	typed := checktest.Get(clusterapi.FromUnstructured[T](&u))(t)
	back := checktest.Get(clusterapi.ToUnstructured(typed))(t)
	unstructured.RemoveNestedField(back.Object, "metadata", "creationTimestamp")
	checktest.SameIn(t, "spec", u.Object["spec"], back.Object["spec"])
	if u.Object["status"] != nil {
		checktest.SameIn(t, "status", u.Object["status"], back.Object["status"])
	}
	return typed
}

func TestWireSubscription(t *testing.T) {
	s := wire[olmapi.Subscription](t, `
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: a, namespace: ops}
spec: {source: c, sourceNamespace: olm, name: pkg, channel: stable, startingCSV: a.v1, installPlanApproval: Manual}
status:
  currentCSV: a.v2
  installedCSV: a.v1
  state: UpgradePending
  reason: r
  installPlanRef: {apiVersion: operators.coreos.com/v1alpha1, kind: InstallPlan, name: install-x, namespace: ops, uid: u, resourceVersion: "7"}
  installplan: {apiVersion: operators.coreos.com/v1alpha1, kind: InstallPlan, name: install-x, uuid: u}
  installPlanGeneration: 3
  catalogHealth:
  - {catalogSourceRef: {name: c, namespace: olm}, lastUpdated: "2026-01-01T00:00:00Z", healthy: true}
  conditions:
  - {type: CatalogSourcesUnhealthy, status: "False", reason: AllCatalogSourcesHealthy, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}
  lastUpdated: "2026-01-01T00:00:00Z"
`)
	if s.Spec.Package != "pkg" || s.Spec.InstallPlanApproval != olmapi.ApprovalManual || s.Status.InstallPlanGeneration != 3 || !s.Status.CatalogHealth[0].Healthy {
		t.Errorf("%+v", s)
	}
}

func TestWireClusterServiceVersion(t *testing.T) {
	c := wire[olmapi.ClusterServiceVersion](t, `
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: a.v1, namespace: ops}
spec:
  version: 1.0.0
  replaces: a.v0
  skips: [a.v0.5]
  customresourcedefinitions:
    owned: [{name: xs.g, version: v1, kind: X}]
    required: [{name: ys.g, version: v1, kind: Why}]
  apiservicedefinitions:
    owned: [{name: zs, group: g, version: v1, kind: Z}]
  install:
    strategy: deployment
    spec:
      permissions: [{serviceAccountName: sa, rules: [{verbs: [get], apiGroups: [""], resources: [pods]}]}]
      clusterPermissions: [{serviceAccountName: sa, rules: [{verbs: [get], nonResourceURLs: [/metrics]}]}]
status: {phase: Succeeded, reason: InstallSucceeded, message: fine}
`)
	want := []olmapi.Permission{{ServiceAccountName: "sa", Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"}}}}}
	checktest.Same(t, want, c.Spec.Install.Spec.ClusterPermissions)
}

func TestWireInstallPlan(t *testing.T) {
	p := wire[olmapi.InstallPlan](t, `
apiVersion: operators.coreos.com/v1alpha1
kind: InstallPlan
metadata: {name: install-x, namespace: ops}
spec: {clusterServiceVersionNames: [a.v1], approval: Automatic, approved: true, generation: 2}
status:
  phase: Complete
  catalogSources: [c]
  startTime: "2026-01-01T00:00:00Z"
  message: m
  conditions: [{type: Installed, status: "True", reason: r, message: m, lastUpdateTime: "2026-01-01T00:00:00Z", lastTransitionTime: "2026-01-01T00:00:00Z"}]
  plan:
  - resolving: a.v1
    status: Created
    resource: {sourceName: c, sourceNamespace: olm, group: operators.coreos.com, version: v1alpha1, kind: ClusterServiceVersion, name: a.v1, manifest: "{}"}
  bundleLookups:
  - path: registry.example/a
    identifier: a.v1
    replaces: a.v0
    properties: "{}"
    catalogSourceRef: {name: c, namespace: olm}
    conditions: [{type: BundleLookupPending, status: "True", reason: JobNotStarted, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}]
`)
	checktest.Same(t, &corev1.ObjectReference{Namespace: "olm", Name: "c"}, p.Status.BundleLookups[0].CatalogSourceRef)
}

func TestWireCatalogSourceAndGroup(t *testing.T) {
	c := wire[olmapi.CatalogSource](t, `
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {name: c, namespace: olm}
spec: {sourceType: grpc, priority: -5, image: registry.example/c, displayName: C, publisher: P}
status: {message: m, reason: r, connectionState: {address: "c:50051", lastObservedState: READY}}
`)
	if c.Spec.Priority != -5 || c.Status.ConnectionState.LastObservedState != "READY" {
		t.Errorf("%+v", c)
	}
	g := wire[olmapi.OperatorGroup](t, `
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: og, namespace: ops}
spec: {targetNamespaces: [ops], upgradeStrategy: TechPreviewUnsafeFailForward}
`)
	if g.Spec.UpgradeStrategy != "TechPreviewUnsafeFailForward" {
		t.Errorf("%+v", g)
	}
}
