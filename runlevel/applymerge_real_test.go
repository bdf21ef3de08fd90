package runlevel

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// writtenForEver are objects that each pass of ApplyMerge writes, as the
// cluster-version operator does. Real releases have none of them.
var writtenForEver = []struct{ reason, manifest string }{
	{"the server sets parallelism and completions, and what the manifest does not say is cleared", driftJob},
	{"the server adds the top-level key type", `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: ns}, data: {a: eA==}}`},
	{"the server moves stringData into data", `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: ns}, type: Opaque, stringData: {a: x}}`},
	{"the server adds the top-level key preemptionPolicy", `{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: p}, value: 1}`},
	{"the server sets a default within spec", `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: p}, spec: {matchConstraints: {resourceRules: [{apiGroups: [a], apiVersions: [v1], operations: [CREATE], resources: [b]}]}, validations: [{expression: "true"}]}}`},
}

func TestWrittenForEver(t *testing.T) {
	for _, tt := range writtenForEver {
		c := newCalled(t)
		for i, want := range []string{"Create", "Update", "Update"} {
			c.calls = nil
			_, err := Run(t.Context(), tasksOf(t, tt.manifest), Options{API: defaulting{c.Cluster}, Mode: ApplyMerge, Backoff: &Backoff{Steps: 1}, State: Initializing})
			if err != nil || len(c.calls) != 2 || !strings.HasPrefix(c.calls[1], want) {
				t.Errorf("%s: pass %d: %v, %v", tt.reason, i, c.calls, causeOf(err))
			}
		}
	}
}

// A release goes onto a cluster by merges, also in the place of another one, and
// further passes over it write nothing.
func TestApplyMergeReleases(t *testing.T) {
	t.Parallel()
	data := testdata.Dir(t)
	for _, tt := range []struct {
		name     string
		releases []fs.FS
	}{
		{"sample", []fs.FS{sample.From(), sample.To()}},
		{"4.17.30 to 4.18.15", []fs.FS{os.DirFS(filepath.Join(data, "payload-4.17.30")), os.DirFS(filepath.Join(data, "payload-4.18.15"))}},
	} {
		if israce.Enabled && tt.name != "sample" {
			continue // it takes long, and TestApplyMergeWatchReal has a real one
		}
		t.Run(tt.name, func(t *testing.T) {
			c := newCalled(t)
			api := defaulting{c.Cluster}
			for _, release := range tt.releases {
				p := checktest.Get(manifest.Load(t.Context(), release, manifest.LoadOptions{Image: "example.com/release@sha256:abc", Filter: manifest.DefaultFilter()}))(t)
				for _, co := range operatorsAt(t, p) {
					if old, err := c.Get(t.Context(), co.GroupVersionKind(), clusterapi.KeyOf(co)); err == nil {
						old.Object["status"] = co.Object["status"]
						_, err = c.UpdateStatus(t.Context(), old, clusterapi.UpdateOptions{})
						checktest.OK(t, err)
					} else if err := c.Load(co); err != nil {
						t.Fatal(err)
					}
				}
				tracker := NewTracker(nil)
				pass := func(state State) (writes []string) {
					t.Helper()
					c.calls = nil
					res, err := Run(t.Context(), p.Tasks(), Options{
						API: api, Mode: ApplyMerge, State: state, Tracker: tracker, Backoff: &Backoff{Steps: 1},
						Owner: &metav1.OwnerReference{Name: "version", UID: "uid"},
					})
					if err != nil || res.Done != res.Total {
						t.Fatalf("%s %s: %+v %v", p.Release.Version, state, res, causeOf(err))
					}
					for _, call := range c.calls {
						if !strings.HasPrefix(call, "Get ") {
							writes = append(writes, call)
						}
					}
					return writes
				}
				t.Log(p.Release.Version, len(pass(Updating)), "writes")
				pass(Reconciling) // metadata of ClusterOperators
				for _, state := range []State{Reconciling, Updating} {
					if writes := pass(state); len(writes) > 0 {
						t.Errorf("%s: %q", state, writes)
					}
				}
			}
		})
	}
}

// A pass over an unchanged release makes no call in this mode either.
func TestApplyMergeWatchReal(t *testing.T) {
	t.Parallel()
	p := loadReal(t, "payload-4.18.15")
	w := watchIn(t, ApplyMerge, p.Tasks(), append(operatorsAt(t, p),
		object(t, "{apiVersion: config.openshift.io/v1, kind: Proxy, metadata: {name: cluster}}"),
		object(t, "{apiVersion: config.openshift.io/v1, kind: Infrastructure, metadata: {name: cluster}}"))...)
	w.api = defaulting{w.c}
	w.settled()
}
