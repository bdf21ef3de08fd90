package registrycompare

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/operator-registry/alpha/declcfg"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/olm/catalog"
)

// ours and theirs are what the two say about a catalog, empty if they accept it.
func ours(t testing.TB, text string) string {
	t.Helper()
	c := checktest.Get(catalog.Read(t.Context(), strings.NewReader(text), "", catalog.Options{}))(t)
	if err := c.Validate(); err != nil {
		return err.Error()
	}
	return ""
}

func theirs(text string) string {
	config, err := declcfg.LoadReader(strings.NewReader(text))
	if err != nil {
		return err.Error()
	}
	if _, err := declcfg.ConvertToModel(*config); err != nil {
		return err.Error()
	}
	return ""
}

// leaves are the paths of a tree-shaped message, sorted: the tools write the
// branches in the random order of maps. Any other message is its own only leaf.
func leaves(message string) []string {
	if message == "" {
		return nil
	}
	var path, all []string
	for line := range strings.Lines(message) {
		text := strings.TrimSpace(strings.TrimLeft(line, "│├└─ \u00a0"))
		depth := (len([]rune(strings.TrimRight(line, "\n"))) - len([]rune(text))) / 4
		if depth > len(path) {
			depth = len(path)
		}
		path = append(path[:depth:depth], strings.TrimSuffix(text, ":"))
		if !strings.HasSuffix(text, ":") {
			all = append(all, strings.Join(path, " / "))
		}
	}
	slices.Sort(all)
	return all
}

// without drops the leaves that hold one of the texts.
func without(all []string, texts ...string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(leaf string) bool {
		return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(leaf, text) })
	})
}

const (
	stranded  = "channel contains one or more stranded bundles"
	cycle     = "detected cycle in replaces chain"
	skipRange = "invalid skipRange"
)

const good = `{"schema":"olm.package","name":"p","defaultChannel":"c"}
{"schema":"olm.channel","package":"p","name":"c","entries":[{"name":"p.v2","replaces":"p.v1"},{"name":"p.v1"}]}
{"schema":"olm.bundle","package":"p","name":"p.v1","image":"r.example/p:1","properties":[{"type":"olm.package","value":{"packageName":"p","version":"1.0.0"}}]}
{"schema":"olm.bundle","package":"p","name":"p.v2","image":"r.example/p:2","properties":[{"type":"olm.package","value":{"packageName":"p","version":"2.0.0"}}]}
`

func replaced(t testing.TB, old, new string) string {
	t.Helper()
	text := strings.ReplaceAll(good, old, new)
	if text == good {
		t.Fatalf("nothing is replaced by %s", new)
	}
	return text
}

func bundle(name, version string) string {
	return fmt.Sprintf(`{"schema":"olm.bundle","package":"p","name":%q,"image":"r/p","properties":[{"type":"olm.package","value":{"packageName":"p","version":%q}}]}`+"\n", name, version)
}
