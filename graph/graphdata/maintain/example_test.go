package maintain_test

import (
	"fmt"
	"log"

	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/graph/graphdata/maintain"
)

func ExampleLint() {
	tree := &graphdata.Tree{
		Channels: []graphdata.Channel{
			{File: "channels/candidate-4.30.yaml", Name: "candidate-4.30", Versions: []graphdata.Entry{{Version: "4.29.8", Line: 3}}},
			{File: "channels/fast-4.30.yaml", Name: "fast-4.30", Versions: []graphdata.Entry{{Version: "4.29.8", Line: 3}, {Version: "4.30.0", Line: 4}}},
		},
		Drops: []graphdata.BlockedEdge{{File: "blocked-edges/4.30.0.yaml", Line: 2, To: "4.30.0", From: "^4[.]29[.]8$"}},
	}
	for _, p := range maintain.Lint(tree, nil, maintain.LintOptions{}) {
		fmt.Println(p.Rule, p.File)
	}
	// Output:
	// from-without-architecture blocked-edges/4.30.0.yaml
	// promotion-order channels/fast-4.30.yaml
}

func ExampleDiff() {
	tree := &graphdata.Tree{
		Channels: []graphdata.Channel{{Name: "fast-4.30", Versions: []graphdata.Entry{{Version: "4.29.8"}, {Version: "4.30.0"}}}},
	}
	proposed := *tree
	proposed.Drops = []graphdata.BlockedEdge{{File: "blocked-edges/4.30.0.yaml", Line: 2, To: "4.30.0", From: "^4[.]29[.]8[+].*$"}}
	releases := []graphdata.Release{
		{Version: "4.29.8", Arch: "amd64", Image: "registry.example/release@sha256:a"},
		{Version: "4.30.0", Arch: "amd64", Image: "registry.example/release@sha256:b", Previous: []string{"4.29.8"}},
	}
	was, err := graphdata.Build(tree, releases, graphdata.BuildOptions{})
	if err != nil {
		log.Fatal(err)
	}
	is, err := graphdata.Build(&proposed, releases, graphdata.BuildOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for _, u := range maintain.Diff(was, is).Updates {
		fmt.Println(u.From, "→", u.To, u.Channels, u.Was.Kind, u.Is.Kind)
	}
	// Output:
	// 4.29.8 → 4.30.0 [fast-4.30] Recommended None
}

func ExampleExtend() {
	tree := &graphdata.Tree{
		Channels: []graphdata.Channel{{Name: "candidate-4.30", Versions: []graphdata.Entry{{Version: "4.30.0"}, {Version: "4.30.1"}}}},
		Drops:    []graphdata.BlockedEdge{{File: "blocked-edges/4.30.0.yaml", Line: 2, To: "4.30.0", From: "^4[.]29[.]8[+].*$"}},
	}
	for _, b := range maintain.Extend(tree, "4.30.1") {
		text, err := b.Encode()
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s\n%s", b.File, text)
	}
	// Output:
	// blocked-edges/4.30.1.yaml
	// to: 4.30.1
	// from: ^4[.]29[.]8[+].*$
}
