package registrycompare

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/olm/catalog"
)

// drawCatalog generates a small catalog, mostly with faults.
func drawCatalog(t *rapid.T, skips bool) string {
	var s strings.Builder
	for _, pkg := range []string{"p", "q"} {
		defaultChannel := rapid.SampledFrom([]string{"a", "b", "c", ""}).Draw(t, "default")
		fmt.Fprintf(&s, `{"schema":"olm.package","name":%q,"defaultChannel":%q}`+"\n", pkg, defaultChannel)
		used := make(map[string]bool)
		for _, channel := range []string{"a", "b"} {
			names := rapid.SliceOfNDistinct(rapid.IntRange(0, 5), 0, 6, rapid.ID[int]).Draw(t, "entries")
			var entries []string
			for _, n := range names {
				name := fmt.Sprintf("%s.v%d", pkg, n)
				used[name] = true
				entry := fmt.Sprintf(`{"name":%q`, name)
				if replaces := rapid.IntRange(-1, 5).Draw(t, "replaces"); replaces >= 0 {
					entry += fmt.Sprintf(`,"replaces":"%s.v%d"`, pkg, replaces)
				}
				if skips && rapid.Bool().Draw(t, "skips") {
					entry += fmt.Sprintf(`,"skips":["%s.v%d"]`, pkg, rapid.IntRange(0, 5).Draw(t, "skipped"))
				}
				entries = append(entries, entry+"}")
			}
			fmt.Fprintf(&s, `{"schema":"olm.channel","package":%q,"name":%q,"entries":[%s]}`+"\n", pkg, channel, strings.Join(entries, ","))
		}
		for n := range 6 {
			name := fmt.Sprintf("%s.v%d", pkg, n)
			if !used[name] {
				continue
			}
			version := rapid.IntRange(0, 20).Draw(t, "version")
			image := rapid.SampledFrom([]string{"r/i", "r/i", "r/i", ""}).Draw(t, "image")
			fmt.Fprintf(&s, `{"schema":"olm.bundle","package":%q,"name":%q,"image":%q,"properties":[{"type":"olm.package","value":{"packageName":%q,"version":"1.%d.0"}}]}`+"\n", pkg, name, image, pkg, version)
		}
	}
	return s.String()
}

func TestGeneratedCatalogs(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := drawCatalog(rt, false)
		if diff := cmp.Diff(leaves(theirs(text)), leaves(ours(t, text))); diff != "" {
			rt.Errorf("%s(-theirs +ours):\n%s", text, diff)
		}
	})
}

// TestGeneratedCatalogsWithSkips leaves out what follows from walking through
// skipped entries or stopping at them.
func TestGeneratedCatalogsWithSkips(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := drawCatalog(rt, true)
		their, our := leaves(theirs(text)), leaves(ours(t, text))
		if diff := cmp.Diff(without(their, stranded, cycle), without(our, stranded, cycle)); diff != "" {
			rt.Errorf("%s(-theirs +ours):\n%s", text, diff)
		}
		ourCycles, ourStranded := channelsWith(our, cycle), channelsWith(our, stranded)
		for _, ch := range channelsWith(their, stranded) {
			if !slices.Contains(ourStranded, ch) {
				rt.Errorf("%s%s is stranded for the tools alone", text, ch)
			}
		}
		for _, ch := range ourCycles {
			if !slices.Contains(channelsWith(their, cycle), ch) {
				rt.Errorf("%s%s has a cycle for us alone", text, ch)
			}
		}
	})
}

func TestIndexIgnore(t *testing.T) {
	files := []string{"a.json", "b", "d/a.json", "d/b", "d/e/a.json", "d/e/b", "e/a.json", "e/d/b"}
	name := rapid.SampledFrom([]string{"a.json", "b", "d", "e", "*", "*.json", "?", "[a-b]", "[^a]"})
	pattern := rapid.Custom(func(t *rapid.T) string {
		// The tools' library finds the first place for what follows "**" only, takes
		// "d/**/" for "d/**", a file for what is below it, and nothing for a pattern of "**" alone. Git tries all
		// places, and so does package olm.
		shape := rapid.SampledFrom([]string{"N", "N", "/N", "N/", "/N/", "N/N", "N/N/N", "N/N/", "**/N", "**/N/", "N/**/N", "e/**"}).Draw(t, "shape")
		for strings.Contains(shape, "N") {
			shape = strings.Replace(shape, "N", name.Draw(t, "name"), 1)
		}
		return rapid.SampledFrom([]string{"", "", "!", "  "}).Draw(t, "first") + shape + rapid.SampledFrom([]string{"", " "}).Draw(t, "last")
	})
	rapid.Check(t, func(rt *rapid.T) {
		tree := fstest.MapFS{}
		for _, f := range files {
			tree[f] = &fstest.MapFile{Data: []byte(`{"schema":"x","name":"` + f + `"}`)}
		}
		for _, dir := range []string{"", "d/"} {
			rules := strings.Join(rapid.SliceOfN(pattern, 0, 4).Draw(rt, "rules"), "\n")
			tree[dir+".indexignore"] = &fstest.MapFile{Data: []byte(rules)}
		}
		var their, our []string
		checktest.OK(rt, declcfg.WalkFS(tree, func(path string, _ *declcfg.DeclarativeConfig, err error) error {
			their = append(their, path)
			return err
		}))
		c := checktest.Get(catalog.Load(t.Context(), tree, catalog.Options{Strict: true}))(rt)
		for _, o := range c.Others() {
			our = append(our, o.Name)
		}
		if diff := cmp.Diff(their, our); diff != "" {
			rt.Errorf("%s and %s (-theirs +ours):\n%s", tree[".indexignore"].Data, tree["d/.indexignore"].Data, diff)
		}
	})
}
