package runlevel

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// FuzzTrim: whatever stands in managedFields, nothing panics, the object stays as
// it is, and the same gives the same.
func FuzzTrim(f *testing.F) {
	f.Add(`{"f:data":{"f:a":{}},"f:metadata":{"f:labels":{}}}`, `{"f:data":{"f:b":{}}}`, `{"a":"x","b":"y"}`)
	f.Add(`{"f:data":{}}`, `{"f:data":{"f:b":{},".":{}}}`, `{"a":"x","b":"y"}`)
	f.Add(`{"f:data":{"k:{\"name\":\"x\",\"n\":1}":{".":{},"f:v":{}}}}`, `{}`, `[{"name":"x","n":1,"v":2},{"name":"y"}]`)
	f.Add(`{"f:data":{"v:\"x\"":{},"i:1":{}}}`, `{"f:data":{"v:\"y\"":{}}}`, `["x","y"]`)
	f.Add(`{"f:data":{"k:":{},"k:1":{},"i:-1":{},"i:99999999999999999999":{},"q":{},"":{}}}`, `{"f:data":null}`, `[1]`)
	f.Fuzz(func(t *testing.T, ours, theirs, data string) {
		var fields [2]map[string]any
		var value any
		if json.Unmarshal([]byte(ours), &fields[0]) != nil || json.Unmarshal([]byte(theirs), &fields[1]) != nil || json.Unmarshal([]byte(data), &value) != nil {
			return
		}
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": value, "metadata": map[string]any{
			"name": "c", "namespace": "ns", "uid": "x", "resourceVersion": "1", "managedFields": []any{
				map[string]any{"manager": clusterapi.ManagerPayload, "operation": "Apply", "fieldsV1": fields[0]},
				map[string]any{"manager": "someone", "operation": "Update", "fieldsV1": fields[1]},
			}}}}
		before, err := json.Marshal(u.Object)
		if err != nil {
			t.Fatal(err)
		}
		for _, mode := range []Mode{ApplyServerSide, ApplyMerge} {
			kind := WatchedKind{Mode: mode}
			first := kind.Trim(u)
			if diff := cmp.Diff(first.Object, kind.Trim(u).Object); diff != "" {
				t.Errorf("another time: %s", diff)
			}
		}
		after, err := json.Marshal(u.Object)
		if err != nil || string(before) != string(after) {
			t.Errorf("changed: %v", err)
		}
	})
}
