package install

import (
	"bytes"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// decodeObject reads one Kubernetes object in JSON or YAML.
func decodeObject(data []byte) (*unstructured.Unstructured, error) {
	if trimmed := bytes.TrimLeft(data, " \t\r\n"); !bytes.HasPrefix(trimmed, []byte("{")) {
		var err error
		data, err = yaml.YAMLToJSON(data)
		if err != nil {
			return nil, err
		}
	}
	var content map[string]any
	if err := json.Unmarshal(data, &content); err != nil {
		return nil, err
	}
	if len(content) == 0 {
		return nil, errors.New("holds no object")
	}
	return &unstructured.Unstructured{Object: content}, nil
}
