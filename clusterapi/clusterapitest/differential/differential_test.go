package differential

import (
	"testing"

	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
)

func TestDifferentialOfTheSame(t *testing.T) {
	asServer := memory.Options{CheckNamespaces: true, GracefulPods: true}
	Run(t, memory.New(asServer), memory.New(asServer), Options{Sequences: 100})
}
