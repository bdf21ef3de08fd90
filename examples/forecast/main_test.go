package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/forecast"
	"github.com/clusterupdate/clusterupdate/examples/internal/program"
	"github.com/clusterupdate/clusterupdate/examples/internal/rehearsal"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/runlevel/preview"
)

var update = flag.Bool("update", false, "write the golden files")

func run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = command().Execute(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

func TestUsage(t *testing.T) {
	for args, want := range map[string]string{
		"-dump x":                          "-dump needs -to",
		"-payload x":                       "-payload and -running go with -dump",
		"-running x":                       "-payload and -running go with -dump",
		"-o yaml":                          "-o yaml: not text, json, markdown or svg",
		"-o svg":                           "it needs -rehearse",
		"-dump x -to 4.21.1 -channel c":    "-channel goes with -graph",
		"-nodes worker=1":                  "-max-unavailable and -nodes change a rehearsal: they need -rehearse",
		"-rehearse -1":                     "-rehearse -1: below 0",
		"-rehearse 1 -nodes worker":        "-nodes worker: not as infra=2",
		"-rehearse 1 -max-unavailable x=0": "-max-unavailable x=0: not a pool",
		"-plan-to x":                       "not a version such as 4.18.3",
		"-plan none":                       "-plan none: not full, canary or control-plane-only",
		"-allow Channel":                   "-allow Channel: not the name of a check",
		"-allow Channel=":                  "-allow Channel=: not the name of a check",
		"-allow Other=x":                   "-allow Other=x: no check has the name Other",
		"-dump x -to 4.21.1 superfluous":   "superfluous",
		"-dump x -dump y -to 4.21.1 -o svg -rehearse 1": "-o svg draws the rehearsal of one cluster, not of 2",
		"-dump x -to v4.21.1":                           "versions of releases have no v",
		"-rehearse 1 -max-unavailable x=9.5":            "-max-unavailable x=9.5: not a pool",
	} {
		code, _, stderr := run(t, strings.Fields(args)...)
		checktest.Equal(t, 2, code, "%s: exit", args)
		checktest.Has(t, stderr, want)
	}
}

// The simulated cluster may be updated, though not all is known of it.
func TestSimulated(t *testing.T) {
	code, out, errs := run(t)
	checktest.Equal(t, "", errs, "errors")
	checktest.Equal(t, 0, code, "exit")
	checktest.Has(t, out, " from 4.20.3 to 4.21.1\n", "  checks: CriticalAlerts NoSource: no source given for Alerts\n",
		"  Delete 1: 1 ConfigMap\n")
	code, _, _ = run(t, "-strict")
	checktest.Equal(t, 1, code, "-strict: exit")
}

// Real clusters: what blocks is named, and set aside by name; several are a table.
func TestRecorded(t *testing.T) {
	data := testdata.Dir(t)
	dir := filepath.Join(data, "clusters", "4.14.1-degraded")
	code, out, _ := run(t, "-dump", dir, "-to", "4.15.0")
	checktest.Equal(t, 1, code, "exit")
	checktest.Has(t, out, "\nBlocking:\n", "  operators: ClusterVersionUpgradeable ClusterOperatorsNotUpgradeable: ",
		"    Also found by ClusterOperators\n", "no source given for TargetPayload\n    To do: give -payload\n", "\nTo collect: oc adm inspect --all-namespaces with each of:")
	args := []string{"-strict", "-dump", dir, "-to", "4.15.0"}
	for _, check := range []string{
		"UpdateInProgress", "ClusterVersionUpgradeable", "ClusterOperators", "ClusterVersionRecommendedUpdate",
		"Channel", "KubeletSkew",
	} {
		args = append(args, "-allow", check+"=a test")
	}
	code, out, _ = run(t, args...)
	checktest.Equal(t, 3, code, "all that is known set aside: exit")
	checktest.Has(t, out, "Bypassed: ClusterVersionUpgradeable, ")
	for _, check := range []string{
		"AdminAcks", "UnsupportedOverrides", "FeatureSet", "DeprecatedAPIs", "OperatorCompatibility", "KernelModules",
		"Runc", "DisruptionBudgets", "CloudCredentials", "CredentialsRequests", "VSphere",
	} {
		args = append(args, "-allow", check+"=not collected")
	}
	code, _, _ = run(t, args...)
	checktest.Equal(t, 0, code, "the gaps set aside as well: exit")

	_, out, _ = run(t, "-dump", dir, "-to", "4.15.0", "-o", "json")
	var f struct{ Verdict, From, To string }
	checktest.OK(t, json.Unmarshal([]byte(out), &f))
	checktest.Equal(t, "Blocked 4.14.1 4.15.0", f.Verdict+" "+f.From+" "+f.To, "JSON")

	graph := filepath.Join(t.TempDir(), "stable-4.15_amd64.json")
	const text = `{"nodes": [{"version": "4.14.1", "payload": "a"}, {"version": "4.15.0", "payload": "b"}],
"edges": [[0, 1]]}`
	checktest.OK(t, os.WriteFile(graph, []byte(text), 0o600))
	other := filepath.Join(data, "clusters", "not-upgrading")
	code, out, _ = run(t, "-dump", dir, "-dump", other, "-to", "4.15.0", "-graph", graph, "-o", "markdown")
	checktest.Equal(t, 1, code, "fleet: exit")
	checktest.Has(t, out, "# Update of 2 clusters to 4.15.0\n", " | 4.14.1 | 4.15.0 | Blocked | ", " | Unknown | ",
		"- 4.15.0\n")
}

// What cannot be read is neither yes nor no.
func TestUnreadable(t *testing.T) {
	dir := t.TempDir()
	const cv = `{"apiVersion":"config.openshift.io/v1","kind":"ClusterVersion","metadata":{"name":"version"},
"spec":{"channel":"stable-4.18"},
"status":{"desired":{"version":"4.18.5"},"history":[{"state":"Completed","version":"4.18.5"}]}}`
	checktest.OK(t, os.WriteFile(filepath.Join(dir, "cv.json"), []byte(cv), 0o600))
	for args, want := range map[string]string{
		"-to 4.18.6 -payload absent":          "absent does not hold a release",
		"-to 4.18.6 -running absent":          "absent does not hold a release",
		"-to 4.18.6 -graph absent":            "absent",
		"-to 4.18.6 -dump " + t.TempDir():     "recording",
		"-to 4.18.6 -rehearse 1 -o svg":       "no rehearsal to draw: the rehearsal needs the contents of both releases",
		"-to 4.18.6 -dump absent -o markdown": "absent",
	} {
		code, _, stderr := run(t, append([]string{"-dump", dir}, strings.Fields(args)...)...)
		checktest.Equal(t, true, code == 3 || strings.Contains(args, "svg") && code == 1, "%s: exit %d", args, code)
		checktest.Has(t, stderr, want)
	}
}

// A transcript: the forecast of an update, the update, and where they differ. The
// simulated cluster's operators take less time than the documentation says; the forecast
// has the merge of the version operator, and the update server-side apply, which leaves
// one definition as it is.
func TestForecastAndUpdate(t *testing.T) {
	cluster, images, err := rehearsal.AtRest(t.Context())
	checktest.OK(t, err)
	from, to := images[0].Version(), images[1].Version()
	o := forecast.Options{To: to, Releases: images, Rehearse: &forecast.RehearseOptions{}}
	f := checktest.Get(forecast.Update(t.Context(), cluster, o))(t)
	wanted := map[string]preview.Action{}
	for _, c := range f.Changes.Changes {
		if slices.Contains([]preview.Action{preview.Create, preview.Update, preview.Delete}, c.Action) {
			wanted[c.Object.String()] = c.Action
		}
	}
	var out strings.Builder
	says := func(who, outcome string, control, total time.Duration) {
		fmt.Fprintf(&out, "%-9s %s: %s, control plane after %s, all after %s\n",
			who, to, outcome, control.Round(time.Minute), total.Round(time.Minute))
	}
	fmt.Fprintf(&out, "forecast  %s to %s: %s, %d objects change\n", from, to, f.Verdict(), len(wanted))
	says("rehearsal", string(f.Rehearsal.Outcome), f.Rehearsal.ControlPlane, f.Rehearsal.Total)

	start := cluster.Clock.Now()
	checktest.OK(t, cluster.Play(t.Context(), func(ctx context.Context, wait func(time.Duration) error) error {
		return program.Request{API: cluster, Version: to, Now: cluster.Clock.Now, Wait: wait}.Run(ctx)
	}))
	cv := checktest.Get(clusterapi.Read[configv1.ClusterVersion](t.Context(), cluster, clusterapi.Key("", "version")))(t)
	done := cv.Status.History[0]
	control, total := done.CompletionTime.Sub(start), cluster.Clock.Now().Sub(start)
	says("update", string(done.State), control, total)
	fmt.Fprintf(&out, "differ    control plane by %s, all by %s\n",
		share(control, f.Rehearsal.ControlPlane), share(total, f.Rehearsal.Total))
	unforeseen := 0
	for _, moved := range checktest.Get(f.Changes.Check(t.Context(), cluster))(t) {
		if wanted[moved.Object.String()] == "" {
			unforeseen++
			fmt.Fprintf(&out, "differ    %s was not to change: %s\n", moved.Object, moved.Reason)
		}
		delete(wanted, moved.Object.String())
	}
	for _, object := range slices.Sorted(maps.Keys(wanted)) {
		fmt.Fprintf(&out, "differ    %s was to change: %s\n", object, wanted[object])
	}
	after := checktest.Get(forecast.Update(t.Context(), cluster, o))(t)
	fmt.Fprintf(&out, "forecast  %s to %s: %s\n", after.From, after.To, after.Verdict())
	file := filepath.Join("testdata", "transcript.txt")
	if *update {
		checktest.OK(t, os.WriteFile(file, []byte(out.String()), 0o644))
	}
	checktest.Same(t, string(checktest.Get(os.ReadFile(file))(t)), out.String())
}

// share is how much longer than forecast something took, in percent.
func share(took, said time.Duration) string {
	return fmt.Sprintf("%+.0f %%", 100*(took.Seconds()/said.Seconds()-1))
}
