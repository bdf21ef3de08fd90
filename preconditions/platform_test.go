package preconditions_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	apiserverv1 "github.com/openshift/api/apiserver/v1"
	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	operatorv1alpha1 "github.com/openshift/api/operator/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/rules"
	"github.com/clusterupdate/clusterupdate/signature"
)

var checkTime = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func atCheckTime(in *preconditions.Input) { in.Now = checkTime }

// object builds one from JSON-like fields.
func object(apiVersion, kind, namespace, name string, fields map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}}}
	if namespace != "" {
		u.SetNamespace(namespace)
	}
	for k, v := range fields {
		u.Object[k] = v
	}
	return u
}

func forbidden(resource string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("no"))
}

func TestNetworkPlugin(t *testing.T) {
	network := func(spec, status string, migration bool) *configv1.Network {
		n := &configv1.Network{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
		n.Spec.NetworkType, n.Status.NetworkType = spec, status
		if migration {
			n.Status.Migration = &configv1.NetworkMigration{NetworkType: "OVNKubernetes"}
		}
		return n
	}
	const sdn = "Blocking OpenShiftSDN: The network plugin is not in releases from 4.17 on: cluster (OpenShiftSDN)"
	cases := []checkCase{
		{name: "OVN", objects: []any{network("OpenShiftSDN", "OVNKubernetes", false)}, want: "Passed"},
		{name: "SDN", objects: []any{network("OVNKubernetes", "OpenShiftSDN", false)}, want: "Failed\n" + sdn},
		{name: "by the spec", objects: []any{network("OpenShiftSDN", "", false)}, want: "Failed\n" + sdn},
		{name: "migrating", objects: []any{network("OVNKubernetes", "OpenShiftSDN", true)}, want: "Failed\n" + sdn + "\nWarning NetworkMigrationInProgress: The network is being migrated: cluster (OVNKubernetes)"},
		{name: "another plugin", objects: []any{network("Calico", "Calico", false)}, want: "Passed"},
		{name: "from 4.17", current: "4.17.1@A", target: "4.18.1@T", objects: []any{network("", "OpenShiftSDN", false)}, want: "NotApplicable"},
		{name: "none", want: "NotApplicable\nInfo NotApplicable: the cluster has no Network"},
		{name: "no such kind", fail: map[string]error{"Network": noKind("Network")}, want: "NotApplicable\nInfo NotApplicable: the cluster has no Networks"},
		{name: "malformed", objects: []any{malformed("config.openshift.io/v1", "Network", "cluster")}, want: "Unknown\nWarning UnknownError: Network cluster: spec: got a JSON string, want v1.NetworkSpec"},
		{name: "forbidden", fail: map[string]error{"Network": forbidden("networks")}, want: "Unknown\nWarning NotAllowed: not allowed to get networks.config.openshift.io: networks is forbidden: no"},
	}
	for i := range cases {
		if cases[i].current == "" {
			cases[i].current, cases[i].target = "4.16.9@A", "4.17.2@T"
		}
	}
	runCases(t, checkNamed(t, "NetworkPlugin"), cases)
}

type alerts struct {
	all []clusterapi.Alert
	err error
}

func (a alerts) Firing(context.Context) ([]clusterapi.Alert, error) { return a.all, a.err }

func alert(name, namespace, severity, state string) clusterapi.Alert {
	return clusterapi.Alert{Labels: map[string]string{"alertname": name, "namespace": namespace, "severity": severity}, State: state}
}

func TestCriticalAlerts(t *testing.T) {
	firing := func(all ...clusterapi.Alert) func(*preconditions.Input) {
		return func(in *preconditions.Input) { in.Alerts = alerts{all: all} }
	}
	precheck := alert("Mine", "", "info", "firing")
	precheck.Labels["openShiftUpdatePrecheck"] = "true"
	runCases(t, checkNamed(t, "CriticalAlerts"), []checkCase{
		{name: "none", input: firing(), want: "Passed"},
		{name: "no source", want: "Unknown\nWarning NoSource: no source given for Alerts"},
		{name: "source fails", input: func(in *preconditions.Input) { in.Alerts = alerts{err: errors.New("no route")} }, want: "Unknown\nWarning UnknownError: no route"},
		{name: "critical", input: firing(alert("B", "ns", "critical", "firing"), alert("A", "", "critical", "firing"), alert("B", "ns", "critical", "firing")),
			want: "Failed\nWarning CriticalAlert: Critical alerts fire: A, ns/B (2 times)"},
		{name: "pending, mild, nameless", input: firing(alert("A", "", "critical", "pending"), alert("B", "", "warning", "firing"), alert("", "", "critical", "firing")), want: "Passed"},
		{name: "others that bear on updates", target: "4.18.6@T", input: firing(alert("PodDisruptionBudgetAtLimit", "a", "warning", "firing"), alert("KubeNodeNotReady", "", "warning", "firing"), precheck),
			want: "Failed\nWarning AlertBeforeUpdate: Alerts fire that tell of slow drains, or that ask to be looked at before an update: KubeNodeNotReady, Mine, a/PodDisruptionBudgetAtLimit"},
	})
	runCases(t, checkNamed(t, "CriticalAlerts", rules.Options{PlatformAlerts: true}), []checkCase{
		{name: "of the platform", input: firing(alert("A", "openshift-etcd", "critical", "firing"), alert("B", "kube-system", "critical", "firing"), alert("C", "default", "critical", "firing"),
			alert("D", "mine-openshift-x", "critical", "firing"), alert("E", "", "critical", "firing"), alert("F", "defaults", "critical", "firing")),
			want: "Failed\nBlocking CriticalAlert: Critical alerts fire: default/C, kube-system/B, openshift-etcd/A"},
		{name: "others", input: firing(alert("A", "mine", "critical", "firing"), alert("KubeNodeNotReady", "mine", "warning", "firing")),
			want: "Failed\nWarning AlertBeforeUpdate: Alerts fire that tell of slow drains, or that ask to be looked at before an update: mine/KubeNodeNotReady"},
	})
}

// requestCount is an API that was used by users given as "name agent".
func requestCount(name, removed string, n int64, users ...string) *apiserverv1.APIRequestCount {
	c := &apiserverv1.APIRequestCount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Status.RemovedInRelease, c.Status.RequestCount = removed, n
	for _, u := range users {
		user, agent, _ := strings.Cut(u, " ")
		c.Status.Last24h = append(c.Status.Last24h, apiserverv1.PerResourceAPIRequestLog{ByNode: []apiserverv1.PerNodeAPIRequestLog{{
			NodeName: "n", ByUser: []apiserverv1.PerUserAPIRequestCount{{UserName: user, UserAgent: agent, RequestCount: n}}}}})
	}
	return c
}

// TestDeprecatedAPIClients: only clients that made requests are named, with what they ask
// for, those of the current hour too.
func TestDeprecatedAPIClients(t *testing.T) {
	use := func(user, agent string, verbs ...any) apiserverv1.PerUserAPIRequestCount {
		u := apiserverv1.PerUserAPIRequestCount{UserName: user, UserAgent: agent}
		for i := 0; i < len(verbs); i += 2 {
			n := int64(verbs[i+1].(int))
			u.ByVerb = append(u.ByVerb, apiserverv1.PerVerbAPIRequestCount{Verb: verbs[i].(string), RequestCount: n})
			u.RequestCount += n
		}
		return u
	}
	hour := func(users ...apiserverv1.PerUserAPIRequestCount) apiserverv1.PerResourceAPIRequestLog {
		return apiserverv1.PerResourceAPIRequestLog{ByNode: []apiserverv1.PerNodeAPIRequestLog{{NodeName: "n", ByUser: users}}}
	}
	counts := func(current apiserverv1.PerResourceAPIRequestLog, day ...apiserverv1.PerResourceAPIRequestLog) []any {
		c := &apiserverv1.APIRequestCount{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
		c.Status = apiserverv1.APIRequestCountStatus{RemovedInRelease: "1.32", RequestCount: 9, CurrentHour: current, Last24h: day}
		return []any{gates(nil), acks(nil), c}
	}
	const walker = "system:kube-controller-manager"
	none := apiserverv1.PerResourceAPIRequestLog{}
	const used = "Failed\nWarning RemovedAPIsInUse: APIs that the target does not have any more are in use: a (removed in Kubernetes 1.32, "
	runCases(t, checkNamed(t, "DeprecatedAPIs"), []checkCase{
		{name: "idle users", objects: counts(none, hour(use("idle", "old/1", "get", 0), use("bob", "kubectl/1", "list", 2, "get", 3, "watch", 0)), hour(use("bob", "kubectl/1", "get", 4))),
			want: used + "9 requests by bob (kubectl/1; get 7, list 2))", remedy: "Move these clients to newer versions of the APIs: bob (kubectl/1). Then acknowledge the removal"},
		{name: "the current hour alone", objects: counts(hour(use("eve", "", "delete", 1))),
			want: used + "9 requests by eve (delete 1))", remedy: "Move these clients to newer versions of the APIs: eve. Then acknowledge the removal"},
		{name: "the current hour is one of the day", objects: counts(hour(use("bob", "k", "get", 3)), hour(use("bob", "k", "get", 3)), hour(use("ann", "k", "get", 1))),
			want: used + "9 requests by ann (k; get 1), bob (k; get 3))", remedy: "Move these clients to newer versions of the APIs: ann (k), bob (k). Then acknowledge the removal"},
		{name: "walkers, and idle users", objects: counts(none, hour(use(walker, "w", "list", 9), use("idle", "x", "get", 0))), want: "Passed"},
		{name: "idle users alone", objects: counts(none, hour(use("idle", "x", "get", 0))),
			want: used + "9 requests)", remedy: "Find who uses them with: oc get apirequestcounts NAME -o yaml. Move these clients to newer versions of the APIs, then acknowledge the removal"},
	})
}

func TestDeprecatedAPIs(t *testing.T) {
	const used = "RemovedAPIsInUse: APIs that the target does not have any more are in use: "
	const gate = "ack-4.18-kube-1.32-api-removals-in-4.19"
	walkers := []string{"system:kube-controller-manager a", "system:cluster-policy-controller b", "system:serviceaccount:kube-system:generic-garbage-collector c", "system:serviceaccount:kube-system:namespace-controller d"}
	quiet := []any{gates(nil), acks(nil)}
	runs37 := requestsPayload(t, "5.2.1", `apiVersion: config.openshift.io/v1
kind: ClusterOperator
metadata:
  name: kube-apiserver
  annotations:
    include.release.openshift.io/self-managed-high-availability: "true"
status:
  versions:
  - name: kube-apiserver
    version: 1.37.0
`)
	runCases(t, checkNamed(t, "DeprecatedAPIs"), []checkCase{
		{name: "none", objects: quiet, want: "Passed"},
		{name: "used", objects: append(quiet, requestCount("flowschemas.v1beta3.flowcontrol.apiserver.k8s.io", "1.32", 14, "bob kubectl/1", "ann go/2", "bob kubectl/1", "eve")),
			want: "Failed\nWarning " + used + "flowschemas.v1beta3.flowcontrol.apiserver.k8s.io (removed in Kubernetes 1.32, 14 requests by ann (go/2), bob (kubectl/1), eve)"},
		{name: "to 4.18", current: "4.17.5@A", target: "4.18.1@T", objects: append(quiet, requestCount("a", "1.32", 14, "bob")), want: "Passed"},
		{name: "removed before", objects: append(quiet, requestCount("a", "1.31", 14, "bob")), want: "Passed"},
		{name: "not used", objects: append(quiet, requestCount("a", "1.32", 0, "bob")), want: "Passed"},
		{name: "not removed", objects: append(quiet, requestCount("a", "", 5, "bob")), want: "Passed"},
		{name: "two steps", target: "4.20.1@T", objects: append(quiet, requestCount("b", "1.33", 5, "bob"), requestCount("a", "1.32", 1, "bob"), requestCount("c", "1.34", 1, "bob")),
			want: "Failed\nWarning " + used + "a (removed in Kubernetes 1.32, 1 requests by bob), b (removed in Kubernetes 1.33, 5 requests by bob)"},
		{name: "walkers alone", objects: append(quiet, requestCount("a", "1.32", 5, walkers...)), want: "Passed"},
		{name: "walkers and others", objects: append(quiet, requestCount("a", "1.32", 5, append(walkers, "bob")...)), want: "Failed\nWarning " + used + "a (removed in Kubernetes 1.32, 5 requests by bob)"},
		{name: "users not recorded", objects: append(quiet, requestCount("a", "1.32", 5)), want: "Failed\nWarning " + used + "a (removed in Kubernetes 1.32, 5 requests)"},
		{name: "gate open", objects: []any{gates(map[string]string{gate: "read"}), acks(nil), requestCount("a", "1.32", 5, "bob")}, want: "Failed\nBlocking " + used + "a (removed in Kubernetes 1.32, 5 requests by bob)"},
		{name: "gate acknowledged", objects: []any{gates(map[string]string{gate: "read"}), acks(map[string]string{gate: "true"}), requestCount("a", "1.32", 5, "bob")}, want: "Failed\nWarning " + used + "a (removed in Kubernetes 1.32, 5 requests by bob)"},
		{name: "another gate open", objects: []any{gates(map[string]string{"ack-4.18-boot": "read"}), acks(nil), requestCount("a", "1.32", 5, "bob")}, want: "Failed\nWarning " + used + "a (removed in Kubernetes 1.32, 5 requests by bob)"},
		{name: "gates not known", objects: []any{requestCount("a", "1.32", 5, "bob")}, fail: map[string]error{"ConfigMap": clusterapi.ErrNotCollected},
			want: "Failed\nWarning " + used + "a (removed in Kubernetes 1.32, 5 requests by bob)\nWarning NotCollected: ConfigMap: Failed to retrieve ConfigMap admin-gates from namespace openshift-config-managed: not collected in this recording"},
		{name: "malformed release", objects: append(quiet, requestCount("a", "next", 5, "bob"), requestCount("b", "1.32", 5, "bob"), requestCount("c", "next", 0)),
			want: "Failed\nWarning " + used + "b (removed in Kubernetes 1.32, 5 requests by bob)\nWarning UnknownError: APIRequestCount a: status.removedInRelease: \"next\" is not a version of Kubernetes such as 1.32"},
		{name: "5.1 not known", current: "5.1.5@A", target: "5.2.1@T", objects: append(quiet, requestCount("a", "1.37", 5, "bob")), payload: runs37, want: "Unknown\nWarning UnknownError: the version of the API server in OpenShift 5.1.5 is not known: the ClusterOperator kube-apiserver does not report it"},
		{name: "5.2 not known", current: "5.1.5@A", target: "5.2.1@T", objects: append(quiet, apiServer("1.36.1")), want: "Unknown\nWarning UnknownError: it is not known which version of Kubernetes OpenShift 5.2.1 has"},
		{name: "target not known", target: "@T", objects: quiet, want: "Unknown\nWarning UnknownError: the version of the target is not known, and so which version of Kubernetes it has"},
		{name: "the cluster and the release themselves", current: "5.1.5@A", target: "5.2.1@T", objects: append(quiet, apiServer("1.36.1"), requestCount("a", "1.36", 5, "bob"), requestCount("b", "1.37", 5, "bob")), payload: runs37,
			want: "Failed\nWarning " + used + "b (removed in Kubernetes 1.37, 5 requests by bob)"},
		{name: "the release beats what is known", target: "4.19.1@T", objects: append(quiet, requestCount("a", "1.37", 5, "bob")), payload: runs37, want: "Failed\nWarning " + used + "a (removed in Kubernetes 1.37, 5 requests by bob)"},
		{name: "5.0 by table", current: "4.22.5@A", target: "5.0.1@T", input: func(in *preconditions.Input) { in.KubernetesMinors = map[string]uint64{"5.0": 37} },
			objects: append(quiet, requestCount("a", "1.36", 5, "bob")), want: "Failed\nWarning " + used + "a (removed in Kubernetes 1.36, 5 requests by bob)"},
		{name: "not served", fail: map[string]error{"APIRequestCount": noKind("APIRequestCount")}, want: "NotApplicable\nInfo NotApplicable: the cluster has no APIRequestCounts"},
		{name: "current not known", current: "x@A", objects: quiet, want: "Unknown\nWarning UnknownError: current version \"x\": No Major.Minor.Patch elements found"},
	})
}

func TestGatewayAPI(t *testing.T) {
	crd := func(name, group, version, channel string) *unstructured.Unstructured {
		u := object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", name, map[string]any{"spec": map[string]any{"group": group}})
		u.SetAnnotations(map[string]string{"gateway.networking.k8s.io/bundle-version": version, "gateway.networking.k8s.io/channel": channel})
		return u
	}
	const group = "gateway.networking.k8s.io"
	good := crd("gateways."+group, group, "v1.2.0", "standard")
	ack := acks(map[string]string{"ack-4.18-gateway-api-management-in-4.19": "true"})
	const have = "Blocking GatewayAPICRDs: The cluster has definitions of the Gateway API, which the target manages itself: "
	const differ = "Warning GatewayAPICRDsDiffer: Definitions of the Gateway API are not those of the standard channel of v1.2.0, which the target has: "
	runCases(t, checkNamed(t, "GatewayAPI"), []checkCase{
		{name: "none", objects: []any{crd("a.b", "b", "", "")}, want: "Passed"},
		{name: "standard", objects: []any{good, acks(nil)}, want: "Failed\n" + have + "gateways." + group},
		{name: "no acks at all", objects: []any{good}, want: "Failed\n" + have + "gateways." + group},
		{name: "acknowledged", objects: []any{good, ack}, want: "Passed"},
		{name: "not quite acknowledged", objects: []any{good, acks(map[string]string{"ack-4.18-gateway-api-management-in-4.19": "True"})}, want: "Failed\n" + have + "gateways." + group},
		{name: "another release, acknowledged", objects: []any{crd("httproutes."+group, group, "v1.1.0", "standard"), crd("gateways."+group, group, "v1.2.0", "experimental"), ack},
			want: "Failed\n" + differ + "gateways." + group + ` (bundle-version "v1.2.0", channel "experimental"), httproutes.` + group + ` (bundle-version "v1.1.0", channel "standard")`},
		{name: "not of the set", objects: []any{crd("tcproutes."+group, group, "v1.2.0", "standard"), crd("x.gateway.networking.x-k8s.io", "gateway.networking.x-k8s.io", "v1.2.0", "standard"), ack},
			want: "Failed\n" + differ + "tcproutes." + group + " (not of the standard set), x.gateway.networking.x-k8s.io (not of the standard set)"},
		{name: "both", objects: []any{crd("gateways."+group, group, "", "")}, want: "Failed\n" + have + "gateways." + group + "\n" + differ + "gateways." + group + ` (bundle-version "", channel "")`},
		{name: "acks not needed", fail: map[string]error{"ConfigMap": errors.New("boom")}, want: "Passed"},
		{name: "malformed", objects: []any{malformed("apiextensions.k8s.io/v1", "CustomResourceDefinition", "x")}, want: "Passed"},
		{name: "from 4.19", current: "4.19.1@A", target: "4.20.1@T", objects: []any{good}, want: "NotApplicable"},
	})
}

func TestUnsupportedOverrides(t *testing.T) {
	with := func(value any) map[string]any {
		return map[string]any{"spec": map[string]any{"unsupportedConfigOverrides": value}}
	}
	const operator = "operator.openshift.io/v1"
	const set = "UnsupportedConfigOverridesSet: Operators have settings that are not supported: "
	yes := with(map[string]any{"a": "b"})
	runCases(t, checkNamed(t, "UnsupportedOverrides"), []checkCase{
		{name: "none", objects: []any{object(operator, "Etcd", "", "cluster", with(nil)), object(operator, "KubeAPIServer", "", "cluster", with(map[string]any{})), object(operator, "Console", "", "cluster", nil)}, want: "Passed"},
		{name: "set", objects: []any{object(operator, "KubeAPIServer", "", "cluster", yes), object(operator, "Etcd", "", "cluster", yes)}, want: "Failed\nBlocking " + set + "cluster (Etcd), cluster (KubeAPIServer)"},
		{name: "patch", target: "4.18.6@T", objects: []any{object(operator, "Etcd", "", "cluster", yes)}, want: "Failed\nWarning " + set + "cluster (Etcd)"},
		{name: "other names do not count", objects: []any{object(operator, "Etcd", "", "other", yes)}, want: "Passed"},
		{name: "all drivers and ingress controllers", objects: []any{object(operator, "ClusterCSIDriver", "", "ebs.csi.aws.com", yes), object(operator, "IngressController", "openshift-ingress-operator", "apps", yes), object(operator, "IngressController", "elsewhere", "apps", yes)},
			want: "Failed\nBlocking " + set + "ebs.csi.aws.com (ClusterCSIDriver), openshift-ingress-operator/apps (IngressController)"},
		{name: "the image registry's", objects: []any{object("imageregistry.operator.openshift.io/v1", "Config", "", "cluster", yes)}, want: "Failed\nBlocking " + set + "cluster (Config)"},
		{name: "of any form", objects: []any{object(operator, "OLM", "", "cluster", with("text"))}, want: "Failed\nBlocking " + set + "cluster (OLM)"},
		{name: "malformed", objects: []any{malformed(operator, "OLM", "cluster")}, want: "Passed"},
		{name: "not served", fail: map[string]error{"OLM": noKind("OLM"), "ClusterCSIDriver": noKind("ClusterCSIDriver")}, want: "Passed"},
		{name: "partly known", objects: []any{object(operator, "Etcd", "", "cluster", yes)}, fail: map[string]error{"OLM": forbidden("olms")},
			want: "Failed\nBlocking " + set + "cluster (Etcd)\nWarning NotAllowed: not allowed to get olms.operator.openshift.io: OLM: olms is forbidden: no"},
	})
	// Every kind of the rule is looked at.
	for _, gvk := range checkNamed(t, "UnsupportedOverrides").(preconditions.Described).Rule().Reads {
		namespace := ""
		if gvk.Kind == "IngressController" {
			namespace = "openshift-ingress-operator"
		}
		r := reader(t, object(gvk.GroupVersion().String(), gvk.Kind, namespace, "cluster", yes))
		if got := run(t, []preconditions.Check{checkNamed(t, "UnsupportedOverrides")}, input(r, clusterVersion("4.18.5"), "4.19.1")).Results[0]; got.State != preconditions.Failed {
			t.Errorf("%s: %+v", gvk, got)
		}
	}
}

type backups struct {
	at  time.Time
	err error
}

func (b backups) Latest(context.Context) (time.Time, error) { return b.at, b.err }

func TestEtcdBackup(t *testing.T) {
	since := func(age time.Duration, status, reason, message string) *configv1.ClusterOperator {
		c := coCond("RecentBackup", status, reason, message)
		c.LastTransitionTime = metav1.NewTime(checkTime.Add(-age))
		return clusterOperator("etcd", c)
	}
	etcd := func(status, reason, message string) *configv1.ClusterOperator {
		return since(time.Hour, status, reason, message)
	}
	taken := func(age time.Duration, err error) func(*preconditions.Input) {
		return func(in *preconditions.Input) {
			in.Now = checkTime
			in.Backups = backups{err: err}
			if age != 0 {
				in.Backups = backups{checkTime.Add(-age), err}
			}
		}
	}
	now := func(in *preconditions.Input) { in.Now = checkTime }
	const remedy = "Back up etcd: run cluster-backup.sh on a control plane node, and keep the copy elsewhere"
	const neither = "Unknown\nWarning NoSource: no source given for Backups, and the etcd operator does not tell either. " + remedy
	bare := clusterOperator("etcd")
	started := etcd("Unknown", "ControllerStarted", "The etcd backup controller is starting, and will decide if recent backups are available or if a backup is required")
	runCases(t, checkNamed(t, "EtcdBackup"), []checkCase{
		{name: "condition True", objects: []any{etcd("True", "UpgradeBackupSuccessful", "")}, input: now, want: "Passed"},
		{name: "condition True, of long ago", objects: []any{since(3*365*24*time.Hour, "True", "UpgradeBackupSuccessful", "")}, input: now, want: "Failed\nWarning EtcdRecentBackupNotSet: RecentBackup: the newest backup of etcd, of 2023-03-05T12:00:00Z, is 26280h0m0s old"},
		{name: "condition True, of tomorrow", objects: []any{since(-24*time.Hour, "True", "UpgradeBackupSuccessful", "")}, input: now, want: "Passed"},
		{name: "condition True, no time", objects: []any{etcd("True", "UpgradeBackupSuccessful", "")}, want: "Unknown\nWarning NoSource: no source given for Now"},
		{name: "condition True, without its time", objects: []any{clusterOperator("etcd", coCond("RecentBackup", "True", "R", ""))}, input: now,
			want: "Unknown\nWarning UnknownError: the condition RecentBackup of the etcd operator does not tell since when it holds"},
		{name: "condition False", objects: []any{etcd("False", "UpgradeBackupFailed", "no disk")}, want: "Failed\nWarning UpgradeBackupFailed: RecentBackup: no disk"},
		{name: "condition False, no reason", objects: []any{etcd("False", "", "no disk")}, want: "Failed\nWarning EtcdRecentBackupNotSet: RecentBackup: no disk"},
		{name: "at rest", objects: []any{started}, want: neither},
		{name: "at rest, young backup", objects: []any{started}, input: taken(time.Hour, nil), want: "Passed"},
		{name: "condition Unknown", objects: []any{etcd("Unknown", "", "wait")}, want: neither},
		{name: "neither", objects: []any{bare}, want: neither},
		{name: "young backup", objects: []any{bare}, input: taken(23*time.Hour, nil), want: "Passed"},
		{name: "old backup", objects: []any{bare}, input: taken(24*time.Hour, nil), want: "Failed\nWarning EtcdRecentBackupNotSet: RecentBackup: the newest backup of etcd, of 2026-03-03T12:00:00Z, is 24h0m0s old"},
		{name: "no backup", objects: []any{bare}, input: taken(0, nil), want: "Failed\nWarning EtcdRecentBackupNotSet: RecentBackup: there is no backup of etcd"},
		{name: "young backup, condition False", objects: []any{etcd("False", "R", "m")}, input: taken(time.Hour, nil), want: "Passed"},
		{name: "old backup, condition True", objects: []any{etcd("True", "R", "m")}, input: taken(48*time.Hour, nil), want: "Failed\nWarning EtcdRecentBackupNotSet: RecentBackup: the newest backup of etcd, of 2026-03-02T12:00:00Z, is 48h0m0s old"},
		{name: "source fails", objects: []any{bare}, input: taken(0, errors.New("no store")), want: "Unknown\nWarning UnknownError: no store"},
		{name: "source fails, condition True", objects: []any{etcd("True", "R", "m")}, input: taken(0, errors.New("no store")), want: "Unknown\nWarning UnknownError: no store"},
		{name: "no time", objects: []any{bare}, input: func(in *preconditions.Input) { in.Backups = backups{at: checkTime} }, want: "Unknown\nWarning NoSource: no source given for Now"},
		{name: "hosted", want: "NotApplicable\nInfo NotApplicable: the cluster has no ClusterOperator etcd: its control plane is hosted elsewhere"},
		{name: "unreadable", fail: map[string]error{"ClusterOperator": errors.New("boom")}, want: "Failed\nWarning UnableToGetEtcdOperator: RecentBackup: Unable to get etcd operator, err=boom\nWarning UnknownError: boom"},
		{name: "not collected, young backup", fail: map[string]error{"ClusterOperator": clusterapi.ErrNotCollected}, input: taken(time.Hour, nil), want: "Passed"},
	})
	runCases(t, checkNamed(t, "EtcdBackup", rules.Options{BackupAge: time.Hour}), []checkCase{
		{name: "age of the caller's", objects: []any{bare}, input: taken(2*time.Hour, nil), want: "Failed\nWarning EtcdRecentBackupNotSet: RecentBackup: the newest backup of etcd, of 2026-03-04T10:00:00Z, is 2h0m0s old"},
		{name: "age of the caller's, condition", objects: []any{since(2*time.Hour, "True", "R", "")}, input: now, want: "Failed\nWarning EtcdRecentBackupNotSet: RecentBackup: the newest backup of etcd, of 2026-03-04T10:00:00Z, is 2h0m0s old"},
	})
}

func TestVolumeSnapshots(t *testing.T) {
	claim := func(namespace, name string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	snapshot := func(namespace, of string, ready bool, age time.Duration) *unstructured.Unstructured {
		return object("snapshot.storage.k8s.io/v1", "VolumeSnapshot", namespace, "s-"+of+fmt.Sprint(age), map[string]any{
			"spec":   map[string]any{"source": map[string]any{"persistentVolumeClaimName": of}},
			"status": map[string]any{"readyToUse": ready, "creationTime": checkTime.Add(-age).Format(time.RFC3339)},
		})
	}
	const bare = "Passed\nInfo VolumesNotSnapshotted: Volume claims have no recent snapshot that is ready: "
	cases := []checkCase{
		{name: "no claims", want: "Passed"},
		{name: "covered", objects: []any{claim("a", "x"), snapshot("a", "x", true, 48*time.Hour), snapshot("a", "x", true, time.Hour)}, want: "Passed"},
		{name: "not covered", objects: []any{claim("b", "y"), claim("a", "x"), claim("a", "z"), snapshot("a", "x", false, time.Hour), snapshot("b", "x", true, time.Hour), snapshot("a", "z", true, 24*time.Hour)}, want: bare + "a/x, a/z, b/y"},
		{name: "from other sources", objects: []any{claim("a", "x"), object("snapshot.storage.k8s.io/v1", "VolumeSnapshot", "a", "s", nil)}, want: bare + "a/x"},
		{name: "no snapshots here", objects: []any{claim("a", "x")}, fail: map[string]error{"VolumeSnapshot": noKind("VolumeSnapshot")}, want: "NotApplicable\nInfo NotApplicable: the cluster has no volume snapshots"},
		{name: "malformed", objects: []any{malformed("snapshot.storage.k8s.io/v1", "VolumeSnapshot", "x")}, want: "Unknown\nWarning UnknownError: VolumeSnapshot x: spec: got a JSON string, want rules.volumeSnapshotSpec"},
	}
	for i := range cases {
		cases[i].input = atCheckTime
	}
	cases = append(cases, checkCase{name: "no time", want: "Unknown\nWarning NoSource: no source given for Now"})
	runCases(t, checkNamed(t, "VolumeSnapshots"), cases)
	runCases(t, checkNamed(t, "VolumeSnapshots", rules.Options{SnapshotAge: 72 * time.Hour}), []checkCase{
		{name: "older", objects: []any{claim("a", "x"), snapshot("a", "x", true, 48*time.Hour)}, input: atCheckTime, want: "Passed"},
	})
}

type vSphere struct {
	versions *preconditions.VSphereVersions
	err      error
}

func (v vSphere) Versions(context.Context) (*preconditions.VSphereVersions, error) {
	return v.versions, v.err
}

func TestVSphere(t *testing.T) {
	onVSphere := infrastructure(func(i *configv1.Infrastructure) { i.Status.PlatformStatus.Type = configv1.VSpherePlatformType })
	old := infrastructure(func(i *configv1.Infrastructure) {
		i.Status.PlatformStatus = nil
		//lint:ignore SA1019 it is what old clusters have
		i.Status.Platform = configv1.VSpherePlatformType
	})
	is := func(v preconditions.VSphereVersions) func(*preconditions.Input) {
		return func(in *preconditions.Input) { in.VSphere = vSphere{versions: &v} }
	}
	samples := func(all ...clusterapi.Sample) func(*preconditions.Input) {
		return func(in *preconditions.Input) { in.VSphere = rules.VSphereSamples(all) }
	}
	sample := func(name, label, value string, n float64) clusterapi.Sample {
		return clusterapi.Sample{Name: name, Labels: map[string]string{label: value}, Value: n}
	}
	volume := func(name string, inTree bool) *corev1.PersistentVolume {
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if inTree {
			pv.Spec.VsphereVolume = &corev1.VsphereVirtualDiskVolumeSource{VolumePath: "p"}
		}
		return pv
	}
	software := func(vCenter, esxi string) func(*preconditions.Input) {
		return is(preconditions.VSphereVersions{VCenter: []string{vCenter}, ESXi: []string{esxi}})
	}
	const hardware = "Failed\nBlocking VSphereHardwareVersion: Nodes have virtual hardware older than version 15"
	const version = "Failed\nBlocking VSphereVersion: The cluster runs on a vSphere older than 7.0 Update 2: "
	const migration = "Failed\nWarning VSphereVolumeMigration: Volumes of the in-tree driver are migrated, for which vSphere has to be 7.0 Update 3L, 8.0 Update 2 or later: "
	runCases(t, checkNamed(t, "VSphere"), []checkCase{
		{name: "elsewhere", objects: []any{infrastructure()}, want: "NotApplicable\nInfo NotApplicable: the cluster is not on vSphere"},
		{name: "no Infrastructure", want: "NotApplicable\nInfo NotApplicable: the cluster is not on vSphere"},
		{name: "no source", objects: []any{onVSphere}, want: "Unknown\nWarning NoSource: no source given for VSphere"},
		{name: "no source on an old cluster", objects: []any{old}, want: "Unknown\nWarning NoSource: no source given for VSphere"},
		{name: "source fails", objects: []any{onVSphere}, input: func(in *preconditions.Input) { in.VSphere = vSphere{err: errors.New("no route")} }, want: "Unknown\nWarning UnknownError: no route"},
		{name: "source knows nothing", objects: []any{onVSphere}, input: is(preconditions.VSphereVersions{}), want: "Unknown\nWarning UnknownError: the source of vSphere's versions knows none"},
		{name: "new enough", target: "4.18.6@T", objects: []any{onVSphere}, input: is(preconditions.VSphereVersions{Hardware: map[string]int{"a": 15, "b": 19}, VCenter: []string{"7.0.2"}, ESXi: []string{"8.0.2"}}), want: "Passed"},
		{name: "old hardware", target: "4.18.6@T", objects: []any{onVSphere}, input: is(preconditions.VSphereVersions{Hardware: map[string]int{"b": 13, "a": 14, "c": 15}}), want: hardware + ": a (vmx-14), b (vmx-13)"},
		{name: "old hardware, by samples", objects: []any{onVSphere}, input: samples(sample("vsphere_node_hw_version_total", "hw_version", "vmx-13", 2), sample("vsphere_node_hw_version_total", "hw_version", "vmx-15", 3), sample("vsphere_node_hw_version_total", "hw_version", "vmx-11", 0)), want: hardware + ", 2 of vmx-13"},
		{name: "old vCenter, by samples", objects: []any{onVSphere}, input: samples(sample("vsphere_vcenter_info", "version", "6.7.3", 1), sample("vsphere_esxi_version_total", "version", "7.0.1", 2), sample("up", "", "", 1)), want: version + "ESXi 7.0.1, vCenter 6.7.3"},
		{name: "samples that are none", objects: []any{onVSphere}, input: samples(sample("vsphere_node_hw_version_total", "hw_version", "15", 2)), want: "Unknown\nWarning UnknownError: vsphere_node_hw_version_total: \"15\" is not a hardware version such as vmx-15"},
		{name: "one version not known", objects: []any{onVSphere}, input: software("new", "7.0.1"), want: version + "ESXi 7.0.1\nWarning UnknownError: vCenter: \"new\" is not a version such as 7.0.3"},
		{name: "to 4.12", current: "4.11.1@A", target: "4.12.3@T", objects: []any{onVSphere}, input: is(preconditions.VSphereVersions{Hardware: map[string]int{"a": 13}}), want: "Passed"},
		{name: "to 4.13", current: "4.12.1@A", target: "4.13.3@T", objects: []any{onVSphere}, input: is(preconditions.VSphereVersions{Hardware: map[string]int{"a": 13}}), want: hardware + ": a (vmx-13)"},
		{name: "migration, 7.0.3", current: "4.12.1@A", target: "4.13.3@T", objects: []any{onVSphere, volume("v", true), volume("w", false)}, input: software("7.0.3", "8.0.2"), want: migration + "vCenter 7.0.3, v"},
		{name: "migration, 7.0u3l", current: "4.13.1@A", target: "4.14.3@T", objects: []any{onVSphere, volume("v", true)}, input: software("7.0u3L", "7.0 Update 3l"), want: "Passed"},
		{name: "migration, by patch number", current: "4.13.1@A", target: "4.14.3@T", objects: []any{onVSphere, volume("v", true)}, input: software("7.0.3.01400", "7.0.3.01500"), want: "Passed"},
		{name: "migration, lower patch", current: "4.13.1@A", target: "4.14.3@T", objects: []any{onVSphere, volume("v", true)}, input: software("7.0.3.01300", "7.0u3k"), want: migration + "ESXi 7.0u3k, vCenter 7.0.3.01300, v"},
		{name: "migration, 8.0.1", current: "4.13.1@A", target: "4.14.3@T", objects: []any{onVSphere, volume("v", true)}, input: software("8.0.1", "8.0u2"), want: migration + "vCenter 8.0.1, v"},
		{name: "migration, 9", current: "4.13.1@A", target: "4.14.3@T", objects: []any{onVSphere, volume("v", true)}, input: software("9.0.0", "8.0.3 build-24022510"), want: "Passed"},
		{name: "no in-tree volumes", current: "4.13.1@A", target: "4.14.3@T", objects: []any{onVSphere, volume("w", false)}, input: software("7.0.2", "7.0.2"), want: "Passed"},
		{name: "volumes not known", current: "4.13.1@A", target: "4.14.3@T", objects: []any{onVSphere}, input: software("7.0.2", "7.0.2"), fail: map[string]error{"PersistentVolume": errors.New("boom")}, want: "Unknown\nWarning UnknownError: boom"},
		{name: "migrated long ago", objects: []any{onVSphere, volume("v", true)}, input: software("7.0.2", "7.0.2"), want: "Passed"},
	})
}

func TestMultiArch(t *testing.T) {
	const multi = configv1.ClusterVersionArchitectureMulti
	arch := func(a configv1.ClusterVersionArchitecture) cvEdit {
		return func(cv *configv1.ClusterVersion) { cv.Status.Desired.Architecture = a }
	}
	offered := func(image string, a configv1.ClusterVersionArchitecture) cvEdit {
		return func(cv *configv1.ClusterVersion) {
			cv.Status.AvailableUpdates = append(cv.Status.AvailableUpdates, configv1.Release{Version: "4.18.6", Image: image, Architecture: a})
		}
	}
	retrieved := cond("RetrievedUpdates", "True", "", "")
	payload := func(a configv1.ClusterVersionArchitecture) *manifest.Payload {
		return &manifest.Payload{Release: configv1.Release{Version: "4.18.6", Architecture: a}}
	}
	onPlatform := func(p configv1.PlatformType) *configv1.Infrastructure {
		return infrastructure(func(i *configv1.Infrastructure) { i.Status.PlatformStatus.Type = p })
	}
	nodeArch := func(a string) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Labels["kubernetes.io/arch"] = a }
	}
	const door = "Failed\nBlocking MultiToSingleArchitecture: A cluster with the payload for several architectures cannot go back to that of one"
	const noChange = "NotApplicable\nInfo NotApplicable: the architecture of the release does not change"
	const notRetrieved = "Blocking MultiUpdatesNotRetrieved: The update service has to be reached for the migration, and the condition RetrievedUpdates is "
	runCases(t, checkNamed(t, "MultiArch"), []checkCase{
		{name: "single to single", target: "4.18.6", want: noChange},
		{name: "multi to multi", edits: []cvEdit{arch(multi)}, target: "4.18.6", arch: multi, want: "NotApplicable"},
		{name: "multi to multi by payload", edits: []cvEdit{arch(multi)}, target: "4.18.6", payload: payload(multi), want: noChange},
		{name: "multi to single by payload", edits: []cvEdit{arch(multi)}, target: "4.18.6", payload: payload(""), want: door},
		{name: "names the nodes", edits: []cvEdit{arch(multi)}, target: "4.18.6", payload: payload(""),
			objects: []any{node("b", "worker", nodeArch("arm64")), node("a", "master", nodeArch("amd64"))}, want: door + ": a (amd64), b (arm64)"},
		{name: "nodes of one architecture", edits: []cvEdit{arch(multi)}, target: "4.18.6", payload: payload(""), objects: []any{node("a", "master", nodeArch("amd64"))}, want: door},
		{name: "nodes not known", edits: []cvEdit{arch(multi)}, target: "4.18.6", payload: payload(""), fail: map[string]error{"Node": errors.New("boom")}, want: door},
		{name: "multi to single of the same version", edits: []cvEdit{arch(multi)}, target: "4.18.5@S", payload: &manifest.Payload{Release: configv1.Release{Version: "4.18.5"}}, want: door},
		{name: "multi to single by the offer", edits: []cvEdit{arch(multi), offered("S", "")}, target: "4.18.6@S", want: door},
		{name: "multi to what is not known", edits: []cvEdit{arch(multi), offered("S", "")}, target: "4.18.6@X",
			want: "Unknown\nWarning NoSource: no source given for TargetPayload, which would tell whether it is for several architectures, as that of the cluster is"},
		{name: "the cluster does not tell", target: "4.18.6", arch: multi, running: payload(multi), payload: payload(multi), want: noChange},
		{name: "and goes to single", target: "@S", running: payload(multi), payload: payload(""), want: door},
		{name: "migration", edits: []cvEdit{retrieved}, target: "4.18.5@M", arch: multi, objects: []any{onPlatform("AWS")}, want: "Passed"},
		{name: "on each platform", edits: []cvEdit{retrieved}, target: "4.18.5@M", arch: multi, objects: []any{onPlatform("None")}, want: "Passed"},
		{name: "on another platform", edits: []cvEdit{retrieved}, target: "4.18.5@M", arch: multi, objects: []any{onPlatform("OpenStack")},
			want: "Failed\nWarning MultiPlatform: Nodes of several architectures are not supported on platform \"OpenStack\""},
		{name: "4.12", current: "4.12.9@A", edits: []cvEdit{retrieved}, target: "4.12.9", arch: multi, want: "Failed\nBlocking MultiNotSupported: Release 4.12.9 cannot be migrated to several architectures: 4.13.0 is the first that can"},
		{name: "before 4.13.0", current: "4.13.0-rc.1@A", edits: []cvEdit{retrieved}, target: "4.13.0-rc.1", arch: multi, want: "Failed\nBlocking MultiNotSupported: Release 4.13.0-rc.1 cannot be migrated to several architectures: 4.13.0 is the first that can"},
		{name: "4.13.0", current: "4.13.0@A", edits: []cvEdit{retrieved}, target: "4.13.0", arch: multi, want: "Passed"},
		{name: "not retrieved", edits: []cvEdit{cond("RetrievedUpdates", "False", "R", "m")}, target: "4.18.5", arch: multi, want: "Failed\n" + notRetrieved + "False"},
		{name: "no condition", target: "4.18.5", arch: multi, want: "Failed\n" + notRetrieved + "missing"},
		{name: "with another version", edits: []cvEdit{retrieved}, target: "4.18.6", arch: multi,
			want: "Failed\nBlocking MultiVersionChange: A migration to several architectures keeps the version: that to 4.18.6 would be left out"},
		{name: "Infrastructure not known", edits: []cvEdit{retrieved}, target: "4.18.5", arch: multi, fail: map[string]error{"Infrastructure": clusterapi.ErrNotCollected},
			want: "Unknown\nWarning NotCollected: Infrastructure: not collected in this recording"},
	})
}

func TestMachineHealthChecks(t *testing.T) {
	health := func(name string, paused bool, types ...corev1.NodeConditionType) *machinev1beta1.MachineHealthCheck {
		c := &machinev1beta1.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-machine-api", Name: name}}
		for _, typ := range types {
			c.Spec.UnhealthyConditions = append(c.Spec.UnhealthyConditions, machinev1beta1.UnhealthyCondition{Type: typ, Status: corev1.ConditionFalse})
		}
		if paused {
			c.Annotations = map[string]string{"cluster.x-k8s.io/paused": "false"}
		}
		return c
	}
	elsewhere := health("x", false, "Ready")
	elsewhere.Namespace = "mine"
	const active = "Failed\nWarning MachineHealthCheckActive: Machine health checks may replace nodes that are being updated: "
	two := []any{infrastructure(), node("a", "master"), node("b", "worker")}
	runCases(t, checkNamed(t, "MachineHealthChecks"), []checkCase{
		{name: "none", want: "Passed"},
		{name: "active", objects: append(two, health("b", false, "Terminating", "Ready"), health("a", false, "Ready")), want: active + "openshift-machine-api/a, openshift-machine-api/b"},
		{name: "patch too", target: "4.18.6@T", objects: append(two, health("a", false, "Ready")), want: active + "openshift-machine-api/a"},
		{name: "paused, whatever the value", objects: append(two, health("a", true, "Ready")), want: "Passed"},
		{name: "the one that is shipped", objects: append(two, health("machine-api-termination-handler", false, "Terminating")), want: "Passed"},
		{name: "in another namespace", objects: append(two, elsewhere), want: "Passed"},
		{name: "one node in all", objects: []any{infrastructure(), node("a", "master"), health("a", false, "Ready")}, want: "NotApplicable\nInfo NotApplicable: the cluster has a single node"},
		{name: "single replica with workers", objects: []any{infrastructure(singleReplica), node("a", "master"), node("b", "worker"), health("a", false, "Ready")}, want: active + "openshift-machine-api/a"},
		{name: "nodes not known", objects: []any{health("a", false, "Ready")}, fail: map[string]error{"Node": errors.New("boom")}, want: active + "openshift-machine-api/a"},
		{name: "malformed", objects: append(two, health("a", false, "Ready"), func() *unstructured.Unstructured {
			u := malformed("machine.openshift.io/v1beta1", "MachineHealthCheck", "x")
			u.SetNamespace("openshift-machine-api")
			return u
		}()), want: active + "openshift-machine-api/a\nWarning UnknownError: MachineHealthCheck openshift-machine-api/x: spec: got a JSON string, want v1beta1.MachineHealthCheckSpec"},
		{name: "not served", fail: map[string]error{"MachineHealthCheck": noKind("MachineHealthCheck")}, want: "NotApplicable\nInfo NotApplicable: the cluster has no MachineHealthChecks"},
		{name: "forbidden", fail: map[string]error{"MachineHealthCheck": forbidden("machinehealthchecks")}, want: "Unknown\nWarning NotAllowed: not allowed to list machinehealthchecks.machine.openshift.io: machinehealthchecks is forbidden: no"},
	})
}

func TestOperatorCompatibility(t *testing.T) {
	csv := func(namespace, name, properties string) *unstructured.Unstructured {
		u := object("operators.coreos.com/v1alpha1", "ClusterServiceVersion", namespace, name, nil)
		if properties != "" {
			u.SetAnnotations(map[string]string{"operatorframework.io/properties": `{"properties":` + properties + `}`})
		}
		return u
	}
	upTo := func(v string) string { return `[{"type":"olm.maxOpenShiftVersion","value":` + v + `}]` }
	copied := csv("c", "z.v1", upTo(`"4.17"`))
	copied.SetLabels(map[string]string{"olm.copiedFrom": "a"})
	plan := func(name string, approved bool, phase string) *unstructured.Unstructured {
		return object("operators.coreos.com/v1alpha1", "InstallPlan", "a", name, map[string]any{
			"spec":   map[string]any{"clusterServiceVersionNames": []any{"x.v2", "y.v2"}, "approval": "Manual", "approved": approved},
			"status": map[string]any{"phase": phase},
		})
	}
	const held = "Failed\nBlocking IncompatibleOperatorsInstalled: Operators do not support OpenShift 4.19: "
	runCases(t, checkNamed(t, "OperatorCompatibility"), []checkCase{
		{name: "none", want: "Passed"},
		{name: "no limit, and enough", objects: []any{csv("a", "a.v1", ""), csv("a", "b.v1", upTo(`"4.19"`)), csv("a", "c.v1", upTo(`"5.0"`))}, want: "Passed"},
		{name: "too low", objects: []any{csv("b", "a.v1", upTo(`"4.18"`)), csv("a", "z.v1", upTo(`"4.17"`)), copied}, want: held + "a/z.v1 (up to 4.17), b/a.v1 (up to 4.18)"},
		{name: "two steps", target: "4.20.1@T", objects: []any{csv("a", "a.v1", upTo(`"4.19"`))}, want: "Failed\nBlocking IncompatibleOperatorsInstalled: Operators do not support OpenShift 4.20: a/a.v1 (up to 4.19)"},
		{name: "4.23 is 5.0", current: "4.22.1@A", target: "5.0.1@T", objects: []any{csv("a", "a.v1", upTo(`"4.23"`)), csv("a", "b.v1", upTo(`"4.22"`))}, want: "Failed\nBlocking IncompatibleOperatorsInstalled: Operators do not support OpenShift 5.0: a/b.v1 (up to 4.22)"},
		{name: "invalid", objects: []any{csv("a", "a.v1", upTo(`"4.19.1"`))}, want: held + `a/a.v1 (its olm.maxOpenShiftVersion is invalid: property olm.maxOpenShiftVersion must specify only <major>.<minor> version, got invalid value 4.19.1)`},
		{name: "plan waits", objects: []any{plan("p", false, "RequiresApproval"), plan("q", true, "RequiresApproval"), plan("r", false, "Complete")}, want: "Failed\nWarning OperatorUpdatePending: Updates of operators wait for approval: a/p (x.v2, y.v2)"},
		{name: "both", objects: []any{csv("a", "a.v1", upTo(`"4.18"`)), plan("p", false, "RequiresApproval")}, want: held + "a/a.v1 (up to 4.18)\nWarning OperatorUpdatePending: Updates of operators wait for approval: a/p (x.v2, y.v2)"},
		{name: "plans not known", objects: []any{csv("a", "a.v1", upTo(`"4.18"`))}, fail: map[string]error{"InstallPlan": clusterapi.ErrNotCollected}, want: held + "a/a.v1 (up to 4.18)\nWarning NotCollected: InstallPlan: not collected in this recording"},
		{name: "target not known", target: "x@T", objects: []any{csv("a", "a.v1", upTo(`"4.18"`))}, want: held + "a/a.v1 (up to 4.18)"},
		{name: "nor current", current: "x@A", target: "x@T", objects: []any{csv("a", "a.v1", upTo(`"4.18"`))}, want: "Unknown\nWarning UnknownError: current version \"x\": No Major.Minor.Patch elements found"},
		{name: "no OLM", fail: map[string]error{"ClusterServiceVersion": noKind("ClusterServiceVersion")}, want: "NotApplicable\nInfo NotApplicable: the cluster has no ClusterServiceVersions"},
	})
}

// store is a signature store that has what it has, and fails if it fails.
type store struct {
	has  bool
	err  error
	asks *int
}

func (s store) Candidates(context.Context, string) iter.Seq2[signature.Candidate, error] {
	return func(yield func(signature.Candidate, error) bool) {
		if s.asks != nil {
			*s.asks++
		}
		if s.err != nil {
			yield(signature.Candidate{}, s.err)
		} else if s.has {
			yield(signature.Candidate{Signature: []byte("x")}, nil)
		}
	}
}

func TestDisconnected(t *testing.T) {
	stores := func(has bool, err error) func(*preconditions.Input) {
		return func(in *preconditions.Input) { in.Signatures = store{has: has, err: err} }
	}
	_, digest, _ := strings.Cut(targetImage, "@")
	kept := func(digest string) *corev1.ConfigMap {
		cm := configMap("openshift-config-managed", "mirrored", nil)
		cm.Labels = map[string]string{"release.openshift.io/verification-signatures": ""}
		cm.BinaryData = map[string][]byte{strings.Replace(digest, ":", "-", 1) + "-1": []byte("x")}
		return cm
	}
	idms := func(source string, mirrors ...configv1.ImageMirror) *configv1.ImageDigestMirrorSet {
		s := &configv1.ImageDigestMirrorSet{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
		s.Spec.ImageDigestMirrors = []configv1.ImageDigestMirrors{{Source: source, Mirrors: mirrors}}
		return s
	}
	itms := &configv1.ImageTagMirrorSet{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
	itms.Spec.ImageTagMirrors = []configv1.ImageTagMirrors{{Source: "quay.io", Mirrors: []configv1.ImageMirror{"m"}}}
	icsp := &operatorv1alpha1.ImageContentSourcePolicy{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
	icsp.Spec.RepositoryDigestMirrors = []operatorv1alpha1.RepositoryDigestMirrors{{Source: "quay.io/ocp/release", Mirrors: []string{"m"}}}
	away := errors.New("no route to host")
	const blocked = "Failed\nBlocking SignatureNotAvailable: No signature of the target is in the cluster or in a store that can be reached, so the release will not verify: "
	const noMirror = "Warning NoMirror: No mirror is configured for the repository of the target, and no signature store can be reached: quay.io/ocp/release"
	cases := []checkCase{
		{name: "connected", input: stores(true, nil), want: "Passed"},
		{name: "no signature anywhere", input: stores(false, nil), want: blocked + digest},
		{name: "store says so", input: stores(false, fmt.Errorf("404: %w", signature.ErrNotFound)), want: blocked + digest},
		{name: "kept, connected", objects: []any{kept(digest)}, input: stores(false, nil), want: "Passed"},
		{name: "kept, mirrored, away", objects: []any{kept(digest), idms("quay.io/ocp/release", "m")}, input: stores(false, away), want: "Passed"},
		{name: "kept, not mirrored, away", objects: []any{kept(digest)}, input: stores(false, away), want: "Failed\n" + noMirror},
		{name: "another digest is kept, away", objects: []any{kept("sha256:" + strings.Repeat("3", 64)), idms("quay.io", "m")}, input: stores(false, away), want: blocked + digest + " (no route to host)"},
		{name: "nothing, away", input: stores(false, away), want: blocked + digest + " (no route to host)\n" + noMirror},
		{name: "no stores", want: "Unknown\nWarning NoSource: no source given for Signatures"},
		{name: "no stores, kept, mirrored", objects: []any{kept(digest), idms("quay.io/ocp", "m")}, want: "Passed"},
		{name: "no stores, kept, not mirrored", objects: []any{kept(digest)}, want: "Unknown\nWarning NoSource: no source given for Signatures"},
		{name: "mirrored by tags", objects: []any{kept(digest), itms}, input: stores(false, away), want: "Passed"},
		{name: "mirrored by a policy", objects: []any{kept(digest), icsp}, input: stores(false, away), want: "Passed"},
		{name: "mirrored by domain", objects: []any{kept(digest), idms("*.io", "m")}, input: stores(false, away), want: "Passed"},
		{name: "a sibling is mirrored", objects: []any{kept(digest), idms("quay.io/ocp/rel", "m"), itms.DeepCopy()}, input: stores(false, away), want: "Passed"},
		{name: "only a sibling is mirrored", objects: []any{kept(digest), idms("quay.io/ocp/rel", "m")}, input: stores(false, away), want: "Failed\n" + noMirror},
		{name: "without mirrors", objects: []any{kept(digest), idms("quay.io/ocp/release")}, input: stores(false, away), want: "Failed\n" + noMirror},
		{name: "mirrors not served", objects: []any{kept(digest)}, fail: map[string]error{"ImageDigestMirrorSet": noKind("ImageDigestMirrorSet"), "ImageTagMirrorSet": noKind("ImageTagMirrorSet"), "ImageContentSourcePolicy": noKind("ImageContentSourcePolicy")}, input: stores(false, away), want: "Failed\n" + noMirror},
		{name: "mirrors not known", objects: []any{kept(digest)}, fail: map[string]error{"ImageTagMirrorSet": errors.New("boom")}, input: stores(false, away), want: "Unknown\nWarning UnknownError: boom"},
		{name: "ConfigMaps not known", fail: map[string]error{"ConfigMap": clusterapi.ErrNotCollected}, input: stores(false, nil), want: "Unknown\nWarning NotCollected: ConfigMap: unable to list config maps in openshift-config-managed with label \"release.openshift.io/verification-signatures\": not collected in this recording"},
		{name: "ConfigMaps not known, and not needed", fail: map[string]error{"ConfigMap": clusterapi.ErrNotCollected}, input: stores(true, nil), want: "Passed"},
		{name: "no digest", target: "4.19.1@quay.io/ocp/release:4.19.1", input: stores(true, nil), want: "Unknown\nWarning TargetImageUnknown: the image of the target is not known by its digest: \"quay.io/ocp/release:4.19.1\""},
		{name: "no image", target: "4.19.1", input: stores(true, nil), want: "Unknown\nWarning TargetImageUnknown: the image of the target is not known"},
		{name: "what runs", target: "4.18.5@A", input: stores(false, nil), want: "Passed"},
	}
	for i := range cases {
		if cases[i].target == "" {
			cases[i].target = "4.19.1@" + targetImage
		}
	}
	runCases(t, checkNamed(t, "Disconnected"), cases)

	// Each store is asked once.
	asks := 0
	in := input(reader(t, clusterVersion("4.18.5@A")), clusterVersion("4.18.5@A"), "4.19.1@"+targetImage)
	in.Signatures = store{err: away, asks: &asks}
	if run(t, []preconditions.Check{checkNamed(t, "Disconnected")}, in); asks != 1 {
		t.Errorf("the store is asked %d times", asks)
	}
}

// A proxy between the cluster and an update service that does not answer.
func TestDisconnectedProxy(t *testing.T) {
	proxy := func(url, no string) *configv1.Proxy {
		p := &configv1.Proxy{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
		p.Status.HTTPSProxy, p.Status.NoProxy = url, no
		return p
	}
	const fault = "Failed\nWarning UpdateServiceNotReached: The update service at %s does not answer, which is asked through the proxy proxy.example:3128"
	failed := cond("RetrievedUpdates", "False", "RemoteFailed", "http://bob:secret@proxy.example:3128 refused")
	signed := func(in *preconditions.Input) { in.Signatures = store{has: true} }
	image := "4.19.1@" + targetImage
	runCases(t, checkNamed(t, "Disconnected"), []checkCase{
		{input: signed, target: image, name: "fails", edits: []cvEdit{failed}, objects: []any{proxy("http://bob:secret@proxy.example:3128", "")}, want: fmt.Sprintf(fault, "api.openshift.com")},
		{input: signed, target: image, name: "own service", edits: []cvEdit{failed, func(cv *configv1.ClusterVersion) { cv.Spec.Upstream = "https://updates.example/graph" }}, objects: []any{proxy("http://proxy.example:3128", "")}, want: fmt.Sprintf(fault, "updates.example")},
		{input: signed, target: image, name: "reached directly", edits: []cvEdit{failed}, objects: []any{proxy("http://proxy.example:3128", ".openshift.com")}, want: "Passed"},
		{input: signed, target: image, name: "no proxy", edits: []cvEdit{failed}, objects: []any{proxy("", "")}, want: "Passed"},
		{input: signed, target: image, name: "no Proxy", edits: []cvEdit{failed}, want: "Passed"},
		{input: signed, target: image, name: "answers", edits: []cvEdit{cond("RetrievedUpdates", "True", "", "")}, objects: []any{proxy("http://proxy.example:3128", "")}, want: "Passed"},
		{input: signed, target: image, name: "another fault", edits: []cvEdit{cond("RetrievedUpdates", "False", "VersionNotFound", "")}, objects: []any{proxy("http://proxy.example:3128", "")}, want: "Passed"},
		{input: signed, target: image, name: "not a proxy", edits: []cvEdit{failed}, objects: []any{proxy("http://bob:secret@[", "")}, want: "Unknown\nWarning UnknownError: the cluster's proxy is not a valid URL"},
		{input: signed, target: image, name: "Proxy not known", edits: []cvEdit{failed}, fail: map[string]error{"Proxy": errors.New("boom")}, want: "Unknown\nWarning UnknownError: boom"},
	})
}
