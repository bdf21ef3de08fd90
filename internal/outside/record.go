package main

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/clusterupdate/clusterupdate/clusterapi/dump"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/payload"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
)

// record writes a recording of a simulated cluster into a folder, with the release
// that the cluster runs and the next one.
func record(ctx context.Context, _ io.Writer, args []string) error {
	for version, release := range map[string]fs.FS{sample.FromVersion: sample.From(), sample.ToVersion: sample.To()} {
		if err := os.CopyFS(filepath.Join(args[0], "releases", version), release); err != nil {
			return err
		}
	}
	running, err := payload.Open(ctx, sample.FromVersion, sample.From())
	if err != nil {
		return err
	}
	cluster, err := simulation.New(simulation.Options{
		Release:        payload.Release(running.Payload),
		ClusterVersion: simulation.ClusterVersion{Channel: sample.Channel},
	})
	if err != nil {
		return err
	}
	return dump.Record(ctx, cluster, filepath.Join(args[0], "cluster"), dump.RecordOptions{})
}
