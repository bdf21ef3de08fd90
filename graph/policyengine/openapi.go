package policyengine

import (
	"encoding/json"
	"net/http"
	"slices"
)

// openAPI returns a route that serves a description of this service.
func (h *Handler) openAPI() route {
	text, _ := json.MarshalIndent(h.description(), "", "  ") // texts, numbers and maps
	b := newBody(append(text, '\n'), h.o.Clock.Now())
	return func(w http.ResponseWriter, r *http.Request) (int, string) {
		return h.write(w, r, b.known, jsonType, varyGraph, func(zip bool) ([]byte, []string, *failure) {
			if !zip {
				return b.plain, b.plainLength, nil
			}
			text, length, _ := b.compressed()
			return text, length, nil
		})
	}
}

type object map[string]any

// versionPattern is SemVer 2.
const versionPattern = `^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)` +
	`(-(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)(\.(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*))*)?` +
	`(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`

// description is the document, as of OpenAPI 3.0.3.
func (h *Handler) description() object {
	get := object{"get": object{
		"summary":    "The update graph of a channel",
		"parameters": h.describeParameters(),
		"responses":  describeResponses(),
	}}
	return object{
		"openapi": "3.0.3",
		"info":    object{"title": "Update graphs", "version": "1.0.0", "description": "Serves, per channel and architecture, which releases there are and which may update to which."},
		"paths": object{
			h.o.Prefix + "/graph":    get,
			h.o.Prefix + "/v1/graph": get,
		},
		"components": object{"schemas": describeSchemas()},
	}
}

func (h *Handler) describeParameters() []object {
	required := func(name string) bool { return name == "channel" || slices.Contains(h.o.Mandatory, name) }
	parameter := func(name, text string, schema object) object {
		return object{"name": name, "in": "query", "required": required(name), "description": text, "schema": schema}
	}
	list := []object{
		parameter("channel", "The channel, as in stable-4.18.", object{"type": "string", "pattern": `^[0-9a-z\-\.]+$`, "maxLength": maxChannel}),
		parameter("arch", "The architecture, as Go names it, or multi.", object{"type": "string", "pattern": "^[0-9a-z]+$", "maxLength": maxArch, "default": h.o.DefaultArch}),
		parameter("id", "The ID of the cluster. It is not looked at.", object{"type": "string"}),
		parameter("version", "The version of the cluster. It is not looked at.", object{"type": "string"}),
	}
	for _, name := range h.o.Mandatory {
		if !slices.Contains([]string{"channel", "arch", "id", "version"}, name) {
			list = append(list, parameter(name, "A parameter that this service demands.", object{"type": "string"}))
		}
	}
	return list
}

func describeResponses() object {
	failed := func(text string, kinds ...string) object {
		return object{"description": text, "content": object{jsonType[0]: object{"schema": object{
			"allOf": []object{ref("Error"), {"properties": object{"kind": object{"enum": kinds}}}},
		}}}}
	}
	schema := object{"schema": ref("Graph")}
	return object{
		"200": object{"description": "The graph; empty for a channel or an architecture that there is not.", "content": object{jsonType[0]: schema, vendorType[0]: schema}},
		"304": object{"description": "The graph is the one that the client has."},
		"400": failed("A parameter is missing or wrong.", kindMissingParams, kindInvalidParams),
		"406": failed("No type that the client accepts.", kindInvalidContentType),
		"414": failed("The request is too long.", kindInvalidParams),
		"500": failed("The graph cannot be made.", kindFailedExecution, kindFailedUpstreamFetch),
		"503": failed("There is no graph, or it is too old.", kindFailedUpstreamFetch),
	}
}

func ref(name string) object { return object{"$ref": "#/components/schemas/" + name} }

func describeSchemas() object {
	text, version := object{"type": "string"}, ref("Version")
	list := func(of object) object { return object{"type": "array", "items": of} }
	of := func(properties object, required ...string) object {
		return object{"type": "object", "properties": properties, "required": required}
	}
	return object{
		"Version": object{"type": "string", "pattern": versionPattern},
		"Graph": of(object{
			"version": object{"type": "integer", "enum": []int{1}}, "nodes": list(ref("Node")),
			"edges":            list(object{"type": "array", "items": object{"type": "integer", "minimum": 0}, "minItems": 2, "maxItems": 2, "description": "Indices of nodes: from, to."}),
			"conditionalEdges": list(ref("ConditionalEdges")),
		}, "version", "nodes", "edges", "conditionalEdges"),
		"Node":             of(object{"version": version, "payload": text, "metadata": object{"type": "object", "additionalProperties": text}}, "version", "payload", "metadata"),
		"ConditionalEdges": of(object{"edges": list(of(object{"from": version, "to": version}, "from", "to")), "risks": list(ref("Risk"))}, "edges", "risks"),
		"Risk":             of(object{"url": text, "name": text, "message": text, "matchingRules": list(ref("Rule"))}, "url", "name", "message", "matchingRules"),
		"Rule":             of(object{"type": text, "promql": of(object{"promql": text}, "promql")}, "type"),
		"Error":            of(object{"kind": text, "value": text}, "kind", "value"),
	}
}
