package cel_test

import (
	"fmt"

	"github.com/clusterupdate/clusterupdate/olm"
	"github.com/clusterupdate/clusterupdate/olm/cel"
)

func ExampleEvaluator() {
	evaluator, err := cel.New(cel.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	operator, err := olm.NewBundle("etcd", "etcdoperator.v0.9.4", "0.9.4", []olm.Property{
		{Type: "certified", Value: []byte(`true`)},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	requirer, err := olm.NewBundle("shop", "shop.v1", "1.0.0", []olm.Property{{
		Type: olm.PropertyConstraint, Value: []byte(`{
			"failureMessage": "require a certified operator",
			"cel": {"rule": "properties.exists(p, p.type == 'certified' && p.value == true)"}}`),
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(requirer.Requires[0].Matches(operator, evaluator))
	// Output: true <nil>
}
