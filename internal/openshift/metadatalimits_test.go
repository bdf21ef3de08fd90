package openshift_test

import (
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/limittest"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
)

// TestLimits feeds an input just above each limit of the table in doc.go.
func TestLimits(t *testing.T) {
	refused := func(data, want string) func(t *testing.T) int64 {
		return func(t *testing.T) int64 {
			if m, err := openshift.DecodeMetadata([]byte(data)); m != nil || err == nil || err.Error() != want {
				t.Errorf("%v", err)
			}
			return 0
		}
	}
	document := func(more string) string {
		return `{"kind":"cincinnati-metadata-v0","version":"4.20.1",` + more + `}`
	}
	nested := func(levels int) string {
		return document(`"metadata":{"a":` + strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1) + `}`)
	}
	limittest.Walk(t, []limittest.Case{
		{Limit: "size of the file", Default: openshift.MaxMetadataSize, Bytes: 600 << 10, Run: refused(document(`"x":"`+strings.Repeat("x", openshift.MaxMetadataSize)+`"`), "unmarshal Cincinnati metadata: more than 262144 bytes")},
		{Limit: "nesting of the metadata", Default: openshift.MaxMetadataDepth, Bytes: 64 << 10, Run: refused(nested(openshift.MaxMetadataDepth+1), "unmarshal Cincinnati metadata: metadata is nested more than 100 levels deep")},
		{Limit: "text of a warning", Default: 1 << 10, Bytes: 64 << 10, Run: func(t *testing.T) int64 {
			m := openshift.Metadata{Metadata: map[string]any{openshift.KeyArchitecture: strings.Repeat("x", 1<<10)}}
			if w := m.Known().Warnings; len(w) != 1 || len(w[0]) > 1<<10 || !strings.Contains(w[0], "more bytes)") {
				t.Errorf("%.300q", w)
			}
			return 0
		}},
	})
	checktest.Good(t, checktest.Err(openshift.DecodeMetadata([]byte(nested(openshift.MaxMetadataDepth)))))
}
