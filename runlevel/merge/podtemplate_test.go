package merge_test

import "testing"

const pod = "spec.template.spec."

func TestPods(t *testing.T) {
	checkClauses(t, podsOf, []clause{
		{name: "defaults of the server", existing: "restartPolicy: Always, dnsPolicy: ClusterFirst, schedulerName: default-scheduler, securityContext: {}, terminationGracePeriodSeconds: 30, containers: [{name: c, terminationMessagePath: /dev/termination-log, terminationMessagePolicy: File, imagePullPolicy: IfNotPresent, resources: {}}]",
			required: "containers: [{name: c}]"},
		{name: "container added, foreign one removed", existing: "containers: [{name: a, image: i}]", required: "containers: [{name: b, image: j, imagePullPolicy: Always}]",
			want: map[string]string{pod + "containers": `[{"image":"j","imagePullPolicy":"Always","name":"b","resources":{},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}]`}},
		{name: "order of containers is not looked at", existing: "containers: [{name: a}, {name: b}]", required: "containers: [{name: b}, {name: a}]"},
		{name: "init container added, foreign one removed", existing: "initContainers: [{name: a}], containers: []", required: "initContainers: [{name: b}], containers: []",
			want: map[string]string{pod + "initContainers[0].name": `"b"`, pod + "initContainers[1]": ""}},
		{name: "volume corrected", existing: "volumes: [{name: a, secret: {secretName: x}}]", required: "volumes: [{name: a, configMap: {name: y1}}]",
			want: map[string]string{pod + "volumes": `[{"configMap":{"defaultMode":420,"name":"y1"},"name":"a"}]`}},
		{name: "volume added, foreign one removed", existing: "volumes: [{name: a}]", required: "volumes: [{name: b}]", want: map[string]string{pod + "volumes": `[{"emptyDir":{},"name":"b"}]`}},
		{name: "defaults of volumes",
			existing: "volumes: [{name: a, emptyDir: {}}, {name: b, secret: {secretName: s, defaultMode: 420}}, {name: c, configMap: {name: s, defaultMode: 420}}, {name: d, hostPath: {path: p, type: ''}}, {name: e, downwardAPI: {defaultMode: 420, items: [{path: p, fieldRef: {apiVersion: v1, fieldPath: f}}]}}, {name: f, projected: {defaultMode: 420, sources: [{serviceAccountToken: {path: p, expirationSeconds: 3600}}, {downwardAPI: {items: [{path: p, fieldRef: {apiVersion: v1, fieldPath: f}}]}}]}}]",
			required: "volumes: [{name: a}, {name: b, secret: {secretName: s}}, {name: c, configMap: {name: s}}, {name: d, hostPath: {path: p}}, {name: e, downwardAPI: {items: [{path: p, fieldRef: {fieldPath: f}}]}}, {name: f, projected: {sources: [{serviceAccountToken: {path: p}}, {downwardAPI: {items: [{path: p, fieldRef: {fieldPath: f}}]}}]}}]"},
		{name: "tolerations added, foreign ones stay", existing: "tolerations: [{key: a}]", required: "tolerations: [{key: b}]", want: map[string]string{pod + "tolerations": `[{"key":"a"},{"key":"b"}]`}},
		{name: "toleration there", existing: "tolerations: [{key: a}, {key: b}]", required: "tolerations: [{key: b}]"},
		{name: "double toleration dropped", existing: "tolerations: [{key: a}, {key: a}]", want: map[string]string{pod + "tolerations": `[{"key":"a"}]`}},
		{name: "node selector merged", existing: "nodeSelector: {a: x, theirs: x}", required: "nodeSelector: {a: v, b: w}", want: map[string]string{pod + "nodeSelector": `{"a":"v","b":"w","theirs":"x"}`}},
		{name: "node selector stays", existing: "nodeSelector: {a: x}"},
		{name: "affinity set", existing: "affinity: {podAffinity: {}}", required: "affinity: {nodeAffinity: {}}", want: map[string]string{pod + "affinity": `{"nodeAffinity":{}}`}},
		{name: "affinity stays", existing: "affinity: {nodeAffinity: {}}"},
		{name: "given texts set", required: "restartPolicy: OnFailure, serviceAccountName: s, priorityClassName: p",
			want: map[string]string{pod + "restartPolicy": `"OnFailure"`, pod + "serviceAccountName": `"s"`, pod + "priorityClassName": `"p"`}},
		{name: "texts stay", existing: "restartPolicy: OnFailure, serviceAccountName: s, priorityClassName: p"},
		{name: "enforced ones set", required: "dnsPolicy: Default, terminationGracePeriodSeconds: 5, hostNetwork: true, hostUsers: false, automountServiceAccountToken: false, shareProcessNamespace: true, priority: 7",
			want: map[string]string{pod + "dnsPolicy": `"Default"`, pod + "terminationGracePeriodSeconds": "5", pod + "hostNetwork": "true", pod + "hostUsers": "false", pod + "automountServiceAccountToken": "false", pod + "shareProcessNamespace": "true", pod + "priority": "7"}},
		{name: "enforced ones cleared", existing: "dnsPolicy: Default, terminationGracePeriodSeconds: 5, hostNetwork: true, hostUsers: false, automountServiceAccountToken: false, shareProcessNamespace: true, priority: 7",
			want: map[string]string{pod + "dnsPolicy": `"ClusterFirst"`, pod + "terminationGracePeriodSeconds": "30", pod + "hostNetwork": "", pod + "hostUsers": "", pod + "automountServiceAccountToken": "", pod + "shareProcessNamespace": "", pod + "priority": ""}},
		{name: "security set", required: "securityContext: {runAsNonRoot: true, fsGroup: 3, supplementalGroups: [1], sysctls: [{name: a, value: x}]}",
			want: map[string]string{pod + "securityContext": `{"fsGroup":3,"runAsNonRoot":true,"supplementalGroups":[1],"sysctls":[{"name":"a","value":"x"}]}`}},
		{name: "security cleared, but for groups and sysctls", existing: "securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}, supplementalGroups: [1], sysctls: [{name: a, value: x}]}",
			want: map[string]string{pod + "securityContext": `{"supplementalGroups":[1],"sysctls":[{"name":"a","value":"x"}]}`}},
		{name: "groups and sysctls added", existing: "securityContext: {supplementalGroups: [1], sysctls: [{name: a, value: x}, {name: b, value: x}]}", required: "securityContext: {supplementalGroups: [2, 1], sysctls: [{name: b, value: w}]}",
			want: map[string]string{pod + "securityContext": `{"supplementalGroups":[1,2],"sysctls":[{"name":"a","value":"x"},{"name":"b","value":"w"}]}`}},
		{name: "all else stays", existing: "hostPID: true, hostIPC: true, schedulerName: s, topologySpreadConstraints: [{maxSkew: 1}], imagePullSecrets: [{name: s}], runtimeClassName: r", required: "hostPID: false, hostAliases: [{ip: i}]"},
	})
}

func TestContainers(t *testing.T) {
	const first = pod + "containers[0]."
	cases := []clause{
		{name: "image set", existing: "image: i", required: "image: j", want: map[string]string{first + "image": `"j"`}},
		{name: "image and directory stay", existing: "image: i, workingDir: /d"},
		{name: "directory set", required: "workingDir: /d", want: map[string]string{first + "workingDir": `"/d"`}},
		{name: "command and arguments set", existing: "command: [a], args: [a]", required: "command: [b], args: [b, c]", want: map[string]string{first + "command": `["b"]`, first + "args": `["b","c"]`}},
		{name: "command and arguments cleared", existing: "command: [a], args: [a]", want: map[string]string{first + "command": "", first + "args": ""}},
		{name: "environment replaced", existing: "env: [{name: A, value: x}, {name: B}], envFrom: [{prefix: x}]", required: "env: [{name: A, value: w}]", want: map[string]string{first + "env": `[{"name":"A","value":"w"}]`, first + "envFrom": ""}},
		{name: "environment's defaults", existing: "env: [{name: A, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: f}}}]", required: "env: [{name: A, valueFrom: {fieldRef: {fieldPath: f}}}]"},
		{name: "resources set", required: "resources: {requests: {cpu: 10m}}", want: map[string]string{first + "resources.requests": `{"cpu":"10m"}`}},
		{name: "resources cleared", existing: "resources: {limits: {memory: 1Gi}, requests: {cpu: 10m}}", required: "resources: {requests: {cpu: 10m}}", want: map[string]string{first + "resources.limits": ""}},
		{name: "quantities count by value", existing: "resources: {requests: {cpu: '1', memory: 1Gi}}", required: "resources: {requests: {cpu: 1000m, memory: 1024Mi}, limits: {}}"},
		{name: "port corrected by name", existing: "ports: [{name: a, containerPort: 1, protocol: TCP}]", required: "ports: [{name: a, containerPort: 2}]", want: map[string]string{first + "ports": `[{"containerPort":2,"name":"a","protocol":"TCP"}]`}},
		{name: "port added, foreign one removed", existing: "ports: [{name: a, containerPort: 1}]", required: "ports: [{name: b, containerPort: 1, protocol: UDP}]", want: map[string]string{first + "ports": `[{"containerPort":1,"name":"b","protocol":"UDP"}]`}},
		{name: "ports without names", existing: "ports: [{containerPort: 1}, {containerPort: 2}]", required: "ports: [{containerPort: 1, protocol: TCP}, {containerPort: 3}]",
			want: map[string]string{first + "ports[0].containerPort": "1", first + "ports[1].containerPort": "3", first + "ports[2]": ""}},
		{name: "mount corrected by path", existing: "volumeMounts: [{name: a, mountPath: /a}]", required: "volumeMounts: [{name: b, mountPath: /a, readOnly: true}]", want: map[string]string{first + "volumeMounts": `[{"mountPath":"/a","name":"b","readOnly":true}]`}},
		{name: "mount added, foreign one removed", existing: "volumeMounts: [{name: a, mountPath: /a}]", required: "volumeMounts: [{name: a, mountPath: /b}]", want: map[string]string{first + "volumeMounts": `[{"mountPath":"/b","name":"a"}]`}},
		{name: "security set", existing: "securityContext: {runAsUser: 1}", required: "securityContext: {privileged: true}", want: map[string]string{first + "securityContext": `{"privileged":true}`}},
		{name: "security cleared", existing: "securityContext: {privileged: true}", want: map[string]string{first + "securityContext": ""}},
		{name: "empty security", existing: "securityContext: {}", required: "securityContext: {capabilities: {}}"},
		{name: "capabilities added", existing: "securityContext: {capabilities: {add: [A], drop: [ALL]}}", required: "securityContext: {capabilities: {add: [B]}}", want: map[string]string{first + "securityContext.capabilities": `{"add":["A","B"],"drop":["ALL"]}`}},
		{name: "capabilities stay", existing: "securityContext: {capabilities: {add: [A]}, privileged: true}", required: "securityContext: {privileged: true}"},
		{name: "all else stays", existing: "startupProbe: {exec: {command: [a]}}, imagePullPolicy: Always, lifecycle: {preStop: {exec: {command: [a]}}}, terminationMessagePath: /x, volumeDevices: [{name: a, devicePath: /d}], stdin: true",
			required: "startupProbe: {exec: {command: [b]}}, imagePullPolicy: Never, lifecycle: {}, terminationMessagePath: /z"},
	}
	for _, probe := range []string{"livenessProbe", "readinessProbe"} {
		cases = append(cases,
			clause{name: probe + " set", required: probe + ": {tcpSocket: {port: 1}}", want: map[string]string{first + probe: `{"failureThreshold":3,"periodSeconds":10,"successThreshold":1,"tcpSocket":{"port":1},"timeoutSeconds":1}`}},
			clause{name: probe + " replaced", existing: probe + ": {exec: {command: [a]}, initialDelaySeconds: 5}", required: probe + ": {exec: {command: [b]}, periodSeconds: 3}",
				want: map[string]string{first + probe: `{"exec":{"command":["b"]},"failureThreshold":3,"periodSeconds":3,"successThreshold":1,"timeoutSeconds":1}`}},
			clause{name: probe + " cleared", existing: probe + ": {exec: {command: [a]}}", want: map[string]string{first + probe: ""}},
			clause{name: probe + " defaults", existing: probe + ": {httpGet: {port: 1, path: /, scheme: HTTP}, failureThreshold: 3, periodSeconds: 10, successThreshold: 1, timeoutSeconds: 1}", required: probe + ": {httpGet: {port: 1}}"},
			clause{name: probe + " defaults of gRPC", existing: probe + ": {grpc: {port: 1, service: ''}}", required: probe + ": {grpc: {port: 1}}"},
		)
	}
	checkClauses(t, containerOf, cases)
}

// Under hostNetwork a port of the container is one of the host.
func TestHostPorts(t *testing.T) {
	checkClauses(t, podsOf, []clause{
		{name: "default", existing: "hostNetwork: true, containers: [{name: c, ports: [{name: a, containerPort: 8, hostPort: 8}]}]", required: "hostNetwork: true, containers: [{name: c, ports: [{name: a, containerPort: 8}]}]"},
		{name: "set", existing: "containers: [{name: c, ports: [{name: a, containerPort: 8}]}]", required: "hostNetwork: true, containers: [{name: c, ports: [{name: a, containerPort: 8}]}]",
			want: map[string]string{pod + "containers[0].ports[0].hostPort": "8"}},
		{name: "cleared", existing: "containers: [{name: c, ports: [{name: a, containerPort: 8, hostPort: 8}]}]", required: "containers: [{name: c, ports: [{name: a, containerPort: 8}]}]",
			want: map[string]string{pod + "containers[0].ports[0].hostPort": ""}},
	})
}
