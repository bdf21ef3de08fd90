package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/program/programtest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
)

// tree writes a tree whose suggestions lead from each release to the later ones, with
// some files replaced; - removes one.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	const versions = "\nversions:\n- 4.20.1\n- 4.20.2\n- 4.20.3\n"
	all := map[string]string{
		"version":                           "1.1.0\n",
		"raw/metadata.json":                 "{}",
		"channels/candidate-4.20.yaml":      "name: candidate-4.20" + versions,
		"channels/fast-4.20.yaml":           "name: fast-4.20" + versions,
		"build-suggestions/4.20.yaml":       "default: {minor_min: 4.19.0, minor_max: 4.19.9999, minor_block_list: [], z_min: 4.20.0, z_max: 4.20.9999, z_block_list: []}\n",
		"blocked-edges/4.20.3-Slow.yaml":    "to: 4.20.3\nfrom: 4[.]20[.]2[+].*\nurl: https://example.com/1\nname: Slow\nmessage: It is slow.\nmatchingRules: [{type: Always}]\n",
		"blocked-edges/4.20.3-dropped.yaml": "to: 4.20.3\nfrom: 4[.]20[.]1[+].*\n",
	}
	maps.Copy(all, files)
	dir := t.TempDir()
	for name, text := range all {
		if text != "-" {
			file := filepath.Join(dir, name)
			checktest.OK(t, os.MkdirAll(filepath.Dir(file), 0o755))
			checktest.OK(t, os.WriteFile(file, []byte(text), 0o644))
		}
	}
	return dir
}

func TestGraphdata(t *testing.T) {
	good := tree(t, nil)
	warns := tree(t, map[string]string{"channels/fast-4.20.yaml": "name: fast-4.20\nversions:\n- 4.20.1\n- 4.20.1\n"})
	broken := tree(t, map[string]string{
		"channels/fast-4.20.yaml": "name: [\n", "blocked-edges/4.20.2-x.yaml": "to: 4.20.2\nfrom: 4[.]20[.]1\nurl: http://x\nname: X\nmessage: X.\nmatchingRules: [{type: Always}]\n",
	})
	accepted := filepath.Join(t.TempDir(), "accepted.txt")
	code, lines, _ := programtest.Run(t, command(), "lint", "-o", "accepted", warns)
	checktest.Equal(t, 0, code, "lint -o accepted")
	checktest.OK(t, os.WriteFile(accepted, []byte("# known since 2023\n\n"+lines), 0o600))
	stale := filepath.Join(t.TempDir(), "stale.txt")
	checktest.OK(t, os.WriteFile(stale, []byte("version-twice channels/x.yaml: gone\n"), 0o600))
	programtest.Test(t, command, []programtest.Case{
		{Args: "lint " + good},
		{Args: "lint " + warns, Stdout: []string{"warning: channels/fast-4.20.yaml:4: versions[1]: 4.20.1 is there twice, first on line 3 [version-twice]\n"}},
		{Args: "lint -accepted " + accepted + " " + warns},
		{Args: "lint -accepted " + stale + " " + warns, Code: 1, Stdout: []string{"warning: channels/fast-4.20.yaml:4:"}, Stderr: "graphdata: nothing is found any more of: version-twice channels/x.yaml: gone\n"},
		{Args: "lint " + broken, Code: 1, Stdout: []string{"error: blocked-edges/4.20.2-x.yaml:3: url: "}},
		{Args: "lint " + broken, Code: 1, Stdout: []string{"error: channels/fast-4.20.yaml:"}},
		{Args: "diff " + good + " " + good},
		{Args: "diff " + good + " " + warns, Code: 1, Stdout: []string{"release 4.20.2 leaves fast-4.20 (amd64)\n"}},
		{Args: "diff " + good + " " + broken, Code: 1, Stderr: "channels/fast-4.20.yaml"},
		{Args: "why " + good + " 4.20.1 4.20.3", Code: 1, Stdout: []string{"blocked-edges/4.20.3-dropped.yaml:2: Removed by from 4[.]20[.]1[+].*\n"}},
		{Args: "why " + good + " 4.20.2 4.20.3", Stdout: []string{"blocked-edges/4.20.3-Slow.yaml:2: Conditional by from 4[.]20[.]2[+].*: Slow\n"}},
		{Args: "why " + good + " 4.20.3 4.21", Code: 2, Stderr: "graphdata: 4.21: not a version such as 4.18.3"},
		{Args: "why " + good + " 4.20.3 4.20.1", Code: 1, Stdout: []string{"no release declares an update from 4.20.3 to 4.20.1\n"}},
		{Args: "extend " + good + " 4.20.4", Stdout: []string{"# blocked-edges/4.20.4-Slow.yaml\nto: 4.20.4\n"}},
		{Args: "extend " + broken + " 4.20.4", Code: 1, Stderr: "channels/fast-4.20.yaml"},
	})
	for _, args := range []string{"lint " + warns, "diff " + good + " " + warns, "why " + good + " 4.20.2 4.20.3"} {
		code, stdout, stderr := programtest.Run(t, command(), strings.Fields(args+" -o json")...)
		if code > 1 || !json.Valid([]byte(stdout)) {
			t.Errorf("%s: exit %d\n%s%s", args, code, stdout, stderr)
		}
	}
}

// TestRealTree: what the maintainers live with is accepted, and nothing else is found.
func TestRealTree(t *testing.T) {
	real := filepath.Join(testdata.Dir(t), "graph-data")
	code, lines, _ := programtest.Run(t, command(), "lint", "-o", "accepted", real)
	if code != 0 || lines == "" {
		t.Fatal(code, lines)
	}
	accepted := filepath.Join(t.TempDir(), "accepted.txt")
	checktest.OK(t, os.WriteFile(accepted, []byte(lines), 0o600))
	code, stdout, stderr := programtest.Run(t, command(), "lint", "-accepted", accepted, real)
	checktest.Equal(t, "0", fmt.Sprint(code, stdout, stderr), "exit code and output")
}

func TestUsage(t *testing.T) { programtest.Usage(t, command) }
