package runlevel

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// TestDeletionEnds plays passes over manifests that delete an object, apply it, or
// both, with one Tracker. An object that is deleted keeps existing until the next
// pass, as one with a finalizer does.
func TestDeletionEnds(t *testing.T) {
	const (
		remove = `{apiVersion: v1, kind: Service, metadata: {name: s, namespace: ns, annotations: {release.openshift.io/delete: "true"}}}`
		apply  = `{apiVersion: v1, kind: Service, metadata: {name: s, namespace: ns, annotations: {}}}`
		once   = `{apiVersion: v1, kind: Service, metadata: {name: s, namespace: ns, annotations: {release.openshift.io/create-only: "true"}}}`
		other  = `{apiVersion: serving.example/v1, kind: Service, metadata: {name: s, namespace: ns, annotations: {}}}`
		config = `{apiVersion: a.example/v1, kind: Config, metadata: {name: cluster, annotations: {release.openshift.io/delete: "true"}}}`
		twin   = `{apiVersion: b.example/v1, kind: Config, metadata: {name: cluster, annotations: {}}}`
		twins  = `{apiVersion: b.example/v1, kind: Config, metadata: {name: cluster, annotations: {release.openshift.io/delete: "true"}}}`

		service = `service "ns/s"`
		cluster = `Config "cluster"`
	)
	type pass struct {
		state   State
		texts   []string
		deletes int
		pending []string
	}
	const updating, reconciling = Updating, Reconciling
	for _, tt := range []struct {
		name   string
		saved  string // what the Tracker is restored from
		exists []string
		passes []pass
	}{
		{"rolled back and updated again", "", []string{apply}, []pass{
			{updating, []string{remove}, 1, []string{service}},
			{updating, []string{apply}, 0, nil},
			{updating, []string{remove}, 1, []string{service}},
		}},
		{"created again only if it is gone", "", []string{apply}, []pass{
			{updating, []string{remove}, 1, []string{service}},
			{updating, []string{once}, 0, nil},
			{updating, []string{remove}, 1, []string{service}},
		}},
		{"deleted, then applied", "", []string{apply}, []pass{
			{updating, []string{remove, apply}, 1, nil},
			{updating, []string{remove, apply}, 0, nil},
			{reconciling, []string{remove, apply}, 0, nil},
		}},
		{"applied, then deleted", "", []string{apply}, []pass{
			{updating, []string{apply, remove}, 1, []string{service}},
			{updating, []string{apply, remove}, 0, nil},
			{reconciling, []string{apply, remove}, 0, nil},
		}},
		{"another group", "", []string{apply, config, twin}, []pass{
			{updating, []string{remove, config}, 2, []string{cluster, service}},
			{updating, []string{other, twin}, 0, []string{cluster, service}},
			{updating, []string{twins}, 1, []string{cluster, service}},
			{updating, []string{apply}, 0, []string{cluster}},
		}},
		{"saved without the group", `{"version":1,"deletions":[{"kind":"Config","name":"cluster"}]}`, []string{config}, []pass{
			{updating, []string{config}, 0, []string{cluster}},
			{updating, []string{`{apiVersion: a.example/v1, kind: Config, metadata: {name: cluster, annotations: {}}}`}, 0, nil},
			{updating, []string{config}, 1, []string{cluster}},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var exists []*unstructured.Unstructured
			for _, text := range tt.exists {
				u := object(t, text)
				u.SetUID("u")
				exists = append(exists, u)
			}
			api, tracker := newFake(exists...), NewTracker(nil)
			if tt.saved != "" {
				checktest.OK(t, json.Unmarshal([]byte(tt.saved), tracker))
			}
			for i, p := range tt.passes {
				api.calls = nil
				if _, err := Run(t.Context(), tasksOf(t, p.texts...), Options{
					API: api, State: p.state, Tracker: tracker, Workers: 1, Backoff: &Backoff{Steps: 1}}); err != nil {
					t.Fatalf("pass %d: %v", i+1, err)
				}
				deletes := 0
				for _, c := range api.writes() {
					if strings.HasPrefix(c, "Delete ") {
						deletes++
					}
				}
				if deletes != p.deletes {
					t.Errorf("pass %d: %d deletions, want %d", i+1, deletes, p.deletes)
				}
				if diff := cmp.Diff(p.pending, tracker.PendingDeletions()); diff != "" {
					t.Errorf("pass %d: pending (-want +got):\n%s", i+1, diff)
				}
				// What is saved is what is known.
				data := checktest.Get(json.Marshal(tracker))(t)
				tracker = NewTracker(nil)
				checktest.OK(t, json.Unmarshal(data, tracker))
			}
		})
	}
}
