package dump_test

import (
	"context"
	"errors"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/dump"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

const pods = `
-- namespaces/a/core/pods.yaml --
{apiVersion: v1, kind: PodList, items: [
  {metadata: {name: p1, namespace: a, labels: {app: x}}, spec: {nodeName: n1}},
  {metadata: {name: p2, namespace: a, labels: {app: z}}, spec: {nodeName: n2}},
  {metadata: {name: p3, namespace: a, labels: {app: z}}, spec: {nodeName: n1}}]}
-- namespaces/b/core/pods.yaml --
{apiVersion: v1, kind: PodList, items: [{metadata: {name: p1, namespace: b, labels: {app: z, odd: 7}}, spec: {nodeName: n1}}]}
-- cluster-scoped-resources/config.openshift.io/nodes.yaml --
{apiVersion: v1, kind: NodeList, items: [{metadata: {name: n1}}]}
`

func TestSelection(t *testing.T) {
	r := mustOpen(t, files(pods), dump.Options{})
	z := labels.SelectorFromSet(labels.Set{"app": "z"})
	for _, tc := range []struct {
		kind string
		opts clusterapi.ListOptions
		want string
	}{
		{"v1 Pod", clusterapi.ListOptions{Namespace: "a"}, "p1 p2 p3"},
		{"v1 Pod", clusterapi.ListOptions{Namespace: "a", Labels: z}, "p2 p3"},
		{"v1 Pod", clusterapi.ListOptions{Namespace: "a", Labels: z, NodeName: "n1"}, "p3"},
		{"v1 Pod", clusterapi.ListOptions{Namespace: "a", Limit: 2}, "list of Pod: more than 2 objects (limit ListOptions.Limit)"},
		{"v1 Pod", clusterapi.ListOptions{Namespace: "a", Labels: z, Limit: 2}, "p2 p3"},
		// Where Limit and partial coverage meet, partial wins.
		{"v1 Pod", clusterapi.ListOptions{Limit: 1}, "p1 p2 p3 p1 Pod: all or some are not collected in this recording: namespaces c, and perhaps others"},
		{"v1 Pod", clusterapi.ListOptions{NodeName: "n2"}, "p2 Pod: all or some are not collected in this recording: namespaces c, and perhaps others"},
		{"v1 Pod", clusterapi.ListOptions{Namespace: "b", Labels: z}, "p1"},
		{"v1 Node", clusterapi.ListOptions{}, "n1"},
		{"v1 Node", clusterapi.ListOptions{Namespace: "a"}, ""},
		{"v1 Node", clusterapi.ListOptions{Namespace: "a", Limit: 1}, ""},
	} {
		tree := files(pods + "-- namespaces/c/c.yaml --\n{apiVersion: v1, kind: Namespace, metadata: {name: c}}")
		if tc.kind == "v1 Pod" {
			r = mustOpen(t, tree, dump.Options{})
		}
		list, err := r.List(t.Context(), gvk(tc.kind), tc.opts)
		shared, sharedErr := r.ListShared(t.Context(), gvk(tc.kind), tc.opts)
		got := ""
		if list != nil {
			for i := range list.Items {
				got += list.Items[i].GetName() + " "
				checktest.Equal(t, list.Items[i].GetName(), shared[i].Name(), "shared[%d]", i)
			}
		}
		if err != nil {
			got += err.Error() + " "
		}
		checktest.FailIf(t, got != tc.want && got != tc.want+" ",
			"%s %+v: got %q, want %q", tc.kind, tc.opts, got, tc.want)
		checktest.FailIf(t, (err == nil) != (sharedErr == nil) || err != nil && err.Error() != sharedErr.Error(),
			"errors %v and %v", err, sharedErr)
	}
}

// A cluster-scoped object is found whatever namespace the key has.
func TestGetOfAClusterScopedObject(t *testing.T) {
	r := mustOpen(t, files(pods), dump.Options{})
	check(t, r, "get v1 Node a/n1: found\nget v1 Node a/n2: NotFound\nget v1 Pod p1: NotCollected\nget v1 Pod c/p1: NotCollected")
}

// Objects belong to the caller; shared ones are the same each time, and typed
// once.
func TestOwnership(t *testing.T) {
	r := mustOpen(t, files(pods), dump.Options{})
	key := clusterapi.Key("a", "p1")
	u := checktest.Must(r.Get(t.Context(), gvk("v1 Pod"), key))
	u.SetLabels(map[string]string{"app": "changed"})
	again, err := r.Get(t.Context(), gvk("v1 Pod"), key)
	checktest.FailIf(t, err != nil || again.GetLabels()["app"] != "x", "%v, %v", again, err)
	one := checktest.Must(clusterapi.GetShared(t.Context(), r, gvk("v1 Pod"), key))
	two, err := clusterapi.GetShared(t.Context(), r, gvk("v1 Pod"), key)
	checktest.FailIf(t, err != nil || one != two, "another object: %v", err)
	if r.Problems() == nil {
		return
	}
	t.Error("problems")
}

// A wrapper that embeds a recording is asked itself.
func TestWrapper(t *testing.T) {
	w := &wrapper{Recording: mustOpen(t, files(pods), dump.Options{})}
	checktest.ErrorIs(t, errWrapped, checktest.Err(
		clusterapi.List[policyv1.PodDisruptionBudget](t.Context(), w, clusterapi.ListOptions{})))
}

var errWrapped = errors.New("wrapped")

type wrapper struct{ *dump.Recording }

func (w *wrapper) List(context.Context, schema.GroupVersionKind, clusterapi.ListOptions) (*unstructured.UnstructuredList, error) {
	return nil, errWrapped
}

func TestReadsHonourTheirContext(t *testing.T) {
	r := mustOpen(t, files(pods), dump.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, question := range []string{"get v1 Pod a/p1", "list v1 Pod", "get v1 Nothing x"} {
		checktest.Equal(t, context.Canceled.Error(), answer(ctx, r, question), "%s", question)
	}
}
