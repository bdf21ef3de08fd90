package main

import (
	"context"
	"fmt"
	"io"

	"github.com/clusterupdate/clusterupdate/clusterapi/dump"
	"github.com/clusterupdate/clusterupdate/clusterapi/view"
)

// stuck explains what the update of a recorded cluster waits on.
func stuck(ctx context.Context, out io.Writer, args []string) error {
	cluster, err := dump.OpenFile(ctx, args[0], dump.Options{})
	if err != nil {
		return err
	}
	status, err := view.ReadStatus(ctx, cluster, view.StatusOptions{})
	if err != nil {
		return err
	}
	for _, chain := range status.Waits {
		fmt.Fprintln(out, "waits on", chain)
	}
	for _, insight := range status.Health {
		fmt.Fprintln(out, insight.Level, insight.Summary)
	}
	return nil
}
