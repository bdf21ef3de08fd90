package reconcile_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// BenchmarkChange is the way of one change through Run: write, event, Changed,
// look.
func BenchmarkChange(b *testing.B) {
	api := memory.New(memory.Options{})
	seen := make(chan struct{})
	r := rec{name: "r", watches: []reconcile.Watch{{GVK: configMaps, Changed: func(_ time.Time, _, new *clusterapi.Object) []reconcile.Wake {
		return []reconcile.Wake{{Key: reconcile.Key{Name: new.Name()}}}
	}}}, look: func(context.Context, reconcile.Request) (reconcile.Result, error) {
		seen <- struct{}{}
		return reconcile.Result{}, nil
	}}
	benchRun(b, api, r)
	object := checktest.Get(clusterapi.ToUnstructured(newConfigMap("a", "0")))(b)
	write := func(v string) {
		object.Object["data"] = map[string]any{"v": v}
		if _, err := api.Apply(context.Background(), object, clusterapi.ApplyOptions{FieldManager: "test"}); err != nil {
			b.Fatal(err)
		}
	}
	write("0")
	<-seen
	b.Run("driven", func(b *testing.B) {
		b.ReportAllocs()
		for i := range b.N {
			write(strconv.Itoa(i + 1_000_000*b.N))
			<-seen
		}
	})
	other := memory.New(memory.Options{})
	b.Run("write alone", func(b *testing.B) {
		b.ReportAllocs()
		for i := range b.N {
			object.Object["data"] = map[string]any{"v": strconv.Itoa(i)}
			if _, err := other.Apply(context.Background(), object, clusterapi.ApplyOptions{FieldManager: "test"}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkLook is what the driver adds to one look.
func BenchmarkLook(b *testing.B) {
	done := make(chan struct{})
	n := 0
	b.ReportAllocs()
	b.ResetTimer()
	benchRun(b, nil, at(rec{name: "r", look: func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
		if n++; n == b.N {
			close(done)
			return reconcile.Result{}, nil
		}
		return reconcile.Result{At: r.Now}, nil
	}}, "a"))
	<-done
}

// BenchmarkSync is a Sync over 1000 objects that did not change.
func BenchmarkSync(b *testing.B) {
	api := memory.New(memory.Options{})
	for i := range 1000 {
		u, err := clusterapi.ToUnstructured(newConfigMap("a"+strconv.Itoa(i), "1"))
		if err == nil {
			_, err = api.Create(context.Background(), u, clusterapi.CreateOptions{})
		}
		checktest.OK(b, err)
	}
	s := reconcile.NewSyncer(reconcile.Options{API: api}, process(rec{name: "r", watches: []reconcile.Watch{{GVK: configMaps}}}))
	b.ReportAllocs()
	for b.Loop() {
		checktest.OK(b, checktest.Err(s.Sync(context.Background())))
	}
}

func benchRun(b *testing.B, api clusterapi.ClusterAPI, r reconcile.Reconciler) {
	b.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- reconcile.Run(ctx, reconcile.Options{API: api}, process(r)) }()
	b.Cleanup(func() {
		cancel()
		checktest.Good(b, <-ended)
	})
}
