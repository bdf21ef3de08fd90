package graphdata_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"testing/fstest"

	"github.com/clusterupdate/clusterupdate/graph/graphdata"
)

// checkout stands for os.DirFS of a checkout, or for what OpenArchive returns.
var checkout = fstest.MapFS{
	"version":                      {Data: []byte("1.1.0\n")},
	"raw/metadata.json":            {Data: []byte("{}")},
	"channels/fast-4.30.yaml":      {Data: []byte("name: fast-4.30\nversions: [4.29.8, 4.30.0, 4.30.3]\n")},
	"blocked-edges/drop.yaml":      {Data: []byte("to: 4.30.0\nfrom: ^4[.]29[.]8[+].*$\n")},
	"blocked-edges/README.md":      {Data: []byte("Updates that nobody should make.\n")},
	"build-suggestions/notes.text": {Data: []byte("What to do next.\n")},
}

func ExampleLoad() {
	tree, err := graphdata.Load(context.Background(), checkout, graphdata.LoadOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range tree.Channels {
		fmt.Println(c.Name, "has", len(c.Versions), "versions")
	}
	for _, b := range tree.Drops {
		fmt.Printf("%s:%d: no updates to %s from %s\n", b.File, b.Line, b.To, b.From)
	}
	for _, p := range tree.Problems {
		fmt.Println(p)
	}
	// Output:
	// fast-4.30 has 3 versions
	// blocked-edges/drop.yaml:2: no updates to 4.30.0 from ^4[.]29[.]8[+].*$
	// build-suggestions/notes.text: has an invalid extension "text"
}

// A typing error would leave the updates open that it was meant to block: to load
// such a tree fails.
func ExampleLoadError() {
	broken := fstest.MapFS{
		"version":                 {Data: []byte("1.1.0\n")},
		"raw/metadata.json":       {Data: []byte("{}")},
		"channels/fast-4.30.yaml": {Data: []byte("name: fast-4.30\nversions: [4.30]\n")},
		"blocked-edges/drop.yaml": {Data: []byte("to: 4.30.0\nform: .*\n")},
	}
	_, err := graphdata.Load(context.Background(), broken, graphdata.LoadOptions{})
	if failed, ok := errors.AsType[*graphdata.LoadError](err); ok {
		for _, p := range failed.Problems {
			fmt.Println(p)
		}
	}
	// Output:
	// blocked-edges/drop.yaml:1:1: from: is a required property
	// blocked-edges/drop.yaml:2:1: form: is not a known key
	// channels/fast-4.30.yaml:2:12: versions[0]: "4.30" is not a valid semver: invalid semantic version
}

func ExampleTree_Suggested() {
	tree := &graphdata.Tree{Suggestions: []graphdata.Suggestion{
		{Minor: "4.30", Arch: "default", MinorMin: "4.29.8", MinorMax: "4.29.9999", ZMin: "4.30.0", ZMax: "4.30.9999"},
	}}
	known := []string{"4.29.7", "4.29.8", "4.29.9", "4.30.0-rc.0", "4.30.0", "4.30.1"}
	fmt.Println(tree.Suggested("4.30.1", "amd64", known))
	// Output:
	// [4.29.8 4.29.9 4.30.0]
}

func ExampleBuild() {
	tree, err := graphdata.Load(context.Background(), checkout, graphdata.LoadOptions{})
	if err != nil {
		log.Fatal(err)
	}
	releases := []graphdata.Release{
		{Version: "4.29.8", Arch: "amd64", Image: "registry.example/release@sha256:a"},
		{Version: "4.30.0", Arch: "amd64", Image: "registry.example/release@sha256:b", Previous: []string{"4.29.8"}},
		{Version: "4.30.3", Arch: "amd64", Image: "registry.example/release@sha256:c", Previous: []string{"4.29.8", "4.30.0"}},
	}
	snapshot, err := graphdata.Build(tree, releases, graphdata.BuildOptions{})
	if err != nil {
		log.Fatal(err)
	}
	g := snapshot.Graph("fast-4.30", "amd64")
	for i, node := range g.Nodes() {
		for e := range g.Edges(i) {
			fmt.Println(node.Version, "→", g.Node(e.To).Version)
		}
	}
	fmt.Println(snapshot.Report().Removed, "removed")
	// Output:
	// 4.29.8 → 4.30.3
	// 4.30.0 → 4.30.3
	// 1 removed
}
