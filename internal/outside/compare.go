package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/clusterupdate/clusterupdate/manifest"
)

// compare lists what a release changes for a cluster, and what it leaves behind.
func compare(ctx context.Context, out io.Writer, args []string) error {
	var releases [2]*manifest.Payload
	for i := range releases {
		var err error
		releases[i], err = manifest.Load(ctx, os.DirFS(args[i]), manifest.LoadOptions{Filter: manifest.DefaultFilter()})
		if err != nil {
			return fmt.Errorf("%s: %w", args[i], err)
		}
	}
	diff := manifest.Diff(releases[0], releases[1], manifest.DiffOptions{})
	for _, o := range diff.Orphans() {
		fmt.Fprintln(out, "orphan:", o.Identity.Kind, o.Identity.Name)
	}
	return diff.WriteText(out, manifest.DiffTextOptions{})
}
