package contracts_test

import (
	"context"
	"fmt"
	"log"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
)

type counting struct {
	clusterapi.ClusterAPI
	created int
}

func (c *counting) Create(ctx context.Context, obj *unstructured.Unstructured, opts clusterapi.CreateOptions) (*unstructured.Unstructured, error) {
	c.created++
	return c.ClusterAPI.Create(ctx, obj, opts)
}

// A backend that wraps another one.
func Example_backend() {
	cluster := &counting{ClusterAPI: memory.New(memory.Options{})}
	cm := &corev1.ConfigMap{}
	cm.Namespace, cm.Name = "default", "greeting"
	if _, err := clusterapi.Create(ctx, cluster, cm, clusterapi.CreateOptions{}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(cluster.created)
	// Output: 1
}
