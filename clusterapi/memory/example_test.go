package memory_test

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
)

func node(name string, labels map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Node",
		"metadata": map[string]any{"name": name, "labels": labels},
	}}
}

// Two managers own a label each. When one applies its part without it, only
// that label goes.
func Example() {
	ctx := context.Background()
	cluster := memory.New(memory.Options{})
	for _, apply := range []struct {
		manager string
		labels  map[string]any
	}{
		{"installer", map[string]any{"role": "worker"}},
		{"admin", map[string]any{"rack": "7"}},
		{"admin", map[string]any{}},
	} {
		n, err := cluster.Apply(ctx, node("a", apply.labels), clusterapi.ApplyOptions{FieldManager: apply.manager})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(n.GetLabels())
	}
	// Output:
	// map[role:worker]
	// map[rack:7 role:worker]
	// map[role:worker]
}

// The second write of any object fails.
func ExampleOptions_intercept() {
	ctx := context.Background()
	applied := 0
	cluster := memory.New(memory.Options{
		Intercept: func(ctx context.Context, call memory.Call, do func(context.Context) error) error {
			if call.Verb == "Apply" {
				if applied++; applied == 2 {
					return errors.New("connection refused")
				}
			}
			return do(ctx)
		},
	})
	for _, name := range []string{"a", "b", "c"} {
		_, err := cluster.Apply(ctx, node(name, nil), clusterapi.ApplyOptions{FieldManager: "installer"})
		fmt.Println(name, err)
	}
	nodes, err := clusterapi.List[corev1.Node](ctx, cluster, clusterapi.ListOptions{})
	fmt.Println(len(nodes), err)
	// Output:
	// a <nil>
	// b connection refused
	// c <nil>
	// 2 <nil>
}

func ExampleCluster_Watch() {
	ctx := context.Background()
	cluster := memory.New(memory.Options{})
	if err := cluster.Load(node("a", nil)); err != nil {
		fmt.Println(err)
		return
	}
	for event, err := range cluster.Watch(ctx, corev1.SchemeGroupVersion.WithKind("Node"), clusterapi.ListOptions{}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if event.Type == clusterapi.Synced {
			fmt.Println("that is all there is")
			break
		}
		fmt.Println(event.Type, event.Object.GetName())
	}
	// Output:
	// Added a
	// that is all there is
}

// A fork takes writes; what it was made of stays as it is.
func ExampleOptions_base() {
	ctx := context.Background()
	config := &corev1.ConfigMap{Data: map[string]string{"mode": "fast"}}
	config.APIVersion, config.Kind, config.Namespace, config.Name = "v1", "ConfigMap", "example", "config"
	u, err := clusterapi.ToUnstructured(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	live := memory.New(memory.Options{}) // or a live cluster, or a recording
	if err := live.Load(u); err != nil {
		fmt.Println(err)
		return
	}
	fork := memory.New(memory.Options{Base: live})
	if err := fork.Delete(ctx, u.GroupVersionKind(), clusterapi.KeyOf(u), clusterapi.DeleteOptions{}); err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range []clusterapi.Reader{live, fork} {
		list, err := clusterapi.List[corev1.ConfigMap](ctx, r, clusterapi.ListOptions{})
		fmt.Println(len(list), err)
	}
	// Output:
	// 1 <nil>
	// 0 <nil>
}
