package fieldchange_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/fieldchange"
)

func ExampleLines() {
	changes := []clusterapi.FieldChange{
		{Path: "spec.replicas", Old: int64(2), New: int64(3)},
		{Path: "spec.paused", New: true},
	}
	for _, c := range fieldchange.NewHider(nil).Shown(schema.GroupKind{Group: "apps", Kind: "Deployment"}, changes) {
		for _, line := range fieldchange.Lines(c) {
			fmt.Println(line)
		}
	}
	// Output:
	// ~ spec.replicas: 2 -> 3
	// + spec.paused: true
}
