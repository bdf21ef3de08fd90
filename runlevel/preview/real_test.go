package preview_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
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
