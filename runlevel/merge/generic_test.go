package merge_test

import (
	"testing"
)

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
