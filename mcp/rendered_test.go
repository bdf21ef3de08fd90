package mcp_test

import (
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/mcp"
)

func TestSameContent(t *testing.T) {
	a, b := strings.Repeat("a", 32), strings.Repeat("0", 32)
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"rendered-worker-" + a, "rendered-infra-" + a, true},
		{"rendered-worker-" + a, "rendered-my-pool-" + a, true},
		{"rendered-worker-" + a, "rendered-worker-" + b, false},
		{"worker", "worker", false},
		{"rendered-" + a, "rendered-" + a, false},
		{"rendered-worker-abc", "rendered-worker-abc", false},
		{"rendered-worker-" + strings.ToUpper(a), "rendered-worker-" + strings.ToUpper(a), false},
	} {
		if got := mcp.SameContent(tt.a, tt.b); got != tt.want {
			t.Errorf("%s, %s: %v", tt.a, tt.b, got)
		}
	}
}
