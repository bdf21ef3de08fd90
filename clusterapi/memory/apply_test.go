package memory

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// TestMergeIsTheFieldManagers applies random objects in the names of two
// managers, and compares content and owners with those of the field manager.
func TestMergeIsTheFieldManagers(t *testing.T) {
	for _, text := range ownedObjects {
		var u map[string]any
		checktest.OK(t, yaml.Unmarshal([]byte(text), &u))
		base := checktest.Must(copyTree(u, nil, ""))
		gvk := schema.FromAPIVersionAndKind(u["apiVersion"].(string), u["kind"].(string))
		t.Run(gvk.Kind, func(t *testing.T) {
			k := builtin().kind(gvk)
			if k == nil {
				k = otherKind(gvk)
			}
			fast := 0
			for seed := range uint64(60) {
				fast += mergeRun(t, k, base.(map[string]any), rand.New(rand.NewPCG(seed, 1)))
			}
			checktest.FailIf(t, fast < 200, "%d applies without the field manager, of 600", fast)
		})
	}
}

func mergeRun(t *testing.T, k *kind, base map[string]any, draw *rand.Rand) (fast int) {
	t.Helper()
	var live *entry
	for step := range 10 {
		given := (&unstructured.Unstructured{Object: base}).DeepCopy().Object
		for range draw.IntN(3) {
			mutate(given, draw, 0)
		}
		manager := fmt.Sprint("m", draw.IntN(2))
		from := newRecord(k.gvk)
		if live != nil {
			from = k.record(live)
		}
		got, ok := k.merge(live, from, given, manager)
		want, err := k.applyTo(from, given, manager)
		if err != nil {
			checktest.FatalIf(t, ok, "step %d: the field manager refuses: %v", step, err)
			continue
		}
		who := actor{manager, metav1.ManagedFieldsOperationApply, ""}
		now := time.Unix(int64(1000+step), 0)
		stamp(want, live, now, who)
		next := want
		if ok {
			fast++
			stamp(got, live, now, who)
			if diff := cmp.Diff(ownersText(want.managed), ownersText(got.managed)); diff != "" {
				t.Fatalf("step %d, %s (-field manager +merge):\n%s", step, manager, diff)
			}
			if diff := cmp.Diff(content(want), content(got)); diff != "" {
				t.Fatalf("step %d, %s (-field manager +merge):\n%s", step, manager, diff)
			}
			next = got
		}
		e := &entry{obj: &unstructured.Unstructured{Object: content(next)}, managed: next.managed, kind: k}
		checktest.Must(encodeManaged(e, live, next))
		live = e
	}
	return fast
}

// content is what a record says, managedFields apart.
func content(r *record) map[string]any {
	out := maps.Clone(r.Object)
	if m, ok := out["metadata"].(map[string]any); ok {
		m = maps.Clone(m)
		delete(m, "managedFields")
		out["metadata"] = m
	}
	return out
}
