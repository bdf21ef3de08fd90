package clusterupdate_test

import (
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/runlevel"
)

// TestPassTakesItsTime: a pass that installs may take one interval, another one two.
func TestPassTakesItsTime(t *testing.T) {
	const interval = 2 * time.Minute
	for _, tt := range []struct {
		name       string
		installing bool
		want       time.Duration
	}{
		{"installing", true, interval},
		{"updating", false, 2 * interval},
	} {
		t.Run(tt.name, func(t *testing.T) {
			withSample(t, nil, func(s *sampleTest) {
				var began, took time.Duration
				start := time.Now()
				s.restart(func(o *clusterupdate.Options) {
					o.Interval, o.Workers = interval, 1
					o.Observe = func(e clusterapi.Event) {
						switch p := dataOf(e).Pass; {
						case p == nil || !tt.installing && dataOf(e).Release.Version != sample.ToVersion:
						case p.Type == runlevel.EventPassStarted:
							began = time.Since(start)
						case p.Type == runlevel.EventPassDone && took == 0:
							took = time.Since(start) - began
						}
					}
				})
				s.onCall(func(call memory.Call) {
					if call.Verb == "Apply" {
						time.Sleep(10 * time.Second)
					}
				})
				if tt.installing {
					modify(s, s.Cluster, true, func(cv *configv1.ClusterVersion) {
						cv.Status.History = []configv1.UpdateHistory{{State: configv1.PartialUpdate, Version: sample.FromVersion, Image: sample.FromImage, StartedTime: metav1.Now()}}
					})
				} else {
					s.request(s, configv1.Update{Version: sample.ToVersion})
				}
				s.running(func() { time.Sleep(20 * time.Minute) })
				if took < tt.want || took > tt.want+10*time.Second {
					s.Errorf("a pass that does not get to its end takes %s, want %s", took, tt.want)
				}
			})
		})
	}
}
