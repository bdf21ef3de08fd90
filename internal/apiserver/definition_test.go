package apiserver_test

import (
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/apiserver"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func TestFillDefinition(t *testing.T) {
	const none = `conversion: {strategy: None}`
	schema := func(s string) string {
		return none + `, versions: [{name: v1, schema: {openAPIV3Schema: ` + s + `}}]`
	}
	for _, tt := range []struct{ name, in, want string }{
		{"names", `names: {kind: Widget, plural: widgets}`, `names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}, ` + none},
		{"names that are told", `names: {kind: Widget, plural: widgets, singular: w, listKind: WL}`, `names: {kind: Widget, plural: widgets, singular: w, listKind: WL}, ` + none},
		{"no kind", `names: {plural: widgets}`, `names: {plural: widgets}, ` + none},
		{"conversion", `conversion: {strategy: Webhook, webhook: {clientConfig: {service: {name: s}}}}`, `conversion: {strategy: Webhook, webhook: {clientConfig: {service: {name: s, port: 443}}}}`},
		{"unknown fields", `preserveUnknownFields: false`, none},
		{"unknown fields that stay", `preserveUnknownFields: true`, `preserveUnknownFields: true, ` + none},
		{"version without a schema", `versions: [{name: v1}]`, `versions: [{name: v1}], ` + none},
		{"unknown keywords", schema(`{type: object, readOnly: true, const: 1, x-kubernetes-list-type: atomic}`), schema(`{type: object, x-kubernetes-list-type: atomic}`)},
		{"empty texts", schema(`{type: "", description: "", format: "", default: "", example: ""}`), schema(`{default: "", example: ""}`)},
		{"what is off", schema(`{nullable: false, uniqueItems: false, exclusiveMinimum: false, exclusiveMaximum: false, x-kubernetes-int-or-string: false, x-kubernetes-embedded-resource: false, default: false}`), schema(`{default: false}`)},
		{"what is on", schema(`{nullable: true, x-kubernetes-preserve-unknown-fields: true}`), schema(`{nullable: true, x-kubernetes-preserve-unknown-fields: true}`)},
		{"what may be false", schema(`{additionalProperties: false}`), schema(`{additionalProperties: false}`)},
		{"properties with names of keywords", schema(`{properties: {readOnly: {title: "", type: string}, description: {const: 1}}}`), schema(`{properties: {readOnly: {type: string}, description: {}}}`)},
		{"below", schema(`{items: {const: 1}, not: {const: 1}, additionalProperties: {const: 1}, allOf: [{const: 1}], anyOf: [{const: 1}], oneOf: [{const: 1}], patternProperties: {x: {const: 1}}, definitions: {x: {const: 1}}, dependencies: {x: {const: 1}, y: [a]}}`),
			schema(`{items: {}, not: {}, additionalProperties: {}, allOf: [{}], anyOf: [{}], oneOf: [{}], patternProperties: {x: {}}, definitions: {x: {}}, dependencies: {x: {}, y: [a]}}`)},
		{"default that is like a schema", schema(`{default: {const: 1, title: ""}}`), schema(`{default: {const: 1, title: ""}}`)},
	} {
		whole := func(spec string) string {
			return "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {" + spec + "}}"
		}
		checktest.SameIn(t, tt.name, parse(t, whole(tt.want)).Object, apiserver.Fill(parse(t, whole(tt.in))).Object)
	}
}
