package manifest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// TestLintOfRealPayloads holds how often each rule finds something in real
// payloads, and why.
func TestLintOfRealPayloads(t *testing.T) {
	t.Parallel()
	tests := []struct {
		dir, featureSet string
		want            map[string]int
	}{
		{"payload-4.17.30", "", map[string]int{
			// The definitions that openshift/api adds to a release image, and the
			// operators' repositories do not have: ClusterOperator, OperatorHub, and
			// 13 of the operators' own configurations and of the console.
			"crd-missing": 15,
			// ServiceMonitors and PrometheusRules of ten components in runlevel 50, where
			// the monitoring operator brings the definitions, and one of runlevel 10.
			"crd-order": 15,
			// Placeholders that the sources have in place of images: four of the cloud
			// credential operator, one of the CSI snapshot controller's.
			"image": 5,
			// The namespaces of the API servers, controllers and schedulers, which
			// their operators make.
			"namespace-missing": 8,
			// Two ConfigMaps of the version operator before the namespaces of runlevel
			// 10; five objects of control-plane-machine-set-operator beside machine-api's
			// namespace; four of the network operator in 50, its namespace in 70; three
			// beside the namespace of monitoring.
			"namespace-order": 14,
		}},
		{"payload-4.18.15", "", map[string]int{
			// Of those of 4.17.30, the definitions of eight operators' configurations
			// are there now; that of ServiceCA went, and the new OLM's never came.
			"crd-missing": 9,
			// As in 4.17.30, with one more PrometheusRule, and six of those eight, whose
			// definitions stand beside them as components of their own.
			"crd-order":         22,
			"image":             5,
			"namespace-missing": 8,
			"namespace-order":   14,
		}},
		{"payload-4.18.15", "TechPreviewNoUpgrade", map[string]int{
			"crd-missing": 9,
			"crd-order":   22,
			// The namespace openshift-insights, of which the privileged variant is a
			// preview, and the other one does not exclude itself then.
			"duplicate":         1,
			"image":             5,
			"namespace-missing": 8,
			"namespace-order":   14,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.dir+tt.featureSet, func(t *testing.T) {
			f := manifest.DefaultFilter()
			f.FeatureSet = &tt.featureSet
			p := checktest.Get(manifest.Load(t.Context(), os.DirFS(filepath.Join(testdata.Dir(t), tt.dir)),
				manifest.LoadOptions{Image: "example.com/release@sha256:abc", Filter: f}))(t)
			got := map[string]int{}
			findings := manifest.Lint(p, manifest.Filter{})
			for _, f := range findings {
				got[f.Rule]++
				t.Log(f)
			}
			checktest.Same(t, tt.want, got)
			checktest.SameIn(t, "the second time", findings, manifest.Lint(p, manifest.Filter{}))
		})
	}
}

// BenchmarkLint checks a real payload, whose objects are decoded already.
func BenchmarkLint(b *testing.B) {
	p := realPayload(b, "payload-4.18.15")
	b.ReportAllocs()
	for b.Loop() {
		if len(manifest.Lint(p, manifest.Filter{})) != 58 {
			b.Fatal("other findings")
		}
	}
}
