package contracts_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/clusterapi/dump"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/payload"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// docProgram is a whole program in a page, and the arguments to run it with.
var docProgram = regexp.MustCompile("(?s)<!-- run: ([^>]*) -->\n```go\n(package main\n.*?)```")

// TestReadmePrograms: the programs of README.md build as they stand, and print what a
// newcomer is promised.
func TestReadmePrograms(t *testing.T) {
	t.Parallel()
	readme := checktest.Get(os.ReadFile(filepath.Join(root, "README.md")))(t)
	programs := docProgram.FindAllStringSubmatch(string(readme), -1)
	prints := []string{"from 4.21.1 to 4.22.0", "ClusterOperator etcd: Progressing=True (NodeInstaller)", "Completed"}
	checktest.Equal(t, len(prints), len(programs), "programs in README.md")
	dir := t.TempDir()
	checktest.OK(t, os.CopyFS(filepath.Join(dir, "must-gather"), files))
	for version, release := range map[string]fs.FS{sample.FromVersion: sample.From(), sample.ToVersion: sample.To()} {
		checktest.OK(t, os.CopyFS(filepath.Join(dir, version), release))
	}
	checktest.OK(t, recordSample(filepath.Join(dir, "my-cluster")))
	for i, p := range programs {
		source, binary := filepath.Join(t.TempDir(), "main.go"), filepath.Join(t.TempDir(), "program.exe")
		checktest.OK(t, os.WriteFile(source, []byte(p[2]), 0o644))
		build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, source)
		build.Dir = root
		out, err := build.CombinedOutput()
		checktest.FatalIf(t, err != nil, "program %d: %v\n%s", i, err, out)
		run := exec.CommandContext(t.Context(), binary, strings.Fields(p[1])...)
		run.Dir = dir
		out, err = run.CombinedOutput()
		checktest.FailIf(t, err != nil || !strings.Contains(string(out), prints[i]),
			"program %d: %v\n%s", i, err, out)
	}
}

// sampleCluster is a simulated cluster at rest at the first sample release.
func sampleCluster(pools ...simulation.Pool) (*simulation.Cluster, error) {
	release, err := payload.Open(ctx, sample.FromVersion, sample.From())
	if err != nil {
		return nil, err
	}
	return simulation.New(simulation.Options{Release: payload.Release(release.Payload), Pools: pools})
}

// recordSample records that cluster.
func recordSample(dir string) error {
	cluster, err := sampleCluster()
	if err != nil {
		return err
	}
	return dump.Record(ctx, cluster, dir, dump.RecordOptions{})
}
