package main

import (
	"context"
	"fmt"
	"io"

	"github.com/clusterupdate/clusterupdate/graph/path"
)

// whyNot explains why a release cannot be updated to another one, by the graph in
// a file.
func whyNot(ctx context.Context, out io.Writer, args []string) error {
	graphs, err := path.Load(ctx, args[:1], path.LoadOptions{})
	if err != nil {
		return err
	}
	network, err := path.NewNetwork(ctx, path.NetworkOptions{}, graphs...)
	if err != nil {
		return err
	}
	why, err := network.Explain(path.ExplainQuery{From: args[1], To: args[2]})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, why)
	return err
}
