package clusterapitest_test

import (
	"context"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterapitest"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
)

// broken is a backend with one fault.
type broken struct {
	*memory.Cluster
	fault string
	kept  map[types.NamespacedName]*unstructured.Unstructured
	n     int
}

func (b *broken) Get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	if b.fault == "ignores its context" {
		ctx = context.WithoutCancel(ctx)
	}
	u, err := b.Cluster.Get(ctx, gvk, key)
	if b.fault == "shares what it returns" && err == nil {
		if b.kept[key] == nil {
			b.kept[key] = u
		}
		return b.kept[key], nil
	}
	return u, err
}

func (b *broken) List(ctx context.Context, gvk schema.GroupVersionKind, opts clusterapi.ListOptions) (*unstructured.UnstructuredList, error) {
	if b.fault == "truncates lists" {
		limit := opts.Limit
		opts.Limit = 0
		l, err := b.Cluster.List(ctx, gvk, opts)
		if err == nil && limit > 0 && len(l.Items) > limit {
			l.Items = l.Items[:limit]
		}
		return l, err
	}
	l, err := b.Cluster.List(ctx, gvk, opts)
	if b.fault == "does not sort" && err == nil {
		slices.Reverse(l.Items)
	}
	return l, err
}

func (b *broken) Update(ctx context.Context, u *unstructured.Unstructured, opts clusterapi.UpdateOptions) (*unstructured.Unstructured, error) {
	if b.fault == "takes stale updates" || b.fault == "updates blindly" && u.GetResourceVersion() == "" {
		u = u.DeepCopy()
		if now, err := b.Cluster.Get(ctx, u.GroupVersionKind(), clusterapi.KeyOf(u)); err == nil {
			u.SetResourceVersion(now.GetResourceVersion())
		}
	}
	return b.Cluster.Update(ctx, u, opts)
}

func (b *broken) Apply(ctx context.Context, u *unstructured.Unstructured, opts clusterapi.ApplyOptions) (*unstructured.Unstructured, error) {
	switch b.fault {
	case "writes what did not change":
		u = u.DeepCopy()
		b.n++
		u.SetAnnotations(map[string]string{"n": fmt.Sprint(b.n)})
	case "applies in one name":
		if opts.FieldManager != "" {
			opts.FieldManager = "everybody"
		}
	}
	return b.Cluster.Apply(ctx, u, opts)
}

func (b *broken) Evict(ctx context.Context, pod types.NamespacedName, opts clusterapi.EvictOptions) error {
	if b.fault == "evicts by deleting" {
		return b.Delete(ctx, schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, pod, clusterapi.DeleteOptions{UID: opts.UID})
	}
	return b.Cluster.Evict(ctx, pod, opts)
}

func (b *broken) UpdateStatus(ctx context.Context, u *unstructured.Unstructured, opts clusterapi.UpdateOptions) (*unstructured.Unstructured, error) {
	stored, err := b.Cluster.UpdateStatus(ctx, u, opts)
	if b.fault == "replaces all with the status" && err == nil {
		u = u.DeepCopy()
		u.SetResourceVersion(stored.GetResourceVersion())
		return b.Cluster.Update(ctx, u, opts)
	}
	return stored, err
}

func (b *broken) Delete(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName, opts clusterapi.DeleteOptions) error {
	switch b.fault {
	case "deletes without conditions":
		opts.UID, opts.ResourceVersion = "", ""
	case "always deletes in the background":
		opts.Propagation = ""
	}
	return b.Cluster.Delete(ctx, gvk, key, opts)
}

func (b *broken) Watch(ctx context.Context, gvk schema.GroupVersionKind, opts clusterapi.ListOptions) iter.Seq2[clusterapi.Event, error] {
	return func(yield func(clusterapi.Event, error) bool) {
		for e, err := range b.Cluster.Watch(ctx, gvk, opts) {
			if b.fault == "has Synced first" && e.Type == clusterapi.Added {
				if !yield(clusterapi.Event{Type: clusterapi.Synced}, nil) {
					return
				}
			}
			if !yield(e, err) {
				return
			}
		}
		if b.fault == "calls the end of a watch an error" {
			yield(clusterapi.Event{}, ctx.Err())
		}
	}
}

const faultVariable = "CLUSTERAPITEST_FAULT"

// TestBroken runs in a process of its own, where it must fail.
func TestBroken(t *testing.T) {
	fault := os.Getenv(faultVariable)
	if fault == "" {
		t.Skip("this is a part of TestFindsFaults")
	}
	clusterapitest.Conformance(t, func(*testing.T) (clusterapi.ClusterAPI, clusterapitest.Capabilities) {
		b := &broken{
			Cluster: memory.New(memory.Options{Lenient: fault == "serves every kind"}),
			fault:   fault, kept: map[types.NamespacedName]*unstructured.Unstructured{},
		}
		return b, clusterapitest.Capabilities{Watch: true}
	})
}

// The suite finds the faults that it is there to find.
func TestFindsFaults(t *testing.T) {
	for fault, test := range map[string]string{
		"ignores its context":               "Context/Get",
		"shares what it returns":            "Ownership/Returned",
		"truncates lists":                   "List/LimitExceeded",
		"does not sort":                     "List/SortedByNamespaceThenName",
		"takes stale updates":               "Update/Stale",
		"updates blindly":                   "Update/WithoutResourceVersion",
		"replaces all with the status":      "UpdateStatus/WritesStatusOnly",
		"deletes without conditions":        "Delete/Preconditions",
		"always deletes in the background":  "Delete/Foreground",
		"has Synced first":                  "Watch/Sequence",
		"calls the end of a watch an error": "Watch/EndedContext",
		"writes what did not change":        "Apply/NoChangeASecondLater",
		"applies in one name":               "Apply/KeyedList",
		"evicts by deleting":                "Evict/NotAllowed",
		"serves every kind":                 "Get/NoMatch",
		"":                                  "",
	} {
		t.Run(fault, func(t *testing.T) {
			run := "^TestBroken$"
			for part := range strings.SplitSeq(test, "/") {
				run += "/^" + part + "$"
			}
			if fault == "" { // without a fault all is well
				fault, test, run = "none", "none", "^TestBroken$/^(Get|Update)$"
			}
			cmd := exec.Command(os.Args[0], "-test.run", run, "-test.v")
			cmd.Env = append(os.Environ(), faultVariable+"="+fault)
			out, err := cmd.CombinedOutput()
			failed := strings.Contains(string(out), "--- FAIL: TestBroken/"+test+" ")
			if want := fault != "none"; (err != nil) != want || failed != want {
				t.Errorf("the run ended with %v, %s failed: %t\n%s", err, test, failed, out)
			}
		})
	}
}
