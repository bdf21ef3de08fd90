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

// An hour of a process that looks every twenty minutes, at once.
func ExampleVirtual() {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := reconcile.NewClock(start)
	cluster := memory.New(memory.Options{Clock: clock})
	v := reconcile.NewVirtual(reconcile.VirtualOptions{Cluster: cluster, Clock: clock, Seed: 1}, of("watchman", &toy{
		name: "rounds",
		reconcile: func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
			fmt.Println(r.Now.Format(time.TimeOnly), r.Key)
			return reconcile.Result{At: r.Now.Add(20 * time.Minute)}, nil
		},
	}))
	defer v.Close()
	if err := v.RunUntil(start); err != nil { // the process begins
		fmt.Println(err)
	}
	v.Wake("watchman", "rounds", reconcile.Key{Name: "tower"})
	if err := v.RunUntil(start.Add(time.Hour)); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 00:00:00 tower
	// 00:20:00 tower
	// 00:40:00 tower
	// 01:00:00 tower
}
