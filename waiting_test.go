package clusterupdate_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/payload"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/signature"
)

// A cluster in which nothing happens is silent: no event, no write, and few reads
// between the passes that apply everything, once an hour.
func TestUnchangedClusterIsSilent(t *testing.T) {
	r := newDriftRun(t, clusterupdate.Options{}, reconcile.VirtualOptions{Seed: 1}, nil)
	r.after(10 * time.Minute)
	r.events = nil
	calls := map[string]int{}
	r.c.called = func(call memory.Call) { calls[call.Verb+" "+call.GVK.Kind]++ }
	if _, passes := r.after(50 * time.Minute); passes < 12 {
		t.Errorf("%d passes", passes)
	}
	for _, e := range r.events {
		t.Errorf("event %s: %s", e.Type, e.Message)
	}
	want := map[string]int{"Get ClusterVersion": 5, "Get FeatureGate": 5, "Get ConfigMap": 10, "List ClusterOperator": 5}
	checktest.SameIn(t, "calls", want, calls)
}

var errInternal = errors.New("the database is away")

// An hour of a cluster that a real release keeps unchanged, in which one pass applies
// everything, takes at most 900 calls, none of which writes the status.
func TestCallsOfAnUnchangedCluster(t *testing.T) {
	files := os.DirFS(filepath.Join(testdata.Dir(t), "payload-4.17.30"))
	clock := reconcile.NewClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	calls, writes, events := 0, 0, 0
	cluster := checktest.Get(simulation.New(simulation.Options{
		Clock: clock, Release: payload.Release(loadSample(t, files, sample.FromImage)),
		Memory: memory.Options{Intercept: func(ctx context.Context, call memory.Call, do func(context.Context) error) error {
			if !simulation.FromSimulation(ctx) {
				calls++
			}
			if call.Verb == "UpdateStatus" && call.GVK.Kind == "ClusterVersion" {
				writes++
			}
			return do(ctx)
		}},
	}))(t)
	u := checktest.Get(clusterupdate.New(clusterupdate.Options{
		API: cluster, Verifier: signature.Insecure(), Clock: clock, Observe: func(clusterapi.Event) { events++ },
		Payloads: manifest.PayloadSourceFunc(func(context.Context, configv1.Release) (fs.FS, error) { return files, nil }),
	}))(t)
	v := reconcile.NewVirtual(reconcile.VirtualOptions{Cluster: cluster, Clock: clock, Seed: 1}, cluster.Process(), u.Process())
	t.Cleanup(v.Close)
	checktest.OK(t, v.RunUntil(v.Now().Add(10*time.Minute)))
	calls, writes, events = 0, 0, 0
	checktest.OK(t, v.RunUntil(v.Now().Add(time.Hour)))
	if calls < 700 || calls > 900 || writes > 0 || events > 0 {
		t.Errorf("%d calls, %d writes of the status, %d events", calls, writes, events)
	}
}

// requestMissing asks for a release that the source of payloads does not have.
func requestMissing(t *testing.T, r *driftRun) {
	t.Helper()
	modify(t, r.c.Cluster, false, func(cv *configv1.ClusterVersion) {
		cv.Spec.DesiredUpdate = &configv1.Update{Image: "registry.example/none@sha256:" + strings.Repeat("0", 64)}
	})
}

// A release that is refused stays so in the status while it is tried again, and is a
// failure since the first time.
func TestRefusedReleaseStays(t *testing.T) {
	r := newDriftRun(t, clusterupdate.Options{}, reconcile.VirtualOptions{Seed: 1}, nil)
	requestMissing(t, r)
	r.after(time.Minute)
	since := r.Now()
	tries, writes := 0, 0
	r.events = nil
	r.c.called = func(call memory.Call) {
		if call.Verb == "UpdateStatus" {
			writes++
		}
	}
	r.after(time.Hour)
	for _, e := range r.events {
		if e.Type == clusterupdate.EventRetrievePayloadFailed {
			tries++
		}
	}
	if tries < 10 || writes > 0 {
		t.Errorf("%d writes of the status in %d tries", writes, tries)
	}
	checktest.SameIn(t, "condition", true, strings.HasPrefix(condition(r.c.version(t), clusterversion.ConditionReleaseAccepted), "False RetrievePayload: "))
	d := r.u.Explain()
	if len(d.Failures) != 1 || !strings.HasPrefix(d.Failures[0].Subject, "release registry.example/none@") || d.Failures[0].Since.After(since) || len(d.Awaits) > 0 {
		t.Errorf("awaits %+v, failures %+v", d.Awaits, d.Failures)
	}
}

// Writes that fail are an event when that begins and when it ends, and stand in the
// decision as long as it lasts.
func TestFailedWritesAreShown(t *testing.T) {
	r := newDriftRun(t, clusterupdate.Options{}, reconcile.VirtualOptions{Seed: 1}, nil)
	r.after(10 * time.Minute)
	r.events = nil
	failed := func() (out []clusterapi.EventType) {
		for _, e := range r.events {
			if e.Type == clusterupdate.EventFailed || e.Type == clusterupdate.EventRecovered {
				out = append(out, e.Type)
			}
		}
		return out
	}
	r.c.fault = func(call memory.Call) error {
		if call.Verb == "UpdateStatus" {
			return apierrors.NewInternalError(errInternal)
		}
		return nil
	}
	requestMissing(t, r)
	began := r.Now()
	r.after(20 * time.Minute)
	checktest.SameIn(t, "events", []clusterapi.EventType{clusterupdate.EventFailed}, failed())
	d := r.u.Explain()
	n := len(d.Failures)
	if n == 0 || d.Failures[n-1].Subject != "clusterversion/version" || d.Failures[n-1].Since != began || !strings.Contains(d.Failures[n-1].Message, errInternal.Error()) {
		t.Errorf("failures %+v, want the write's since %s", d.Failures, began)
	}
	r.c.fault = nil
	r.after(time.Minute)
	checktest.SameIn(t, "events", []clusterapi.EventType{clusterupdate.EventFailed, clusterupdate.EventRecovered}, failed())
	for _, f := range r.u.Explain().Failures {
		checktest.SameIn(t, "what fails", true, strings.HasPrefix(f.Subject, "release "))
	}
}
