package main

import (
	"context"
	"encoding/json"
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
	"github.com/clusterupdate/clusterupdate/examples/internal/rehearsal"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/program/programtest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/runlevel/preview"
)

func TestUsage(t *testing.T) { programtest.Usage(t, command) }

// The simulated cluster may be updated, though not all is known of it.
func TestSimulated(t *testing.T) {
	code, out, errs := programtest.Run(t, command())
	checktest.Equal(t, "", errs, "errors")
	checktest.Equal(t, 0, code, "exit")
	checktest.Has(t, out, " from 4.20.3 to 4.21.1\n", "  checks: CriticalAlerts NoSource: no source given for Alerts\n",
		"  Delete 1: 1 ConfigMap\n")
	code, _, _ = programtest.Run(t, command(), "-strict")
	checktest.Equal(t, 1, code, "-strict: exit")
}

// Real clusters: what blocks is named, and set aside by name; several are a table.
func TestRecorded(t *testing.T) {
	data := testdata.Dir(t)
	dir := filepath.Join(data, "clusters", "4.14.1-degraded")
	code, out, _ := programtest.Run(t, command(), "-dump", dir, "-to", "4.15.0")
	checktest.Equal(t, 1, code, "exit")
	checktest.Has(t, out, "\nBlocking:\n", "  operators: ClusterVersionUpgradeable ClusterOperatorsNotUpgradeable: ",
		"    Also found by ClusterOperators\n", "no source given for TargetPayload\n    To do: give -payload\n", "\nTo collect: oc adm inspect --all-namespaces with each of:")
	programtest.Test(t, command, []programtest.Case{{
		Args: "-dump " + dir + " -to 4.18.15 -payload " + filepath.Join(data, "payload-4.17.30"), Code: 2,
		Stderr: "forecast: -to 4.18.15: the release of -payload is 4.17.30",
	}, {
		Args: "-dump " + dir + " -to 4.15.0 -running " + filepath.Join(data, "payload-4.17.30"), Code: 2,
		Stderr: "no cluster runs 4.17.30, but 4.14.0-rc.3, 4.14.1",
	}, {
		Args: "-dump " + dir + " -to 4.15.0 -rehearse 1 -nodes infra=3", Code: 2, Stderr: "-nodes infra: the pools are master, worker",
	}, {
		Args: "-dump " + dir + " -to 4.15.0 -plan control-plane-only -plan-to 4.14.9", Code: 2, Stderr: "-plan-to 4.14.9: it is lower than 4.15.0",
	}, {
		Args: "-rehearse 1 -max-unavailable infra=3", Code: 2, Stderr: "-max-unavailable infra: the pools are master, worker",
	}})
	args := []string{"-strict", "-dump", dir, "-to", "4.15.0"}
	for _, check := range []string{
		"UpdateInProgress", "ClusterVersionUpgradeable", "ClusterOperators", "ClusterVersionRecommendedUpdate",
		"Channel", "KubeletSkew",
	} {
		args = append(args, "-allow", check+"=a test")
	}
	code, out, _ = programtest.Run(t, command(), args...)
	checktest.Equal(t, 3, code, "all that is known set aside: exit")
	checktest.Has(t, out, "Bypassed: ClusterVersionUpgradeable, ")
	for _, check := range []string{
		"AdminAcks", "UnsupportedOverrides", "FeatureSet", "DeprecatedAPIs", "OperatorCompatibility", "KernelModules",
		"Runc", "DisruptionBudgets", "CloudCredentials", "CredentialsRequests", "VSphere",
	} {
		args = append(args, "-allow", check+"=not collected")
	}
	code, _, _ = programtest.Run(t, command(), args...)
	checktest.Equal(t, 0, code, "the gaps set aside as well: exit")

	_, out, _ = programtest.Run(t, command(), "-dump", dir, "-to", "4.15.0", "-o", "json")
	var f struct{ Verdict, From, To string }
	checktest.OK(t, json.Unmarshal([]byte(out), &f))
	checktest.Equal(t, "Blocked 4.14.1 4.15.0", f.Verdict+" "+f.From+" "+f.To, "JSON")

	graph := filepath.Join(t.TempDir(), "stable-4.15_amd64.json")
	const text = `{"nodes": [{"version": "4.14.1", "payload": "a"}, {"version": "4.15.0", "payload": "b"}],
"edges": [[0, 1]]}`
	checktest.OK(t, os.WriteFile(graph, []byte(text), 0o600))
	other := filepath.Join(data, "clusters", "not-upgrading")
	code, out, _ = programtest.Run(t, command(), "-dump", dir, "-dump", other, "-to", "4.15.0", "-graph", graph, "-o", "markdown")
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
	given := "-dump " + dir + " -to 4.18.6"
	programtest.Test(t, command, []programtest.Case{
		{Args: given + " -payload absent", Code: 3, Stderr: "-payload: absent does not hold a release"},
		{Args: given + " -running absent", Code: 3, Stderr: "-running: absent does not hold a release"},
		{Args: given + " -graph absent", Code: 3, Stderr: "-graph: absent"},
		{Args: given + " -dump " + t.TempDir(), Code: 3, Stderr: "recording"},
		{Args: given + " -rehearse 1 -o svg", Code: 3, Stderr: "no rehearsal to draw: the rehearsal needs the contents of both releases"},
		{Args: given + " -dump absent -o markdown", Code: 3, Stderr: "absent"},
	})
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
		return rehearsal.Request{API: cluster, Version: to, Now: cluster.Clock.Now, Wait: wait}.Run(ctx)
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
	programtest.Golden(t, "transcript.txt", out.String())
}

// share is how much longer than forecast something took, in percent.
func share(took, said time.Duration) string {
	return fmt.Sprintf("%+.0f %%", 100*(took.Seconds()/said.Seconds()-1))
}
