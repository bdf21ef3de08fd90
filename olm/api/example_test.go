package api_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/olm/api"
)

func ExampleSubscriptionSpec_Takes() {
	spec := api.SubscriptionSpec{Package: "etcd", Source: "community-operators", SourceNamespace: "openshift-marketplace"}
	for _, name := range []string{"community-operators", "redhat-operators"} {
		fmt.Println(name, spec.Takes(types.NamespacedName{Namespace: "openshift-marketplace", Name: name}))
	}
	// Output:
	// community-operators true
	// redhat-operators false
}
