package clusterversion_test

import (
	"fmt"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/limittest"
)

func TestLimits(t *testing.T) {
	var entries []configv1.UpdateHistory
	for i := range 100 {
		entries = append(entries, configv1.UpdateHistory{State: configv1.CompletedUpdate, Version: fmt.Sprintf("4.20.%d", 100-i), Image: fmt.Sprint("image-", i)})
	}
	limittest.Walk(t, []limittest.Case{
		{Limit: "entries of the history", Default: 100, Bytes: 1 << 20, Run: func(t *testing.T) int64 {
			got := clusterversion.MergeHistory(entries, clusterversion.HistoryChange{Release: configv1.Release{Version: "4.21.0", Image: "new"}})
			if len(got) != 100 || got[0].Version != "4.21.0" {
				t.Errorf("%d entries, the newest is %s", len(got), got[0].Version)
			}
			return 0
		}},
		{Limit: "accepted risks in the history", Default: 32 << 10, Bytes: 512 << 10, Run: func(t *testing.T) int64 {
			got := clusterversion.MergeHistory(nil, clusterversion.HistoryChange{Release: release("4.21.1@B"), AcceptedRisks: strings.Repeat("x", clusterversion.MaxMessage+1)})
			if text := got[0].AcceptedRisks; len(text) > clusterversion.MaxMessage || !strings.HasSuffix(text, " more bytes)") {
				t.Errorf("%d bytes: %q", len(text), text[max(0, len(text)-40):])
			}
			return 0
		}},
		{Limit: "risks of a preflight", Default: 64, Bytes: 64 << 20, Run: func(t *testing.T) int64 {
			risks, _ := showCrowded(t, 1)
			checktest.Equal(t, 64, risks, "risks")
			return 0
		}},
		{Limit: "risks of all preflights", Default: 250, Bytes: 64 << 20, Run: func(t *testing.T) int64 {
			risks, _ := showCrowded(t, 6)
			checktest.Equal(t, 250, risks, "risks")
			return 0
		}},
		{Limit: "messages of a preflight", Default: 32 << 10, Bytes: 64 << 20, Run: func(t *testing.T) int64 {
			if _, bytes := showCrowded(t, 1); bytes > 32<<10 {
				t.Errorf("%d bytes of messages", bytes)
			}
			return 0
		}},
	})
}
