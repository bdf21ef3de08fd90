package apiserver

import "strings"

func definition(o object) {
	if o["preserveUnknownFields"] == false {
		delete(o, "preserveUnknownFields") // the server does not store it
	}
	o.in("names", func(o object) {
		if kind := o.text("kind"); kind != "" {
			o.set("singular", strings.ToLower(kind))
			o.set("listKind", kind+"List")
		}
	})
	o.each("versions", func(o object) { o.in("schema", func(o object) { o.in("openAPIV3Schema", jsonSchema) }) })
	o.make("conversion", func(o object) {
		o.set("strategy", "None")
		o.in("webhook", func(o object) { o.in("clientConfig", clientConfig) })
	})
}

// keywords are those of a definition's schema (apiextensions.k8s.io/v1,
// JSONSchemaProps): a server drops all others.
var keywords = set(
	"id", "$schema", "$ref", "description", "type", "format", "title", "default", "maximum", "exclusiveMaximum", "minimum",
	"exclusiveMinimum", "maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "multipleOf", "enum",
	"maxProperties", "minProperties", "required", "items", "allOf", "oneOf", "anyOf", "not", "properties",
	"additionalProperties", "patternProperties", "dependencies", "additionalItems", "definitions", "externalDocs", "example",
	"nullable", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string",
	"x-kubernetes-list-map-keys", "x-kubernetes-list-type", "x-kubernetes-map-type", "x-kubernetes-validations",
)

// switches are keywords that a server drops where they are false.
var switches = set(
	"exclusiveMaximum", "exclusiveMinimum", "uniqueItems", "nullable", "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string",
)

func set(names ...string) map[string]bool {
	out := make(map[string]bool, len(names))
	for _, n := range names {
		out[n] = true
	}
	return out
}

// jsonSchema converts a schema to the form that a server stores: without keywords
// that it does not know, and without empty texts and what is switched off.
func jsonSchema(o object) {
	for name, v := range o {
		empty := v == "" && name != "default" && name != "example"
		if !keywords[name] || empty || v == false && switches[name] {
			delete(o, name)
		}
	}
	for _, name := range []string{"items", "not", "additionalProperties", "additionalItems"} {
		o.in(name, jsonSchema)
	}
	for _, name := range []string{"items", "allOf", "oneOf", "anyOf"} {
		o.each(name, jsonSchema)
	}
	for _, name := range []string{"properties", "patternProperties", "definitions", "dependencies"} {
		o.in(name, func(below object) {
			for field := range below {
				below.in(field, jsonSchema)
			}
		})
	}
}
