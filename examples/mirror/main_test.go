package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/program/programtest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
)

const small = `{"version":1,"nodes":[{"version":"4.14.1","payload":"r@sha256:1"},{"version":"4.15.5","payload":"r@sha256:2"},{"version":"4.16.2","payload":"r@sha256:4"}],
 "edges":[[0,1]],
 "conditionalEdges":[{"edges":[{"from":"4.15.5","to":"4.16.2"}],"risks":[{"name":"Disk","url":"https://example.com","message":"Disks fill up.","matchingRules":[{"type":"PromQL","promql":{"promql":"full"}}]}]}]}`

func TestUsage(t *testing.T) { programtest.Usage(t, command) }

func TestMirror(t *testing.T) {
	dir := t.TempDir()
	g := filepath.Join(dir, "eus-4.16_amd64.json")
	checktest.OK(t, os.WriteFile(g, []byte(small), 0o600))
	programtest.Test(t, command, []programtest.Case{
		{Args: "-graph " + g + " -policy Any shop:4.14.1:4.16.2", Stdout: []string{"  2. 4.15.5 -> 4.16.2  in eus-4.16  Unknown\n       risk Disk: Applies=Unknown  Disks fill up. https://example.com\n"}},
		{Args: "-graph " + g + " shop:4.14.1: new::4.16.2:amd64", Stdout: []string{"new (amd64): 4.16.2\nReleases to copy: 3\n"}},
		{Args: "-graph " + g + " shop:4.14.1:4.16.2", Code: 1, Stderr: `mirror: cluster "shop" (amd64): no path from 4.14.1 to 4.16.2`},
		{Args: "-graph " + g + " shop:4.14.1::arm64", Code: 1, Stderr: `cluster "shop" (arm64): there is no graph of the architecture`},
		{Args: "-graph " + g + " shop:4.14.1:x", Code: 2, Stderr: `mirror: "shop:4.14.1:x": x: not a version such as 4.18.3`},
		{Args: "-graph " + g + " shop:v4.14.1:", Code: 2, Stderr: "versions of releases have no v: write 4.14.1"},
	})
	code, stdout, stderr := programtest.Run(t, command(), "-graph", g, "-o", "json", "-image-sets", filepath.Join(dir, "out"), "shop:4.14.1:")
	if code != 0 || !json.Valid([]byte(stdout)) {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
	text := checktest.Get(os.ReadFile(filepath.Join(dir, "out", "amd64-eus-4.16-4.14.1.yaml")))(t)
	if !bytes.Contains(text, []byte(`maxVersion: "4.15.5"`)) {
		t.Errorf("%s", text)
	}
}

func TestRealGraphs(t *testing.T) {
	dir := filepath.Join(testdata.Dir(t), "graphs")
	programtest.Test(t, command, []programtest.Case{{
		Args:   "-graph " + filepath.Join(dir, "stable-4.8_amd64.json") + " shop:4.7.0:4.8.54",
		Stdout: []string{"4.7.0 -> 4.7.60 -> 4.8.54\n  1. "},
	}})
}
