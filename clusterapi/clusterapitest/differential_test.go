package clusterapitest_test

import (
	"testing"

	"github.com/clusterupdate/clusterupdate/clusterapi/clusterapitest"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
)

func TestDifferentialOfTheSame(t *testing.T) {
	clusterapitest.Differential(t, memory.New(asServer), memory.New(asServer), clusterapitest.DifferentialOptions{Sequences: 100})
}
