package sample_test

import (
	"fmt"
	"io/fs"
	"log"

	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
)

// The releases are file systems, laid out as release images are.
func Example() {
	release, err := sample.Payload(sample.ToImage)
	if err != nil {
		log.Fatal(err)
	}
	entries, err := fs.ReadDir(release, ".")
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range entries {
		fmt.Println(e.Name())
	}
	// Output:
	// manifests
	// release-manifests
}
