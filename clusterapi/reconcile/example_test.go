package reconcile_test

import (
	"context"
	"fmt"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
)

// greeting greets its keys, every hour.
type greeting struct{}

func (greeting) Name() string               { return "greeting" }
func (greeting) Watches() []reconcile.Watch { return nil }
func (greeting) Keys() []reconcile.Key      { return []reconcile.Key{{Name: "world"}} }

func (greeting) Reconcile(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
	fmt.Println("hello,", r.Key)
	return reconcile.Result{At: r.Now.Add(time.Hour)}, nil
}

func greeter(clusterapi.ClusterAPI) reconcile.Process {
	return reconcile.Process{Name: "greeter", New: func(clusterapi.ClusterAPI) []reconcile.Reconciler {
		return []reconcile.Reconciler{greeting{}}
	}}
}

func ExampleRun() {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	api := memory.New(memory.Options{})
	err := reconcile.Run(ctx, reconcile.Options{API: api}, greeter(api))
	fmt.Println(err)
	// Output:
	// hello, world
	// <nil>
}
