package signature_test

import (
	"slices"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/limittest"
)

// Each row of the table in doc.go has a case here.
func TestLimits(t *testing.T) {
	limittest.Walk(t, slices.Concat(openPGPLimits(), storeLimits()))
}
