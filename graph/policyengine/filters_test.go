package policyengine_test

import (
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/graph/policyengine"
)

// TestDefaultArch: a request that names no architecture gets the graph of the default.
func TestDefaultArch(t *testing.T) {
	s := serve(t, policyengine.Options{DefaultArch: "s390x"}, sample(t))
	if got := s.get(t, candidate); strings.Count(got.body, `"payload"`) != 1 {
		t.Errorf("the default architecture: %s", got.body)
	}
}
