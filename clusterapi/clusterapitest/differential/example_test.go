package differential_test

import (
	"fmt"
	"slices"

	"github.com/clusterupdate/clusterupdate/clusterapi/clusterapitest/differential"
)

// Which kinds does a comparison of two backends use?
func ExampleKinds() {
	kinds := differential.Kinds()
	fmt.Println(slices.Contains(kinds, "Deployment"), slices.Contains(kinds, "Widget"))
	// Output: true true
}
