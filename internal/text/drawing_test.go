package text_test

import (
	"fmt"

	"github.com/clusterupdate/clusterupdate/internal/text"
)

func ExampleDrawing() {
	d := text.Drawing{
		Name:   text.QuoteDOT("a b"),
		Remark: "two more are not shown",
		Nodes:  []text.Node{{Name: `say "1"`, Label: "<1>"}, {Name: "2", Attributes: []string{"color=grey"}, Thick: true}},
		Edges: []text.Edge{
			{From: `say "1"`, To: "2", Label: "A & B", Attributes: []string{"style=dashed"}, Dotted: true},
			{From: "2", To: "2", Dotted: true, Thick: true},
		},
		Prefix: "n",
	}
	fmt.Print(d.DOT(), d.Mermaid())
	// Output:
	// digraph "a b" {
	//   rankdir=LR;
	//   node [shape=box];
	//   label="two more are not shown";
	//   "say \"1\"" [label="<1>"];
	//   "2" [color=grey, penwidth=2];
	//   "say \"1\"" -> "2" [style=dashed];
	//   "2" -> "2" [penwidth=2];
	// }
	// flowchart LR
	//   %% two more are not shown
	//   n0["#lt;1#gt;"]
	//   n1["2"]
	//   style n1 stroke-width:3px
	//   n0 -.->|"A #amp; B"| n1
	//   n1 ==> n1
}
