package install_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/limittest"
	"github.com/clusterupdate/clusterupdate/olm/install"
)

// TestLimitsTable walks the table of docs/limits.md.
func TestLimitsTable(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	limittest.Walk(t, []limittest.Case{
		{Limit: "message of a condition or plan", Default: 32 << 10, Bytes: 1 << 20, Run: func(t *testing.T) int64 {
			text := install.UpgradeableCondition(nil, errors.New(long[:33<<10]), false).Message
			if len(text) > 32<<10 || !strings.HasSuffix(text, " more bytes)") {
				t.Errorf("%d bytes", len(text))
			}
			return 0
		}},
	})
}
