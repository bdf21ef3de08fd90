package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
)

const small = `{"version":1,"nodes":[{"version":"4.14.1","payload":"r@sha256:1"},{"version":"4.15.5","payload":"r@sha256:2"},{"version":"4.16.2","payload":"r@sha256:4"}],
 "edges":[[0,1]],
 "conditionalEdges":[{"edges":[{"from":"4.15.5","to":"4.16.2"}],"risks":[{"name":"Disk","url":"https://example.com","message":"Disks fill up.","matchingRules":[{"type":"PromQL","promql":{"promql":"full"}}]}]}]}`

// run runs the program.
func run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = command().Execute(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

func TestMirror(t *testing.T) {
	dir := t.TempDir()
	g := filepath.Join(dir, "eus-4.16_amd64.json")
	checktest.OK(t, os.WriteFile(g, []byte(small), 0o600))
	for name, tt := range map[string]struct {
		args   []string
		code   int
		stdout string // a part
		stderr string // a part
	}{
		"a way over a risk": {[]string{"-policy", "Any", "shop:4.14.1:4.16.2"}, 0, "  2. 4.15.5 -> 4.16.2  in eus-4.16  Unknown\n       risk Disk: Applies=Unknown  Disks fill up. https://example.com\n", ""},
		"two clusters":      {[]string{"shop:4.14.1:", "new::4.16.2:amd64"}, 0, "new (amd64): 4.16.2\nReleases to copy: 3\n", ""},
		"no way":            {[]string{"shop:4.14.1:4.16.2"}, 1, "", `mirror: cluster "shop" (amd64): no path from 4.14.1 to 4.16.2`},
		"no architecture":   {[]string{"shop:4.14.1::arm64"}, 1, "", `cluster "shop" (arm64): there is no graph of the architecture`},
		"bad want":          {[]string{"4.14.1"}, 2, "", `"4.14.1" is not cluster:from:to`},
		"bad policy":        {[]string{"-policy", "x", "a::"}, 2, "", `-policy "x" is none of`},
		"no want":           {nil, 2, "", "CLUSTER:FROM:TO... is missing"},
		"no graph":          {[]string{"-graph", "/nowhere", "a::"}, 3, "", "/nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := run(t, append([]string{"-graph", g}, tt.args...)...)
			if code != tt.code || !strings.Contains(stdout, tt.stdout) || !strings.Contains(stderr, tt.stderr) || tt.stdout == "" && stdout != "" {
				t.Errorf("exit %d\n%s%s", code, stdout, stderr)
			}
		})
	}
	code, _, stderr := run(t, "a::")
	checktest.Equal(t, 2, code, "%s", stderr)
	code, stdout, stderr := run(t, "-graph", g, "-json", "-image-sets", filepath.Join(dir, "out"), "shop:4.14.1:")
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
	code, stdout, stderr := run(t, "-graph", filepath.Join(dir, "stable-4.8_amd64.json"), "shop:4.7.0:4.8.54")
	if code != 0 || !strings.Contains(stdout, "4.7.0 -> 4.7.60 -> 4.8.54\n  1. ") || stderr != "" {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
}
