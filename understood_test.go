package clusterupdate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// newerAPI is a cluster whose definition of a ClusterVersion has more fields and
// values: it shows them in the request.
type newerAPI struct {
	*memory.Cluster
	fields map[string]any
}

func (n *newerAPI) Get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	u, err := n.Cluster.Get(ctx, gvk, key)
	if err != nil || gvk.Kind != "ClusterVersion" {
		return u, err
	}
	if desired, ok, _ := unstructured.NestedMap(u.Object, "spec", "desiredUpdate"); ok {
		maps.Copy(desired, n.fields)
		err = unstructured.SetNestedField(u.Object, desired, "spec", "desiredUpdate")
	}
	return u, err
}

func (n *newerAPI) GetShared(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*clusterapi.Object, error) {
	if gvk.Kind != "ClusterVersion" {
		return n.Cluster.GetShared(ctx, gvk, key)
	}
	u, err := n.Get(ctx, gvk, key)
	if err != nil {
		return nil, err
	}
	return clusterapi.NewObject(u), nil
}

// TestNotUnderstood: a request with something that this version does not know starts
// nothing, whatever else it names; the cluster is kept as it is, and a started update
// goes on.
func TestNotUnderstood(t *testing.T) {
	const unknown = "Forbidden: not understood by this version"
	for name, tt := range map[string]struct {
		fields map[string]any
		fault  string
	}{
		"another mode":         {map[string]any{"mode": "Other"}, "spec.desiredUpdate.mode: " + unknown},
		"unknown field":        {map[string]any{"window": "tonight"}, "spec.desiredUpdate.window: " + unknown},
		"unknown architecture": {map[string]any{"architecture": "arm64"}, "spec.desiredUpdate.architecture: " + unknown},
		"in accepted risks":    {map[string]any{"acceptRisks": []any{map[string]any{"name": "A", "until": "noon"}}}, "spec.desiredUpdate.acceptRisks[0].until: " + unknown},
	} {
		for i, request := range []configv1.Update{
			{Version: sample.ToVersion},
			{Version: sample.ToVersion, Image: sample.ToImage, Force: true},
		} {
			for _, auto := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %d auto %v", name, i, auto), func(t *testing.T) {
					api := &newerAPI{fields: tt.fields}
					withSample(t, func(o *clusterupdate.Options) { api.Cluster = o.API.(*memory.Cluster); o.API, o.Auto = api, auto }, func(s *sampleTest) {
						s.request(s.T, request)
						s.syncs(1)
						time.Sleep(time.Hour)
						s.sync()
						s.wantHistory("4.20.3 Completed")
						if got := condition(s.version(s), clusterversion.ConditionInvalid); !strings.Contains(got, tt.fault) || !strings.HasPrefix(got, "True InvalidClusterVersion: ") {
							s.Errorf("Invalid is %q", got)
						}
						if why := s.u.Explain().Resolution.Why; !strings.Contains(why, tt.fault) {
							s.Errorf("why is %q", why)
						}
						if got := s.saw(clusterupdate.EventRequestIgnored); len(got) != 1 {
							s.Errorf("told %q", got)
						}
						if n := len(s.version(s).Status.AvailableUpdates); n != 2 {
							s.Errorf("%d available updates", n)
						}
						// What the cluster runs is kept all the same.
						key := clusterapi.Key("openshift-dns-operator", "dns-operator")
						checktest.OK(s, s.Delete(s.Context(), deployments, key, clusterapi.DeleteOptions{}))
						time.Sleep(time.Hour)
						s.sync()
						checktest.Good(s, checktest.Err(s.Get(s.Context(), deployments, key)))
						// Without that, the request is what it says.
						api.fields = nil
						if r := s.syncs(5); !r.Done {
							s.Error(r.Failure)
						}
						s.wantHistory(completedHistory)
						s.wantCondition(clusterversion.ConditionInvalid, "")
					})
				})
			}
		}
	}
}

// TestNotUnderstoodInMidUpdate: an update that was accepted goes on, and is not turned
// around, by a request that is not understood, in the same process and in a later one.
func TestNotUnderstoodInMidUpdate(t *testing.T) {
	for _, image := range []string{sample.FromImage, sample.ToImage} {
		for _, restart := range []bool{false, true} {
			api := &newerAPI{}
			withSample(t, func(o *clusterupdate.Options) { api.Cluster = o.API.(*memory.Cluster); o.API = api }, func(s *sampleTest) {
				s.hold["dns"] = true
				s.request(s.T, configv1.Update{Version: sample.ToVersion})
				s.syncs(2)
				api.fields = map[string]any{"mode": "Other"}
				s.request(s.T, configv1.Update{Image: image, Force: true})
				s.syncs(2)
				if restart {
					s.restart(func(o *clusterupdate.Options) { o.API = api })
				}
				s.wantHistory("4.21.1 Partial, 4.20.3 Completed")
				s.hold["dns"] = false
				s.reportAll("dns")
				r := s.syncs(5)
				checktest.Equal(s, image == sample.ToImage, r.Done, "done, unless another release is asked for; %v", r.Failure)
				s.wantHistory(completedHistory)
			})
		}
	}
}

// lifeOf has an Updater look after a cluster with a ClusterVersion of this spec and
// status for some minutes. It returns the ClusterVersion, nil if it cannot be
// decoded, and the errors of the Updater.
func lifeOf(t testing.TB, releases []*toyRelease, spec, status any) (*configv1.ClusterVersion, []error) {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", "metadata": map[string]any{"name": "version"}, "spec": spec, "status": status,
	}}
	cluster := memory.NewOpenShift(memory.Options{})
	if err := cluster.Load(u); err != nil {
		return nil, nil // an API server would not have it either
	}
	clock := reconcile.NewClock(toyStart)
	updater := checktest.Get(clusterupdate.New(clusterupdate.Options{
		API: cluster, Payloads: payloadsOf(releases), Graph: toyGraph(t, releases), Verifier: toyVerifier(releases), Clock: clock, Interval: time.Minute,
		Own: releases[0].payload.Release,
	}))(t)
	var errs []error
	v := reconcile.NewVirtual(reconcile.VirtualOptions{Cluster: cluster, Clock: clock, Seed: 1, Observe: func(e clusterapi.Event) {
		if e.Err != nil {
			errs = append(errs, e.Err)
		}
	}}, updater.Process())
	defer v.Close()
	checktest.Good(t, v.RunUntil(toyStart.Add(3*time.Minute)))
	for _, err := range errs {
		if fault := new(clusterapi.PanicError); errors.As(err, &fault) {
			t.Errorf("%v\n%s", err, fault.Stack)
		}
	}
	cv, err := clusterapi.Get[configv1.ClusterVersion](t.Context(), cluster, clusterapi.Key("", "version"))
	if err != nil {
		return nil, append(errs, err)
	}
	seen := map[configv1.ClusterStatusConditionType]bool{}
	for _, c := range cv.Status.Conditions {
		if seen[c.Type] && len(errs) == 0 {
			t.Errorf("condition %s stands twice", c.Type)
		}
		seen[c.Type] = true
	}
	return cv, errs
}

// FuzzClusterVersion: whatever is in the object, the Updater decides, and says what it
// cannot read.
func FuzzClusterVersion(f *testing.F) {
	for _, seed := range []string{
		`{"spec":{"clusterID":"8d4c5c1a-8e0e-4bd9-9d5d-8d2a4c9f7f01","desiredUpdate":{"version":"1.0.1"}},"status":{"history":[{"state":"Completed","version":"1.0.0","image":"x","startedTime":"2026-01-01T00:00:00Z","completionTime":null,"verified":false}],"availableUpdates":null,"desired":{"version":"1.0.0","image":"x"},"observedGeneration":1,"versionHash":""}}`,
		`{"spec":{"channel":"c","upstream":":","overrides":[{"kind":"Deployment","group":"apps","namespace":"toy","name":"alpha","unmanaged":true}],"capabilities":{"baselineCapabilitySet":"None","additionalEnabledCapabilities":["x"]}}}`,
		`{"spec":{"desiredUpdate":{"architecture":"Multi","version":"v1","image":"i"}},"status":{"conditions":[{"type":"Progressing","status":"Maybe"}],"conditionalUpdates":[{"release":{"version":"1.0.1"},"risks":[]}],"history":[{"state":"Odd"}]}}`,
		`{"spec":"x","status":[1]}`, `{"spec":{"desiredUpdate":7}}`, `{}`,
	} {
		f.Add([]byte(seed))
	}
	releases := toyReleases(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		var object struct{ Spec, Status any }
		if json.Unmarshal(data, &object) != nil {
			return
		}
		lifeOf(t, releases, object.Spec, object.Status)
	})
}

// What cannot be read is told with its place, and what is large is borne.
func TestOddClusterVersion(t *testing.T) {
	releases := toyReleases(t)
	entry := func(version, image string) map[string]any {
		return map[string]any{"state": "Completed", "version": version, "image": image, "startedTime": "2025-01-01T00:00:00Z", "completionTime": "2025-01-01T01:00:00Z", "verified": true}
	}
	var long []any
	for i := range 1000 {
		long = append(long, entry(fmt.Sprintf("0.%d.%d", i/100, i%100), fmt.Sprintf("old@%d", i)))
	}
	long[0] = entry("1.0.0", releases[0].payload.Release.Image)
	for _, tt := range []struct {
		name         string
		spec, status any
		err          string
	}{
		{name: "spec is a text", spec: "x", err: "spec: got a JSON string"},
		{name: "request is a number", spec: map[string]any{"desiredUpdate": int64(7)}, err: "spec.desiredUpdate: got a JSON number"},
		{name: "history is a text", status: map[string]any{"history": "x"}, err: "status.history: got a JSON string"},
		{name: "a time is not one", status: map[string]any{"history": []any{map[string]any{"startedTime": "soon"}}}, err: "status.history[0].startedTime"},
		{name: "null lists", status: map[string]any{"history": nil, "availableUpdates": nil, "conditions": nil, "conditionalUpdates": nil}},
		{name: "unknown words", status: map[string]any{"history": []any{map[string]any{"state": "Odd", "version": "1.0.0", "image": releases[0].payload.Release.Image, "startedTime": "2025-01-01T00:00:00Z", "completionTime": nil, "verified": false}},
			"conditions": []any{map[string]any{"type": "Progressing", "status": "Maybe", "lastTransitionTime": "2025-01-01T00:00:00Z"}}}},
		{name: "a long history", status: map[string]any{"history": long}},
		{name: "a long text", spec: map[string]any{"channel": strings.Repeat("x", 1<<20)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cv, errs := lifeOf(t, releases, tt.spec, tt.status)
			text := fmt.Sprint(errs)
			if tt.err != "" && !strings.Contains(text, tt.err) || tt.err == "" && cv == nil {
				t.Errorf("errors %.600s", text)
			}
			if tt.err == "" && (len(cv.Status.History) == 0 || len(cv.Status.History) > 100) {
				t.Errorf("%d entries of history", len(cv.Status.History))
			}
		})
	}
}
