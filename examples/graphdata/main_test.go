package main

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
)

// run runs the program.
func run(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = command().Execute(context.Background(), args, &out, &errs)
	return code, out.String(), errs.String()
}

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
	code, lines, _ := run("lint", "-accept", warns)
	checktest.Equal(t, 0, code, "lint -accept")
	checktest.OK(t, os.WriteFile(accepted, []byte("# known since 2023\n\n"+lines), 0o600))
	stale := filepath.Join(t.TempDir(), "stale.txt")
	checktest.OK(t, os.WriteFile(stale, []byte("version-twice channels/x.yaml: gone\n"), 0o600))
	for name, tt := range map[string]struct {
		args   []string
		code   int
		stdout string // a part
		stderr string // a part
	}{
		"fine":             {[]string{"lint", good}, 0, "", ""},
		"warnings":         {[]string{"lint", warns}, 0, "warning: channels/fast-4.20.yaml:4: versions[1]: 4.20.1 is there twice, first on line 3 [version-twice]\n", ""},
		"accepted":         {[]string{"lint", "-accepted", accepted, warns}, 0, "", ""},
		"not accepted":     {[]string{"lint", "-accepted", stale, warns}, 1, "warning: channels/fast-4.20.yaml:4:", "graphdata: nothing is found any more of: version-twice channels/x.yaml: gone\n"},
		"broken":           {[]string{"lint", broken}, 1, "error: blocked-edges/4.20.2-x.yaml:3: url: ", ""},
		"broken too":       {[]string{"lint", broken}, 1, "error: channels/fast-4.20.yaml:", ""},
		"with releases":    {[]string{"lint", "-releases", "none.json", good}, 3, "", "none.json"},
		"no tree":          {[]string{"lint", "/nowhere"}, 3, "", "/nowhere"},
		"no accepted":      {[]string{"lint", "-accepted", "/nowhere", good}, 3, "", "/nowhere"},
		"same":             {[]string{"diff", good, good}, 0, "", ""},
		"differ":           {[]string{"diff", good, warns}, 1, "release 4.20.2 leaves fast-4.20 (amd64)\n", ""},
		"diff of a broken": {[]string{"diff", good, broken}, 1, "", "channels/fast-4.20.yaml"},
		"blocked":          {[]string{"why", good, "4.20.1", "4.20.3"}, 1, "blocked-edges/4.20.3-dropped.yaml:2: Removed by from 4[.]20[.]1[+].*\n", ""},
		"conditional":      {[]string{"why", good, "4.20.2", "4.20.3"}, 0, "blocked-edges/4.20.3-Slow.yaml:2: Conditional by from 4[.]20[.]2[+].*: Slow\n", ""},
		"not declared":     {[]string{"why", good, "4.20.3", "4.20.1"}, 1, "no release declares an update from 4.20.3 to 4.20.1\n", ""},
		"extend":           {[]string{"extend", good, "4.20.4"}, 0, "# blocked-edges/4.20.4-Slow.yaml\nto: 4.20.4\n", ""},
		"extend to what":   {[]string{"extend", good, "4.20"}, 2, "", "4.20: "},
		"extend a broken":  {[]string{"extend", broken, "4.20.4"}, 1, "", "channels/fast-4.20.yaml"},
		"no command":       {nil, 2, "", "a command is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := run(tt.args...)
			if code != tt.code || !strings.Contains(stdout, tt.stdout) || !strings.Contains(stderr, tt.stderr) ||
				tt.stdout == "" && stdout != "" || tt.stderr == "" && stderr != "" {
				t.Errorf("exit %d\n%s%s", code, stdout, stderr)
			}
		})
	}
	for _, args := range [][]string{{"lint", "-json", warns}, {"diff", "-json", good, warns}, {"why", "-json", good, "4.20.2", "4.20.3"}} {
		if code, stdout, stderr := run(args...); code == 2 || !json.Valid([]byte(stdout)) {
			t.Errorf("%v: exit %d\n%s%s", args, code, stdout, stderr)
		}
	}
}

// TestRealTree: what the maintainers live with is accepted, and nothing else is found.
func TestRealTree(t *testing.T) {
	real := filepath.Join(testdata.Dir(t), "graph-data")
	code, lines, _ := run("lint", "-accept", real)
	if code != 0 || lines == "" {
		t.Fatal(code, lines)
	}
	accepted := filepath.Join(t.TempDir(), "accepted.txt")
	checktest.OK(t, os.WriteFile(accepted, []byte(lines), 0o600))
	if code, stdout, stderr := run("lint", "-accepted", accepted, real); code != 0 || stdout != "" || stderr != "" {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
}
