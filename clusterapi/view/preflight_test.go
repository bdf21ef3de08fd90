package view_test

import (
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/view"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// How far preflights are ends both what oc adm upgrade shows and the status.
func TestPreflights(t *testing.T) {
	release := configv1.Release{Version: "4.14.2", Image: "quay.io/release:4.14.2"}
	finding := func(name, message string) clusterversion.PreflightFinding {
		return clusterversion.PreflightFinding{Name: name, Message: message}
	}
	for _, tt := range []struct {
		name  string
		found clusterversion.Preflight
		text  string
		line  string
	}{
		{"running", clusterversion.Preflight{Release: release, State: clusterversion.PreflightRunning, Message: "5 of 7 checks done, 2 remaining"},
			"Running\n  Target: 4.14.2\n  Progress: 5 of 7 checks done, 2 remaining\n", "; preflight of 4.14.2 running"},
		{"passed", clusterversion.Preflight{Release: release, State: clusterversion.PreflightCompleted},
			"Completed\n  Target: 4.14.2\n  Risks: none\n", "; preflight of 4.14.2 completed"},
		{"risks", clusterversion.Preflight{Release: release, State: clusterversion.PreflightCompleted, Findings: []clusterversion.PreflightFinding{
			finding("PoolsPausedPoolPaused", "worker is paused\nso is infra"), finding("EtcdBackupUnknown", "no source"),
		}}, "Completed\n  Target: 4.14.2\n  Risk: PoolsPausedPoolPausedFor4_14_2\n    worker is paused\n    so is infra\n  Risk: EtcdBackupUnknownFor4_14_2\n    no source\n",
			"; preflight of 4.14.2 completed with 2 risks"},
		{"failed", clusterversion.Preflight{Release: configv1.Release{Image: "quay.io/release@sha256:0123456789abcdef"}, State: clusterversion.PreflightFailed,
			Findings: []clusterversion.PreflightFinding{finding(clusterversion.PreflightIncomplete, "nobody signed it")}},
			"Failed\n  Target: quay.io/release@sha256:0123456789abcdef\n  Risk: PreflightIncompleteForsha256_0123456789ab\n    nobody signed it\n",
			"; preflight of quay.io/release@sha256:0123456789abcdef failed with 1 risk"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := updating()
			cv := o.ClusterVersion
			before := statusText(t, o, 30*time.Minute, view.StatusText{})
			clusterversion.ShowPreflights(&cv.Status, []clusterversion.Preflight{tt.found}, clusterversion.PreflightDisplay{})
			want := "\nPreflight Check: " + tt.text
			checktest.Equal(t, before+want, statusText(t, o, 30*time.Minute, view.StatusText{}), "status")
			if line := assess(t, o, 30*time.Minute).String(); !strings.HasSuffix(line, tt.line) {
				t.Errorf("line %q", line)
			}
			var out strings.Builder
			summary := checktest.Get(view.Summarize(cv))(t)
			checktest.OK(t, summary.WriteText(&out, &out, view.SummaryText{}))
			if !strings.HasSuffix(out.String(), want) {
				t.Errorf("summary:\n%s", out.String())
			}
		})
	}
}
