package preview_test

import (
	"context"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/dump"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/internal/objects"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/runlevel"
	"github.com/clusterupdate/clusterupdate/runlevel/preview"
)

func loadReal(tb testing.TB, name string) *manifest.Payload {
	tb.Helper()
	dir := filepath.Join(testdata.Dir(tb), name)
	p := checktest.Get(manifest.Load(context.Background(), os.DirFS(dir), manifest.LoadOptions{
		Image: "example.com/release@sha256:abc", Filter: manifest.DefaultFilter(),
	}))(tb)
	return p
}

var owner = &metav1.OwnerReference{Name: "version", UID: types.UID("uid")}

// apply makes a cluster that has a release.
func apply(tb testing.TB, p *manifest.Payload) *memory.Cluster {
	tb.Helper()
	c := memory.New(memory.Options{Lenient: true}) // aggregated APIs and others have no definition in a release
	res, err := runlevel.Run(tb.Context(), p.Tasks(), runlevel.Options{API: c, SkipChecks: true, Backoff: &runlevel.Backoff{Steps: 1}, Owner: owner})
	if err != nil {
		tb.Fatal(res, err)
	}
	return c
}

// counts are changes by action; kinds only of what is created or updated.
func counts(p *preview.Preview) map[preview.Action]int {
	out := make(map[preview.Action]int)
	for _, c := range p.Changes {
		out[c.Action]++
	}
	return out
}

// kindsOf counts the changes of an action by kind.
func kindsOf(p *preview.Preview, a preview.Action) map[string]int { return p.Summary()[a] }

// An update between two releases does what was measured independently: 806 tasks,
// of which 33 are ClusterOperators that are there already.
func TestRealUpdate(t *testing.T) {
	t.Parallel()
	old, target := loadReal(t, "payload-4.17.30"), loadReal(t, "payload-4.18.15")
	c := apply(t, old)
	cursor := c.Follow()
	defer cursor.Close()
	o := preview.Options{Reader: c, Payload: target, Running: old, Owner: owner, Descriptions: true}
	p := checktest.Get(preview.Run(t.Context(), target.Tasks(), o))(t)
	want := map[preview.Action]int{"Create": 26, "Update": 129, "Keep": 565 + 33, "Skip": 34, "Absent": 19, "Excluded": 34}
	if diff := cmp.Diff(want, counts(p)); diff != "" {
		t.Errorf("actions: %s", diff)
	}
	created, updated := kindsOf(p, preview.Create), kindsOf(p, preview.Update)
	for kind, n := range map[string]int{"CustomResourceDefinition": 12, "ClusterOperator": 1} {
		if created[kind] != n {
			t.Errorf("creates %d %s, want %d", created[kind], kind, n)
		}
	}
	for kind, n := range map[string]int{"CustomResourceDefinition": 64, "Deployment": 34, "ConfigMap": 11, "ImageStream": 9, "ClusterRole": 7} {
		if updated[kind] != n {
			t.Errorf("updates %d %s, want %d", updated[kind], kind, n)
		}
	}
	if n := kindsOf(p, "Keep")["ClusterOperator"]; n != 33 {
		t.Errorf("%d ClusterOperators are awaited", n)
	}
	fields, descriptions := 0, 0
	for _, c := range p.Changes {
		if c.Action == preview.Update {
			fields += len(c.Fields)
		}
		for _, s := range c.Schemas {
			fields += len(s.Fields)
			descriptions += s.Descriptions
		}
		if len(c.Stale)+len(c.Drift) > 0 {
			t.Errorf("%s: nobody but us has written it: stale %v, drift %v", c.Object, c.Stale, c.Drift)
		}
	}
	if descriptions != 2479 {
		t.Errorf("%d descriptions change", descriptions)
	}
	if fields != 3377 {
		t.Errorf("%d fields change", fields)
	}
	// 4.18 has renamed the CRD of the service CA.
	if len(p.Left) != 1 || p.Left[0].Object.Name != "servicecas.operator.openshift.io" || !*p.Left[0].Exists {
		t.Errorf("left %v", p.Left)
	}
	if change, ok := cursor.Next(); ok {
		t.Errorf("the cluster was written to: %v", change.Object().Key())
	}
	moved, err := p.Check(t.Context(), c)
	if err != nil || len(moved) > 0 {
		t.Errorf("does not hold at once: %v %v", moved, err)
	}
}

// A release over itself changes nothing.
func TestRealSame(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"payload-4.17.30", "payload-4.18.15"} {
		if israce.Enabled && name != "payload-4.18.15" {
			continue // it takes long
		}
		p := loadReal(t, name)
		o := preview.Options{Reader: apply(t, p), Payload: p, Running: p, Owner: owner}
		got := checktest.Get(preview.Run(t.Context(), p.Tasks(), o))(t)
		for _, c := range got.Changes {
			switch c.Action {
			case "Keep", "Skip", "Absent", "Excluded", "Unmanaged":
			default:
				t.Errorf("%s: %s %s %v %v", name, c.Action, c.Object, c.Fields, c.Reason)
			}
		}
		if len(got.Images)+len(got.Access)+len(got.Left) > 0 {
			t.Errorf("%s: %d images, %d rights, %d objects left", name, len(got.Images), len(got.Access), len(got.Left))
		}
	}
}

// A recording of a cluster gives the preview that the cluster itself gives, but
// for Secrets, which are not recorded.
func TestRecorded(t *testing.T) {
	t.Parallel()
	if israce.Enabled {
		t.Skip("it takes long, and nothing here runs at the same time as something else")
	}
	old, target := loadReal(t, "payload-4.17.30"), loadReal(t, "payload-4.18.15")
	c := apply(t, old)
	dir := filepath.Join(t.TempDir(), "recording")
	kinds := make(map[schema.GroupVersionKind]bool)
	for _, m := range slices.Concat(old.Manifests, target.Manifests) {
		kinds[m.GVK()] = true
	}
	checktest.OK(t, dump.Record(t.Context(), c, dir, dump.RecordOptions{Kinds: slices.Collect(maps.Keys(kinds))}))
	recording := open(t, dir)
	text := func(r clusterapi.Reader) (*preview.Preview, string) {
		p := checktest.Get(preview.Run(t.Context(), target.Tasks(), preview.Options{Reader: r, Payload: target, Running: old, Owner: owner}))(t)
		var out strings.Builder
		checktest.OK(t, p.Text(&out, preview.TextOptions{}))
		return p, out.String()
	}
	live, wanted := text(c)
	recorded, got := text(recording)
	if diff := cmp.Diff(counts(live), counts(recorded)); diff != "" {
		t.Errorf("actions (-live +recorded): %s", diff)
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Errorf("text (-live +recorded): %.2000s", diff)
	}
	if moved, err := live.Check(t.Context(), recording); err != nil || len(moved) > 0 {
		t.Errorf("the cluster's preview does not hold for its recording: %d %v", len(moved), err)
	}
}

func open(t *testing.T, dir string) *dump.Recording {
	t.Helper()
	r := checktest.Get(dump.Open(t.Context(), os.DirFS(dir), dump.Options{}))(t)
	return r
}

// Dumps of real clusters hold few kinds: what they do not have is unknown, and
// the ClusterOperators that they have are awaited.
func TestRealDumps(t *testing.T) {
	t.Parallel()
	target := loadReal(t, "payload-4.18.15")
	for _, tt := range []struct {
		name      string
		operators int // that the dump has, and the release too
	}{
		{"4.14.1-degraded", 33}, {"4.14.1-workers-started-updating-multiple-pools", 33}, {"4.15.0-ec2-early", 33}, {"not-upgrading", 33}, {"recommend", 0},
	} {
		if israce.Enabled && tt.operators > 0 && tt.name != "not-upgrading" {
			continue // it takes long
		}
		t.Run(tt.name, func(t *testing.T) {
			recording := open(t, filepath.Join(testdata.Dir(t), "clusters", tt.name))
			p := checktest.Get(preview.Run(t.Context(), target.Tasks(), preview.Options{Reader: recording, Payload: target, Owner: owner}))(t)
			operators, _ := clusterapi.List[configv1.ClusterOperator](t.Context(), recording, clusterapi.ListOptions{})
			collected := make(map[string]bool)
			for _, o := range operators {
				collected["ClusterOperator "+o.Name] = true
			}
			kept, created := 0, 0
			for _, c := range p.Changes {
				switch {
				case c.Action == "Excluded":
				case c.Object.Kind == "ClusterOperator" && tt.operators > 0 && c.Action == preview.Create:
					created++ // all are collected, and this one is not there
				case collected[c.Object.String()]:
					if kept++; c.Action != "Keep" || len(c.Awaited) == 0 {
						t.Errorf("%s: %s %s", c.Object, c.Action, c.Reason)
					}
				case c.Action != preview.Unknown || c.Reason == "":
					t.Errorf("%s: %s %s", c.Object, c.Action, c.Reason)
				}
			}
			if kept != tt.operators || created != min(kept, 1) || len(p.Unknowns) < 100 {
				t.Errorf("%d operators are kept, %d created, %d calls of oc adm inspect are named", kept, created, len(p.Unknowns))
			}
		})
	}
}

var namespaces = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}

// Where kinds are missing, whichever they are, a preview says the same as with
// all of them, or that it does not know.
func TestCut(t *testing.T) {
	t.Parallel()
	old, target := loadReal(t, "payload-4.17.30"), loadReal(t, "payload-4.18.15")
	c := apply(t, old)
	for _, m := range old.Manifests { // of operators, and of Kubernetes itself
		ns := m.Identity().Namespace
		if _, err := c.Get(t.Context(), namespaces, clusterapi.Key("", ns)); ns != "" && apierrors.IsNotFound(err) {
			checktest.OK(t, c.Load(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": ns}}}))
		}
	}
	for _, mode := range []runlevel.Mode{runlevel.ApplyServerSide, runlevel.ApplyMerge} {
		if israce.Enabled && mode == runlevel.ApplyMerge {
			continue // it takes long
		}
		o := preview.Options{Reader: c, Payload: target, Running: old, Owner: owner, Mode: mode}
		whole := checktest.Get(preview.Run(t.Context(), target.Tasks(), o))(t)
		actions := make(map[preview.Object]preview.Action)
		kinds := make(map[string]bool)
		for _, change := range whole.Changes {
			actions[change.Object] = change.Action
			kinds[change.Object.Kind] = true
		}
		seeds := uint64(8)
		if israce.Enabled {
			seeds = 1
		}
		for seed := range seeds {
			random := rand.New(rand.NewPCG(seed, 0))
			missing := make(map[string]error)
			for _, kind := range slices.Sorted(maps.Keys(kinds)) {
				if random.Float64() < 0.1+0.8*float64(seed)/float64(seeds) {
					missing[kind] = clusterapi.ErrNotCollected
				}
			}
			o.Reader = reader{c, missing, nil}
			cut := checktest.Get(preview.Run(t.Context(), target.Tasks(), o))(t)
			unknown := 0
			for _, change := range cut.Changes {
				switch want := actions[change.Object]; {
				case change.Action == preview.Unknown && missing[change.Object.Kind] != nil:
					unknown++
				case change.Action != want:
					t.Errorf("%s, seed %d: %s: %s (%s), want %s", mode, seed, change.Object, change.Action, change.Reason, want)
				}
			}
			if unknown == 0 || len(cut.Unknowns) == 0 {
				t.Errorf("%s, seed %d: %d are unknown, %d calls to collect them", mode, seed, unknown, len(cut.Unknowns))
			}
		}
	}
}

// What a preview tells equals what then happens: each object afterwards, and that
// nothing else is written.
func TestMergeTrue(t *testing.T) {
	t.Parallel()
	data := testdata.Dir(t)
	for _, tt := range []struct {
		name     string
		from, to fs.FS
	}{
		{"sample", sample.From(), sample.To()},
		{"4.17.30 to 4.18.15", os.DirFS(filepath.Join(data, "payload-4.17.30")), os.DirFS(filepath.Join(data, "payload-4.18.15"))},
	} {
		if israce.Enabled && tt.name != "sample" {
			continue // it takes long
		}
		t.Run(tt.name, func(t *testing.T) {
			load := func(f fs.FS) *manifest.Payload {
				p := checktest.Get(manifest.Load(t.Context(), f, manifest.LoadOptions{Image: "example.com/release@sha256:abc", Filter: manifest.DefaultFilter()}))(t)
				return p
			}
			running, target := load(tt.from), load(tt.to)
			written := map[string]bool{}
			c := memory.New(memory.Options{Lenient: true, Intercept: func(ctx context.Context, call memory.Call, do func(context.Context) error) error {
				if call.Verb != "Get" && call.Verb != "List" && call.Verb != "Delete" {
					written[call.GVK.Kind+" "+call.Key.String()] = true
				}
				return do(ctx)
			}})
			update := func(p *manifest.Payload) {
				t.Helper()
				res, err := runlevel.Run(t.Context(), p.Tasks(), runlevel.Options{API: c, Mode: runlevel.ApplyMerge, SkipChecks: true, Workers: 1, Backoff: &runlevel.Backoff{Steps: 1}, Owner: owner})
				if err != nil {
					t.Fatal(res, err)
				}
			}
			update(running)
			meddled := meddle(t, c, running)
			p := checktest.Get(preview.Run(t.Context(), target.Tasks(), preview.Options{Reader: c, Mode: runlevel.ApplyMerge, Payload: target, Running: running, Owner: owner}))(t)
			clear(written)
			update(target)
			drifted := 0
			for i := range p.Changes {
				change := &p.Changes[i]
				drifted += min(len(change.Drift), 1)
				live, err := c.Get(t.Context(), change.Object.GroupVersionKind, change.Object.NamespacedName)
				if err != nil && !apierrors.IsNotFound(err) {
					t.Fatal(err)
				}
				if change.Action == "Excluded" {
					continue
				}
				if diff := cmp.Diff(contentOf(live), contentOf(change.After())); diff != "" {
					t.Errorf("%s %s: -is +told %s", change.Object, change.Action, diff)
				}
				writes := written[change.Object.Kind+" "+change.Object.NamespacedName.String()]
				if want := change.Action == preview.Create || change.Action == preview.Update; writes != want && !(change.Object.Kind == "ClusterOperator" && want) {
					t.Errorf("%s %s: written %t", change.Object, change.Action, writes)
				}
			}
			if meddled == 0 || drifted < meddled/2 {
				t.Errorf("%d objects meddled with, and %d told", meddled, drifted)
			}
			t.Log(counts(p), meddled, "meddled with,", drifted, "drifted")
		})
	}
}

// meddle changes objects as administrators and controllers do: containers are added to
// Deployments, data to ConfigMaps, labels to everything.
func meddle(t *testing.T, c *memory.Cluster, p *manifest.Payload) (n int) {
	t.Helper()
	for i, m := range p.Manifests {
		u, err := c.Get(t.Context(), m.GVK(), clusterapi.KeyOf(m.Object()))
		if err != nil || i%3 > 0 {
			continue
		}
		labels := u.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels["theirs"] = "x"
		u.SetLabels(labels)
		switch u.GetKind() {
		case "Deployment":
			list, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
			_ = unstructured.SetNestedSlice(u.Object, append(list, map[string]any{"name": "sidecar", "image": "theirs"}), "spec", "template", "spec", "containers")
			n++
		case "ConfigMap":
			_ = unstructured.SetNestedField(u.Object, "theirs", "data", "theirs")
		case "ClusterRole":
			rules, _, _ := unstructured.NestedSlice(u.Object, "rules")
			_ = unstructured.SetNestedSlice(u.Object, append(rules, map[string]any{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{"get"}}), "rules")
			n++
		}
		checktest.Get(c.Update(t.Context(), u, clusterapi.UpdateOptions{FieldManager: "someone"}))(t)
	}
	return n
}

// contentOf is an object without what a server sets anew at each write.
func contentOf(u *unstructured.Unstructured) map[string]any {
	if u == nil {
		return nil
	}
	return objects.WithoutServerFields(u).Object
}
