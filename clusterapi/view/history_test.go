package view_test

import (
	"io"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi/view"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// started is when the oldest update of the tests began.
var started = time.Date(2024, 2, 7, 16, 0, 0, 0, time.UTC)

// entry makes an entry of a history from seconds after started; negative ones are
// not set.
func entry(version, state string, from, to float64) configv1.UpdateHistory {
	h := configv1.UpdateHistory{Version: version, State: configv1.UpdateState(state)}
	if version != "" {
		h.Image = "image-" + version
	}
	at := func(s float64) metav1.Time {
		return metav1.NewTime(started.Add(time.Duration(s * float64(time.Second))))
	}
	if from >= 0 {
		h.StartedTime = at(from)
	}
	if to >= 0 {
		t := at(to)
		h.CompletionTime = &t
	}
	return h
}

func withHistory(entries ...configv1.UpdateHistory) *configv1.ClusterVersion {
	return healthy(func(cv *configv1.ClusterVersion) { cv.Status.History = entries })
}

func TestHistory(t *testing.T) {
	now := started.Add(3*time.Hour + 499*time.Millisecond)
	berlin := time.FixedZone("Berlin", 3600)
	local := entry("4.14.0", "Completed", 0, 3600)
	local.StartedTime = metav1.NewTime(local.StartedTime.In(berlin))
	local.Verified = true
	for _, tt := range []struct {
		name string
		cv   *configv1.ClusterVersion
		o    view.HistoryText
		want string
	}{
		{"newest first", withHistory(entry("4.14.2", "Partial", 7200, -1), entry("4.14.1", "Partial", 3600, 3661.5), local), view.HistoryText{}, `
VERSION   STATE       STARTED                COMPLETED              DURATION   VERIFIED   IMAGE
4.14.2    Partial     2024-02-07T18:00:00Z   -                      1h         false      image-4.14.2
4.14.1    Partial     2024-02-07T17:00:00Z   2024-02-07T17:01:01Z   1m2s       false      image-4.14.1
4.14.0    Completed   2024-02-07T16:00:00Z   2024-02-07T17:00:00Z   1h         true       image-4.14.0
`},
		{"without images", withHistory(local), view.HistoryText{WithoutImages: true}, `
VERSION   STATE       STARTED                COMPLETED              DURATION   VERIFIED
4.14.0    Completed   2024-02-07T16:00:00Z   2024-02-07T17:00:00Z   1h         true
`},
		{"not set", withHistory(entry("", "", -1, -1), entry("4.14.1", "Partial", 0, -1), entry("4.14.0", "Completed", -1, 0)), view.HistoryText{}, `
VERSION   STATE       STARTED                COMPLETED              DURATION   VERIFIED   IMAGE
-         -           -                      -                      -          false      -
4.14.1    Partial     2024-02-07T16:00:00Z   -                      -          false      image-4.14.1
4.14.0    Completed   -                      2024-02-07T16:00:00Z   -          false      image-4.14.0
`},
		{"completed without time", withHistory(entry("4.14.1", "Completed", 0, -1)), view.HistoryText{}, `
VERSION   STATE       STARTED                COMPLETED   DURATION   VERIFIED   IMAGE
4.14.1    Completed   2024-02-07T16:00:00Z   -           -          false      image-4.14.1
`},
		{"rounds", withHistory(entry("4.14.1", "Completed", 0, 0.4), entry("4.14.0", "Completed", 0, 0.5), entry("4.13.9", "Completed", 10, 5)), view.HistoryText{WithoutImages: true}, `
VERSION   STATE       STARTED                COMPLETED              DURATION   VERIFIED
4.14.1    Completed   2024-02-07T16:00:00Z   2024-02-07T16:00:00Z   now        false
4.14.0    Completed   2024-02-07T16:00:00Z   2024-02-07T16:00:00Z   1s         false
4.13.9    Completed   2024-02-07T16:00:10Z   2024-02-07T16:00:05Z   -5s        false
`},
		{"none", withHistory(), view.HistoryText{}, "\nVERSION   STATE   STARTED   COMPLETED   DURATION   VERIFIED   IMAGE\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := checktest.Get(view.AssessHistory(tt.cv, now))(t)
			wantTexts(t, tt.want[1:], "", func(out, _ io.Writer) error { return h.WriteText(out, tt.o) })
		})
	}
}

func TestHistoryWithoutVersion(t *testing.T) {
	if _, err := view.AssessHistory(nil, started); err == nil || err.Error() != noVersion {
		t.Errorf("error is %v", err)
	}
}

func TestHistoryJSON(t *testing.T) {
	partial := entry("4.14.2", "Partial", 0, -1)
	partial.AcceptedRisks = "Upgradeable=False"
	h, err := view.AssessHistory(withHistory(partial, entry("4.14.1", "Completed", 0, 60)), started.Add(90*time.Second))
	checktest.OK(t, err)
	golden(t, "history.json", indented(t, h))
}
