package cluster_test

import (
	"context"
	"fmt"
	"log"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/signature/cluster"
)

// A mirror brings the signatures of a release along in a ConfigMap, and a
// disconnected cluster finds them there.
func ExampleConfigMap() {
	ctx := context.Background()
	const digest = "sha256:0000000000000000000000000000000000000000000000000000000000000001"
	cm, err := cluster.ConfigMap(digest, [][]byte{[]byte("a signature")})
	if err != nil {
		log.Fatal(err)
	}
	api := memory.New(memory.Options{})
	if _, err := clusterapi.Create(ctx, api, cm, clusterapi.CreateOptions{}); err != nil {
		log.Fatal(err)
	}

	store := &cluster.ConfigMapStore{Reader: api}
	for c, err := range store.Candidates(ctx, digest) {
		if err == nil {
			fmt.Printf("%s\n%s\n", c.Location, c.Signature)
		}
	}
	// Output:
	// config map openshift-config-managed/sha256-0000000000000000000000000000000000000000000000000000000000000001 key sha256-0000000000000000000000000000000000000000000000000000000000000001-1
	// a signature
}
