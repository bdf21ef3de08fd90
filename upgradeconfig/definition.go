package upgradeconfig

import (
	_ "embed"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

//go:embed definition.yaml
var definition []byte

// Definition returns the CustomResourceDefinition of [UpgradeConfig], for
// clusters that do not have it from the managed-upgrade operator: simulated
// ones, or those where this package does the operator's work.
func Definition() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(definition, &u.Object); err != nil {
		panic(err) // embedded, and read by a test
	}
	return u
}
