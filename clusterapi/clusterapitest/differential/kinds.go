package differential

import (
	_ "embed"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi/clusterapitest/internal/probe"
)

// kindsFile describes what random sequences are made of.
//
//go:embed kinds.yaml
var kindsFile string

// file is what it says.
type file struct {
	Kinds       []kind           `json:"kinds"`
	Metadata    []choices        `json:"metadata"`
	Definitions []map[string]any `json:"definitions"`
}

// kind is a kind that random sequences use, with the values that they give it.
type kind struct {
	Name       string `json:"name"`
	APIVersion string `json:"apiVersion"`
	Namespaced bool   `json:"namespaced"`
	// Custom stands for a kind of the group that the sequences define.
	Custom bool `json:"custom"`
	// Base is the least that an object of the kind has, besides its identity.
	Base map[string]any `json:"base"`
	// Fields are what else it may have.
	Fields []choices `json:"fields"`
	// Status is what UpdateStatus may write.
	Status choices `json:"status"`

	gvk schema.GroupVersionKind
	all []choices // Fields, and those of metadata
}

// choices are the values that a path may have.
type choices struct {
	Path string `json:"path"`
	Good []any  `json:"good"`
	Bad  []any  `json:"bad"`
}

func (c choices) path() []string { return split(c.Path) }

// readFile returns the kinds, the custom ones in a group, and their definitions.
func readFile(group string) ([]*kind, []map[string]any) {
	var f file
	if err := probe.Parse(strings.ReplaceAll(kindsFile, "GROUP", group), &f); err != nil {
		panic(err) // the embedded file is a part of the program
	}
	var out []*kind
	for _, k := range f.Kinds {
		k.gvk = schema.FromAPIVersionAndKind(k.APIVersion, k.Name)
		if k.Custom {
			k.gvk.Group = group
		}
		k.Status.Path = "status"
		k.all = slices.Concat(k.Fields, f.Metadata)
		out = append(out, &k)
	}
	return out, f.Definitions
}
