package payload_test

import (
	"context"
	"fmt"
	"log"

	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/payload"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// The sample release as a simulation knows it.
func ExampleRelease() {
	p, err := manifest.Load(context.Background(), sample.From(), manifest.LoadOptions{Image: sample.FromImage, Filter: manifest.DefaultFilter()})
	if err != nil {
		log.Fatal(err)
	}
	r := payload.Release(p)
	fmt.Printf("%s: %d manifests\n", r.Version, len(r.Manifests))
	for _, op := range r.Operators[:3] {
		fmt.Printf("%s: %d workloads, from %s\n", op.Name, len(op.Workloads), op.Workloads[0].GetName())
	}
	// Output:
	// 4.20.3: 101 manifests
	// etcd: 1 workloads, from etcd-operator
	// kube-apiserver: 1 workloads, from kube-apiserver-operator
	// kube-controller-manager: 1 workloads, from kube-controller-manager-operator
}
