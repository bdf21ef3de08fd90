package memory_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// refusing is a wrapper of a cluster that refuses reads.
type refusing struct{ *memory.Cluster }

var errRefused = errors.New("refused")

func (refusing) Get(context.Context, schema.GroupVersionKind, types.NamespacedName) (*unstructured.Unstructured, error) {
	return nil, errRefused
}

func (refusing) List(context.Context, schema.GroupVersionKind, clusterapi.ListOptions) (*unstructured.UnstructuredList, error) {
	return nil, errRefused
}

// uncomparable also holds what cannot be compared.
type uncomparable struct {
	refusing
	_ []int
}

// TestEmbedded: a wrapper that embeds a cluster and has a Get and List of its own
// is asked by them, however it is read; the cluster itself shares what it stores.
func TestEmbedded(t *testing.T) {
	c := memory.New(memory.Options{})
	checktest.Must(clusterapi.Create(t.Context(), c, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b"}}, clusterapi.CreateOptions{}))
	key, gvk := clusterapi.Key("a", "b"), corev1.SchemeGroupVersion.WithKind("ConfigMap")
	read := func(api clusterapi.ClusterAPI) (errs []error) {
		ctx := t.Context()
		_, err := clusterapi.Get[corev1.ConfigMap](ctx, api, key)
		errs = append(errs, err)
		_, err = clusterapi.List[corev1.ConfigMap](ctx, api, clusterapi.ListOptions{})
		errs = append(errs, err)
		_, err = clusterapi.Read[corev1.ConfigMap](ctx, api, key)
		errs = append(errs, err)
		_, err = clusterapi.ReadAll[corev1.ConfigMap](ctx, api, clusterapi.ListOptions{})
		errs = append(errs, err)
		_, err = clusterapi.GetShared(ctx, api, gvk, key)
		errs = append(errs, err)
		_, err = clusterapi.ListShared(ctx, api, gvk, clusterapi.ListOptions{})
		errs = append(errs, err)
		_, err = clusterapi.Modify(ctx, api, key, clusterapi.ModifyOptions{}, func(*corev1.ConfigMap) error { return nil })
		return append(errs, err)
	}
	for name, wrapper := range map[string]clusterapi.ClusterAPI{
		"wrapper": refusing{c}, "pointer": &refusing{c}, "wrapper of a wrapper": uncomparable{refusing: refusing{c}}, "read only": clusterapi.ReadOnly(refusing{c}),
	} {
		for i, err := range read(wrapper) {
			checktest.FailIf(t, !errors.Is(err, errRefused), "%s: read %d came by the wrapper: %v", name, i, err)
		}
	}
	for i, err := range read(c) {
		checktest.FailIf(t, err != nil, "read %d: %v", i, err)
	}
	for _, api := range []clusterapi.Reader{c, clusterapi.ReadOnly(c)} {
		one, _ := clusterapi.GetShared(t.Context(), api, gvk, key)
		two, _ := clusterapi.GetShared(t.Context(), api, gvk, key)
		checktest.FailIf(t, one != two, "%T does not share", api)
	}
}
