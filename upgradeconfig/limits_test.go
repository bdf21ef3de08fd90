package upgradeconfig_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/checktest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/internal/limittest"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
)

func TestLimits(t *testing.T) {
	long := []byte("source: " + strings.Repeat("x", 1<<20))
	// Each of a thousand aliases stands for two kilobytes.
	var b strings.Builder
	fmt.Fprintf(&b, "a: &x %q\nb:\n", strings.Repeat("y", 2000))
	for range 1000 {
		b.WriteString("- *x\n")
	}
	laughs := []byte(b.String())
	refused := func(t *testing.T, document []byte) {
		t.Helper()
		_, err := upgradeconfig.ParseConfig(document)
		if !errors.As(err, new(*upgradeconfig.ConfigError)) || !strings.Contains(err.Error(), "limit of 1048576") {
			t.Errorf("%.200v", err)
		}
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	text := errors.New(strings.Repeat("x", 32<<10+1))
	limittest.Walk(t, []limittest.Case{
		{Limit: "configuration", Default: 1 << 20, Bytes: 64 << 10, Run: func(t *testing.T) int64 { refused(t, long); return 0 }},
		{Limit: "configuration, aliases expanded", Default: 1 << 20, Bytes: 2 << 20, Run: func(t *testing.T) int64 { refused(t, laughs); return 0 }},
		{Limit: "entries of a history", Default: 100, Bytes: 1 << 20, Run: func(t *testing.T) int64 {
			var s upgradeconfig.Status
			for i := range 101 {
				s.SetEntry(upgradeconfig.HistoryEntry{Version: fmt.Sprint("4.20.", i)})
			}
			if first, last := s.History[0].Version, s.History[len(s.History)-1].Version; len(s.History) != 100 || first != "4.20.100" || last != "4.20.1" {
				t.Errorf("%d entries from %s to %s", len(s.History), first, last)
			}
			return 0
		}},
		{Limit: "message of a condition", Default: 32 << 10, Bytes: 256 << 10, Run: func(t *testing.T) int64 {
			var e upgradeconfig.HistoryEntry
			e.SetCondition(upgradeconfig.Condition{Type: upgradeconfig.ClusterHealthyBeforeUpgrade, Status: metav1.ConditionFalse, Message: text.Error()}, now)
			c, _ := e.Condition(upgradeconfig.ClusterHealthyBeforeUpgrade)
			if len(c.Message) > 32<<10 || !strings.HasSuffix(c.Message, " more bytes)") {
				t.Errorf("%d bytes", len(c.Message))
			}
			if e.SetCondition(upgradeconfig.Condition{Type: upgradeconfig.ClusterHealthyBeforeUpgrade, Status: metav1.ConditionFalse, Message: text.Error()}, now) {
				t.Error("the same failure again is a change")
			}
			return 0
		}},
		{Limit: "policies in a directory", Default: 1000, Bytes: 16 << 20, Run: func(t *testing.T) int64 {
			tree := fstest.MapFS{}
			for i := range 1001 {
				tree[fmt.Sprintf("%04d.yaml", i)] = &fstest.MapFile{Data: []byte("state: pending\n")}
			}
			checktest.ErrorHas(t, "more than 1000 policies", checktest.Err(
				(upgradeconfig.GitDir{Tree: tree}).Policies(t.Context())))
			return 0
		}},
		{Limit: "policy in a file", Default: 64 << 10, Bytes: 1 << 20, Run: func(t *testing.T) int64 {
			tree := fstest.MapFS{"a.yaml": {Data: make([]byte, 64<<10+1)}}
			checktest.ErrorHas(t, "larger than 65536 bytes", checktest.Err(
				(upgradeconfig.GitDir{Tree: tree}).Policies(t.Context())))
			return 0
		}},
	})
}
