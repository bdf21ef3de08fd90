package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/graph/policyengine"
)

// serve serves the update graph of a tree of graph data and a folder of extracted
// releases until the context ends.
func serve(ctx context.Context, out io.Writer, args []string) error {
	handler, err := policyengine.New(policyengine.Options{Prefix: "/api/upgrades_info"})
	if err != nil {
		return err
	}
	refresher, err := policyengine.NewRefresher(handler, policyengine.RefresherOptions{
		Load: func(ctx context.Context) (*graphdata.Snapshot, error) {
			tree, err := graphdata.Load(ctx, os.DirFS(args[0]), graphdata.LoadOptions{})
			if err != nil {
				return nil, err
			}
			releases, problems, err := graphdata.Collect(ctx, graphdata.Payloads{FS: os.DirFS(args[1]), Describe: describe})
			if err != nil {
				return nil, err
			}
			for _, p := range problems {
				fmt.Fprintf(os.Stderr, "%s: %v\n", args[1], p)
			}
			return graphdata.Build(tree, releases, graphdata.BuildOptions{})
		},
	})
	if err != nil {
		return err
	}
	if err := refresher.Refresh(ctx); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(ctx, func() { server.Close() })
	fmt.Fprintln(out, "http://"+listener.Addr().String()+"/api/upgrades_info/v1/graph")
	go refresher.Run(ctx)
	if err := server.Serve(listener); ctx.Err() == nil {
		return err
	}
	return nil
}

func describe(dir string, r *graphdata.Release) error {
	r.Arch = "amd64"
	r.Image = "registry.example/release:" + dir
	return nil
}
