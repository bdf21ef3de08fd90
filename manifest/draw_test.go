package manifest_test

import (
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
)

func TestMermaid(t *testing.T) {
	const want = `flowchart TD
  n0["job 10_job (3 of 5)"]
  n1["no manifests"]
  n2["no manifests"]
  n3["configmap 10_a (1 of 5)"]
  n4["configmap 10_b (2 of 5)"]
  n5["no manifests"]
  n6["configmap 20_c (4 of 5)"]
  n7["configmap 20_d (5 of 5)"]
  n0 --> n2
  n1 --> n3
  n1 --> n4
  n2 --> n6
  n2 --> n7
  n3 --> n5
  n4 --> n5
  n5 --> n0
`
	checktest.Same(t, want, updating(list("10_a 10_b 10_job 20_c 20_d")).Mermaid())
	const long = `flowchart TD
  n0["configmap a (1 of 7)<br>configmap b (2 of 7)<br>configmap c (3 of 7)<br>configmap d (4 of 7)<br>configmap e (5 of 7)<br>and 2 more"]
`
	checktest.Same(t, long, updating(list("a b c d e f g")).Mermaid())
}

// TestMermaidOfRealPayload: the picture of a real release stays within the 50,000
// characters and 500 edges that Mermaid draws by default.
func TestMermaidOfRealPayload(t *testing.T) {
	g := manifest.UpdateGraph(realPayload(t, "payload-4.18.15").Tasks())
	text := g.Mermaid()
	if n := strings.Count(text, " --> "); n != 115 || len(text) > 50_000 {
		t.Errorf("%d edges, %d bytes", n, len(text))
	}
}
