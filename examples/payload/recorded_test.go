package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/clusterupdate/clusterupdate/clusterapi/dump"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/examples/internal/rehearsal"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/program/programtest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
)

// A recording of the simulated cluster leads to the preview of that cluster.
func TestRecorded(t *testing.T) {
	cluster, images, err := rehearsal.AtRest(t.Context())
	checktest.OK(t, err)
	dir := t.TempDir()
	recording, from, to := filepath.Join(dir, "recording"), filepath.Join(dir, "from"), filepath.Join(dir, "to")
	var o dump.RecordOptions
	for _, image := range images {
		for _, m := range image.Payload.Manifests {
			o.Kinds = append(o.Kinds, m.GVK())
		}
	}
	checktest.OK(t, dump.Record(t.Context(), cluster, recording, o))
	checktest.OK(t, os.CopyFS(from, sample.From()))
	checktest.OK(t, os.CopyFS(to, sample.To()))
	code, out, _ := programtest.Run(t, command(), "preview", "-dump", recording, "-running", from, to)
	checktest.Equal(t, 1, code, "exit code")
	programtest.Golden(t, "preview.txt", out)
}

// Recordings and releases of real clusters: the tests of packages manifest and
// runlevel/preview have the figures.
func TestReal(t *testing.T) {
	data := testdata.Dir(t)
	release := filepath.Join(data, "payload-4.18.15")
	dump := " -dump " + filepath.Join(data, "clusters", "4.14.1-degraded") + " "
	programtest.Test(t, command, []programtest.Case{
		{Args: "inspect -baseline v4.17 " + release, Stdout: []string{": 798 included, 132 excluded: Annotations 9, FeatureSet 77, Profile 38, Capability 8\n"}},
		{Args: "inspect" + dump + release, Stderr: "the FeatureGate was not collected", Stdout: []string{": 806 included, "}},
	})
	code, out, _ := programtest.Run(t, command(), "preview", "-dump", filepath.Join(data, "clusters", "recommend"), release)
	checktest.Equal(t, 3, code, "exit code")
	checktest.Has(t, out, "Update to 4.18.15: 0 to create, 0 to update, 806 not known, 34 excluded\n", "\nTo know more: oc adm inspect\n")
}
