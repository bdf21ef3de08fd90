package view_test

import (
	"fmt"
	"io"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

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
