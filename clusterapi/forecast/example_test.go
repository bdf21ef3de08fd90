package forecast_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi/dump"
	"github.com/clusterupdate/clusterupdate/clusterapi/forecast"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/payload"
)

// A must-gather is rehearsed with two releases that were extracted to folders, at the
// pace that the cluster has shown.
func ExampleRehearse() {
	ctx := context.Background()
	cluster, _ := dump.Open(ctx, os.DirFS("must-gather"), dump.Options{})
	from, _ := payload.Open(ctx, "4.17.30", os.DirFS("4.17.30"))
	to, _ := payload.Open(ctx, "4.18.15", os.DirFS("4.18.15"))
	timing, _ := forecast.ObservedTiming(ctx, cluster, from)
	r, err := forecast.Rehearse(ctx, forecast.RehearseOptions{Reader: cluster, From: from, To: to, Timing: timing})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Outcome, r.Total, r.Why)
}

// The default timing of bare metal: its reboots take longer than those of a cloud.
func ExampleDefaultTiming() {
	timing := forecast.DefaultTiming()
	timing.Reboot = forecast.Distribution{Median: 15 * time.Minute, P90: 20 * time.Minute, Source: "bare metal"}
	fmt.Println(timing.Reboot.Median, timing.Operator.Median)
	// Output: 15m0s 6m0s
}

// A must-gather is judged: what blocks an update of its cluster, and how long it takes.
func ExampleUpdate() {
	ctx := context.Background()
	cluster, _ := dump.Open(ctx, os.DirFS("must-gather"), dump.Options{})
	from, _ := payload.Open(ctx, "4.17.30", os.DirFS("4.17.30"))
	to, _ := payload.Open(ctx, "4.18.15", os.DirFS("4.18.15"))
	f, err := forecast.Update(ctx, cluster, forecast.Options{
		To: "4.18.15", Releases: payload.Images{from, to}, Rehearse: &forecast.RehearseOptions{Runs: 10},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, found := range f.WhyNot() {
		fmt.Println(found.Check, found.Message, found.Remedy)
	}
	fmt.Println(f.Verdict(), f.Rehearsal.Total)
}

// Two recordings make a table.
func ExampleFleet() {
	ctx := context.Background()
	var clusters []forecast.Cluster
	for _, name := range []string{"berlin", "paris"} {
		recording, _ := dump.Open(ctx, os.DirFS(name), dump.Options{})
		clusters = append(clusters, forecast.Cluster{Name: name, Reader: recording})
	}
	fleet, err := forecast.Fleet(ctx, clusters, forecast.Options{To: "4.18.15"})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = fleet.WriteText(os.Stdout, forecast.TextOptions{})
}
