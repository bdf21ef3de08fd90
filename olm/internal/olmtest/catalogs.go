package olmtest

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/olm/catalog"

	"github.com/clusterupdate/clusterupdate/olm"
)

// ReadCatalog reads a stream with the default options.
func ReadCatalog(t testing.TB, text string) *catalog.Catalog {
	t.Helper()
	c := checktest.Get(catalog.Read(t.Context(), strings.NewReader(text), "catalog", catalog.Options{}))(t)
	return c
}

// ChannelCatalog is a catalog of package p with channel c, whose entries are
// written as "name", "name>replaced", "name>replaced!skipped!skipped" or, with
// a range at the end, "name>replaced!skipped@range".
func ChannelCatalog(entries ...string) string {
	var s strings.Builder
	fmt.Fprintln(&s, `{"schema":"olm.package","name":"p","defaultChannel":"c"}`)
	var list []string
	for i, e := range entries {
		e, skipRange, _ := strings.Cut(e, "@")
		e, skips, hasSkips := strings.Cut(e, "!")
		name, replaces, _ := strings.Cut(e, ">")
		text := fmt.Sprintf(`{"name":%q`, name)
		if replaces != "" {
			text += fmt.Sprintf(`,"replaces":%q`, replaces)
		}
		if hasSkips {
			text += `,"skips":["` + strings.Join(strings.Split(skips, "!"), `","`) + `"]`
		}
		if skipRange != "" {
			text += fmt.Sprintf(`,"skipRange":%q`, skipRange)
		}
		list = append(list, text+"}")
		if strings.Count(strings.Join(list, ""), fmt.Sprintf(`"name":%q`, name)) == 1 {
			fmt.Fprintf(&s, `{"schema":"olm.bundle","package":"p","name":%q,"image":"r/%s","properties":[{"type":"olm.package","value":{"packageName":"p","version":"1.0.%d"}}]}`+"\n", name, strings.ToLower(name), i)
		}
	}
	fmt.Fprintf(&s, `{"schema":"olm.channel","package":"p","name":"c","entries":[%s]}`+"\n", strings.Join(list, ","))
	return s.String()
}

// Entries are those that may be chosen of a catalog, in the order in which it is
// searched.
func Entries(c interface{ Packages() []*olm.Package }) []*olm.Entry {
	var entries []*olm.Entry
	for _, p := range c.Packages() {
		for _, ch := range p.Channels {
			entries = append(entries, ch.Ordered...)
		}
	}
	slices.SortFunc(entries, func(a, b *olm.Entry) int { return cmp.Compare(a.Rank(), b.Rank()) })
	return entries
}

func EntryNames(entries []*olm.Entry) []string {
	var names []string
	for _, e := range entries {
		names = append(names, e.Name)
	}
	return names
}

func ProblemTexts(problems []catalog.Problem) []string {
	var texts []string
	for _, p := range problems {
		texts = append(texts, string(p.Rule)+": "+p.Message)
	}
	return texts
}

func Property(kind, value string) olm.Property {
	return olm.Property{Type: kind, Value: []byte(value)}
}

// Community loads the community catalog.
func Community(tb testing.TB) *catalog.Catalog {
	tb.Helper()
	f, err := os.Open(filepath.Join(testdata.Dir(tb), "catalogs", "community.jsonl"))
	checktest.OK(tb, err)
	defer f.Close()
	c := checktest.Get(catalog.Read(context.Background(), f, "community.jsonl", catalog.Options{}))(tb)
	return c
}

// SearchCatalog has packages q and p, each with a default channel "z" and one
// more, "a"; and package bad, whose channels are in disorder.
const SearchCatalog = `
{"schema":"olm.package","name":"q","defaultChannel":"z"}
{"schema":"olm.package","name":"p","defaultChannel":"z"}
{"schema":"olm.package","name":"bad","defaultChannel":"a"}
{"schema":"olm.channel","package":"q","name":"a","entries":[{"name":"q.v1"}]}
{"schema":"olm.channel","package":"q","name":"z","entries":[{"name":"q.v1"},{"name":"q.v2","replaces":"q.v1"}]}
{"schema":"olm.channel","package":"p","name":"a","entries":[{"name":"p.v1"},{"name":"p.v2","replaces":"p.v1"}]}
{"schema":"olm.channel","package":"p","name":"z","entries":[{"name":"p.v3","replaces":"p.v2","skips":["p.v2"]},{"name":"p.v2","replaces":"p.v1"},{"name":"p.v1"}]}
{"schema":"olm.channel","package":"bad","name":"a","entries":[{"name":"bad.v1"},{"name":"bad.v2"}]}
{"schema":"olm.channel","package":"bad","name":"z","entries":[{"name":"bad.v1","replaces":"bad.v1"}]}
{"schema":"olm.bundle","package":"q","name":"q.v1","image":"r/q","properties":[{"type":"olm.package","value":{"packageName":"q","version":"1.0.0"}},{"type":"olm.gvk","value":{"group":"g","version":"v1","kind":"K"}},{"type":"olm.gvk","value":{"group":"g","version":"v1","kind":"K"}}]}
{"schema":"olm.bundle","package":"q","name":"q.v2","image":"r/q","properties":[{"type":"olm.package","value":{"packageName":"q","version":"2.0.0"}},{"type":"olm.gvk","value":{"group":"g","version":"v1","kind":"K"}},{"type":"olm.label","value":{"label":"l"}}]}
{"schema":"olm.bundle","package":"p","name":"p.v1","image":"r/p","properties":[{"type":"olm.package","value":{"packageName":"p","version":"1.0.0"}},{"type":"olm.gvk","value":{"group":"g","version":"v1","kind":"K"}}]}
{"schema":"olm.bundle","package":"p","name":"p.v2","image":"r/p","properties":[{"type":"olm.package","value":{"packageName":"p","version":"2.0.0"}},{"type":"olm.gvk","value":{"group":"g","version":"v1","kind":"K"}}]}
{"schema":"olm.bundle","package":"p","name":"p.v3","image":"r/p","properties":[{"type":"olm.package","value":{"packageName":"p","version":"3.0.0"}},{"type":"olm.label","value":{"label":"l"}}]}
{"schema":"olm.bundle","package":"bad","name":"bad.v1","image":"r/b","properties":[{"type":"olm.package","value":{"packageName":"bad","version":"1.0.0"}},{"type":"olm.gvk","value":{"group":"g","version":"v1","kind":"K"}}]}
{"schema":"olm.bundle","package":"bad","name":"bad.v2","image":"r/b","properties":[{"type":"olm.package","value":{"packageName":"bad","version":"2.0.0"}},{"type":"olm.label","value":{"label":"l"}}]}
`

// Places are entries as CHANNEL/NAME.
func Places(entries []*olm.Entry) []string {
	var s []string
	for _, e := range entries {
		s = append(s, e.Channel.Name+"/"+e.Name)
	}
	return s
}
