package dump_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/dump"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func parse(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = u.UnmarshalJSON(data)
	}
	checktest.OK(t, err)
	return u
}

func clusterOf(t testing.TB, texts ...string) *memory.Cluster {
	t.Helper()
	c := memory.New(memory.Options{Lenient: true})
	for _, text := range texts {
		checktest.OK(t, c.Load(parse(t, text)))
	}
	return c
}

// record records r and opens what was written.
func record(t testing.TB, r clusterapi.Reader, o dump.RecordOptions) (*dump.Recording, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "recording")
	checktest.OK(t, dump.Record(t.Context(), r, dir, o))
	opened := checktest.Must(dump.Open(t.Context(), os.DirFS(dir), dump.Options{}))
	return opened, dir
}

func TestRecordRedacts(t *testing.T) {
	c := clusterOf(t, `
apiVersion: v1
kind: Secret
metadata: {namespace: ns, name: s, annotations: {openshift.io/token-secret.value: word, kubectl.kubernetes.io/last-applied-configuration: word, other: stays}}
data: {password: aHVzaA==, tls.crt: cHVibGlj, tls.key: aHVzaA==}
`, `
apiVersion: config.openshift.io/v1
kind: Proxy
metadata: {name: cluster, annotations: {kubectl.kubernetes.io/last-applied-configuration: "http://me:hush@before"}}
spec: {httpProxy: "http://me:hush@proxy:3128/a"}
status: {httpsProxy: "https://me:hush2@proxy:3128"}
`, `
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: ns, name: d}
spec: {template: {spec: {containers: [{name: c, env: [{name: HTTP_PROXY, value: "http://me:hush@proxy:3128/a"}]}]}}}
`, `
apiVersion: route.openshift.io/v1
kind: Route
metadata: {namespace: ns, name: r}
spec: {tls: {key: hush, certificate: public}}
`, `
apiVersion: machineconfiguration.openshift.io/v1
kind: ControllerConfig
metadata: {name: c}
spec: {internalRegistryPullSecret: aHVzaA==}
`, `
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata: {name: m}
spec: {config: {storage: {files: [{path: /a, contents: {source: "data:,hush"}, append: [{source: "data:,hush"}]}]}}}
`)
	route := schema.GroupVersionKind{Group: "route.openshift.io", Version: "v1", Kind: "Route"}
	r, dir := record(t, c, dump.RecordOptions{Kinds: []schema.GroupVersionKind{route}})
	checktest.OK(t, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		for _, word := range []string{"hush", "aHVzaA", ": word"} {
			checktest.FailIf(t, strings.Contains(string(data), word), "%s has %q:\n%s", name, word, data)
		}
		return err
	}))
	secret, err := r.Get(t.Context(), schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, clusterapi.Key("ns", "s"))
	checktest.OK(t, err)
	want := map[string]any{"password": "4 bytes long", "tls.crt": "cHVibGlj", "tls.key": "4 bytes long"}
	if diff := cmp.Diff(want, secret.Object["data"]); diff != "" || !dump.Redacted(secret) || secret.GetAnnotations()["other"] != "stays" {
		t.Error(diff)
	}
	proxy, err := r.Get(t.Context(), schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: "Proxy"}, clusterapi.Key("", "cluster"))
	checktest.OK(t, err)
	got, _, _ := unstructured.NestedString(proxy.Object, "spec", "httpProxy")
	checktest.FailIf(t, got != "http://me:****@proxy:3128/a", "%v", got)
	checktest.FailIf(t, len(r.Problems()) > 0, "%v", r.Problems())
	kept, _ := record(t, c, dump.RecordOptions{FileContents: true})
	m, err := kept.Get(t.Context(), schema.GroupVersionKind{Group: "machineconfiguration.openshift.io", Version: "v1", Kind: "MachineConfig"}, clusterapi.Key("", "m"))
	if err != nil || !strings.Contains(fmt.Sprint(m.Object), "data:,hush") {
		t.Error(m, err)
	}
}

// refusing is a reader whose lists fail.
type refusing struct {
	clusterapi.Reader
	list func(ctx context.Context, gvk schema.GroupVersionKind) error
}

func (r refusing) List(ctx context.Context, gvk schema.GroupVersionKind, o clusterapi.ListOptions) (*unstructured.UnstructuredList, error) {
	if err := r.list(ctx, gvk); err != nil {
		return nil, err
	}
	return r.Reader.List(ctx, gvk, o)
}

func TestRecordErrors(t *testing.T) {
	c := clusterOf(t, "apiVersion: v1\nkind: Node\nmetadata: {name: node-1}\n", "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: ns}\n")
	nodes, secrets := schema.GroupVersionKind{Version: "v1", Kind: "Node"}, schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	t.Run("forbidden", func(t *testing.T) {
		r, dir := record(t, refusing{c, func(_ context.Context, gvk schema.GroupVersionKind) error {
			if gvk == secrets {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", errors.New("no"))
			}
			return nil
		}}, dump.RecordOptions{})
		checktest.ErrorIs(t, clusterapi.ErrNotCollected, checktest.Err(
			r.Get(t.Context(), secrets, clusterapi.Key("ns", "s"))))
		if _, err := r.Get(t.Context(), nodes, clusterapi.Key("", "other")); !apierrors.IsNotFound(err) {
			t.Error(err)
		}
		data, err := os.ReadFile(filepath.Join(dir, "problems.txt"))
		if err != nil || !strings.Contains(string(data), "Secret: ") {
			t.Error(string(data), err)
		}
	})
	for name, fault := range map[string]error{"down": errors.New("down"), "cancelled": context.Canceled} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			err := dump.Record(ctx, refusing{c, func(_ context.Context, gvk schema.GroupVersionKind) error {
				if gvk != secrets {
					return nil
				}
				if errors.Is(fault, context.Canceled) {
					cancel()
				}
				return fault
			}}, filepath.Join(folder, "d"), dump.RecordOptions{})
			checktest.ErrorIs(t, fault, err)
			if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
				t.Error(left, err)
			}
		})
	}
	t.Run("exists", func(t *testing.T) {
		checktest.ErrorIs(t, fs.ErrExist, dump.Record(t.Context(), c, t.TempDir(), dump.RecordOptions{}))
	})
	t.Run("a name that leads elsewhere", func(t *testing.T) {
		folder := t.TempDir()
		odd := clusterOf(t, "apiVersion: v1\nkind: Node\nmetadata: {name: ../../n}\n")
		checktest.Fails(t, dump.Record(t.Context(), odd, filepath.Join(folder, "d"), dump.RecordOptions{}), "no error")
		if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
			t.Error(left, err)
		}
	})
}

func TestRecordTime(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	r, _ := record(t, clusterOf(t, "apiVersion: v1\nkind: Node\nmetadata: {name: node-1}\n"), dump.RecordOptions{Clock: clocktesting.NewFakePassiveClock(now)})
	checktest.FailIf(t, !r.Time().Equal(now), "%v", r.Time())
}

// A recording of a recording has its time and its alerts, and what the first assumed
// is assumed again.
func TestRecordOfRecording(t *testing.T) {
	first := mustOpen(t, files(`
-- must-gather.local.1/timestamp --
2026-01-02 03:04:05 +0000 UTC
2026-01-02 03:14:05 +0000 UTC
-- must-gather.local.1/x/cluster-scoped-resources/core/nodes/n1.yaml --
`+nodeNamed("n1")+`
-- must-gather.local.1/x/cluster-scoped-resources/config.openshift.io/clusteroperators.yaml --
{apiVersion: config.openshift.io/v1, kind: ClusterOperatorList, items: [{metadata: {name: dns}}]}
-- must-gather.local.1/x/monitoring/prometheus/rules.json --
{"data": {"groups": [{"rules": [{"alerts": [{"labels": {"alertname": "A"}, "state": "firing", "activeAt": "2026-01-02T03:00:00Z"}]}]}]}}
`), dump.Options{})
	for _, r := range []clusterapi.Reader{first, clusterapi.ReadOnly(first), memory.New(memory.Options{Base: first})} {
		second, _ := record(t, r, dump.RecordOptions{})
		for _, again := range []*dump.Recording{first, second} {
			check(t, again, `
				grade v1 Node: whole assumed
				grade config.openshift.io/v1 ClusterOperator: whole
				get v1 Node n2: NotFound
				grade machineconfiguration.openshift.io/v1 MachineConfigPool: none
				get storage.k8s.io/v1 StorageClass a: `+map[bool]string{true: "NotFound", false: "NotCollected"}[again == first])
		}
		checktest.FailIf(t, !second.Time().Equal(first.Time()), "time %s, want %s", second.Time(), first.Time())
		checktest.Same(t, checktest.Get(first.Firing(t.Context()))(t), checktest.Get(second.Firing(t.Context()))(t))
	}
}

// A recording of a cluster answers as the cluster did, and one of the recording
// as the recording.
func TestRecordProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		kinds := []schema.GroupVersionKind{}
		for _, k := range dump.Kinds() { // whose objects are not redacted
			older := k.Version == "v1alpha1" || k.Kind == "PreflightValidationOCP" && k.Version == "v1beta1"
			if !older && k.Kind != "Secret" && k.Kind != "CustomResourceDefinition" {
				kinds = append(kinds, k)
			}
		}
		// What may name a user and a password is redacted.
		plain := rapid.String().Filter(func(s string) bool { return !strings.Contains(s, "@") })
		c := memory.New(memory.Options{Lenient: true})
		for range rapid.IntRange(1, 20).Draw(rt, "objects") {
			k := rapid.SampledFrom(kinds).Draw(rt, "kind")
			u := &unstructured.Unstructured{Object: map[string]any{}}
			u.SetGroupVersionKind(k)
			u.SetName(rapid.StringMatching(`[a-z]{1,3}`).Draw(rt, "name"))
			switch k.Kind {
			case "ConfigMap", "Pod", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet", "Job", "ImagePolicy", "Lease", "OperatorGroup", "PodDisruptionBudget":
				u.SetNamespace(rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "namespace"))
			}
			u.Object["spec"] = map[string]any{"text": plain.Draw(rt, "text"), "number": rapid.Int64().Draw(rt, "number"), "fraction": 1.5}
			_ = c.Load(u) // twice the same name is refused
		}
		dir := checktest.Must(os.MkdirTemp("", "record"))
		defer os.RemoveAll(dir)
		var r clusterapi.Reader = c
		for i := range 2 {
			name := filepath.Join(dir, fmt.Sprint(i))
			checktest.OK(rt, dump.Record(t.Context(), r, name, dump.RecordOptions{}))
			opened := checktest.Must(dump.Open(t.Context(), os.DirFS(name), dump.Options{}))
			p := opened.Problems()
			checktest.FailIf(rt, len(p) > 0, "%v", p)
			r = opened
			for _, k := range kinds {
				for _, ns := range []string{"", "a", "c"} {
					want := checktest.Must(c.List(t.Context(), k, clusterapi.ListOptions{Namespace: ns}))
					got, err := r.List(t.Context(), k, clusterapi.ListOptions{Namespace: ns})
					checktest.FatalIf(rt, err != nil, "%s in %q: %v", k.Kind, ns, err)
					checktest.SameIn(rt, fmt.Sprintf("%s in %q", k.Kind, ns), want.Items, got.Items)
				}
				if _, err := r.Get(t.Context(), k, clusterapi.Key("a", "nobody")); !apierrors.IsNotFound(err) {
					rt.Error(err)
				}
			}
		}
	})
}
