package apiserver_test

import (
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/apiserver"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// templates are the specs of pods in a template, and what an API server makes of
// them, besides podDefaults.
var templates = []struct{ name, in, want string }{
	{"plain", ``, ``},
	{"account", `serviceAccountName: a`, `serviceAccountName: a, serviceAccount: a`},
	{"account by its old name", `serviceAccount: a`, `serviceAccountName: a, serviceAccount: a`},
	{"two accounts", `serviceAccountName: a, serviceAccount: b`, `serviceAccountName: a, serviceAccount: a`},
	{"container", `containers: [{name: a, image: "a:1"}]`, `containers: [{name: a, image: "a:1", imagePullPolicy: IfNotPresent, ` + containerDefaults + `}]`},
	{"init container", `initContainers: [{name: a, image: "a:1", terminationMessagePolicy: FallbackToLogsOnError}]`,
		`initContainers: [{name: a, image: "a:1", imagePullPolicy: IfNotPresent, terminationMessagePath: /dev/termination-log, terminationMessagePolicy: FallbackToLogsOnError}]`},
	{"ports, of the host too", `hostNetwork: true, containers: [{name: a, image: "a:1", ports: [{containerPort: 80}, {containerPort: 81, protocol: UDP}]}]`,
		`hostNetwork: true, containers: [{name: a, image: "a:1", ports: [{containerPort: 80, protocol: TCP}, {containerPort: 81, protocol: UDP}], imagePullPolicy: IfNotPresent, ` + containerDefaults + `}]`},
	{"limits", `containers: [{name: a, image: "a:1", resources: {limits: {cpu: "1"}}}]`,
		`containers: [{name: a, image: "a:1", resources: {limits: {cpu: "1"}}, imagePullPolicy: IfNotPresent, ` + containerDefaults + `}]`},
	{"probes", `containers: [{name: a, image: "a:1", livenessProbe: {httpGet: {port: 80}}, readinessProbe: {grpc: {port: 80}, periodSeconds: 5}, startupProbe: {exec: {command: [x]}, timeoutSeconds: 0, failureThreshold: 9}}]`,
		`containers: [{name: a, image: "a:1", livenessProbe: {httpGet: {port: 80, path: /, scheme: HTTP}, timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3},
    readinessProbe: {grpc: {port: 80, service: ""}, timeoutSeconds: 1, periodSeconds: 5, successThreshold: 1, failureThreshold: 3},
    startupProbe: {exec: {command: [x]}, timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 9}, imagePullPolicy: IfNotPresent, ` + containerDefaults + `}]`},
	{"hooks", `containers: [{name: a, image: "a:1", lifecycle: {postStart: {httpGet: {port: 80, path: /x}}, preStop: {httpGet: {port: 80, scheme: HTTPS}}}}]`,
		`containers: [{name: a, image: "a:1", lifecycle: {postStart: {httpGet: {port: 80, path: /x, scheme: HTTP}}, preStop: {httpGet: {port: 80, path: /, scheme: HTTPS}}}, imagePullPolicy: IfNotPresent, ` + containerDefaults + `}]`},
	{"variables", `containers: [{name: a, image: "a:1", env: [{name: A, value: x}, {name: B, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, {name: C, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}, {name: D, valueFrom: {secretKeyRef: {name: s, key: k}}}, {name: E, valueFrom: {fileKeyRef: {key: k, path: p, volumeName: v}}}]}]`,
		`containers: [{name: a, image: "a:1", env: [{name: A, value: x}, {name: B, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: metadata.name}}}, {name: C, valueFrom: {resourceFieldRef: {divisor: "0", resource: limits.cpu}}}, {name: D, valueFrom: {secretKeyRef: {name: s, key: k}}},
    {name: E, valueFrom: {fileKeyRef: {key: k, path: p, volumeName: v, optional: false}}}], imagePullPolicy: IfNotPresent, ` + containerDefaults + `}]`},
	{"volumes", `volumes: [{name: a}, {name: b, emptyDir: {}}, {name: c, secret: {secretName: s}}, {name: d, configMap: {name: c, defaultMode: 256}}, {name: e, hostPath: {path: /x}}, {name: f, hostPath: {path: /x, type: Directory}}, {name: g, persistentVolumeClaim: {claimName: c}}]`,
		`volumes: [{name: a, emptyDir: {}}, {name: b, emptyDir: {}}, {name: c, secret: {secretName: s, defaultMode: 420}}, {name: d, configMap: {name: c, defaultMode: 256}}, {name: e, hostPath: {path: /x, type: ""}}, {name: f, hostPath: {path: /x, type: Directory}}, {name: g, persistentVolumeClaim: {claimName: c}}]`},
	{"volumes of others", `volumes: [{name: a, downwardAPI: {items: [{path: p, fieldRef: {fieldPath: metadata.labels}}, {path: q, resourceFieldRef: {resource: limits.cpu, divisor: 1m}}]}}, {name: b, ephemeral: {volumeClaimTemplate: {spec: {}}}}, {name: c, image: {reference: "a:latest"}}]`,
		`volumes: [{name: a, downwardAPI: {defaultMode: 420, items: [{path: p, fieldRef: {apiVersion: v1, fieldPath: metadata.labels}}, {path: q, resourceFieldRef: {resource: limits.cpu, divisor: 1m}}]}}, {name: b, ephemeral: {volumeClaimTemplate: {spec: {volumeMode: Filesystem}}}}, {name: c, image: {reference: "a:latest", pullPolicy: Always}}]`},
	{"projected volume", `volumes: [{name: a, projected: {sources: [{serviceAccountToken: {path: t}}, {serviceAccountToken: {path: t, expirationSeconds: 600}}, {downwardAPI: {items: [{path: p, fieldRef: {fieldPath: metadata.name}}]}}, {configMap: {name: c}}]}}]`,
		`volumes: [{name: a, projected: {defaultMode: 420, sources: [{serviceAccountToken: {path: t, expirationSeconds: 3600}}, {serviceAccountToken: {path: t, expirationSeconds: 600}}, {downwardAPI: {items: [{path: p, fieldRef: {apiVersion: v1, fieldPath: metadata.name}}]}}, {configMap: {name: c}}]}}]`},
}

func TestFillTemplate(t *testing.T) {
	for _, tt := range templates {
		t.Run(tt.name, func(t *testing.T) {
			whole := func(spec, others string) map[string]any {
				return parse(t, "{apiVersion: apps/v1, kind: ReplicaSet, spec: {replicas: 1, template: {spec: {"+others+spec+"}}}}").Object
			}
			in := parse(t, "{apiVersion: apps/v1, kind: ReplicaSet, spec: {template: {spec: {"+tt.in+"}}}}")
			checktest.Same(t, whole(tt.want, podDefaults+", "), apiserver.Fill(in).Object)
		})
	}
}

func TestPullPolicy(t *testing.T) {
	const digest = "@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	for image, want := range map[string]string{
		"a": "Always", "a:latest": "Always", "host:5000/a": "Always", "host:5000/a/b:latest": "Always", "a:latest" + digest: "Always",
		"a:1": "IfNotPresent", "host:5000/a:v1": "IfNotPresent", "a" + digest: "IfNotPresent", "a:1" + digest: "IfNotPresent", "": "IfNotPresent",
	} {
		got := apiserver.Fill(parse(t, `{apiVersion: v1, kind: Pod, spec: {containers: [{name: a, image: "`+image+`"}]}}`))
		containers := got.Object["spec"].(map[string]any)["containers"].([]any)
		checktest.Equal[any](t, want, containers[0].(map[string]any)["imagePullPolicy"], "%q", image)
	}
}
