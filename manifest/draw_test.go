package manifest_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
	if diff := cmp.Diff(want, updating(list("10_a 10_b 10_job 20_c 20_d")).Mermaid()); diff != "" {
		t.Error(diff)
	}
	const long = `flowchart TD
  n0["configmap a (1 of 7)<br>configmap b (2 of 7)<br>configmap c (3 of 7)<br>configmap d (4 of 7)<br>configmap e (5 of 7)<br>and 2 more"]
`
	if diff := cmp.Diff(long, updating(list("a b c d e f g")).Mermaid()); diff != "" {
		t.Error(diff)
	}
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

var mermaidNode = regexp.MustCompile(`^  n[0-9]+\["([^"]*)"\]$`)

// mermaidEntity reads what Mermaid reads: names of HTML and decimal numbers.
var mermaidEntity = strings.NewReplacer("#35;", "#", "#amp;", "&", "#quot;", `"`, "#lt;", "<", "#gt;", ">", "#96;", "`", "#37;", "%", "#92;", `\`)

// FuzzMermaid: whatever an object's name is, a node is one line, in which a
// reader finds the name again, but for quotes and control characters.
func FuzzMermaid(f *testing.F) {
	for _, name := range []string{"dns", "system:openshift", `a"]`, "a#quot;b", "`bold`", "%%{init: {}}%%", "<br>", "a\nn1 --> n0", "é\\", "\u2028", "\xff", "#35;", "&amp;"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		m, err := manifest.New("x", &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "K", "metadata": map[string]any{"name": name}}})
		if err != nil || name == "" {
			return
		}
		lines := strings.Split(manifest.UpdateGraph(manifest.NewTasks([]*manifest.Manifest{m})).Mermaid(), "\n")
		if len(lines) != 3 || lines[0] != "flowchart TD" || lines[2] != "" {
			t.Fatalf("%q", lines)
		}
		label := mermaidNode.FindStringSubmatch(lines[1])
		if label == nil || strings.ContainsAny(label[1], "<>`%\\") {
			t.Fatalf("%q", lines[1])
		}
		want := strings.Map(func(r rune) rune {
			if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
				return ' '
			}
			return r
		}, strings.ReplaceAll(name, `"`, ""))
		if got := mermaidEntity.Replace(label[1]); got != fmt.Sprintf("k %s (1 of 1)", want) {
			t.Errorf("%q is shown as %q", name, got)
		}
	})
}
