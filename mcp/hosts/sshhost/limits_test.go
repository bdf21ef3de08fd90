package sshhost_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/limittest"
	"github.com/clusterupdate/clusterupdate/mcp/hosts/sshhost"
)

func TestLimits(t *testing.T) {
	s := serve(t, func([]string) answer { return answer{stdout: strings.Repeat("x", 1048576+1)} })
	h := s.hosts(t)
	limittest.Walk(t, []limittest.Case{
		{Limit: "output of a command", Default: 1048576, Bytes: 32 << 20, Run: func(t *testing.T) int64 {
			if _, err := h.Run(t.Context(), node(), "cat"); !errors.As(err, new(*sshhost.LimitError)) {
				t.Errorf("%v", err)
			}
			return 0
		}},
	})
}
