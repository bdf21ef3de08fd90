package forecast_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/forecast"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/payload"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/signature"
)

// copied is a cluster with another ID.
type copied struct {
	clusterapi.Reader
	id string
}

func (c copied) Get(
	ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName,
) (*unstructured.Unstructured, error) {
	o, err := c.Reader.Get(ctx, gvk, key)
	if err != nil || gvk.Kind != "ClusterVersion" {
		return o, err
	}
	o = o.DeepCopy()
	return o, unstructured.SetNestedField(o.Object, c.id, "spec", "clusterID")
}

// A hundred copies of the recorded clusters, with and without what a release changes.
func BenchmarkFleet(b *testing.B) {
	names := []string{
		"4.14.1-degraded", "4.14.1-workers-started-updating-multiple-pools", "not-upgrading", "4.15.0-ec2-early",
	}
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

// large is a cluster of 43 nodes and 180 pods, at rest, that may be updated between two real
// releases.
func large(b *testing.B) (*simulation.Cluster, payload.Images) {
	images := payload.Images{release(b, "4.17.30", "4.17.30", "4.17.29"), release(b, "4.18.15", "4.18.15", "4.17.30")}
	one, share := intstr.FromInt32(1), intstr.FromString("10%")
	clock := reconcile.NewClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	o := simulation.Options{
		Clock: clock, Release: payload.Release(images[0].Payload),
		ClusterVersion: simulation.ClusterVersion{Channel: "stable-4.18"},
		Pools:          []simulation.Pool{{Nodes: 40, MaxUnavailable: &share}},
	}
	for i := range 30 {
		o.Workloads = append(o.Workloads, simulation.Workload{
			Namespace: fmt.Sprintf("apps-%d", i%10), Name: fmt.Sprintf("app-%d", i), Replicas: 6, MaxUnavailable: &one,
		})
	}
	cluster := checktest.Get(simulation.New(o))(b)
	updates := checktest.Get(graph.DecodeBytes(images.Graph("stable-4.18"), graph.DecodeOptions{}))(b)
	updater := checktest.Get(clusterupdate.New(clusterupdate.Options{
		API: cluster, Payloads: images, Graph: graph.Static(updates), Verifier: signature.Insecure(), Clock: clock,
	}))(b)
	virtual := reconcile.VirtualOptions{Cluster: cluster, Clock: clock, Seed: 1}
	v := reconcile.NewVirtual(virtual, cluster.Process(), updater.Process())
	defer v.Close()
	checktest.OK(b, v.RunUntil(v.Now().Add(10*time.Minute)))
	return cluster, images
}

// Rehearsals of an update, without loading its releases.
func BenchmarkRehearse(b *testing.B) {
	cluster, images := large(b)
	for _, runs := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("runs=%d", runs), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r := checktest.Get(forecast.Rehearse(b.Context(), forecast.RehearseOptions{
					Reader: cluster, From: images[0], To: images[1], Runs: runs,
				}))(b)
				checktest.Equal(b, forecast.Completed, r.Outcome, "why: %v", r.Why)
			}
		})
	}
}

// A forecast without and with a rehearsal.
func BenchmarkUpdate(b *testing.B) {
	cluster, images := large(b)
	for _, runs := range []int{0, 1} {
		b.Run(fmt.Sprintf("rehearsals=%d", runs), func(b *testing.B) {
			o := forecast.Options{To: "4.18.15", Releases: images}
			if runs > 0 {
				o.Rehearse = &forecast.RehearseOptions{Runs: runs}
			}
			for b.Loop() {
				f := checktest.Get(forecast.Update(b.Context(), cluster, o))(b)
				checktest.Equal(b, runs > 0, f.Rehearsal != nil && f.Rehearsal.Outcome == forecast.Completed, "%s", signs(b, f))
			}
		})
	}
}
