package openshift_test

import (
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/openshift"
)

func TestEUS(t *testing.T) {
	want := map[[2]uint64]bool{
		{4, 12}: true, {4, 13}: false, {4, 18}: true, {4, 21}: false, {4, 22}: true, {4, 23}: false,
		{5, 0}: false, {5, 1}: false, {5, 2}: true, {5, 3}: false, {5, 4}: false, {5, 5}: true, {5, 8}: true,
	}
	for v, is := range want {
		if openshift.EUS(v[0], v[1]) != is {
			t.Errorf("%d.%d: %v", v[0], v[1], !is)
		}
	}
}
