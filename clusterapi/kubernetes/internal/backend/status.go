package backend

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// StatusPatch returns the JSON patch (RFC 6902) that replaces the status of an
// object, and nothing else, where its resourceVersion still is obj's.
//
// A merge patch would not do: it cannot write a null, which some fields of a status
// are. The resourceVersion is not tested but written, since an API server then
// answers 409 if it differs, as it does to an update.
func StatusPatch(obj *unstructured.Unstructured) ([]byte, error) {
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value,omitempty"`
	}
	patch := []operation{{"replace", "/metadata/resourceVersion", obj.GetResourceVersion()}}
	status, ok := obj.Object["status"]
	if ok && status != nil {
		patch = append(patch, operation{"add", "/status", status})
	} else {
		// "add" makes sure that there is something to remove.
		patch = append(patch, operation{"add", "/status", map[string]any{}}, operation{"remove", "/status", nil})
	}
	return json.Marshal(patch)
}
