package clusterapi_test

import (
	"testing"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func TestSample(t *testing.T) {
	for want, s := range map[string]clusterapi.Sample{
		`up 1`:                             {Name: "up", Value: 1},
		`up{a="1",b="x\"y\\z\n"} -0.5`:     {Name: "up", Labels: map[string]string{"b": "x\"y\\z\n", "a": "1"}, Value: -0.5},
		`time_seconds 1767323045`:          {Name: "time_seconds", Value: 1767323045},
		`time_seconds{e=""} 1767323045.25`: {Name: "time_seconds", Labels: map[string]string{"e": ""}, Value: 1767323045.25},
	} {
		checktest.Equal(t, want, s.String(), "String")
	}
	a, b := clusterapi.Sample{Name: "a"}, clusterapi.Sample{Name: "b"}
	checktest.FailIf(t, a.Compare(b) >= 0 || b.Compare(a) <= 0 || a.Compare(a) != 0, "a does not come before b")
}
