package forecast_test

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/forecast"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/payload"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// copied is a cluster with another ID.
type copied struct {
	clusterapi.Reader
	id string
}

func (c copied) Get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	o, err := c.Reader.Get(ctx, gvk, key)
	if err != nil || gvk.Kind != "ClusterVersion" {
		return o, err
	}
	o = o.DeepCopy()
	return o, unstructured.SetNestedField(o.Object, c.id, "spec", "clusterID")
}

// A hundred copies of the recorded clusters, with and without what a release changes.
func BenchmarkFleet(b *testing.B) {
	names := []string{"4.14.1-degraded", "4.14.1-workers-started-updating-multiple-pools", "not-upgrading", "4.15.0-ec2-early"}
	var clusters []forecast.Cluster
	for i := range 100 {
		reader := copied{recorded(b, names[i%len(names)]), fmt.Sprintf("%08d-0000-4000-8000-000000000000", i)}
		clusters = append(clusters, forecast.Cluster{Name: fmt.Sprint(i), Reader: reader})
	}
	for name, releases := range map[string]payload.Images{
		"checks":  nil,
		"changes": {release(b, "4.17.30", "4.14.1"), release(b, "4.18.15", "4.15.1", "4.14.1")},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				fleet := checktest.Get(forecast.Fleet(b.Context(), clusters, forecast.Options{To: "4.15.1", Releases: releases}))(b)
				checktest.Equal(b, 100, len(fleet.Rows), "rows")
			}
		})
	}
}
