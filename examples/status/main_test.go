package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/program/programtest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
)

func TestUsage(t *testing.T) { programtest.Usage(t, command) }

func TestSimulated(t *testing.T) {
	code, out, errs := programtest.Run(t, command(), "-why")
	if code != 0 || errs != "" {
		t.Fatalf("exit %d: %s", code, errs)
	}
	checktest.Has(t, out,
		"= Control Plane =\nAssessment:      Progressing\nTarget Version:  4.21.1 (from 4.20.3)\n",
		"\nThe update waits on:\n  runlevel 80\n    component machine-config\n      ClusterOperator machine-config: Progressing=True (RollingOut), for ",
		"\n= Update Health =\n",
	)
}

func TestWatch(t *testing.T) {
	code, out, errs := programtest.Run(t, command(), "-watch")
	if code != 0 || errs != "" {
		t.Fatalf("exit %d: %s", code, errs)
	}
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if first := lines[0]; !strings.HasSuffix(first, " not updating") {
		t.Errorf("at first %q", first)
	}
	checktest.Has(t, out, "; waits on runlevel 20 > component ", "; waits on MachineConfigPool worker: ")
	_, out, _ = programtest.Run(t, command(), "-watch", "-o", "json")
	for line := range strings.Lines(out) {
		var s struct {
			Now      string
			Updating *bool
		}
		if err := json.Unmarshal([]byte(line), &s); err != nil || s.Now == "" || s.Updating == nil {
			t.Fatalf("%v: %.200s", err, line)
		}
	}
}

// What the command line tool printed for real clusters comes out, but for one
// duration below a second.
func TestRecorded(t *testing.T) {
	dir := filepath.Join(testdata.Dir(t), "clusters", "4.15.0-ec2-early")
	for suffix, args := range map[string][]string{".output": nil, ".detailed-output": {"-details", "all"}} {
		want := checktest.Get(os.ReadFile(filepath.Join(dir, filepath.Base(dir)+suffix)))(t)
		code, out, _ := programtest.Run(t, command(), append(args, "-dump", dir)...)
		if diff := cmp.Diff(strings.ReplaceAll(string(want), " 6m8s ", " now  "), out); code != 0 || diff != "" {
			t.Errorf("exit %d: %s", code, diff)
		}
	}
	if code, _, _ := programtest.Run(t, command(), "-dump", dir, "-strict"); code != 1 {
		t.Errorf("strictly: exit %d", code)
	}
	release := filepath.Join(testdata.Dir(t), "payload-4.17.30")
	code, out, errs := programtest.Run(t, command(), "-dump", dir, "-o", "json", "-payload", release)
	checktest.Has(t, errs, "warning: -payload: "+release+" is release 4.17.30, the cluster updates to 4.15.0-ec.2\n")
	var s struct {
		Waits [][]struct{ Runlevel, Component string }
	}
	if err := json.Unmarshal([]byte(out), &s); err != nil || code != 0 {
		t.Fatalf("exit %d: %v", code, err)
	}
	if len(s.Waits) == 0 || s.Waits[0][0].Runlevel != "20" || s.Waits[0][1].Component == "" {
		t.Errorf("waits on %+v", s.Waits)
	}
}

// An Insights archive lacks what shows the versions of nodes.
func TestInsights(t *testing.T) {
	code, out, errs := programtest.Run(t, command(), "-dump", filepath.Join(testdata.Dir(t), "insights-4.7"))
	checktest.Equal(t, 3, code, "exit, since it is not known whether nodes are updated")
	checktest.Has(t, out, "The control plane is not updating. Whether nodes are is unknown: MachineConfigPool: all or some are not collected in this recording\n")
	checktest.Has(t, errs, "warning: Node: all or some are not collected in this recording: whether nodes are updated is unknown")
}

// A recording without what decides leaves the answer unknown.
func TestUnknown(t *testing.T) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	const text = "apiVersion: config.openshift.io/v1\nkind: Infrastructure\nmetadata: {name: cluster}\n"
	checktest.OK(t,
		w.WriteHeader(&tar.Header{Name: "dump/cluster-scoped-resources/config.openshift.io/infrastructures/cluster.yaml", Mode: 0o644, Size: int64(len(text))}))
	w.Write([]byte(text))
	w.Close()
	file := filepath.Join(t.TempDir(), "dump.tar")
	checktest.OK(t, os.WriteFile(file, archive.Bytes(), 0o644))
	programtest.Test(t, command, []programtest.Case{{Args: "-dump " + file, Code: 3, Stderr: "reading the ClusterVersion: "}})
}
