package view_test

import (
	"fmt"
	"io"
	"path/filepath"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi/view"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// manyUpdates is a cluster with n updates without risks and n with, of ten minor
// versions.
func manyUpdates(n int) *configv1.ClusterVersion {
	cv := healthy(with("Upgradeable", "False", "R", "Ack first."), channel("stable-4.14", "", "stable-4.14"))
	for i := range n {
		available(fmt.Sprintf("4.%d.%d", 14+i%10, 2*i))(cv)
		conditional(fmt.Sprintf("4.%d.%d", 14+i%10, 2*i+1), "False", "R", "A message of usual length, which says what may break.")(cv)
	}
	return cv
}

func BenchmarkSummary(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("updates=%d", n), func(b *testing.B) {
			cv := manyUpdates(n)
			b.ReportAllocs()
			for b.Loop() {
				s := checktest.Get(view.Summarize(cv))(b)
				checktest.OK(b, s.WriteText(io.Discard, io.Discard, view.SummaryText{IncludeNotRecommended: true}))
			}
		})
	}
}

func BenchmarkRecommend(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("updates=%d", n), func(b *testing.B) {
			cv := manyUpdates(n)
			b.ReportAllocs()
			for b.Loop() {
				r := checktest.Get(view.AssessRecommend(view.RecommendInput{ClusterVersion: cv}))(b)
				checktest.OK(b, r.WriteText(io.Discard, io.Discard, view.RecommendText{ShowOutdated: true}))
			}
		})
	}
}

// largeCluster has nodes in a pool of workers, a tenth of them on their way, and
// configs of which the nodes use the last.
func largeCluster(nodes, configs int) *view.Objects {
	next := 0
	o := withNodes(updating(), numbered(nodes, func(name string) *corev1.Node {
		next++
		switch next % 10 {
		case 0:
			return changingNode(name, "worker", "Working", "desiredDrain=drain-new", "lastAppliedDrain=uncordon-old")
		case 1, 2:
			return newNode(name, "worker")
		}
		return oldNode(name, "worker")
	})...)
	used := o.MachineConfigs
	o.MachineConfigs = numbered(configs-len(used), func(name string) *mcfgv1.MachineConfig { return configOf(name, "4.13.0") })
	o.MachineConfigs = append(o.MachineConfigs, used...)
	return o
}

func BenchmarkAssessStatus(b *testing.B) {
	for _, nodes := range []int{100, 1_000, 10_000} {
		for _, configs := range []int{10, 100, 1_000} {
			o := largeCluster(nodes, configs)
			b.Run(fmt.Sprintf("nodes=%d/configs=%d", nodes, configs), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					assess(b, o, 10*time.Minute)
				}
			})
		}
	}
}

func BenchmarkStatusText(b *testing.B) {
	for _, nodes := range []int{100, 1_000, 10_000} {
		s := assess(b, largeCluster(nodes, 10), 10*time.Minute)
		for _, d := range []view.Details{"none", "all"} {
			b.Run(fmt.Sprintf("nodes=%d/details=%s", nodes, d), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					checktest.OK(b, s.WriteText(io.Discard, io.Discard, view.StatusText{Details: d}))
				}
			})
		}
	}
}

// BenchmarkRecordedStatus assesses and prints the recorded clusters.
func BenchmarkRecordedStatus(b *testing.B) {
	for _, dir := range dumps(b) {
		o := readDump(b, dir)
		now := latestTransition(o)
		b.Run(filepath.Base(dir), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s := checktest.Get(view.AssessStatus(o, now))(b)
				checktest.OK(b, s.WriteText(io.Discard, io.Discard, view.StatusText{Details: "all"}))
			}
		})
	}
}
