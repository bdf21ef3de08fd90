package graphdata_test

import (
	"errors"
	"io/fs"
	"maps"
	"testing"
	"testing/fstest"

	"github.com/clusterupdate/clusterupdate/graph/graphdata"
)

// The smallest files that a tree has, and a whole blocked edge with a risk.
const (
	smallChannel = "name: stable-4.1\nversions: [4.1.0]\n"
	smallDrop    = "to: 4.1.0\nfrom: .*\n"
	smallRisk    = "to: 4.1.0\nfrom: .*\nurl: https://example.com\nname: Slow\nmessage: It is slow.\nmatchingRules:\n- type: Always\n"
)

// treeOf returns a small tree with some files added or replaced; nil removes one.
func treeOf(files map[string]string) fstest.MapFS {
	all := map[string]string{
		"version":                    "1.1.0\n",
		"raw/metadata.json":          "{}",
		"channels/stable-4.1.yaml":   smallChannel,
		"blocked-edges/README.md":    "About blocked edges.\n",
		"internal-channels/OWNERS":   "",
		"internal-channels/.ignored": "",
	}
	maps.Copy(all, files)
	tree := fstest.MapFS{}
	for name, text := range all {
		if text != "-" {
			tree[name] = &fstest.MapFile{Data: []byte(text)}
		}
	}
	return tree
}

// load returns the problems of a tree as texts, and the tree if there is one.
func load(t *testing.T, fsys fs.FS, opts graphdata.LoadOptions) (*graphdata.Tree, []string) {
	t.Helper()
	opts.InternalChannels = true
	tree, err := graphdata.Load(t.Context(), fsys, opts)
	var loadErr *graphdata.LoadError
	var problems []graphdata.Problem
	switch {
	case errors.As(err, &loadErr):
		problems = loadErr.Problems
	case err != nil:
		t.Fatal(err)
	default:
		problems = tree.Problems
	}
	var texts []string
	for _, p := range problems {
		text := p.String() + " [" + p.Rule + "]"
		if p.Warning {
			text = "warning: " + text
		}
		texts = append(texts, text)
	}
	return tree, texts
}
