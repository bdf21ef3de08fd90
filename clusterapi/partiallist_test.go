package clusterapi_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// partial is a recording that has one object, and an error with it.
type partial struct {
	clusterapi.Reader
	err error
}

func (p partial) List(context.Context, schema.GroupVersionKind, clusterapi.ListOptions) (*unstructured.UnstructuredList, error) {
	return &unstructured.UnstructuredList{Items: []unstructured.Unstructured{{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "ns", "name": "there"}}}}}, p.err
}

// What a recording has comes with the error that says that it lacks the rest;
// with any other error comes nothing.
func TestListOfAPartialRecording(t *testing.T) {
	got, err := clusterapi.List[corev1.ConfigMap](t.Context(), partial{err: clusterapi.ErrNotCollected}, clusterapi.ListOptions{})
	checktest.FailIf(t, !errors.Is(err, clusterapi.ErrNotCollected) || len(got) != 1 || got[0].Name != "there",
		"%v, %v", got, err)
	other := errors.New("broken")
	if got, err := clusterapi.List[corev1.ConfigMap](t.Context(), partial{err: other}, clusterapi.ListOptions{}); !errors.Is(err, other) || got != nil {
		t.Errorf("%v, %v", got, err)
	}
}
