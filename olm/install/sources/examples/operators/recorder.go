package main

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
)

// recorder is a cluster that notes which objects are written to it.
type recorder struct {
	*memory.Cluster
	lines []string
}

// Create implements clusterapi.Writer.
func (r *recorder) Create(
	ctx context.Context, u *unstructured.Unstructured, o clusterapi.CreateOptions,
) (*unstructured.Unstructured, error) {
	stored, err := r.Cluster.Create(ctx, u, o)
	return r.note(stored, err)
}

// Apply implements clusterapi.Writer.
func (r *recorder) Apply(
	ctx context.Context, u *unstructured.Unstructured, o clusterapi.ApplyOptions,
) (*unstructured.Unstructured, error) {
	stored, err := r.Cluster.Apply(ctx, u, o)
	return r.note(stored, err)
}

func (r *recorder) note(u *unstructured.Unstructured, err error) (*unstructured.Unstructured, error) {
	if err != nil || u.GetKind() == "InstallPlan" {
		return u, err
	}
	line := fmt.Sprintf("%s %s", u.GetKind(), u.GetName())
	if u.GetNamespace() != "" {
		line = fmt.Sprintf("%s %s/%s", u.GetKind(), u.GetNamespace(), u.GetName())
	}
	if !slices.Contains(r.lines, line) {
		r.lines = append(r.lines, line)
	}
	return u, nil
}
