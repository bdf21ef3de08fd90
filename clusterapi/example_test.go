package clusterapi_test

import (
	"context"
	"fmt"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
)

func cluster() *memory.Cluster {
	c := memory.New(memory.Options{})
	definition := memory.Definition(mcfgv1.GroupVersion.WithKind("MachineConfigPool"), "Cluster")
	err := c.Load(definition, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool",
		"metadata": map[string]any{"name": "worker"},
		"spec":     map[string]any{"maxUnavailable": "10%", "fieldOfALaterRelease": "kept"},
	}})
	if err != nil {
		panic(err)
	}
	return c
}

func ExampleGet() {
	pool, err := clusterapi.Get[mcfgv1.MachineConfigPool](context.Background(), cluster(), clusterapi.Key("", "worker"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(pool.Name, pool.Spec.MaxUnavailable)
	// Output: worker 10%
}

func ExampleModify() {
	ctx, c := context.Background(), cluster()
	_, err := clusterapi.Modify(ctx, c, clusterapi.Key("", "worker"), clusterapi.ModifyOptions{},
		func(pool *mcfgv1.MachineConfigPool) error {
			pool.Spec.Paused = true
			return nil
		})
	if err != nil {
		fmt.Println(err)
		return
	}
	pool, err := c.Get(ctx, mcfgv1.GroupVersion.WithKind("MachineConfigPool"), clusterapi.Key("", "worker"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(pool.Object["spec"])
	// Output: map[fieldOfALaterRelease:kept maxUnavailable:10% paused:true]
}
