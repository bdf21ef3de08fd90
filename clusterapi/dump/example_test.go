package dump_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing/fstest"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/dump"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
)

// recorded is a small must-gather. A program has os.DirFS of a real one.
var recorded = fstest.MapFS{
	"must-gather.local.1/image/timestamp": {Data: []byte("2026-01-02 10:00:00 +0000 UTC m=+0.1\n2026-01-02 10:05:00 +0000 UTC m=+300.1\n")},
	"must-gather.local.1/image/cluster-scoped-resources/config.openshift.io/clusteroperators.yaml": {Data: []byte(`---
apiVersion: config.openshift.io/v1
items:
- metadata:
    name: dns
- metadata:
    name: etcd
kind: ClusterOperatorList
`)},
	"must-gather.local.1/image/namespaces/openshift-dns/policy/poddisruptionbudgets.yaml": {Data: []byte(`---
apiVersion: policy/v1
items:
- metadata:
    name: dns
    namespace: openshift-dns
kind: PodDisruptionBudgetList
`)},
	"must-gather.local.1/image/namespaces/openshift-etcd/core/configmaps/a.yaml": {Data: []byte(`---
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  namespace: openshift-etcd
`)},
}

// A recording is read as a cluster is.
func Example() {
	ctx := context.Background()
	r, err := dump.Open(ctx, recorded, dump.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	operators, err := clusterapi.List[configv1.ClusterOperator](ctx, r, clusterapi.ListOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, o := range operators {
		fmt.Println(o.Name)
	}
	fmt.Println("recorded at", r.Time())
	// Output:
	// dns
	// etcd
	// recorded at 2026-01-02 10:05:00 +0000 UTC
}

// Two answers to "it is not there": of the operators all were collected, of the
// ConfigMaps some.
func ExampleOpen() {
	ctx := context.Background()
	r, err := dump.Open(ctx, recorded, dump.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = clusterapi.Get[configv1.ClusterOperator](ctx, r, clusterapi.Key("", "storage"))
	fmt.Println("not found:", apierrors.IsNotFound(err))
	_, err = clusterapi.Get[corev1.ConfigMap](ctx, r, clusterapi.Key("openshift-etcd", "b"))
	fmt.Println("not known:", errors.Is(err, clusterapi.ErrNotCollected))
	// Output:
	// not found: true
	// not known: true
}

// A list that is not complete has what is certain.
func ExamplePartialError() {
	ctx := context.Background()
	r, err := dump.Open(ctx, recorded, dump.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	budgets, err := clusterapi.List[policyv1.PodDisruptionBudget](ctx, r, clusterapi.ListOptions{})
	for _, b := range budgets {
		fmt.Println("budget", b.Name)
	}
	var partial *dump.PartialError
	if errors.As(err, &partial) {
		fmt.Println("perhaps others in", partial.Namespaces)
	}
	// Output:
	// budget dns
	// perhaps others in [openshift-etcd]
}

// Of a heap of manifests, the caller may know more than the files show.
func ExampleOptions() {
	ctx := context.Background()
	heap := fstest.MapFS{"pdb.yaml": {Data: []byte(`
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: dns, namespace: openshift-dns}
`)}}
	r, err := dump.Open(ctx, heap, dump.Options{Whole: []schema.GroupResource{{Group: "policy", Resource: "poddisruptionbudgets"}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	budgets, err := clusterapi.List[policyv1.PodDisruptionBudget](ctx, r, clusterapi.ListOptions{})
	fmt.Println(len(budgets), err)
	// Output:
	// 1 <nil>
}

// What cannot be used is named.
func ExampleRecording_Problems() {
	heap := fstest.MapFS{"a.yaml": {Data: []byte(strings.TrimSpace(`
apiVersion: v1
kind: Node
metadata: {name: master-0}
---
apiVersion: v1
kind: Node
metadata: {name: 0}
`))}}
	r, err := dump.Open(context.Background(), heap, dump.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range r.Problems() {
		fmt.Println(p)
	}
	// Output:
	// a.yaml, document 2, line 4: Node: metadata.name is 0, not a string: it must be quoted in YAML
}

// A recording of a live cluster, or as here of one in memory, can be opened
// wherever it is taken.
func ExampleRecord() {
	ctx := context.Background()
	live := memory.New(memory.Options{})
	for _, name := range []string{"node-1", "node-2"} {
		node := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": name},
		}}
		if _, err := live.Create(ctx, node, clusterapi.CreateOptions{}); err != nil {
			fmt.Println(err)
			return
		}
	}
	folder, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	dir := filepath.Join(folder, "recording")
	if err := dump.Record(ctx, live, dir, dump.RecordOptions{}); err != nil {
		fmt.Println(err)
		return
	}
	r, err := dump.Open(ctx, os.DirFS(dir), dump.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	nodes, err := clusterapi.List[corev1.Node](ctx, r, clusterapi.ListOptions{})
	fmt.Println(len(nodes), err)
	// Output: 2 <nil>
}
