package merge_test

import (
	"strings"
	"testing"
)

func TestDefinition(t *testing.T) {
	crd := of("apiextensions.k8s.io/v1", "CustomResourceDefinition")
	checkClauses(t, crd, []clause{
		{name: "defaults", existing: "spec: {names: {kind: FooBar, plural: foobars, singular: foobar, listKind: FooBarList}, conversion: {strategy: None}}, status: {acceptedNames: {kind: x, plural: x}}", required: "spec: {names: {kind: FooBar, plural: foobars}}, status: {acceptedNames: {kind: '', plural: ''}, conditions: null}"},
		{name: "defaults set", existing: "spec: {group: a}", required: "spec: {group: b, names: {kind: FooBar}}",
			want: map[string]string{"spec.group": `"b"`, "spec.names": `{"kind":"FooBar","listKind":"FooBarList","singular":"foobar"}`, "spec.conversion": `{"strategy":"None"}`}},
		{name: "spec replaced", existing: "spec: {names: {kind: K}, scope: Cluster, versions: [{name: v1}, {name: v2}]}", required: "spec: {names: {kind: K}, versions: [{name: v2}]}",
			want: map[string]string{"spec.scope": "", "spec.versions": `[{"name":"v2"}]`}},
		{name: "metadata alone keeps the spec", existing: "spec: {names: {kind: K}, preserveUnknownFields: false}", required: "metadata: {name: o, labels: {a: b}}, spec: {names: {kind: K}}",
			want: map[string]string{"metadata.labels": `{"a":"b"}`, "spec.preserveUnknownFields": "false"}},
		{name: "conversion cleared", existing: "spec: {conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1]}}}", required: "spec: {}", want: map[string]string{"spec.conversion": `{"strategy":"None"}`}},
		{name: "bundle removed", existing: "spec: {conversion: {strategy: Webhook, webhook: {clientConfig: {caBundle: eA==, service: {name: s, namespace: ns, port: 443}}}}}", required: "spec: {conversion: {strategy: Webhook, webhook: {clientConfig: {service: {name: s, namespace: ns}}}}}",
			want: map[string]string{"spec.conversion.webhook.clientConfig": `{"service":{"name":"s","namespace":"ns","port":443}}`}},
	})
	injected := func(fields string) string {
		return "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: o, annotations: {service.beta.openshift.io/inject-cabundle: 'true'}}, " + fields + "}"
	}
	const hook = "spec: {conversion: {strategy: Webhook, webhook: {clientConfig: {%sservice: {name: s, namespace: ns}}}}"
	checkClauses(t, injected, []clause{
		{name: "injected bundle stays", existing: replaced(hook, "caBundle: eA==, ") + "}", required: replaced(hook, "") + "}"},
		{name: "in what is replaced", existing: replaced(hook, "caBundle: eA==, ") + "}", required: replaced(hook, "caBundle: eQ==, ") + ", group: g}", want: map[string]string{"spec.group": `"g"`, "spec.conversion.webhook.clientConfig.caBundle": `"eA=="`}},
		{name: "no bundle yet", existing: replaced(hook, "") + "}", required: replaced(hook, "") + ", group: g}", want: map[string]string{"spec.conversion.webhook.clientConfig.caBundle": ""}},
		{name: "no webhook any more", existing: replaced(hook, "caBundle: eA==, ") + "}", required: "spec: {}", want: map[string]string{"spec.conversion": `{"strategy":"None"}`}},
		{name: "a webhook now", existing: "spec: {}", required: replaced(hook, "") + "}", want: map[string]string{"spec.conversion.webhook.clientConfig.caBundle": ""}},
	})
}

// In a schema zeros that Go leaves out are nothing, but for what says something by
// being there.
func TestDefinitionSchema(t *testing.T) {
	schema := func(fields string) string {
		return of("apiextensions.k8s.io/v1", "CustomResourceDefinition")("spec: {versions: [{name: v1, schema: {openAPIV3Schema: {type: object, properties: {p: {" + fields + "}}}}}]}")
	}
	for _, tc := range []struct {
		a, b string
		same bool
	}{
		{"nullable: false, required: [], description: '', enum: []", "", true},
		{"x-kubernetes-int-or-string: false", "uniqueItems: false", true},
		{"properties: {}", "", true},
		{"optional: [a]", "", true}, // no keyword: the server drops it
		{"properties: {optional: {type: string}}", "properties: {}", false},
		{"maxLength: 5", "maxLength: 5.0", true},
		{"default: null", "", true},
		{"description: a", "description: b", false},
		{"default: {}", "", false},
		{"default: false", "", false},
		{"default: ''", "", false},
		{"default: []", "", false},
		{"default: {a: []}", "default: {}", false},
		{"maxLength: 0", "", false},
		{"enum: ['']", "", false},
		{"enum: ['', a]", "enum: [a, '']", false},
		{"properties: {q: {}}", "properties: {}", false},
		{"properties: {default: {nullable: false}}", "properties: {default: {}}", true},
		{"properties: {nullable: {type: string}}", "properties: {nullable: {}}", false},
		{"items: {}", "", false},
		{"additionalProperties: false", "", false},
		{"additionalProperties: {}", "", false},
		{"x-kubernetes-preserve-unknown-fields: false", "", false},
		{"required: [a, b]", "required: [b, a]", false},
	} {
		existing, required := object(t, schema(tc.a)), object(t, schema(tc.b))
		mergeOnce(t, mergeOnce(t, existing, required, !tc.same), required, false)
		mergeOnce(t, mergeOnce(t, required, existing, !tc.same), existing, false)
	}
	version := func(fields string) string {
		return of("apiextensions.k8s.io/v1", "CustomResourceDefinition")("spec: {versions: [{name: v1, " + fields + "}]}")
	}
	mergeOnce(t, object(t, version("")), object(t, version("subresources: {status: {}}")), true)
	mergeOnce(t, object(t, version("subresources: {}")), object(t, version("subresources: {status: {}}")), true)
	mergeOnce(t, object(t, version("served: false, additionalPrinterColumns: [{name: a, priority: 0}]")), object(t, version("additionalPrinterColumns: [{name: a}]")), false)
	mergeOnce(t, object(t, version("additionalPrinterColumns: [{name: a, priority: 1}]")), object(t, version("additionalPrinterColumns: [{name: a}]")), true)
}

// A field of another type than a definition's is an error that names it.
func TestDefinitionErrors(t *testing.T) {
	for spec, want := range map[string]string{
		"x":                          "spec: ",
		"{names: x}":                 "spec.names: ",
		"{names: {kind: 1}}":         "spec.names.kind: ",
		"{conversion: []}":           "spec.conversion: ",
		"{conversion: {webhook: 1}}": "spec.conversion.webhook: ",
		"{versions: {}}":             "spec.versions: ",
		"{versions: [1]}":            "spec.versions[0]: ",
		"{conversion: {webhook: {clientConfig: {service: {port: x}}}}}": "spec.conversion.webhook.clientConfig.service.port: ",
	} {
		crd := of("apiextensions.k8s.io/v1", "CustomResourceDefinition")
		for _, order := range [][2]string{{"spec: " + spec, "spec: {}"}, {"spec: {}", "spec: " + spec}} {
			err := mergeError(t, crd(order[0]), crd(order[1]))
			if !strings.Contains(err, want) || !strings.Contains(err, "CustomResourceDefinition ns/o") {
				t.Errorf("%s: %s", spec, err)
			}
		}
	}
}
