package preconditions_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/rules"
)

// richObjects are a cluster that every check has something to look at in. All is well
// there, or only worth a note.
func richObjects() []any {
	cv := richVersion()
	backup := coCond("RecentBackup", "True", "UpgradeBackupSuccessful", "")
	backup.LastTransitionTime = metav1.NewTime(checkTime.Add(-time.Hour))
	etcd := clusterOperator("etcd", coCond("Available", "True", "", ""), coCond("Degraded", "False", "", ""), backup)
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "b", Generation: 1}}
	budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}
	budget.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, CurrentHealthy: 2, DesiredHealthy: 1, ExpectedPods: 2, DisruptionsAllowed: 1}
	health := &machinev1beta1.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-machine-api", Name: "h"}}
	objects := []any{cv, etcd, budget, health,
		infrastructure(func(i *configv1.Infrastructure) { i.Status.PlatformStatus.Type = configv1.VSpherePlatformType }),
		poolOf("master"), poolOf("worker"),
		gates(nil), acks(nil), featureGate(""), cloudCredential(operatorv1.CloudCredentialsModeMint, ""), secret("kube-system", "vsphere-creds"),
		&configv1.Network{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}, Status: configv1.NetworkStatus{NetworkType: "OVNKubernetes"}},
		requestCount("a.v1", "", 3, "bob"), object("operators.coreos.com/v1alpha1", "ClusterServiceVersion", "ns", "x.v1", nil),
		object("kmm.sigs.x-k8s.io/v1beta1", "Module", "ns", "m", nil), object("kmm.sigs.x-k8s.io/v1beta2", "PreflightValidationOCP", "", "p", map[string]any{
			"spec":   map[string]any{"releaseImage": targetImage},
			"status": map[string]any{"modules": []any{map[string]any{"namespace": "ns", "name": "m", "verificationStatus": "true"}}},
		}),
		object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "a.b", map[string]any{"spec": map[string]any{"group": "b"}}),
		&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}},
	}
	for i := range 3 {
		objects = append(objects, node(fmt.Sprintf("m%d", i), "master", has("4", "8Gi")), node(fmt.Sprintf("w%d", i), "worker", has("4", "8Gi")))
	}
	for i := range 2 {
		objects = append(objects, podOn(fmt.Sprintf("w%d", i), fmt.Sprintf("p%d", i), "1", "1Gi"))
	}
	return objects
}

func richVersion() *configv1.ClusterVersion {
	return clusterVersion("4.18.5@A", channel("stable-4.19"), history("4.18.5@A C"), available("4.19.1@"+targetImage), cond("RetrievedUpdates", "True", "", ""))
}

func richInput(r clusterapi.Reader) *preconditions.Input {
	in := input(r, richVersion(), "4.19.1@"+targetImage)
	in.Now, in.Alerts, in.Signatures = checkTime, alerts{all: []clusterapi.Alert{}}, store{has: true}
	in.VSphere = vSphere{versions: &preconditions.VSphereVersions{Hardware: map[string]int{"a": 15}}}
	in.TargetPayload = &manifest.Payload{Release: configv1.Release{Version: "4.19.1", Image: targetImage}, Previous: []string{"4.18.5"}}
	in.CurrentPayload = &manifest.Payload{Release: configv1.Release{Version: "4.18.5", Image: "A"}}
	return in
}

// In a cluster in which all is well nothing is found, and each object and each kind is
// read once for all checks.
func TestAllChecks(t *testing.T) {
	r := reader(t, richObjects()...)
	report := run(t, rules.Default(rules.Options{}), richInput(r))
	for _, result := range report.Results {
		if result.State != preconditions.Passed && result.State != preconditions.NotApplicable {
			t.Errorf("%s: %s", result.Check, text(result))
		}
	}
	lists := map[string]int{}
	for call, n := range r.calls {
		if n > 1 && call != "get Config/cluster" { // two kinds have this name
			t.Errorf("%s: %d times", call, n)
		}
		if kind, ok := strings.CutPrefix(call, "list "); ok {
			lists[kind]++
		}
	}
	checktest.FailIf(t, len(lists) < 15, "lists of %v", lists)
	if d := report.Decide(preconditions.Policy{}); d.Blocked || d.Summary != "" {
		t.Errorf("%+v", d)
	}
	// The same input gives the same bytes.
	again := run(t, rules.Default(rules.Options{}), richInput(reader(t, richObjects()...)))
	checktest.Same(t, marshal(t, report), marshal(t, again))
}

// A read that fails is never a pass: each check, each kind that it reads, each way.
func TestReadsFail(t *testing.T) {
	notNeeded := map[string]bool{
		// What it reads only to say more, or to say that it is not concerned.
		"MachineHealthChecks Node": true, "KubeletSkew MachineConfigPool": true,
		// What it can find out in another way.
		"KubeletSkew ClusterOperator": true, "DeprecatedAPIs ClusterOperator": true, "Disconnected ConfigMap": true,
	}
	for _, c := range rules.Documented(rules.Options{}) {
		rule := c.(preconditions.Described).Rule()
		for _, gvk := range rule.Reads {
			for name, err := range map[string]error{
				"forbidden":     apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "", errors.New("no")),
				"timeout":       apierrors.NewTimeoutError("slow", 1),
				"not collected": clusterapi.ErrNotCollected,
				"broken":        errors.New("connection reset"),
			} {
				r := reader(t, richObjects()...).failing(gvk.Kind, err)
				result := run(t, []preconditions.Check{c}, richInput(r)).Results[0]
				read := slices.ContainsFunc(callsOf(r), func(call string) bool {
					_, what, _ := strings.Cut(call, " ")
					kind, _, _ := strings.Cut(what, "/")
					return kind == gvk.Kind
				})
				passes := result.State == preconditions.Passed || result.State == preconditions.NotApplicable
				if read && passes && !notNeeded[rule.Name+" "+gvk.Kind] {
					t.Errorf("%s, %s of %s: %s", rule.Name, name, gvk.Kind, text(result))
				}
				if name == "forbidden" && result.State == preconditions.Unknown && result.Findings[0].Reason != "NotAllowed" {
					t.Errorf("%s, %s of %s: %s", rule.Name, name, gvk.Kind, text(result))
				}
			}
		}
	}
}

func callsOf(r *fakeReader) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for call := range r.calls {
		out = append(out, call)
	}
	return out
}

// Objects of every kind, malformed, empty, huge, or of a shape that nobody expects: no
// check panics, none reads it as well where it cannot be read, and texts stay bounded.
func TestOddObjects(t *testing.T) {
	shapes := map[string]func(u *unstructured.Unstructured){
		"no spec and status": func(u *unstructured.Unstructured) { delete(u.Object, "spec"); delete(u.Object, "status") },
		"spec is a text":     func(u *unstructured.Unstructured) { u.Object["spec"] = "x" },
		"status is a list":   func(u *unstructured.Unstructured) { u.Object["status"] = []any{int64(1), "x"} },
		"null":               func(u *unstructured.Unstructured) { u.Object["spec"], u.Object["status"] = nil, nil },
		"conditions": func(u *unstructured.Unstructured) {
			u.Object["status"] = map[string]any{"conditions": "x", "history": int64(3), "modules": "y"}
		},
		"numbers": func(u *unstructured.Unstructured) { setAll(u.Object, int64(1)<<62) },
		"texts":   func(u *unstructured.Unstructured) { setAll(u.Object, strings.Repeat("x", 1<<16)) },
		"annotations": func(u *unstructured.Unstructured) {
			u.SetAnnotations(map[string]string{"a": strings.Repeat("y", 1<<18), "cloudcredential.openshift.io/upgradeable-to": strings.Repeat("9", 1<<12)})
		},
	}
	for i, o := range richObjects() {
		if israce.Enabled && i%4 != 0 {
			continue
		}
		plain, err := clusterapi.ToUnstructured(o)
		if u, ok := o.(*unstructured.Unstructured); ok {
			plain, err = u, nil
		}
		checktest.OK(t, err)
		for name, change := range shapes {
			odd := plain.DeepCopy()
			change(odd)
			objects := []any{odd}
			for _, other := range richObjects() {
				u, ok := other.(*unstructured.Unstructured)
				if !ok {
					if u, err = clusterapi.ToUnstructured(other); err != nil {
						t.Fatal(err)
					}
				}
				if u.GroupVersionKind() != odd.GroupVersionKind() || u.GetName() != odd.GetName() || u.GetNamespace() != odd.GetNamespace() {
					objects = append(objects, u)
				}
			}
			report := run(t, rules.Default(rules.Options{}), richInput(reader(t, objects...)))
			for _, result := range report.Results {
				for _, f := range result.Findings {
					if f.Reason == "CheckPanicked" {
						t.Errorf("%s, %s: %s: %s", odd.GetKind(), name, result.Check, f.Message)
					}
				}
			}
			if size := len(marshal(t, report)); size > 4<<20 {
				t.Errorf("%s, %s: a report of %d bytes", odd.GetKind(), name, size)
			}
		}
	}
}

// setAll replaces all values of spec and status.
func setAll(object map[string]any, to any) {
	var set func(v any) any
	set = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			for k := range v {
				v[k] = set(v[k])
			}
			return v
		case []any:
			for i := range v {
				v[i] = set(v[i])
			}
			return v
		}
		return to
	}
	for _, part := range []string{"spec", "status", "data"} {
		if v, ok := object[part]; ok {
			object[part] = set(v)
		}
	}
}

func marshal(t testing.TB, r *preconditions.Report) string {
	t.Helper()
	text := checktest.Get(json.Marshal(r))(t)
	return string(text)
}
