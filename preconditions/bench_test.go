package preconditions_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/rules"
)

// BenchmarkDefault runs all checks on n nodes with thirty pods each, of which every
// third belongs to a workload with a budget.
func BenchmarkDefault(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var objects []*unstructured.Unstructured
			add := func(o any) {
				u, ok := o.(*unstructured.Unstructured)
				if !ok {
					var err error
					if u, err = clusterapi.ToUnstructured(o); err != nil {
						b.Fatal(err)
					}
				}
				objects = append(objects, u)
			}
			for _, o := range richObjects() {
				add(o)
			}
			for i := range n {
				name := fmt.Sprintf("node-%04d", i)
				add(node(name, "worker", has("64", "256Gi")))
				for j := range 30 {
					pod := podOn(name, fmt.Sprintf("pod-%04d-%02d", i, j), "100m", "256Mi")
					if j%3 == 0 {
						pod.Labels["app"] = fmt.Sprintf("app-%04d", i%(n/10)*10+j/3)
					} else {
						pod.Labels["app"] = "free"
					}
					add(pod)
				}
			}
			for i := range n {
				budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprintf("app-%04d", i), Generation: 1}}
				budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": budget.Name}}
				budget.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, CurrentHealthy: 10, DesiredHealthy: 9, ExpectedPods: 10, DisruptionsAllowed: 1}
				add(budget)
			}
			r := newFreshReader(objects)
			b.ReportAllocs()
			for b.Loop() {
				report := checktest.Get(preconditions.Run(context.Background(), rules.Default(rules.Options{}), richInput(r),
					preconditions.Options{}))(b)
				if d := report.Decide(preconditions.Policy{}); d.Blocked {
					b.Fatal(d.Summary)
				}
			}
		})
	}
}

// freshReader hands out objects by kind that nobody has decoded.
type freshReader map[gvk][]unstructured.Unstructured

func newFreshReader(objects []*unstructured.Unstructured) freshReader {
	r := freshReader{}
	for _, o := range objects {
		k := o.GroupVersionKind()
		r[k] = append(r[k], *o)
	}
	return r
}

func (r freshReader) Get(_ context.Context, k gvk, key types.NamespacedName) (*unstructured.Unstructured, error) {
	for _, o := range r[k] {
		if o.GetName() == key.Name && o.GetNamespace() == key.Namespace {
			return &o, nil
		}
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: k.Kind}, key.Name)
}

func (r freshReader) List(_ context.Context, k gvk, o clusterapi.ListOptions) (*unstructured.UnstructuredList, error) {
	if o.Namespace == "" && o.Labels == nil {
		return &unstructured.UnstructuredList{Items: slices.Clone(r[k])}, nil
	}
	list := &unstructured.UnstructuredList{}
	for _, u := range r[k] {
		if (o.Namespace == "" || u.GetNamespace() == o.Namespace) && (o.Labels == nil || o.Labels.Matches(labels.Set(u.GetLabels()))) {
			list.Items = append(list.Items, u)
		}
	}
	return list, nil
}
