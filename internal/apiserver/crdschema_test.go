package apiserver_test

import (
	"encoding/json"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/apiserver"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func TestParse(t *testing.T) {
	const schema = `{
		"properties": {
			"port": {"x-kubernetes-int-or-string": true, "default": 80},
			"list": {"type": "array", "items": {"type": "string", "format": "quantity"}},
			"when": {"allOf": [{"type": "string", "format": "date-time"}]}
		},
		"additionalProperties": false
	}`
	var tree, before map[string]any
	for _, into := range []*map[string]any{&tree, &before} {
		checktest.OK(t, json.Unmarshal([]byte(schema), into))
	}
	parsed := checktest.Get(apiserver.Parse(tree))(t)
	data := checktest.Get(json.Marshal(parsed))(t)
	const want = `{"properties":{` +
		`"list":{"type":"array","items":{"type":"string"}},` +
		`"port":{"type":["integer","string"],"x-kubernetes-int-or-string":true},` +
		`"when":{"allOf":[{"type":"string","format":"date-time"}]}},"additionalProperties":false}`
	checktest.Same(t, want, string(data))
	checktest.SameIn(t, "the argument changed (-before +after)", before, tree)
	checktest.Fails(t, checktest.Err(
		apiserver.Parse(map[string]any{"type": map[string]any{}})), "a type that is an object is accepted")
}
