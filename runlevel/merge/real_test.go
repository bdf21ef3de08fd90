package merge_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/runlevel/merge"
)

func loadReal(tb testing.TB, name string) *manifest.Payload {
	tb.Helper()
	p := checktest.Get(manifest.Load(tb.Context(), os.DirFS(filepath.Join(testdata.Dir(tb), name)), manifest.LoadOptions{
		Image: "example.com/release@sha256:abc", Filter: manifest.DefaultFilter(),
	}))(tb)
	return p
}

// A manifest merged over itself, and over what a server has made of it, changes
// nothing: the payloads have nothing of what would be written for ever (Jobs, Secrets
// without a type, PriorityClasses without a policy).
func TestRealManifests(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"payload-4.17.30", "payload-4.18.15"} {
		t.Run(name, func(t *testing.T) {
			served := 0
			every := 1
			if israce.Enabled {
				every = 5
			}
			for i, m := range loadReal(t, name).Manifests {
				if i%every > 0 {
					continue // it takes long
				}
				if _, deletes := m.Annotations()["release.openshift.io/delete"]; deletes {
					continue // the object is in no state to be created
				}
				mergeOnce(t, m.Object(), m.Object(), false)
				stored := m.Object().DeepCopy()
				asServed(stored)
				if cmp.Diff(m.Object().Object, stored.Object) != "" {
					served++
				}
				if merged, changed, err := merge.Merge(stored, m.Object()); err != nil || changed {
					t.Errorf("%s: %v %s", m, err, cmp.Diff(stored.Object, merged.Object))
				}
			}
			if served < 200/every {
				t.Errorf("the server has added to %d objects only", served)
			}
		})
	}
}

// asServed fills in what an API server does.
func asServed(u *unstructured.Unstructured) {
	spec, _ := u.Object["spec"].(map[string]any)
	switch u.GetKind() {
	case "Deployment":
		fill(spec, map[string]any{"replicas": int64(1), "revisionHistoryLimit": int64(10), "progressDeadlineSeconds": int64(600), "strategy": map[string]any{"type": "RollingUpdate"}})
		strategy := spec["strategy"].(map[string]any)
		if strategy["type"] == "RollingUpdate" {
			fill(strategy, map[string]any{"rollingUpdate": map[string]any{}})
			fill(strategy["rollingUpdate"], map[string]any{"maxSurge": "25%", "maxUnavailable": "25%"})
		}
		podAsServed(spec["template"])
	case "DaemonSet":
		fill(spec, map[string]any{"revisionHistoryLimit": int64(10), "updateStrategy": map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxUnavailable": int64(1), "maxSurge": int64(0)}}})
		podAsServed(spec["template"])
	case "CronJob":
		fill(spec, map[string]any{"concurrencyPolicy": "Allow", "suspend": false, "successfulJobsHistoryLimit": int64(3), "failedJobsHistoryLimit": int64(1)})
		podAsServed(spec["jobTemplate"].(map[string]any)["spec"].(map[string]any)["template"])
	case "Service":
		fill(spec, map[string]any{"type": "ClusterIP", "sessionAffinity": "None", "clusterIP": "1.2.3.4", "internalTrafficPolicy": "Cluster"})
		each(spec["ports"], func(p map[string]any) {
			fill(p, map[string]any{"protocol": "TCP", "targetPort": p["port"]})
		})
	case "RoleBinding", "ClusterRoleBinding":
		fill(u.Object["roleRef"], map[string]any{"apiGroup": "rbac.authorization.k8s.io"})
		each(u.Object["subjects"], func(s map[string]any) {
			if s["kind"] != "ServiceAccount" {
				fill(s, map[string]any{"apiGroup": "rbac.authorization.k8s.io"})
			}
		})
	case "ValidatingWebhookConfiguration":
		each(u.Object["webhooks"], func(w map[string]any) {
			fill(w, map[string]any{"failurePolicy": "Fail", "matchPolicy": "Equivalent", "namespaceSelector": map[string]any{}, "objectSelector": map[string]any{}, "timeoutSeconds": int64(10)})
			fill(w["clientConfig"].(map[string]any)["service"], map[string]any{"port": int64(443)})
			each(w["rules"], func(r map[string]any) { fill(r, map[string]any{"scope": "*"}) })
		})
	case "CustomResourceDefinition":
		fill(spec, map[string]any{"conversion": map[string]any{"strategy": "None"}})
		u.Object["status"] = map[string]any{"acceptedNames": spec["names"], "storedVersions": []any{"v1"}}
	case "ImageStream":
		fill(spec, map[string]any{"lookupPolicy": map[string]any{"local": false}})
		each(spec["tags"], func(tag map[string]any) {
			fill(tag, map[string]any{"importPolicy": map[string]any{}, "referencePolicy": map[string]any{"type": "Source"}, "generation": int64(1)})
			fill(tag["importPolicy"], map[string]any{"importMode": "Legacy"})
		})
	case "OperatorGroup":
		fill(spec, map[string]any{"upgradeStrategy": "Default"})
	case "SecurityContextConstraints":
		fill(u.Object, map[string]any{"allowPrivilegeEscalation": true, "userNamespaceLevel": "AllowHostLevel"})
	case "Namespace":
		fill(u.Object, map[string]any{"spec": map[string]any{"finalizers": []any{"kubernetes"}}})
	case "Secret":
		fill(u.Object, map[string]any{"type": "Opaque"})
		if text, ok := u.Object["stringData"].(map[string]any); ok && len(text) > 0 {
			u.Object["data"] = map[string]any{"x": "eA=="}
		}
		delete(u.Object, "stringData")
	case "PriorityClass":
		fill(u.Object, map[string]any{"preemptionPolicy": "PreemptLowerPriority"})
	case "NetworkPolicy":
		fill(spec, map[string]any{"policyTypes": []any{"Ingress"}})
	}
}

func podAsServed(template any) {
	pod := template.(map[string]any)["spec"].(map[string]any)
	fill(pod, map[string]any{"restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler", "securityContext": map[string]any{}, "terminationGracePeriodSeconds": int64(30)})
	if name, ok := pod["serviceAccountName"]; ok {
		fill(pod, map[string]any{"serviceAccount": name})
	}
	for _, list := range []string{"initContainers", "containers"} {
		each(pod[list], func(c map[string]any) {
			fill(c, map[string]any{"imagePullPolicy": "IfNotPresent", "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File", "resources": map[string]any{}})
			for _, name := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
				probe, ok := c[name].(map[string]any)
				if !ok {
					continue
				}
				fill(probe, map[string]any{"timeoutSeconds": int64(1), "periodSeconds": int64(10), "successThreshold": int64(1), "failureThreshold": int64(3)})
				fill(probe["httpGet"], map[string]any{"scheme": "HTTP", "path": "/"})
			}
			each(c["ports"], func(p map[string]any) {
				fill(p, map[string]any{"protocol": "TCP"})
				if pod["hostNetwork"] == true {
					fill(p, map[string]any{"hostPort": p["containerPort"]})
				}
			})
			each(c["env"], func(e map[string]any) {
				from, _ := e["valueFrom"].(map[string]any)
				fill(from["fieldRef"], map[string]any{"apiVersion": "v1"})
			})
		})
	}
	each(pod["volumes"], func(v map[string]any) {
		if len(v) == 1 {
			v["emptyDir"] = map[string]any{}
		}
		for _, source := range []string{"secret", "configMap", "projected"} {
			fill(v[source], map[string]any{"defaultMode": int64(0o644)})
		}
		fill(v["hostPath"], map[string]any{"type": ""})
		projected, _ := v["projected"].(map[string]any)
		each(projected["sources"], func(s map[string]any) {
			fill(s["serviceAccountToken"], map[string]any{"expirationSeconds": int64(3600)})
		})
	})
}

// fill sets what a map, if there is one, does not have.
func fill(into any, defaults map[string]any) {
	m, ok := into.(map[string]any)
	for key, value := range defaults {
		if _, has := m[key]; ok && m != nil && !has {
			m[key] = value
		}
	}
}

func each(list any, f func(map[string]any)) {
	l, _ := list.([]any)
	for _, e := range l {
		f(e.(map[string]any))
	}
}
