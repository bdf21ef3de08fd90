package timeline_test

import (
	"encoding/json"
	"fmt"
	"io"
	"testing"

	"github.com/clusterupdate/clusterupdate/clusterapi/timeline"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// sized is the timeline of a rollout of so many entries, more or less.
func sized(b *testing.B, entries int) *timeline.Timeline {
	return rollout(b, entries/6, 100, "worker")
}

func benchmark(b *testing.B, do func(tl *timeline.Timeline) error) {
	for _, n := range []int{100, 1000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			tl := sized(b, n)
			b.ReportAllocs()
			for b.Loop() {
				checktest.OK(b, do(tl))
			}
		})
	}
}

func BenchmarkText(b *testing.B) {
	benchmark(b, func(tl *timeline.Timeline) error { return tl.WriteText(io.Discard, timeline.TextOptions{}) })
}

func BenchmarkSVG(b *testing.B) {
	benchmark(b, func(tl *timeline.Timeline) error { return tl.WriteSVG(io.Discard, timeline.SVGOptions{}) })
}

func BenchmarkMarshal(b *testing.B) {
	benchmark(b, func(tl *timeline.Timeline) error {
		_, err := json.Marshal(tl)
		return err
	})
}

func BenchmarkRecorder(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				sized(b, n)
			}
		})
	}
}
