package catalog_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/olm/catalog"
)

// drawChannel generates the entries of a channel in the notation of
// channelCatalog, with names e0, e1, ...
func drawChannel(t *rapid.T) []string {
	n := rapid.IntRange(1, 7).Draw(t, "entries")
	entries := make([]string, n)
	for i := range entries {
		entries[i] = fmt.Sprintf("e%d", i)
		if rapid.IntRange(0, 4).Draw(t, "has edge") > 0 {
			entries[i] += fmt.Sprintf(">e%d", rapid.IntRange(0, n).Draw(t, "replaces"))
		}
		if rapid.IntRange(0, 3).Draw(t, "has skip") == 0 {
			entries[i] += fmt.Sprintf("!e%d", rapid.IntRange(0, n).Draw(t, "skips"))
		}
		if rapid.IntRange(0, 3).Draw(t, "has range") == 0 {
			entries[i] += fmt.Sprintf("@<1.0.%d", rapid.IntRange(0, n).Draw(t, "range"))
		}
	}
	return rapid.Permutation(entries).Draw(t, "order")
}

func TestChannelProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		entries := drawChannel(rt)
		ch := readCatalog(t, channelCatalog(entries...)).Package("p").Channel("c")

		var heads []string
		named, skipped := make(map[string]bool), make(map[string]bool)
		for _, e := range ch.Entries {
			named[e.Replaces] = true
			for _, s := range e.Skips {
				named[s], skipped[s] = true, true
			}
		}
		for _, e := range ch.Entries {
			if !named[e.Name] {
				heads = append(heads, e.Name)
			}
		}
		slices.Sort(heads)
		if diff := cmp.Diff(heads, entryNames(ch.Heads)); diff != "" {
			rt.Errorf("%v: heads (-want +got):\n%s", entries, diff)
		}
		if ch.Err != nil {
			if len(ch.Ordered) > 0 {
				rt.Errorf("%v: an order in spite of %v", entries, ch.Err)
			}
			return
		}
		var want []string
		for e := ch.Heads[0]; e != nil; e = ch.Entry(e.Replaces) {
			if !skipped[e.Name] {
				want = append(want, e.Name)
			}
		}
		if diff := cmp.Diff(want, entryNames(ch.Ordered)); diff != "" {
			rt.Errorf("%v: order (-want +got):\n%s", entries, diff)
		}

		// Candidates are legal, in order, and updates one after another end.
		for _, from := range ch.Entries {
			updates := ch.Updates(from.Name, from.Bundle.Version)
			last := -1
			for _, u := range updates {
				at := slices.Index(ch.Ordered, u)
				if at <= last || u == from || !u.Updates(from.Name, from.Bundle.Version) {
					rt.Errorf("%v: %s is updated to %v", entries, from.Name, entryNames(updates))
				}
				last = at
			}
			for steps, e := 0, from; ; steps++ {
				updates := ch.Updates(e.Name, e.Bundle.Version)
				if len(updates) == 0 {
					break
				}
				if e = updates[len(updates)-1]; steps > len(ch.Entries) {
					rt.Fatalf("%v: updates from %s never end", entries, from.Name)
				}
			}
		}
	})
}

func TestCatalogIsTheSameInAnyOrder(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(searchCatalog+goodCatalog[strings.Index(goodCatalog, "\n")+1:]), "\n")
	lines = slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(line, `"name":"c"`) })
	texts := func(c *catalog.Catalog) []string { return slices.Sorted(slices.Values(problemTexts(c.Problems()))) }
	first := readCatalog(t, strings.Join(lines, "\n"))
	rapid.Check(t, func(rt *rapid.T) {
		c := readCatalog(t, strings.Join(rapid.Permutation(lines).Draw(rt, "lines"), "\n"))
		checktest.SameIn(rt, "entries", places(entries(first)), places(entries(c)))
		checktest.SameIn(rt, "problems", texts(first), texts(c))
	})
}
