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
