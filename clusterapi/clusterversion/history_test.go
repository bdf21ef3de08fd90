package clusterversion_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

var (
	t0 = metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	t1 = metav1.NewTime(t0.Add(time.Hour))
)

// history reads entries as "4.2.1@B P, 4.2.0@A C", newest first; entries that
// are not the newest, or Completed, have a completion time.
func history(s string) (out []configv1.UpdateHistory) {
	if s == "" {
		return nil
	}
	for i, e := range strings.Split(s, ", ") {
		release, state, _ := strings.Cut(e, " ")
		version, image, _ := strings.Cut(release, "@")
		h := configv1.UpdateHistory{Version: version, Image: image, StartedTime: t0, State: configv1.PartialUpdate}
		if state == "C" {
			h.State = configv1.CompletedUpdate
		}
		if i > 0 || state == "C" {
			h.CompletionTime = &t0
		}
		out = append(out, h)
	}
	return out
}

func show(hs []configv1.UpdateHistory) string {
	var out []string
	for _, h := range hs {
		s := fmt.Sprintf("%s@%s %s", h.Version, h.Image, string(h.State)[:1])
		if h.CompletionTime == nil {
			s += " open"
		}
		if h.Verified {
			s += " verified"
		}
		if h.AcceptedRisks != "" {
			s += " " + h.AcceptedRisks
		}
		out = append(out, s)
	}
	return strings.Join(out, ", ")
}

func release(s string) configv1.Release {
	version, image, _ := strings.Cut(s, "@")
	return configv1.Release{Version: version, Image: image}
}

func TestMergeHistory(t *testing.T) {
	tests := []struct {
		name, history, release string
		change                 clusterversion.HistoryChange
		want                   string
	}{
		{name: "first entry", release: "4.2.0@A", want: "4.2.0@A P open"},
		{name: "first entry, done at once", release: "4.2.0@A", change: clusterversion.HistoryChange{Completed: true}, want: "4.2.0@A C"},
		{name: "installed", history: "4.2.0@A P", release: "4.2.0@A", change: clusterversion.HistoryChange{Completed: true}, want: "4.2.0@A C"},
		{name: "update starts", history: "4.2.0@A C", release: "4.2.1@B", want: "4.2.1@B P open, 4.2.0@A C"},
		{name: "abandoned", history: "4.2.1@B P, 4.2.0@A C", release: "4.2.0@A", want: "4.2.0@A P open, 4.2.1@B P, 4.2.0@A C"},
		{name: "version filled in", history: "@B P, 4.2.0@A C", release: "4.2.1@B", want: "4.2.1@B P open, 4.2.0@A C"},
		{name: "image filled in", history: "4.2.1@ P, 4.2.0@A C", release: "4.2.1@B", want: "4.2.1@B P open, 4.2.0@A C"},
		{name: "version unknown now", history: "4.2.1@B P", release: "@B", want: "4.2.1@B P open"},
		{name: "same image, other version", history: "4.2.1@B C", release: "4.2.2@B", want: "4.2.2@B P open, 4.2.1@B C"},
		{name: "same version, other image", history: "4.2.0@A C", release: "4.2.0@M", want: "4.2.0@M P open, 4.2.0@A C"},
		{name: "never back to partial", history: "4.2.0@A C", release: "4.2.0@A", want: "4.2.0@A C"},
		{name: "no image", history: "4.2.0@A C", release: "4.2.1@", want: "4.2.0@A C"},
		{name: "verified", history: "4.2.0@A P", release: "4.2.0@A", change: clusterversion.HistoryChange{Verified: true}, want: "4.2.0@A P open verified"},
		{name: "risks", history: "4.2.0@A C", release: "4.2.1@B", change: clusterversion.HistoryChange{AcceptedRisks: "forced"}, want: "4.2.1@B P open forced, 4.2.0@A C"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := history(tt.history)
			c := tt.change
			c.Release, c.Now = release(tt.release), t1
			got := clusterversion.MergeHistory(before, c)
			checktest.Same(t, tt.want, show(got))
			checktest.SameIn(t, "the input changed", history(tt.history), before)
			again := clusterversion.MergeHistory(got, c)
			checktest.SameIn(t, "merging again changes (-first +second)", got, again)
		})
	}
}

func TestMergeHistoryKeeps(t *testing.T) {
	old := history("4.2.1@B P, 4.2.0@A C")
	old[0].AcceptedRisks, old[0].Verified = "forced", true
	got := clusterversion.MergeHistory(old, clusterversion.HistoryChange{Release: release("4.2.1@B"), Completed: true, Now: t1})
	if want := "4.2.1@B C verified forced, 4.2.0@A C"; show(got) != want {
		t.Errorf("got %s, want %s", show(got), want)
	}
	if !got[0].CompletionTime.Equal(&t1) || !got[0].StartedTime.Equal(&t0) {
		t.Errorf("times: %v to %v", got[0].StartedTime, got[0].CompletionTime)
	}
	got = clusterversion.MergeHistory(got, clusterversion.HistoryChange{Release: release("4.2.1@B"), Completed: true, Now: metav1.NewTime(t1.Add(time.Hour))})
	if !got[0].CompletionTime.Equal(&t1) {
		t.Errorf("the completion time moved to %v", got[0].CompletionTime)
	}
}

func TestPruneHistory(t *testing.T) {
	tests := []struct {
		name, history, gone string // gone: which of the eleven is removed where ten may stay
	}{
		{
			name:    "partial within a minor",
			history: "4.4.1@a C, 4.4.0@b P, 4.3.6@c C, 4.3.5@d C, 4.3.4@e C, 4.3.3@f C, 4.3.2@g P, 4.3.1@h C, 4.3.0@i P, 4.2.9@j C, 4.2.0@k C",
			gone:    "4.3.2@g",
		},
		{
			name:    "oldest of equals",
			history: "4.4.1@a C, 4.4.0@b P, 4.3.6@c C, 4.3.5@d C, 4.3.4@e C, 4.3.3@f C, 4.3.2@g C, 4.3.1@h C, 4.3.0@i C, 4.3.0@j C, 4.3.0@k C",
			gone:    "4.3.0@j",
		},
		{
			name:    "partial of the same patch weighs nothing",
			history: "4.4.1@a C, 4.4.0@b P, 4.3.6@c C, 4.3.5@d C, 4.3.4@e C, 4.3.1@f C, 4.3.1@g P, 4.3.1@h C, 4.2.0@i C, 4.1.9@j C, 4.0.0@k C",
			gone:    "4.3.1@g",
		},
		{
			name:    "newest completed stays",
			history: "4.9.1@a P, 4.9.0@b P, 4.8.0@c P, 4.7.0@d P, 4.6.0@e P, 4.5.0@f P, 4.5.0@g P, 4.4.0@h C, 4.3.0@i P, 4.2.9@j P, 4.2.0@k P",
			gone:    "4.2.9@j",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := clusterversion.PruneHistory(history(tt.history), 10)
			var kept []string
			for _, h := range got {
				kept = append(kept, h.Version+"@"+h.Image)
			}
			if len(got) != 10 || strings.Contains(strings.Join(kept, " "), tt.gone) {
				t.Errorf("kept %s, want all but %s", kept, tt.gone)
			}
		})
	}
}

func TestMergeHistoryProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h []configv1.UpdateHistory
		now := t0
		for range rapid.IntRange(1, 130).Draw(t, "merges") {
			now = metav1.NewTime(now.Add(time.Minute))
			c := clusterversion.HistoryChange{
				Release:   release(rapid.SampledFrom([]string{"4.1.0@A", "4.1.1@B", "4.2.0@C", "4.2.0@D", "4.3.1@E"}).Draw(t, "release")),
				Completed: rapid.Bool().Draw(t, "completed"),
				Now:       now,
			}
			var first configv1.UpdateHistory
			if len(h) > 0 {
				first = h[len(h)-1]
			}
			h = clusterversion.MergeHistory(h, c)
			if len(h) > 100 {
				t.Fatalf("%d entries", len(h))
			}
			if h[0].Image != c.Release.Image {
				t.Fatalf("newest is %s, not %s", h[0].Image, c.Release.Image)
			}
			if first.Image != "" && h[len(h)-1].Image != first.Image {
				t.Fatalf("the first entry %s is gone", first.Image)
			}
			for i := range h {
				if i > 0 && h[i].CompletionTime == nil {
					t.Fatalf("entry %d is still open: %s", i, show(h))
				}
				if h[i].State == configv1.CompletedUpdate && h[i].CompletionTime == nil {
					t.Fatalf("entry %d is completed at no time", i)
				}
			}
		}
	})
}

// TestMendedHistory: entries without a state get one, and times are not shared.
func TestMendedHistory(t *testing.T) {
	h := []configv1.UpdateHistory{{Version: "4.2.1", Image: "B"}, {Version: "4.2.0", Image: "A", State: configv1.CompletedUpdate, CompletionTime: &t0}}
	got := clusterversion.MergeHistory(h, clusterversion.HistoryChange{Release: release("4.2.2@C"), Completed: true, Now: t1})
	if want := "4.2.2@C C, 4.2.1@B P, 4.2.0@A C"; show(got) != want || got[1].State != configv1.PartialUpdate {
		t.Errorf("got %s, want %s", show(got), want)
	}
	if got[0].CompletionTime == got[1].CompletionTime {
		t.Error("two entries share a time")
	}
}
