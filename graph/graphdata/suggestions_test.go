package graphdata_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/graph/graphdata"
)

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
