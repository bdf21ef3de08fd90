package clusterupdate_test

import (
	"context"
	"errors"
	"io/fs"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/signature"
)

// fragileVerifier goes wrong the first time.
type fragileVerifier struct {
	goWrong func()
	calls   int
}

func (v *fragileVerifier) Verify(ctx context.Context, digest string) (*signature.Verification, error) {
	if v.calls++; v.calls == 1 {
		v.goWrong()
	}
	return signature.Insecure().Verify(ctx, digest)
}

// TestPanicsAreFailures: a verifier, a source of payloads, and an observer that
// panic, or end their goroutine, delay an update and do not end the program.
func TestPanicsAreFailures(t *testing.T) {
	from, to := loadSample(t, sample.From(), sample.FromImage), loadSample(t, sample.To(), sample.ToImage)
	for name, goWrong := range map[string]func(){"panic": func() { panic("out of order") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newTestCluster(t, from, to, nil)
				retrievals := 0
				served := sampleSource()
				u, err := clusterupdate.New(clusterupdate.Options{
					API: c.Cluster, Graph: sampleGraph(t), Verifier: &fragileVerifier{goWrong: goWrong},
					Payloads: manifest.PayloadSourceFunc(func(ctx context.Context, r configv1.Release) (fs.FS, error) {
						if r.Image == sample.ToImage {
							if retrievals++; retrievals == 1 {
								goWrong()
							}
						}
						return served.Payload(ctx, r)
					}),
					Observe: func(clusterapi.Event) { panic("out of paper") },
				})
				checktest.OK(t, err)
				if r, err := u.Sync(t.Context()); err != nil || !r.Done {
					t.Fatalf("%+v, %v", r, err)
				}
				c.request(t, configv1.Update{Version: sample.ToVersion})
				var failures []string
				var r clusterupdate.Result
				for range 20 {
					if r, err = u.Sync(t.Context()); err != nil {
						t.Fatal(err)
					}
					if r.Done {
						break
					}
					if caught := new(clusterapi.PanicError); errors.As(r.Failure, &caught) {
						failures = append(failures, r.Failure.Error())
						if got := condition(c.version(t), clusterversion.ConditionReleaseAccepted); !strings.HasPrefix(got, "False RetrievePayload: ") || !strings.Contains(got, "panic: ") {
							t.Errorf("ReleaseAccepted is %q", got)
						}
					}
					time.Sleep(r.After)
				}
				if got := historyOf(c.version(t)); got != completedHistory || !r.Done {
					t.Errorf("history %s, result %+v", got, r)
				}
				if len(failures) != 2 { // of the verifier, then of the source
					t.Errorf("failures: %q", failures)
				}
			})
		})
	}
}
