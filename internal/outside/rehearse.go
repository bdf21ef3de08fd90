package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi/forecast"
)

// rehearse plays the update of a recorded cluster from one release to another.
func rehearse(ctx context.Context, out io.Writer, args []string) error {
	r, err := forecast.RehearseFiles(ctx, args[0], args[1], args[2], forecast.RehearseOptions{Runs: 5})
	if err != nil {
		return err
	}
	total := r.Quantiles.Total
	fmt.Fprintf(out, "%s in %s, at worst %s\n", r.Outcome, total.P50.Round(time.Minute), total.P90.Round(time.Minute))
	for _, cause := range r.Why {
		fmt.Fprintln(out, "why:", cause)
	}
	for _, assumption := range r.Assumed {
		fmt.Fprintln(out, "assumed:", assumption)
	}
	return nil
}
