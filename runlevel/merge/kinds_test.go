package merge_test

import (
	"fmt"
	"testing"
)

func TestConfigMap(t *testing.T) {
	checkClauses(t, of("v1", "ConfigMap"), []clause{
		{name: "key added", existing: "data: {a: x}", required: "data: {b: z}", want: map[string]string{"data": `{"a":"x","b":"z"}`}},
		{name: "key overwritten", existing: "data: {a: x}", required: "data: {a: z}", want: map[string]string{"data": `{"a":"z"}`}},
		{name: "keys of others stay", existing: "data: {a: x}, binaryData: {b: eA==}"},
		{name: "empty", required: "data: {}"},
		{name: "binary", existing: "binaryData: {a: eA==}", required: "binaryData: {a: eQ==, b: eQ==}", want: map[string]string{"binaryData": `{"a":"eQ==","b":"eQ=="}`}},
		{name: "immutable is not looked at", existing: "immutable: true"},
	})
}

func TestServiceAccount(t *testing.T) {
	checkClauses(t, of("v1", "ServiceAccount"), []clause{
		{name: "set", required: "automountServiceAccountToken: false", want: map[string]string{"automountServiceAccountToken": "false"}},
		{name: "cleared", existing: "automountServiceAccountToken: true", want: map[string]string{"automountServiceAccountToken": ""}},
		{name: "secrets stay", existing: "secrets: [{name: a}], imagePullSecrets: [{name: b}]", required: "secrets: [{name: c}]"},
	})
}

func TestService(t *testing.T) {
	checkClauses(t, of("v1", "Service"), []clause{
		{name: "defaults", existing: "spec: {type: ClusterIP, clusterIP: 1.2.3.4, ports: [{name: a, port: 80, protocol: TCP, targetPort: 80}]}", required: "spec: {ports: [{name: a, port: 80}]}"},
		{name: "port corrected by name", existing: "spec: {ports: [{name: a, port: 80}, {name: b, port: 90}]}", required: "spec: {ports: [{name: b, port: 91}, {name: a, port: 80, targetPort: x}]}",
			want: map[string]string{"spec.ports[0].targetPort": `"x"`, "spec.ports[1].port": "91", "spec.ports[1].targetPort": "91", "spec.ports[2]": ""}},
		{name: "foreign port removed, a missing one added", existing: "spec: {ports: [{name: a, port: 80}]}", required: "spec: {ports: [{name: b, port: 90, protocol: UDP}]}",
			want: map[string]string{"spec.ports[0].name": `"b"`, "spec.ports[0].protocol": `"UDP"`, "spec.ports[1]": ""}},
		{name: "order is not looked at", existing: "spec: {ports: [{name: a, port: 80}, {name: b, port: 90}]}", required: "spec: {ports: [{name: b, port: 90}, {name: a, port: 80}]}"},
		{name: "ports without names", existing: "spec: {ports: [{port: 80}]}", required: "spec: {ports: [{port: 81}]}", want: map[string]string{"spec.ports[0].port": "81", "spec.ports[1]": ""}},
		{name: "type set", required: "spec: {type: NodePort}", want: map[string]string{"spec.type": `"NodePort"`}},
		{name: "type cleared", existing: "spec: {type: NodePort, ports: [{name: a, port: 80, nodePort: 30000}]}", required: "spec: {ports: [{name: a, port: 80}]}",
			want: map[string]string{"spec.type": `"ClusterIP"`, "spec.ports[0].nodePort": ""}},
		{name: "a chosen node port stays", existing: "spec: {type: NodePort, ports: [{name: a, port: 80, nodePort: 30000}]}", required: "spec: {type: NodePort, ports: [{name: a, port: 80}]}"},
		{name: "selector replaced", existing: "spec: {selector: {a: x, b: x}}", required: "spec: {selector: {a: z}}", want: map[string]string{"spec.selector": `{"a":"z"}`}},
		{name: "selector cleared", existing: "spec: {selector: {a: x}}", required: "spec: {selector: {}}", want: map[string]string{"spec.selector": ""}},
		{name: "all else stays", existing: "spec: {clusterIP: 1.2.3.4, sessionAffinity: None, internalTrafficPolicy: Cluster}", required: "spec: {sessionAffinity: ClientIP}"},
	})
}

func TestRoles(t *testing.T) {
	const one, two = "{apiGroups: [g], resources: [r], verbs: [get]}", "{apiGroups: [h], resources: [r], verbs: [get]}"
	for _, kind := range []string{"Role", "ClusterRole"} {
		checkClauses(t, of("rbac.authorization.k8s.io/v1", kind), []clause{
			{name: kind + " replaced", existing: "rules: [" + one + "]", required: "rules: [" + two + "]", want: map[string]string{"rules[0].apiGroups": `["h"]`, "rules[1]": ""}},
			{name: kind + " cleared", existing: "rules: [" + one + "]", want: map[string]string{"rules": "null"}},
			{name: kind + " unchanged", existing: "rules: [" + one + "]", required: "rules: [" + one + "]"},
			{name: kind + " empty", existing: "rules: null", required: "rules: []"},
		})
	}
	const aggregation = "aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}"
	checkClauses(t, of("rbac.authorization.k8s.io/v1", "ClusterRole"), []clause{
		{name: "aggregation set", existing: "rules: [" + one + "]", required: aggregation + ", rules: [" + two + "]",
			want: map[string]string{"aggregationRule.clusterRoleSelectors[0].matchLabels": `{"a":"b"}`, "rules[0].apiGroups": `["g"]`}},
		{name: "rules of an aggregation stay", existing: aggregation + ", rules: [" + one + "]", required: aggregation},
		{name: "aggregation cleared", existing: aggregation, required: "rules: [" + one + "]", want: map[string]string{"aggregationRule": ""}},
	})
}

func TestBindings(t *testing.T) {
	for _, kind := range []string{"RoleBinding", "ClusterRoleBinding"} {
		const ref = "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}"
		checkClauses(t, of("rbac.authorization.k8s.io/v1", kind), []clause{
			{name: kind + " subjects replaced", existing: ref + ", subjects: [{kind: ServiceAccount, name: a, namespace: ns}]", required: ref + ", subjects: [{kind: ServiceAccount, name: b, namespace: ns}]",
				want: map[string]string{"subjects[0].name": `"b"`, "subjects[1]": ""}},
			{name: kind + " subjects cleared", existing: ref + ", subjects: [{kind: ServiceAccount, name: a, namespace: ns}]", required: ref, want: map[string]string{"subjects": ""}},
			{name: kind + " role replaced", existing: ref, required: "roleRef: {kind: Role, name: s}", want: map[string]string{"roleRef": `{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"s"}`}},
			{name: kind + " default groups", existing: ref + ", subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: g}, {apiGroup: rbac.authorization.k8s.io, kind: User, name: u}, {kind: ServiceAccount, name: a}]",
				required: "roleRef: {kind: Role, name: r}, subjects: [{kind: Group, name: g}, {kind: User, name: u}, {kind: ServiceAccount, name: a}]"},
		})
	}
}

func TestWebhooks(t *testing.T) {
	const hook = "{name: a, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {service: {name: s, namespace: ns}}, rules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}"
	const full = "{name: a, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {service: {name: s, namespace: ns, port: 443}%s}, rules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods], scope: '*'}], failurePolicy: Fail, matchPolicy: Equivalent, namespaceSelector: {}, objectSelector: {}, timeoutSeconds: 10}"
	plain := of("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration")
	checkClauses(t, plain, []clause{
		{name: "defaults", existing: "webhooks: [" + replaced(full, "") + "]", required: "webhooks: [" + hook + "]"},
		{name: "cleared", existing: "webhooks: [{name: a, timeoutSeconds: 30, namespaceSelector: {matchLabels: {a: b}}}]", required: "webhooks: [{name: a}]",
			want: map[string]string{"webhooks[0].timeoutSeconds": "10", "webhooks[0].namespaceSelector": "{}"}},
		{name: "foreign one removed", existing: "webhooks: [{name: a}, {name: b}]", required: "webhooks: [{name: b}]", want: map[string]string{"webhooks[0].name": `"b"`, "webhooks[1]": ""}},
		{name: "bundle removed", existing: "webhooks: [" + replaced(full, ", caBundle: eA==") + "]", required: "webhooks: [" + hook + "]", want: map[string]string{"webhooks[0].clientConfig.caBundle": ""}},
	})
	injected := func(value string) func(string) string {
		return func(fields string) string {
			return "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: o, annotations: {service.beta.openshift.io/inject-cabundle: " + value + "}}, " + fields + "}"
		}
	}
	checkClauses(t, injected(`"true"`), []clause{
		{name: "injected bundle stays", existing: "webhooks: [" + replaced(full, ", caBundle: eA==") + "]", required: "webhooks: [" + hook + "]"},
		{name: "and goes to all", existing: "webhooks: [{name: a, clientConfig: {caBundle: eA==}}, {name: b, clientConfig: {caBundle: eQ==}}]", required: "webhooks: [{name: a}, {name: b}, {name: c}]",
			want: map[string]string{"webhooks[0].clientConfig.caBundle": `"eA=="`, "webhooks[1].clientConfig.caBundle": `"eA=="`, "webhooks[2].clientConfig.caBundle": `"eA=="`}},
		{name: "nothing to take over", existing: "webhooks: []", required: "webhooks: [{name: a}]", want: map[string]string{"webhooks[0].clientConfig.caBundle": ""}},
	})
	checkClauses(t, injected(`"TRUE"`), []clause{{name: "not exactly true", existing: "webhooks: [{name: a, clientConfig: {caBundle: eA==}}]", required: "webhooks: [{name: a}]",
		want: map[string]string{"webhooks[0].clientConfig.caBundle": ""}}})
	existing, required := object(t, plain("webhooks: [{name: a, clientConfig: {caBundle: eA==}}]")), object(t, injected(`"true"`)("webhooks: [{name: a}]"))
	if merged := mergeOnce(t, existing, required, true); at(t, merged.Object, "webhooks[0].clientConfig.caBundle") != "" {
		t.Error("the manifest's annotation counts, though nobody has injected yet")
	}
}

func TestSecurityContextConstraints(t *testing.T) {
	checkClauses(t, func(fields string) string {
		return "{apiVersion: security.openshift.io/v1, kind: SecurityContextConstraints, metadata: {name: o}, " + fields + "}"
	}, []clause{
		{name: "set", required: "priority: 1, users: [a]", want: map[string]string{"priority": "1", "users": `["a"]`}},
		{name: "cleared", existing: "priority: 1, allowPrivilegedContainer: true, users: [a], allowPrivilegeEscalation: false",
			want: map[string]string{"priority": "null", "allowPrivilegedContainer": "false", "users": "null", "allowPrivilegeEscalation": "true"}},
		{name: "defaults", existing: "allowPrivilegeEscalation: true, users: [], groups: null"},
		{name: "level of user namespaces stays", existing: "userNamespaceLevel: RequirePodLevel", required: "userNamespaceLevel: AllowHostLevel"},
	})
}

func TestImageStream(t *testing.T) {
	const from = "from: {kind: DockerImage, name: %s}"
	checkClauses(t, of("image.openshift.io/v1", "ImageStream"), []clause{
		{name: "lookup policy set", required: "spec: {lookupPolicy: {local: true}}", want: map[string]string{"spec.lookupPolicy.local": "true"}},
		{name: "lookup policy cleared", existing: "spec: {lookupPolicy: {local: true}}", want: map[string]string{"spec.lookupPolicy.local": "false"}},
		{name: "tag added, foreign one stays", existing: "spec: {tags: [{name: a, " + replaced(from, "x") + "}]}", required: "spec: {tags: [{name: b, " + replaced(from, "z") + "}]}",
			want: map[string]string{"spec.tags[0].from.name": `"x"`, "spec.tags[1].from.name": `"z"`, "spec.tags[1].importPolicy.importMode": `"Legacy"`}},
		{name: "tag corrected", existing: "spec: {tags: [{name: a, generation: 2, annotations: {k: v}, importPolicy: {scheduled: true}, " + replaced(from, "x") + "}]}", required: "spec: {tags: [{name: a, " + replaced(from, "z") + "}]}",
			want: map[string]string{"spec.tags[0].from.name": `"z"`, "spec.tags[0].importPolicy": `{"importMode":"Legacy"}`, "spec.tags[0].generation": "2", "spec.tags[0].annotations": `{"k":"v"}`}},
		{name: "defaults", existing: "spec: {tags: [{name: a, importPolicy: {importMode: Legacy}, referencePolicy: {type: Source}, " + replaced(from, "x") + "}]}, status: {dockerImageRepository: r}", required: "spec: {tags: [{name: a, " + replaced(from, "x") + "}]}"},
	})
}

func TestOperatorGroup(t *testing.T) {
	checkClauses(t, of("operators.coreos.com/v1", "OperatorGroup"), []clause{
		{name: "defaults", existing: "spec: {upgradeStrategy: Default, targetNamespaces: [a]}, status: {namespaces: [a]}", required: "spec: {targetNamespaces: [a]}"},
		{name: "set", required: "spec: {selector: {matchLabels: {a: b}}, targetNamespaces: [a], staticProvidedAPIs: true, upgradeStrategy: TechPreviewUnsafeFailForward}",
			want: map[string]string{"spec.selector.matchLabels": `{"a":"b"}`, "spec.targetNamespaces": `["a"]`, "spec.staticProvidedAPIs": "true", "spec.upgradeStrategy": `"TechPreviewUnsafeFailForward"`}},
		{name: "cleared", existing: "spec: {selector: {matchLabels: {a: b}}, targetNamespaces: [a], staticProvidedAPIs: true, upgradeStrategy: TechPreviewUnsafeFailForward}",
			want: map[string]string{"spec": `{"upgradeStrategy":"Default"}`}},
		{name: "account stays", existing: "spec: {serviceAccountName: a, upgradeStrategy: Default}"},
		{name: "account set", existing: "spec: {serviceAccountName: a}", required: "spec: {serviceAccountName: b}", want: map[string]string{"spec.serviceAccountName": `"b"`}},
	})
}

func TestGeneric(t *testing.T) {
	custom := func(text string) string { return "{apiVersion: example.io/v1, kind: Widget, " + text + "}" }
	checkClauses(t, custom, []clause{
		{name: "unchanged", existing: "metadata: {name: o}, spec: {a: {b: 1}}, status: {x: 1}", required: "metadata: {name: o}, spec: {a: {b: 1}}, status: {x: 2}"},
		{name: "metadata alone is nothing", existing: "metadata: {name: o}, spec: {a: 1}", required: "metadata: {name: o, labels: {a: b}, annotations: {a: b}}, spec: {a: 1}"},
		{name: "a difference replaces keys and metadata",
			existing: "metadata: {name: o, labels: {theirs: x}, annotations: {theirs: x}, finalizers: [f], ownerReferences: [{apiVersion: v1, kind: K, name: p, uid: u}]}, spec: {a: 1, theirs: 2}, status: {x: 1}",
			required: "metadata: {name: o, labels: {a: b}}, spec: {a: 2}, data: x, status: {x: 2}",
			want: map[string]string{"metadata.labels": `{"a":"b"}`, "metadata.annotations": "", "metadata.ownerReferences": "", "metadata.finalizers": `["f"]`,
				"spec": `{"a":2}`, "data": `"x"`, "status": `{"x":1}`}},
		{name: "what others add within a key", existing: "metadata: {name: o}, spec: {a: 1, b: 2}", required: "metadata: {name: o}, spec: {a: 1}", want: map[string]string{"spec": `{"a":1}`}},
		{name: "a top-level key of others is a difference, and stays", existing: "metadata: {name: o}, spec: {a: 1}, theirs: 1", required: "metadata: {name: o}, spec: {a: 1}",
			want: map[string]string{"theirs": "1"}, again: true},
		{name: "empty top-level keys", existing: "metadata: {name: o}, spec: {}, list: null", required: "metadata: {name: o}, list: [], data: {}"},
		{name: "null and numbers", existing: "metadata: {name: o}, spec: {a: 1.0, b: null}", required: "metadata: {name: o}, spec: {a: 1, c: null}"},
		{name: "numbers in lists", existing: "metadata: {name: o}, spec: {a: [1, 2.5]}", required: "metadata: {name: o}, spec: {a: [1, 2]}", want: map[string]string{"spec.a": "[1,2]"}},
		{name: "another type", existing: "metadata: {name: o}, spec: {a: {}, b: [], c: 1, d: '1'}", required: "metadata: {name: o}, spec: {a: [], b: {}, c: '1', d: 1}", want: map[string]string{"spec": `{"a":[],"b":{},"c":"1","d":1}`}},
		{name: "an empty map below the top is a value", existing: "metadata: {name: o}, spec: {}", required: "metadata: {name: o}, spec: {choice: {}}", want: map[string]string{"spec": `{"choice":{}}`}},
	})
}

// Where the Go type of a kind is known, values count by what they mean to it.
func TestGenericOfKnownType(t *testing.T) {
	checkClauses(t, of("networking.k8s.io/v1", "NetworkPolicy"), []clause{
		{name: "empty map and list", existing: "spec: {podSelector: {}}", required: "spec: {podSelector: {matchLabels: {}}, ingress: []}"},
		{name: "an empty selector selects all", existing: "spec: {podSelector: {}, ingress: [{from: [{podSelector: {}}]}]}", required: "spec: {podSelector: {}, ingress: [{from: [{podSelector: {}, namespaceSelector: {}}]}]}",
			want: map[string]string{"spec.ingress[0].from[0].namespaceSelector": "{}"}},
		{name: "a field that the type does not know counts", existing: "spec: {podSelector: {}}", required: "spec: {podSelector: {}, unheardOf: 1}", want: map[string]string{"spec.unheardOf": "1"}},
	})
	checkClauses(t, of("v1", "LimitRange"), []clause{
		{name: "quantities", existing: "spec: {limits: [{type: Container, max: {cpu: '1'}}]}", required: "spec: {limits: [{type: Container, max: {cpu: 1000m}}]}"},
		{name: "another quantity", existing: "spec: {limits: [{type: Container, max: {cpu: '1'}}]}", required: "spec: {limits: [{type: Container, max: {cpu: 1001m}}]}", want: map[string]string{"spec.limits[0].max.cpu": `"1001m"`}},
	})
	checkClauses(t, of("v1", "Secret"), []clause{
		{name: "the server's type", existing: "data: {a: eA==}, type: Opaque", required: "data: {a: eA==}", want: map[string]string{"type": `"Opaque"`}, again: true},
		{name: "stringData", existing: "data: {a: eA==}", required: "stringData: {a: x}", want: map[string]string{"data.a": `"eA=="`, "stringData.a": `"x"`}, again: true},
	})
}

// Typed rules hold for one version of a kind; in another one it is like any kind.
func TestOtherVersions(t *testing.T) {
	checkClauses(t, of("rbac.authorization.k8s.io/v1beta1", "Role"), []clause{
		{name: "generic", existing: "rules: [], metadata: {name: o, labels: {theirs: x}}", required: "rules: [{verbs: [get]}]", want: map[string]string{"metadata.labels": ""}},
	})
	checkClauses(t, of("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"), []clause{
		{name: "another kind", existing: "webhooks: [{name: a, timeoutSeconds: 10}]", required: "webhooks: [{name: a}]", want: map[string]string{"webhooks[0].timeoutSeconds": ""}},
	})
}

// Labels, annotations and owners are added or overwritten by every rule but the
// generic one, and never removed.
func TestMetadata(t *testing.T) {
	kinds := map[string]string{
		"Namespace": "v1", "ConfigMap": "v1", "ServiceAccount": "v1", "Service": "v1",
		"Role": "rbac.authorization.k8s.io/v1", "RoleBinding": "rbac.authorization.k8s.io/v1",
		"ClusterRole": "rbac.authorization.k8s.io/v1", "ClusterRoleBinding": "rbac.authorization.k8s.io/v1",
		"Deployment": "apps/v1", "DaemonSet": "apps/v1", "Job": "batch/v1", "CronJob": "batch/v1",
		"CustomResourceDefinition": "apiextensions.k8s.io/v1", "ValidatingWebhookConfiguration": "admissionregistration.k8s.io/v1",
		"SecurityContextConstraints": "security.openshift.io/v1", "ImageStream": "image.openshift.io/v1",
		"OperatorGroup": "operators.coreos.com/v1", "ClusterOperator": "config.openshift.io/v1",
	}
	const owner = `{apiVersion: v1, kind: K, name: %s, uid: "%s"}`
	for kind, version := range kinds {
		t.Run(kind, func(t *testing.T) {
			checkClauses(t, func(meta string) string {
				return fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: o, namespace: ns, %s}}", version, kind, meta)
			}, []clause{
				{name: "label added", existing: "labels: {a: x}", required: "labels: {b: z}", want: map[string]string{"metadata.labels": `{"a":"x","b":"z"}`}},
				{name: "label overwritten", existing: "labels: {a: x}", required: "labels: {a: z}", want: map[string]string{"metadata.labels": `{"a":"z"}`}},
				{name: "labels of others stay", existing: "labels: {a: x}"},
				{name: "annotation added", existing: "annotations: {a: x}", required: "annotations: {b: z}", want: map[string]string{"metadata.annotations": `{"a":"x","b":"z"}`}},
				{name: "annotations of others stay", existing: "annotations: {a: x}", required: "annotations: {}"},
				{
					name: "owner added", existing: "ownerReferences: [" + fmt.Sprintf(owner, "o", "1") + "]",
					required: "ownerReferences: [" + fmt.Sprintf(owner, "p", "2") + "]",
					want:     map[string]string{"metadata.ownerReferences[0].name": `"o"`, "metadata.ownerReferences[1].name": `"p"`},
				},
				{
					name: "owner replaced by its UID", existing: "ownerReferences: [" + fmt.Sprintf(owner, "o", "1") + "]",
					required: "ownerReferences: [" + fmt.Sprintf(owner, "p", "1") + "]",
					want:     map[string]string{"metadata.ownerReferences[0].name": `"p"`, "metadata.ownerReferences[1]": ""},
				},
				{name: "owners of others stay", existing: "ownerReferences: [" + fmt.Sprintf(owner, "o", "1") + "]"},
				{name: "namespace of a kind without", existing: "namespace: ", required: "namespace: other"},
			})
		})
	}
}

// Of a Namespace and a ClusterOperator nothing else is looked at.
func TestMetadataAlone(t *testing.T) {
	checkClauses(t, of("v1", "Namespace"), []clause{{name: "namespace", existing: "spec: {finalizers: [kubernetes]}", required: "spec: {finalizers: [x]}"}})
	checkClauses(t, of("config.openshift.io/v1", "ClusterOperator"), []clause{{
		name: "operator", existing: "status: {versions: [{name: operator, version: a}]}", required: "status: {versions: [{name: operator, version: b}]}",
	}})
}

// What the server alone writes stays as it was.
func TestServerFieldsStay(t *testing.T) {
	existing := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: o, uid: u, resourceVersion: "7", generation: 3, creationTimestamp: "2026-01-02T03:04:05Z", finalizers: [f],
		managedFields: [{manager: m, operation: Update, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:data": {}}}]}, status: {odd: 1}, unknown: x}`)
	merged := mergeOnce(t, existing, object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: o}, data: {a: b}}`), true)
	for path, want := range map[string]string{
		"metadata.uid": `"u"`, "metadata.generation": "3", "metadata.creationTimestamp": `"2026-01-02T03:04:05Z"`, "metadata.finalizers": `["f"]`,
		"metadata.managedFields[0].fieldsV1": `{"f:data":{}}`, "status": `{"odd":1}`, "data": `{"a":"b"}`,
		"unknown": "", // the Go type does not know it
	} {
		if got := at(t, merged.Object, path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

func TestDeployment(t *testing.T) {
	checkClauses(t, deploymentOf, []clause{
		{name: "defaults of the server", existing: "replicas: 1, revisionHistoryLimit: 10, progressDeadlineSeconds: 600, strategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 25%, maxSurge: 25%}}"},
		{name: "defaults not written out", required: "replicas: 1, strategy: {type: RollingUpdate}"},
		{name: "replicas set", existing: "replicas: 1", required: "replicas: 2", want: map[string]string{"spec.replicas": "2"}},
		{name: "replicas cleared", existing: "replicas: 5", want: map[string]string{"spec.replicas": "1"}},
		{name: "no replicas", existing: "replicas: 1", required: "replicas: 0", want: map[string]string{"spec.replicas": "0"}},
		{name: "selector replaced", required: "selector: {matchLabels: {c: d}}", want: map[string]string{"spec.selector.matchLabels": `{"c":"d"}`}},
		{name: "pause set", required: "paused: true", want: map[string]string{"spec.paused": "true"}},
		{name: "pause cleared", existing: "paused: true", want: map[string]string{"spec.paused": ""}},
		{name: "minReadySeconds set", required: "minReadySeconds: 3", want: map[string]string{"spec.minReadySeconds": "3"}},
		{name: "minReadySeconds cleared", existing: "minReadySeconds: 3", want: map[string]string{"spec.minReadySeconds": ""}},
		{name: "strategy set", required: "strategy: {type: Recreate}", want: map[string]string{"spec.strategy": `{"type":"Recreate"}`}},
		{name: "strategy cleared", existing: "strategy: {type: Recreate}", want: map[string]string{"spec.strategy": `{"rollingUpdate":{"maxSurge":"25%","maxUnavailable":"25%"},"type":"RollingUpdate"}`}},
		{name: "strategy in part", existing: "strategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1, maxSurge: 2}}", required: "strategy: {rollingUpdate: {maxUnavailable: 1}}",
			want: map[string]string{"spec.strategy.rollingUpdate": `{"maxSurge":"25%","maxUnavailable":1}`}},
		{name: "history limit set", existing: "revisionHistoryLimit: 10", required: "revisionHistoryLimit: 2", want: map[string]string{"spec.revisionHistoryLimit": "2"}},
		{name: "history limit stays", existing: "revisionHistoryLimit: 3"},
		{name: "progress deadline set", required: "progressDeadlineSeconds: 60", want: map[string]string{"spec.progressDeadlineSeconds": "60"}},
		{name: "progress deadline stays", existing: "progressDeadlineSeconds: 3"},
		{name: "template's labels", existing: "template: {metadata: {labels: {a: x, theirs: x}, annotations: {theirs: x}}}", required: "template: {metadata: {labels: {a: v, b: w}}}",
			want: map[string]string{"spec.template.metadata.labels": `{"a":"v","b":"w","theirs":"x"}`, "spec.template.metadata.annotations": `{"theirs":"x"}`}},
	})
}

func TestDaemonSet(t *testing.T) {
	checkClauses(t, func(fields string) string {
		return of("apps/v1", "DaemonSet")(fmt.Sprintf("spec: {selector: {matchLabels: {a: b}}, template: {}, %s}", fields))
	}, []clause{
		{name: "selector replaced", required: "selector: {matchLabels: {c: d}}", want: map[string]string{"spec.selector.matchLabels": `{"c":"d"}`}},
		{name: "update strategy is not looked at", existing: "updateStrategy: {type: OnDelete}, revisionHistoryLimit: 3", required: "updateStrategy: {type: RollingUpdate}, minReadySeconds: 3"},
		{name: "template", required: "template: {spec: {containers: [{name: c, image: i}]}}", want: map[string]string{"spec.template.spec.containers[0].image": `"i"`}},
		{name: "template's defaults", existing: "template: {spec: {dnsPolicy: ClusterFirst, terminationGracePeriodSeconds: 30}}"},
	})
}

func TestCronJob(t *testing.T) {
	checkClauses(t, func(fields string) string {
		return of("batch/v1", "CronJob")(fmt.Sprintf("spec: {schedule: '@daily', jobTemplate: {spec: {template: {}}}, %s}", fields))
	}, []clause{
		{name: "defaults", existing: "suspend: false, successfulJobsHistoryLimit: 3, failedJobsHistoryLimit: 1, concurrencyPolicy: Allow"},
		{name: "set", required: "startingDeadlineSeconds: 5, suspend: true, successfulJobsHistoryLimit: 7, failedJobsHistoryLimit: 8, schedule: '@hourly', timeZone: Etc/UTC, concurrencyPolicy: Forbid",
			want: map[string]string{"spec.startingDeadlineSeconds": "5", "spec.suspend": "true", "spec.successfulJobsHistoryLimit": "7", "spec.failedJobsHistoryLimit": "8", "spec.schedule": `"@hourly"`, "spec.timeZone": `"Etc/UTC"`, "spec.concurrencyPolicy": `"Forbid"`}},
		{name: "cleared", existing: "startingDeadlineSeconds: 5, suspend: true, successfulJobsHistoryLimit: 7, failedJobsHistoryLimit: 8, timeZone: Etc/UTC, concurrencyPolicy: Forbid",
			want: map[string]string{"spec.startingDeadlineSeconds": "", "spec.suspend": "false", "spec.successfulJobsHistoryLimit": "3", "spec.failedJobsHistoryLimit": "1", "spec.timeZone": "", "spec.concurrencyPolicy": `"Allow"`}},
		{name: "job", existing: "jobTemplate: {metadata: {labels: {theirs: x}}, spec: {template: {}, backoffLimit: 2}}", required: "jobTemplate: {metadata: {labels: {a: x}}, spec: {template: {spec: {containers: [{name: c}]}}}}",
			want: map[string]string{"spec.jobTemplate.metadata.labels": `{"a":"x","theirs":"x"}`, "spec.jobTemplate.spec.backoffLimit": "6", "spec.jobTemplate.spec.template.spec.containers[0].name": `"c"`}},
	})
}

func TestJob(t *testing.T) {
	job := func(fields string) string {
		return of("batch/v1", "Job")(fmt.Sprintf("spec: {template: {}, %s}", fields))
	}
	checkClauses(t, job, []clause{
		{name: "defaults", existing: "backoffLimit: 6, completionMode: NonIndexed, suspend: false, manualSelector: false, podReplacementPolicy: TerminatingOrFailed"},
		{name: "set", required: "parallelism: 2, completions: 3, activeDeadlineSeconds: 4, backoffLimit: 5, completionMode: Indexed, suspend: true, manualSelector: true, ttlSecondsAfterFinished: 7, podFailurePolicy: {rules: [{action: Ignore, onPodConditions: [{type: t}]}]}",
			want: map[string]string{"spec.parallelism": "2", "spec.completions": "3", "spec.activeDeadlineSeconds": "4", "spec.backoffLimit": "5", "spec.completionMode": `"Indexed"`, "spec.suspend": "true", "spec.manualSelector": "true",
				"spec.ttlSecondsAfterFinished": "7", "spec.podFailurePolicy.rules[0].onPodConditions[0].status": `"True"`}},
		{name: "cleared", existing: "activeDeadlineSeconds: 4, backoffLimit: 5, completionMode: Indexed, suspend: true, manualSelector: true, ttlSecondsAfterFinished: 7, podFailurePolicy: {rules: []}",
			want: map[string]string{"spec.activeDeadlineSeconds": "", "spec.backoffLimit": "6", "spec.completionMode": `"NonIndexed"`, "spec.suspend": "false", "spec.manualSelector": "false", "spec.ttlSecondsAfterFinished": "", "spec.podFailurePolicy": ""}},
		{name: "what the server chose", existing: "selector: {matchLabels: {controller-uid: x}}, template: {metadata: {labels: {controller-uid: x}}}"},
		// the server sets both to 1, so this goes on for ever
		{name: "parallelism and completions have no default", existing: "parallelism: 1, completions: 1", want: map[string]string{"spec.parallelism": "", "spec.completions": ""}},
		{name: "parallelism and completions given", existing: "parallelism: 1, completions: 1", required: "parallelism: 1, completions: 1"},
		{name: "template", required: "template: {spec: {containers: [{name: c}]}}", want: map[string]string{"spec.template.spec.containers[0].name": `"c"`}},
	})
}

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
