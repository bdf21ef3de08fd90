package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
)

const small = `{"version":1,"nodes":[
 {"version":"4.14.1","payload":"r@sha256:1","metadata":{"io.openshift.upgrades.graph.release.channels":"stable-4.14,eus-4.16"}},
 {"version":"4.15.5","payload":"r@sha256:2"},{"version":"4.15.9","payload":"r@sha256:3"},{"version":"4.16.2","payload":"r@sha256:4"}],
 "edges":[[0,1],[0,2],[1,3]],
 "conditionalEdges":[{"edges":[{"from":"4.15.9","to":"4.16.2"}],"risks":[{"name":"Disk","url":"https://example.com","message":"Disks fill up.","matchingRules":[{"type":"PromQL","promql":{"promql":"full"}}]}]}]}`

// paths runs the program.
func paths(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = command().Execute(t.Context(), args, &out, &err)
	return code, out.String(), err.String()
}

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	checktest.OK(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestPaths(t *testing.T) {
	g := file(t, "eus-4.16_amd64.json", small)
	applies := file(t, "facts.json", `{"full": 1}`)
	for name, test := range map[string]struct {
		args []string
		code int
		want []string // parts of the output
		err  string
	}{
		"summary": {args: nil, want: []string{"Channels: eus-4.16 (amd64)", "Releases: 4, from 4.14.1 to 4.16.2", "Heads: 4.16.2"}},
		"updates": {args: []string{"-from", "4.14.1"}, want: []string{"Offered channels: stable-4.14, eus-4.16", "Updates in eus-4.16:\n  4.15.9\n  4.15.5\n", "Reachable: 3 releases in up to 2 hops; the highest is 4.16.2 in 2."}},
		"conditional update": {args: []string{"-from", "4.15.9", "-facts", applies},
			want: []string{"  4.16.2  Recommended=False Disk: Disks fill up. https://example.com\n", "Nothing can be reached."}},
		"path": {args: []string{"-from", "4.14.1", "-to", "4.16.2"},
			want: []string{"4.14.1 cannot be updated to 4.16.2 (NoEdge): ", "it would skip a minor version; only via 4.14.1 -> 4.15.5 -> 4.16.2\n", "Path 1: 2 hops\n  1. 4.14.1 -> 4.15.5  in eus-4.16\n  2. 4.15.5 -> 4.16.2  in eus-4.16\n"}},
		"two paths": {args: []string{"-from", "4.14.1", "-to", "4.16.2", "-best", "5", "-policy", "Any", "-facts", applies},
			want: []string{"Path 2: 2 hops", "  2. 4.15.9 -> 4.16.2  in eus-4.16  NotRecommended\n       risk Disk: Applies=True  Disks fill up. https://example.com\n"}},
		"accepted":           {args: []string{"-from", "4.15.9", "-to", "4.16.2", "-policy", "AcceptRisks", "-risk", "Disk"}, want: []string{"4.15.9 can be updated to 4.16.2: "}},
		"no path":            {args: []string{"-from", "4.15.9", "-to", "4.16.2"}, code: 1, want: []string{"(Risk): risk Disk may apply: Disks fill up.", "; no path from 4.15.9 to 4.16.2"}},
		"not found":          {args: []string{"-from", "4.14.1", "-to", "4.14.7"}, code: 1, err: "(NotInGraph)"},
		"control plane only": {args: []string{"-from", "4.14.1", "-to", "4.16.2", "-control-plane-only"}, want: []string{"over 4.15.5", "channel eus-4.16: offered now: true, holds the plan: true", "pause the worker pools before hop 1, unpause them after hop 2"}},
		"dot":                {args: []string{"-picture", "dot"}, want: []string{"digraph updates {", `"4.14.1" -> "4.15.5";`, `"4.15.9" -> "4.16.2" [style=dashed, color=orange, label="Disk (Unknown)"];`}},
		"mermaid with path":  {args: []string{"-picture", "mermaid", "-from", "4.14.1", "-to", "4.16.2"}, want: []string{"flowchart LR", "v0 ==> v1"}},
		"nothing to ask":     {args: []string{"-to", "4.16.2"}, code: 2, err: "-to needs -from"},
		"bad policy":         {args: []string{"-policy", "Safe"}, code: 2, err: `-policy "Safe" is none of`},
		"bad picture":        {args: []string{"-picture", "png"}, code: 2, err: `-picture "png"`},
		"argument":           {args: []string{"x"}, code: 2, err: `unexpected argument "x"`},
		"no facts":           {args: []string{"-facts", "none"}, code: 1, err: "none"},
		"no version":         {args: []string{"-from", "v4.14.1"}, code: 2, err: "for flag -from: versions of releases have no v: write 4.14.1"},
		"best":               {args: []string{"-best", "0"}, code: 2, err: "-best 0 is below 1"},
		"nodes":              {args: []string{"-nodes", "-1"}, code: 2, err: "-nodes -1 is below 1"},
		"another channel":    {args: []string{"-channel", "stable-4.9"}, code: 1, err: "the file holds channel eus-4.16, not stable-4.9"},
		"help":               {args: []string{"-h"}, want: []string{"usage: paths [flags]\n", "-graph file", "exit codes: 0: an answer;"}},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := paths(t, append([]string{"-graph", g}, test.args...)...)
			if code != test.code || !strings.Contains(stderr, test.err) || test.err == "" && stderr != "" || strings.Count(stderr, "\n") > 1 {
				t.Errorf("code %d, %s", code, stderr)
			}
			for _, part := range test.want {
				checktest.Has(t, stdout, part)
			}
		})
	}
	for _, args := range [][]string{nil, {"-from", "4.14.1"}, {"-from", "4.14.1", "-to", "4.16.2"}, {"-from", "4.14.1", "-to", "4.16.2", "-control-plane-only"}, {"-picture", "json"}} {
		code, stdout, stderr := paths(t, append([]string{"-graph", g, "-json"}, args...)...)
		if code != 0 || !json.Valid([]byte(stdout)) {
			t.Errorf("%v: %d %s %s", args, code, stdout, stderr)
		}
	}
	if code, _, stderr := paths(t); code != 2 || !strings.Contains(stderr, "-graph is missing") {
		t.Error(code, stderr)
	}
}

func TestChannelsOfAService(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch q := r.URL.Query(); {
		case q.Get("arch") != "arm64" || q.Get("id") == "":
			http.Error(w, `{"kind":"invalid_params","value":"no"}`, http.StatusBadRequest)
		case q.Get("channel") == "stable-4.1":
			w.Write([]byte(`{"nodes":[{"version":"4.1.0","payload":"a"},{"version":"4.1.1","payload":"b"}],"edges":[[0,1]]}`))
		case q.Get("channel") == "stable-4.2":
			w.Write([]byte(`{"nodes":[{"version":"4.1.1","payload":"b"},{"version":"4.2.0","payload":"c"}],"edges":[[0,1]]}`))
		default:
			w.Write([]byte(`{"nodes":[],"edges":[]}`))
		}
	}))
	defer server.Close()
	code, stdout, stderr := paths(t, "-graph", server.URL, "-channel", "stable-4.1,stable-4.2,stable-4.9", "-arch", "arm64", "-from", "4.1.0", "-to", "4.2.0", "-in", "stable-4.1")
	want := "Path 1: 2 hops\n  1. 4.1.0 -> 4.1.1  in stable-4.1\n     switch to channel stable-4.2\n  2. 4.1.1 -> 4.2.0  in stable-4.2\n"
	if code != 0 || !strings.Contains(stdout, want) || stderr != "paths: channel \"stable-4.9\" is left out: its graph is empty\n" {
		t.Errorf("%d\n%s\n%s", code, stdout, stderr)
	}
	for _, test := range []struct{ channel, arch, err string }{
		{"stable-4.9", "arm64", "the channel's graph is empty"}, {"stable-4.1", "amd64", "400 Bad Request"},
	} {
		if code, _, stderr := paths(t, "-graph", server.URL, "-channel", test.channel, "-arch", test.arch, "-from", "4.1.0"); code != 1 || !strings.Contains(stderr, test.err) {
			t.Errorf("%d %s", code, stderr)
		}
	}
	if code, _, stderr := paths(t, "-graph", server.URL); code != 1 || !strings.Contains(stderr, "a folder or service needs a channel") {
		t.Errorf("%d %s", code, stderr)
	}
}

func TestRealGraphs(t *testing.T) {
	dir := filepath.Join(testdata.Dir(t), "graphs")
	code, stdout, stderr := paths(t, "-graph", filepath.Join(dir, "stable-4.8_amd64.json"), "-from", "4.7.0", "-to", "4.8.54")
	if code != 0 || !strings.Contains(stdout, "only via 4.7.0 -> 4.7.60 -> 4.8.54") {
		t.Errorf("%d\n%s\n%s", code, stdout, stderr)
	}
	code, stdout, stderr = paths(t, "-graph", dir, "-channel", "candidate-4.12", "-arch", "multi", "-from", "4.12.0-rc.0")
	if code != 0 || !strings.Contains(stdout, "the highest is 4.12.0-rc.4 in 1.") {
		t.Errorf("%d\n%s\n%s", code, stdout, stderr)
	}
	code, stdout, stderr = paths(t, "-graph", filepath.Join(dir, "stable-4.8_amd64.json"), "-graph", filepath.Join(dir, "candidate-4.12_multi.json"))
	if code != 0 || !strings.Contains(stdout, "stable-4.8 (amd64)") || !strings.Contains(stdout, "candidate-4.12 (multi)") {
		t.Errorf("%d\n%s\n%s", code, stdout, stderr)
	}
	code, stdout, _ = paths(t, "-graph", filepath.Join(dir, "stable-4.8_amd64.json"), "-picture", "dot")
	if code != 0 || !strings.Contains(stdout, "61 lower releases are not shown") {
		t.Errorf("%d\n%s", code, stdout)
	}
}

// One error says where the version is instead.
func TestVersionInAnotherChannel(t *testing.T) {
	dir := t.TempDir()
	for name, versions := range map[string][2]string{"stable-4.1_amd64": {"4.1.0", "4.1.1"}, "amd64-fast-4.1": {"4.1.1", "4.1.2"}, "stable-4.2_amd64": {"4.1.2", "4.2.0"}, "stable-4.2_arm64": {"4.1.2", "4.2.1"}} {
		channels := `{"io.openshift.upgrades.graph.release.channels":"stable-4.1,fast-4.1,stable-4.2"}`
		text := fmt.Sprintf(`{"nodes":[{"version":%q,"payload":"a","metadata":%s},{"version":%q,"payload":"b"}],"edges":[[0,1]]}`, versions[0], channels, versions[1])
		checktest.OK(t, os.WriteFile(filepath.Join(dir, name+".json"), []byte(text), 0o600))
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g, err := graph.File{Path: dir}.Fetch(r.Context(), graph.Query{Channel: r.FormValue("channel"), Arch: r.FormValue("arch"), Version: "4.1.0"})
		if err != nil {
			w.Write([]byte(`{"nodes":[],"edges":[]}`))
			return
		}
		w.Write(g.AppendJSON(nil))
	}))
	defer server.Close()
	for _, place := range []string{dir, server.URL} {
		for _, tt := range []struct{ args, want string }{
			{"-from 4.1.2", `version 4.1.2 is not among the 2 releases of channel "stable-4.1"; the highest below is 4.1.1; 4.1.2 is in fast-4.1, stable-4.2`},
			{"-from 4.1.0 -to 4.2.0", `4.1.0 cannot be updated to 4.2.0 (NotInGraph): version 4.2.0 is not among the 2 releases of channel "stable-4.1", which has none of its minor; the highest below is 4.1.1; 4.2.0 is in stable-4.2`},
			{"-from 4.1.0 -to 4.9.0", "which has none of its minor; the highest below is 4.1.1\n"},
		} {
			code, stdout, stderr := paths(t, append([]string{"-graph", place, "-channel", "stable-4.1"}, strings.Fields(tt.args)...)...)
			if code != 1 || stdout != "" || !strings.Contains(stderr, tt.want) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("%s %s: %d %s%s", place, tt.args, code, stdout, stderr)
			}
		}
	}
	code, _, stderr := paths(t, "-graph", dir, "-channel", "stable-4.9")
	if want := "paths: " + dir + ": no graph of channel stable-4.9 for amd64, only of fast-4.1, stable-4.1, stable-4.2\n"; code != 1 || stderr != want {
		t.Errorf("%d %s", code, stderr)
	}
	if code, _, stderr := paths(t, "-graph", "/nowhere"); code != 1 || stderr != "paths: /nowhere: no such file or directory\n" {
		t.Errorf("%d %s", code, stderr)
	}
}
