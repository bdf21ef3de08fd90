package main

import (
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
	"github.com/clusterupdate/clusterupdate/internal/program/programtest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
)

const small = `{"version":1,"nodes":[
 {"version":"4.14.1","payload":"r@sha256:1","metadata":{"io.openshift.upgrades.graph.release.channels":"stable-4.14,eus-4.16"}},
 {"version":"4.15.5","payload":"r@sha256:2"},{"version":"4.15.9","payload":"r@sha256:3"},{"version":"4.16.2","payload":"r@sha256:4"}],
 "edges":[[0,1],[0,2],[1,3]],
 "conditionalEdges":[{"edges":[{"from":"4.15.9","to":"4.16.2"}],"risks":[{"name":"Disk","url":"https://example.com","message":"Disks fill up.","matchingRules":[{"type":"PromQL","promql":{"promql":"full"}}]}]}]}`

func TestUsage(t *testing.T) { programtest.Usage(t, command) }

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	checktest.OK(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestPaths(t *testing.T) {
	g := file(t, "eus-4.16_amd64.json", small)
	applies := file(t, "facts.json", `{"full": 1}`)
	programtest.Test(t, command, []programtest.Case{
		{Args: "-graph " + g, Stdout: []string{"Channels: eus-4.16 (amd64)", "Releases: 4, from 4.14.1 to 4.16.2", "Heads: 4.16.2"}},
		{Args: "-graph " + g + " -from 4.14.1", Stdout: []string{"Offered channels: stable-4.14, eus-4.16", "Updates in eus-4.16:\n  4.15.9\n  4.15.5\n", "Reachable: 3 releases in up to 2 hops; the highest is 4.16.2 in 2."}},
		{Args: "-graph " + g + " -from 4.15.9 -facts " + applies, Stdout: []string{"  4.16.2  Recommended=False Disk: Disks fill up. https://example.com\n", "Nothing can be reached."}},
		{Args: "-graph " + g + " -from 4.14.1 -to 4.16.2", Stdout: []string{"4.14.1 cannot be updated to 4.16.2 (NoEdge): ", "it would skip a minor version; only via 4.14.1 -> 4.15.5 -> 4.16.2\n", "Path 1: 2 hops\n  1. 4.14.1 -> 4.15.5  in eus-4.16\n  2. 4.15.5 -> 4.16.2  in eus-4.16\n"}},
		{Args: "-graph " + g + " -from 4.14.1 -to 4.16.2 -best 5 -policy Any -facts " + applies, Stdout: []string{"Path 2: 2 hops", "  2. 4.15.9 -> 4.16.2  in eus-4.16  NotRecommended\n       risk Disk: Applies=True  Disks fill up. https://example.com\n"}},
		{Args: "-graph " + g + " -from 4.15.9 -to 4.16.2 -policy AcceptRisks -risk Disk", Stdout: []string{"4.15.9 can be updated to 4.16.2: "}},
		{Args: "-graph " + g + " -from 4.15.9 -to 4.16.2", Code: 1, Stdout: []string{"(Risk): risk Disk may apply: Disks fill up.", "; no path from 4.15.9 to 4.16.2"}},
		{Args: "-graph " + g + " -from 4.14.1 -to 4.14.7", Code: 1, Stderr: "(NotInGraph)"},
		{Args: "-graph " + g + " -from 4.14.1 -to 4.16.2 -control-plane-only", Stdout: []string{"over 4.15.5", "channel eus-4.16: offered now: true, holds the plan: true", "pause the worker pools before hop 1, unpause them after hop 2"}},
		{Args: "-graph " + g + " -o dot", Stdout: []string{"digraph updates {", `"4.14.1" -> "4.15.5";`, `"4.15.9" -> "4.16.2" [style=dashed, color=orange, label="Disk (Unknown)"];`}},
		{Args: "-graph " + g + " -o mermaid -from 4.14.1 -to 4.16.2", Stdout: []string{"flowchart LR", "v0 ==> v1"}},
		{Args: "-graph " + g + " -arch s390x", Code: 3, Stderr: "the file holds architecture amd64, not s390x"},
		{Args: "-graph " + g + " -channel stable-4.9", Code: 3, Stderr: "the file holds channel eus-4.16, not stable-4.9"},
	})
	const way = " -from 4.14.1 -to 4.16.2 -o json"
	for _, args := range []string{" -o json", " -from 4.14.1 -o json", way, way + " -control-plane-only", " -o picture"} {
		code, stdout, stderr := programtest.Run(t, command(), strings.Fields("-graph "+g+args)...)
		if code != 0 || !json.Valid([]byte(stdout)) {
			t.Errorf("%s: %d %s %s", args, code, stdout, stderr)
		}
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
	want := "Path 1: 2 hops\n  1. 4.1.0 -> 4.1.1  in stable-4.1\n     switch to channel stable-4.2\n  2. 4.1.1 -> 4.2.0  in stable-4.2\n"
	service := "-graph " + server.URL
	programtest.Test(t, command, []programtest.Case{
		{Args: service + " -channel stable-4.1,stable-4.2,stable-4.9 -arch arm64 -from 4.1.0 -to 4.2.0 -in stable-4.1", Stdout: []string{want},
			Stderr: "paths: channel \"stable-4.9\" is left out: its graph is empty\n"},
		{Args: service + " -channel stable-4.9 -arch arm64 -from 4.1.0", Code: 3, Stderr: "the channel's graph is empty"},
		{Args: service + " -channel stable-4.1 -arch amd64 -from 4.1.0", Code: 3, Stderr: "400 Bad Request"},
		{Args: service, Code: 3, Stderr: "a folder or service needs the name of a channel"},
	})
}

func TestRealGraphs(t *testing.T) {
	dir := filepath.Join(testdata.Dir(t), "graphs")
	stable, candidate := filepath.Join(dir, "stable-4.8_amd64.json"), filepath.Join(dir, "candidate-4.12_multi.json")
	programtest.Test(t, command, []programtest.Case{
		{Args: "-graph " + stable + " -from 4.7.0 -to 4.8.54", Stdout: []string{"only via 4.7.0 -> 4.7.60 -> 4.8.54"}},
		{Args: "-graph " + dir + " -channel candidate-4.12 -arch multi -from 4.12.0-rc.0", Stdout: []string{"the highest is 4.12.0-rc.4 in 1."}},
		{Args: "-graph " + stable + " -graph " + candidate, Stdout: []string{"stable-4.8 (amd64)", "candidate-4.12 (multi)"}},
		{Args: "-graph " + stable + " -o dot", Stdout: []string{"61 lower releases are not shown"}},
	})
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
		given := "-graph " + place + " -channel stable-4.1"
		programtest.Test(t, command, []programtest.Case{
			{Args: given + " -from 4.1.2", Code: 1, Stderr: `version 4.1.2 is not among the 2 releases of channel "stable-4.1"; the highest below is 4.1.1; 4.1.2 is in fast-4.1, stable-4.2`},
			{Args: given + " -from 4.1.0 -to 4.2.0", Code: 1, Stderr: `4.1.0 cannot be updated to 4.2.0 (NotInGraph): version 4.2.0 is not among the 2 releases of channel "stable-4.1", which has none of its minor; the highest below is 4.1.1; 4.2.0 is in stable-4.2`},
			{Args: given + " -from 4.1.0 -to 4.9.0", Code: 1, Stderr: "which has none of its minor; the highest below is 4.1.1\n"},
		})
	}
	empty := t.TempDir()
	programtest.Test(t, command, []programtest.Case{
		{Args: "-graph " + dir + " -channel stable-4.9", Code: 3,
			Stderr: "paths: -graph: " + dir + ": no graph of channel stable-4.9 for amd64, only of fast-4.1, stable-4.1, stable-4.2\n"},
		{Args: "-graph " + empty + " -channel stable-4.9", Code: 3,
			Stderr: "paths: -graph: " + empty + ": no graph of channel stable-4.9 for amd64, nor of another channel\n"},
	})
}
