package objects

import (
	"bytes"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/internal/limit"
	"github.com/clusterupdate/clusterupdate/internal/yamljson"
)

// Decode reads one Kubernetes object in JSON or YAML. The error is a
// [*limit.LimitError] if the object would take more than [limit.Heap] bytes of memory,
// and else one of syntax.
func Decode(data []byte) (*unstructured.Unstructured, error) {
	data, err := ToJSON(data)
	if err != nil {
		return nil, err
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

// ToJSON returns a document in JSON or YAML as JSON. The errors are those of [Decode].
func ToJSON(data []byte) ([]byte, error) {
	if trimmed := bytes.TrimLeft(data, " \t\r\n"); !bytes.HasPrefix(trimmed, []byte("{")) {
		if _, err := yamljson.Measure(data, limit.Heap); err != nil {
			return nil, err
		}
		var err error
		data, err = yaml.YAMLToJSON(data)
		if err != nil {
			return nil, err
		}
	}
	return data, limit.JSON(data, map[string]any{})
}
