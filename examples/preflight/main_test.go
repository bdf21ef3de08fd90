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
	"github.com/clusterupdate/clusterupdate/preconditions"
)

func run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = command().Execute(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

func TestUsage(t *testing.T) {
	for args, want := range map[string]string{
		"-dump x":                "-dump needs -to",
		"-payload x":             "-payload and -from go with -dump",
		"-from x":                "-payload and -from go with -dump",
		"-o yaml":                "-o yaml: not text, json or markdown",
		"-plan-to x":             "for flag -plan-to: not a version such as 4.18.3",
		"-to 4.18.x":             "for flag -to: not a version such as 4.18.3",
		"-plan none":             "-plan none: not full, canary or control-plane-only",
		"-allow Channel":         "-allow Channel: not the name of a check",
		"-allow Channel=":        "-allow Channel=: not the name of a check",
		"-allow Other=x":         "-allow Other=x: not the name of a check",
		"-to 4.21.1 superfluous": "superfluous",
	} {
		if code, _, stderr := run(t, strings.Fields(args)...); code != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit %d, %s", args, code, stderr)
		}
	}
}

// The simulated cluster may be updated, though not all is known of it.
func TestSimulated(t *testing.T) {
	code, out, errs := run(t)
	if code != 0 || errs != "" {
		t.Fatalf("exit %d: %s%s", code, errs, out)
	}
	checktest.Has(t, out, "Update from 4.20.3 to 4.21.1\n", "  CriticalAlerts NoSource: no source given for Alerts\n",
		"Nothing blocks the update: 0 blocking, ")
	if code, _, _ := run(t, "-strict"); code != 3 {
		t.Errorf("-strict: exit %d", code)
	}
}

func TestFormats(t *testing.T) {
	_, out, _ := run(t, "-json")
	var report struct {
		Transition struct{ Current, Target string }
		Results    []struct{ Check, State string }
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil || report.Transition.Target != "4.21.1" || len(report.Results) != len(preconditions.Default()) {
		t.Errorf("%v: %.300s", err, out)
	}
	if _, out, _ = run(t, "-o", "markdown"); !strings.HasPrefix(out, "# Update from 4.20.3 to 4.21.1\n\n**Nothing blocks the update:") {
		t.Errorf("%.300s", out)
	}
}

// Real clusters: what blocks is named, and set aside by name.
func TestRecorded(t *testing.T) {
	dir := filepath.Join(testdata.Dir(t), "clusters", "4.14.1-degraded")
	code, out, _ := run(t, "-dump", dir, "-to", "4.15.0")
	checktest.Equal(t, 1, code, "exit")
	checktest.Has(t, out, "Blocking:\n  ClusterVersionUpgradeable ClusterOperatorsNotUpgradeable: ",
		"  AdminAcks NotCollected: ", "\nThe update is blocked: ")
	var allow []string
	for _, c := range preconditions.Default() {
		allow = append(allow, "-allow", c.Name()+"=a test")
	}
	code, out, _ = run(t, append(allow, "-strict", "-dump", dir, "-to", "4.15.0")...)
	if code != 0 || !strings.Contains(out, "Bypassed: ClusterVersionUpgradeable, ") {
		t.Errorf("all set aside: exit %d\n%s", code, out)
	}
	if code, _, errs := run(t, "-dump", dir, "-to", "4.15.0", "-payload", "absent"); code != 3 || !strings.Contains(errs, "absent") {
		t.Errorf("no payload: exit %d, %s", code, errs)
	}
	if code, _, errs := run(t, "-dump", t.TempDir(), "-to", "4.15.0"); code != 3 || errs == "" {
		t.Errorf("no recording: exit %d, %s", code, errs)
	}
}

// A patch of a cluster of which a heap holds one object only: strict exit codes.
func TestStrict(t *testing.T) {
	dir := t.TempDir()
	const cv = `{"apiVersion":"config.openshift.io/v1","kind":"ClusterVersion","metadata":{"name":"version"},"spec":{"channel":"candidate-4.18"},
"status":{"desired":{"version":"4.18.5","image":"a@sha256:1"},"availableUpdates":[{"version":"4.18.6","image":"a@sha256:2"}],"history":[{"state":"Completed","version":"4.18.5","image":"a@sha256:1"}]}}`
	checktest.OK(t, os.WriteFile(filepath.Join(dir, "cv.json"), []byte(cv), 0o600))
	if code, out, _ := run(t, "-dump", dir, "-to", "4.18.6"); code != 0 || !strings.Contains(out, "Warnings:\n  Channel UnsupportedChannel") {
		t.Errorf("exit %d\n%s", code, out)
	}
	if code, _, _ := run(t, "-strict", "-dump", dir, "-to", "4.18.6"); code != 3 {
		t.Errorf("-strict: exit %d", code)
	}
	args := []string{"-strict", "-dump", dir, "-to", "4.18.6"}
	for _, c := range preconditions.Default() {
		if c.Name() != "Channel" {
			args = append(args, "-allow", c.Name()+"=a test")
		}
	}
	if code, _, _ := run(t, args...); code != 1 {
		t.Errorf("-strict with a warning and nothing unknown: exit %d", code)
	}
}
