package text

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"
)

// Drawing is what is drawn. It is plain data.
type Drawing struct {
	// Name is the graph's, as DOT has it: see [QuoteDOT].
	Name string
	// Remark is a line about the whole, empty for none.
	Remark string
	Nodes  []Node
	Edges  []Edge
	// Prefix starts the nodes' identifiers in Mermaid, a letter.
	Prefix string
	// Down draws from top to bottom in Mermaid, not from left to right.
	Down bool
}

// Node is a node.
type Node struct {
	// Name identifies it. Label is shown in its place, in lines; empty means Name.
	Name, Label string
	// Attributes are those of DOT, as in color=grey.
	Attributes []string
	// Thick marks it.
	Thick bool
}

// Edge is an edge between two nodes.
type Edge struct {
	From, To string // names
	// Attributes are those of DOT, the label included.
	Attributes []string
	// Label is shown in Mermaid, empty for none. Dotted and Thick say how the
	// arrow is drawn there; Thick goes first, and holds in DOT as well.
	Label         string
	Dotted, Thick bool
}

// DOT draws for Graphviz, from left to right.
func (d *Drawing) DOT() string {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %s {\n  rankdir=LR;\n  node [shape=box];\n", d.Name)
	if d.Remark != "" {
		fmt.Fprintf(&b, "  label=%s;\n", QuoteDOT(d.Remark))
	}
	line := func(what string, attributes []string, thick bool) {
		b.WriteString("  " + what)
		if thick {
			attributes = append(attributes[:len(attributes):len(attributes)], "penwidth=2")
		}
		if len(attributes) > 0 {
			b.WriteString(" [" + strings.Join(attributes, ", ") + "]")
		}
		b.WriteString(";\n")
	}
	for _, n := range d.Nodes {
		attributes := n.Attributes
		if n.Label != "" {
			attributes = append([]string{"label=" + QuoteDOT(n.Label)}, attributes...)
		}
		line(QuoteDOT(n.Name), attributes, n.Thick)
	}
	for _, e := range d.Edges {
		line(QuoteDOT(e.From)+" -> "+QuoteDOT(e.To), e.Attributes, e.Thick)
	}
	b.WriteString("}\n")
	return b.String()
}

// Mermaid draws a flowchart, from left to right unless the drawing says otherwise.
func (d *Drawing) Mermaid() string {
	var b strings.Builder
	direction := "LR"
	if d.Down {
		direction = "TD"
	}
	b.WriteString("flowchart " + direction + "\n")
	if d.Remark != "" {
		fmt.Fprintf(&b, "  %%%% %s\n", d.Remark)
	}
	id := map[string]string{}
	for i, n := range d.Nodes {
		id[n.Name] = fmt.Sprint(d.Prefix, i)
		label := cmp.Or(n.Label, n.Name)
		lines := strings.Split(label, "\n")
		for i, line := range lines {
			lines[i] = mermaidText(line)
		}
		fmt.Fprintf(&b, "  %s[\"%s\"]\n", id[n.Name], strings.Join(lines, "<br>"))
		if n.Thick {
			fmt.Fprintf(&b, "  style %s stroke-width:3px\n", id[n.Name])
		}
	}
	for _, e := range d.Edges {
		arrow := "-->"
		switch {
		case e.Thick:
			arrow = "==>"
		case e.Dotted:
			arrow = "-.->"
		}
		if e.Label != "" {
			arrow += `|"` + mermaidText(e.Label) + `"|`
		}
		fmt.Fprintf(&b, "  %s %s %s\n", id[e.From], arrow, id[e.To])
	}
	return b.String()
}

// QuoteDOT writes a text as a string of DOT.
func QuoteDOT(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

// mermaidText writes a text for quotes. What could end these, be taken for
// markup, for an entity or for a directive, is an entity itself.
func mermaidText(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, s)
	return mermaidEntities.Replace(s)
}

var mermaidEntities = strings.NewReplacer(
	"#", "#35;", "&", "#amp;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "`", "#96;", "%", "#37;", `\`, "#92;")
