package ocmtest

import (
	"encoding/base64"
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Objects returns what a provider reads in a cluster before it asks OCM: the
// pull secret with a token, which is base64, and the ClusterVersion with the
// cluster's external ID. The ClusterVersion has nothing else.
func Objects(externalID, token string) []*unstructured.Unstructured {
	config, _ := json.Marshal(map[string]any{ // of strings alone: it cannot fail
		"auths": map[string]any{"cloud.openshift.com": map[string]any{"auth": token}},
	})
	return []*unstructured.Unstructured{PullSecret(config), {Object: map[string]any{
		"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion",
		"metadata": map[string]any{"name": "version"},
		"spec":     map[string]any{"clusterID": externalID},
	}}}
}

// PullSecret returns the Secret openshift-config/pull-secret with that content
// of key .dockerconfigjson.
func PullSecret(config []byte) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
		"metadata": map[string]any{"namespace": "openshift-config", "name": "pull-secret"},
		"data":     map[string]any{".dockerconfigjson": base64.StdEncoding.EncodeToString(config)},
	}}
}
