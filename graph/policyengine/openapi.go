package policyengine

import (
	_ "embed"
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

// openapi.json is the part of the document that no option changes.
//
//go:embed openapi.json
var fixed []byte

type object map[string]any

// description is the document, as of OpenAPI 3.0.3.
func (h *Handler) description() object {
	var document struct {
		OpenAPI    string          `json:"openapi"`
		Info       json.RawMessage `json:"info"`
		Components json.RawMessage `json:"components"`
		Responses  json.RawMessage `json:"responses"`
	}
	_ = json.Unmarshal(fixed, &document) // it is ours
	get := object{"get": object{
		"summary":    "The update graph of a channel",
		"parameters": h.describeParameters(),
		"responses":  document.Responses,
	}}
	return object{
		"openapi":    document.OpenAPI,
		"info":       document.Info,
		"paths":      object{h.o.Prefix + "/graph": get, h.o.Prefix + "/v1/graph": get},
		"components": document.Components,
	}
}

func (h *Handler) describeParameters() []object {
	required := func(name string) bool { return name == "channel" || slices.Contains(h.o.Mandatory, name) }
	parameter := func(name, text string, schema object) object {
		return object{"name": name, "in": "query", "required": required(name), "description": text, "schema": schema}
	}
	list := []object{
		parameter("channel", "The channel, as in stable-4.18.", object{"type": "string", "pattern": channelPattern.String(), "maxLength": maxChannel}),
		parameter("arch", "The architecture, as Go names it, or multi.", object{"type": "string", "pattern": archPattern.String(), "maxLength": maxArch, "default": h.o.DefaultArch}),
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
