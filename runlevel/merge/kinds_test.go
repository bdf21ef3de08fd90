package merge_test

import "testing"

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
