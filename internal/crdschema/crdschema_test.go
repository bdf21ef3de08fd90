package crdschema_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/internal/crdschema"
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
		if err := json.Unmarshal([]byte(schema), into); err != nil {
			t.Fatal(err)
		}
	}
	parsed, err := crdschema.Parse(tree)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(parsed)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"properties":{` +
		`"list":{"type":"array","items":{"type":"string"}},` +
		`"port":{"type":["integer","string"],"x-kubernetes-int-or-string":true},` +
		`"when":{"allOf":[{"type":"string","format":"date-time"}]}},"additionalProperties":false}`
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, tree); diff != "" {
		t.Errorf("the argument changed (-before +after):\n%s", diff)
	}
	if _, err := crdschema.Parse(map[string]any{"type": map[string]any{}}); err == nil {
		t.Error("a type that is an object is accepted")
	}
}
