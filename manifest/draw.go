package manifest

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/clusterupdate/clusterupdate/internal/text"
)

// DOT returns the graph in the language of Graphviz.
func (g *Graph) DOT() string {
	var b strings.Builder
	b.WriteString("digraph tasks {\n  labelloc=t;\n  rankdir=TB;\n")
	for i, n := range g.Nodes {
		label := "no manifests"
		if len(n.Tasks) > 0 {
			texts := make([]string, len(n.Tasks))
			for j, t := range n.Tasks {
				texts[j] = strings.ReplaceAll(t.String(), `"`, "")
			}
			label = strings.Join(texts, `\n`)
		}
		fmt.Fprintf(&b, "  %d [ label=\"%s\" shape=\"box\" ];\n", i, label)
	}
	for i, n := range g.Nodes {
		for _, j := range n.Out {
			b.WriteString("  " + strconv.Itoa(i) + " -> " + strconv.Itoa(j) + ";\n")
		}
	}
	b.WriteString("}")
	return b.String()
}

// maxDrawn is how many tasks of a node Mermaid names.
const maxDrawn = 5

// drawnText makes one line of a task's text, without quotes.
var drawnText = strings.NewReplacer(`"`, "", "\n", " ")

// Mermaid returns the graph as a flowchart of Mermaid, from top to bottom, for
// Markdown. Of a node with many tasks the first five are named and the rest
// counted, so that the picture of a release stays within what Mermaid draws.
func (g *Graph) Mermaid() string {
	d := text.Drawing{Prefix: "n", Down: true}
	for i, n := range g.Nodes {
		var lines []string
		for j, t := range n.Tasks {
			if j == maxDrawn {
				lines = append(lines, fmt.Sprintf("and %d more", len(n.Tasks)-j))
				break
			}
			lines = append(lines, drawnText.Replace(t.String()))
		}
		if len(lines) == 0 {
			lines = []string{"no manifests"}
		}
		d.Nodes = append(d.Nodes, text.Node{Name: strconv.Itoa(i), Label: strings.Join(lines, "\n")})
		for _, j := range n.Out {
			d.Edges = append(d.Edges, text.Edge{From: strconv.Itoa(i), To: strconv.Itoa(j)})
		}
	}
	return d.Mermaid()
}
