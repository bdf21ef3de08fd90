package clusterupdate_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clusterupdate/clusterupdate/signature"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// initially knows what the cluster was installed with, when it has been asked
// often enough.
type initially struct {
	manifest.PayloadSource
	failures, asked int
}

func (s *initially) InitialRelease(context.Context) (configv1.Release, error) {
	if s.asked++; s.asked <= s.failures {
		return configv1.Release{}, errors.New("the registry is away")
	}
	return configv1.Release{Version: sample.FromVersion, Image: sample.FromImage}, nil
}

// TestInitialRelease: where the history is empty, the source is asked what the
// cluster was installed with, again after a failure.
func TestInitialRelease(t *testing.T) {
	noHistory := func(cv *configv1.ClusterVersion) { cv.Status = configv1.ClusterVersionStatus{} }
	from, to := loadSample(t, sample.From(), sample.FromImage), loadSample(t, sample.To(), sample.ToImage)
	for _, run := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			c := newTestCluster(t, from, to, noHistory)
			source := &initially{PayloadSource: sampleSource(), failures: 3}
			u, err := clusterupdate.New(clusterupdate.Options{API: c.Cluster, Payloads: source, Verifier: signature.Insecure()})
			checktest.OK(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			if run {
				err = u.Run(ctx)
			}
			for !run && source.asked < 20 {
				var r clusterupdate.Result
				if r, err = u.Sync(ctx); r.Done {
					break
				}
				time.Sleep(max(r.After, time.Second))
			}
			if got := historyOf(c.version(t)); err != nil || source.asked != 4 || got != "4.20.3 Completed" {
				t.Errorf("run %v: asked %d times; %v; history is %s", run, source.asked, err, got)
			}
		})
	}
}
