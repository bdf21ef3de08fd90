package graphdata_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func TestSubset(t *testing.T) {
	tree := &graphdata.Tree{
		SchemaVersion: "1.1.0",
		Channels: []graphdata.Channel{
			{Name: "candidate-1.1", Versions: entries("1.0.0", "1.1.0+amd64", "1.1.0+s390x", "1.2.0"), Feeder: &graphdata.Feeder{Name: "candidate"}},
			{Name: "stable-1.2", Versions: entries("1.2.0")},
		},
		Internal: []graphdata.Channel{{Name: "candidate", Tombstones: entries("1.0.0", "1.2.0")}, {Name: "fast", Versions: entries("1.2.0")}},
		Drops:    []graphdata.BlockedEdge{drop("1.1.0", ".*"), drop("1.2.0", ".*")},
		Risks:    []graphdata.BlockedEdge{risk("A", "1.1.0+s390x", ".*"), risk("A", "1.2.0", ".*")},
		Raw:      []graphdata.RawEntry{{Version: "1.0.0", Key: "a", Value: "b"}, {Version: "1.2.0", Key: "a", Value: "b"}},
		Problems: []graphdata.Problem{{File: "a"}},
	}
	before := *tree
	want := &graphdata.Tree{
		SchemaVersion: "1.1.0",
		Channels:      []graphdata.Channel{{Name: "candidate-1.1", Versions: entries("1.0.0", "1.1.0+amd64"), Feeder: &graphdata.Feeder{Name: "candidate"}}},
		Internal:      []graphdata.Channel{{Name: "candidate", Tombstones: entries("1.0.0")}},
		Drops:         tree.Drops[:1], Risks: tree.Risks[:1], Raw: tree.Raw[:1],
	}
	checktest.Same(t, want, graphdata.Subset(tree, []string{"1.0.0", "1.1.0+amd64"}))
	checktest.SameIn(t, "the tree was changed", &before, tree)
	checktest.Same(t, &graphdata.Tree{SchemaVersion: "1.1.0", Channels: []graphdata.Channel{}, Internal: []graphdata.Channel{}}, graphdata.Subset(tree, nil))
}

// TestSubsetProperties: a mirror's releases make the same graphs of a subset as of
// the whole tree.
func TestSubsetProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree, releases := oddInput(t)
		var versions []string
		releases = slices.DeleteFunc(releases, func(r graphdata.Release) bool {
			if rapid.Bool().Draw(t, "not mirrored") {
				return true
			}
			version := r.Version
			if r.Arch != "" && rapid.Bool().Draw(t, "with architecture") {
				version += "+" + r.Arch
			}
			versions = append(versions, version)
			return false
		})
		part := graphdata.Subset(tree, versions)
		for _, compat := range []bool{false, true} {
			opts := graphdata.BuildOptions{Compat: compat, Partial: true}
			want, err := graphdata.Build(tree, releases, opts)
			got, errPart := graphdata.Build(part, releases, opts)
			checktest.Equal(t, errPart == nil, err == nil, "%v with the tree, %v with a part", err, errPart)
			if err != nil {
				continue
			}
			if diff := cmp.Diff(served(want), served(got)); diff != "" {
				t.Fatalf("compat %v: -whole +part\n%s", compat, diff)
			}
			if diff := cmp.Diff(want.Full().Nodes, got.Full().Nodes); diff != "" {
				t.Fatalf("compat %v: -whole +part\n%s", compat, diff)
			}
		}
	})
}

func TestSuggested(t *testing.T) {
	tree := &graphdata.Tree{Suggestions: []graphdata.Suggestion{
		{Minor: "4.3", Arch: "default", MinorMin: "4.2.21", MinorMax: "4.2.9999", MinorBlockList: []string{"4.2.23"}, ZMin: "4.3.0", ZMax: "4.3.9999"},
		{Minor: "4.3", Arch: "s390x", MinorMin: "4.2.30", MinorMax: "4.2.9999", ZMin: "4.3.0-rc.1", ZMax: "4.3.1", ZBlockList: []string{"4.3.0"}},
		{Minor: "4.5", Arch: "default", MinorMin: "4.2.30", MinorMax: "4.4.0", ZMin: "4.5.0", ZMax: "4.5.9999"},
		{Minor: "5.0", Arch: "default", MinorMin: "4.22.0-rc.0", MinorMax: "4.22.9999", ZMin: "5.0.0-ec.0", ZMax: "5.0.9999"},
	}}
	known := []string{"4.3.2", "4.3.1", "4.3.0", "4.3.0-rc.1", "4.3.0-rc.0", "4.2.30", "4.2.20", "4.2.21", "4.2.22+amd64", "4.2.22", "4.2.23", "4.1.9", "4.22.0", "5.0.0-ec.1", "5.0.0-ec.0", "no version", "4.4.0", "4.4.1", "4.2", "4.2.x", "04.2.31", "4.02.31", ""}
	for _, c := range []struct {
		version, arch string
		want          []string
	}{
		{"4.3.2", "amd64", []string{"4.2.21", "4.2.22+amd64", "4.2.30", "4.3.0", "4.3.1"}},
		{"4.3.2", "s390x", []string{"4.2.30", "4.3.0-rc.1", "4.3.1"}},
		{"4.3.0-rc.0", "amd64", []string{"4.2.21", "4.2.22+amd64", "4.2.30"}},
		{"5.0.0-ec.1", "amd64", []string{"4.22.0", "5.0.0-ec.0"}},
		{"4.5.0", "amd64", []string{"4.2.30", "4.3.0-rc.0", "4.3.0-rc.1", "4.3.0", "4.3.1", "4.3.2", "4.4.0"}},
		{"4.4.0", "amd64", nil},
		{"4.4", "amd64", nil},
	} {
		if diff := cmp.Diff(c.want, tree.Suggested(c.version, c.arch, known)); diff != "" {
			t.Errorf("%s on %s: -want +got\n%s", c.version, c.arch, diff)
		}
	}
}
