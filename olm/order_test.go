package olm_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/blang/semver/v4"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/olm"
)

func TestChannelOrder(t *testing.T) {
	tests := []struct {
		name    string
		entries []string
		heads   []string
		ordered []string
		err     string
	}{
		{name: "empty"},
		{name: "an entry twice", entries: []string{"b>a", "b>x", "a"}, heads: []string{"b"}, ordered: []string{"b", "a"}},
		{name: "one", entries: []string{"a"}, heads: []string{"a"}, ordered: []string{"a"}},
		{name: "chain in any order", entries: []string{"a", "c>b", "b>a"}, heads: []string{"c"}, ordered: []string{"c", "b", "a"}},
		{name: "absent names play no part", entries: []string{"b>a!x", "a>gone"}, heads: []string{"b"}, ordered: []string{"b", "a"}},
		{name: "skipped ones are walked through", entries: []string{"d>c!c", "c>b", "b>a", "a"}, heads: []string{"d"}, ordered: []string{"d", "b", "a"}},
		{name: "skipped by one below", entries: []string{"c>b", "b>a", "a!b"}, heads: []string{"c"}, ordered: []string{"c", "a"}},
		{name: "skipped beside the walk", entries: []string{"c>a!b", "b", "a"}, heads: []string{"c"}, ordered: []string{"c", "a"}},
		{name: "skipped branch hides what it alone replaces", entries: []string{"d!c", "c>b", "b"}, heads: []string{"d"}, ordered: []string{"d"}},
		{
			name: "a stranded circle", entries: []string{"c>b", "b", "x>y", "y>x"}, heads: []string{"c"}, ordered: []string{"c", "b"},
		},
		{
			name: "no head", entries: []string{"a>b", "b>a"},
			err: `no channel heads (entries not replaced by another entry) found in channel "c" of package "p"`,
		},
		{
			name: "replaces itself", entries: []string{"a>a"},
			err: `no channel heads (entries not replaced by another entry) found in channel "c" of package "p"`,
		},
		{
			name: "skips itself", entries: []string{"a!a"},
			err: `no channel heads (entries not replaced by another entry) found in channel "c" of package "p"`,
		},
		{
			name: "loop below the head", entries: []string{"c>b", "b>a", "a>b"}, heads: []string{"c"},
			err: `a cycle exists in the chain of replacement beginning with "c" in channel "c" of package "p"`,
		},
		{
			name: "loop through a skipped one", entries: []string{"c>b!a", "b>a", "a>b"}, heads: []string{"c"},
			err: `a cycle exists in the chain of replacement beginning with "c" in channel "c" of package "p"`,
		},
		{
			name: "several heads by name", entries: []string{"z>y", "b>a", "y", "m", "a"}, heads: []string{"b", "m", "z"},
			err: `a unique replacement chain within a channel is required to determine the relative order between channel entries, but 3 replacement chains were found in channel "c" of package "p": b...a, m, z...y`,
		},
		{
			name: "chains without skipped ones", entries: []string{"b>a", "c>a!a", "a"}, heads: []string{"b", "c"},
			err: `a unique replacement chain within a channel is required to determine the relative order between channel entries, but 2 replacement chains were found in channel "c" of package "p": b, c`,
		},
		{
			name: "several heads, one with a loop", entries: []string{"a", "d>c", "c>b", "b>c"}, heads: []string{"a", "d"},
			err: `a cycle exists in the chain of replacement beginning with "d" in channel "c" of package "p"`,
		},
		{name: "versions order nothing", entries: []string{"z1>z9", "z9>z5", "z5"}, heads: []string{"z1"}, ordered: []string{"z1", "z9", "z5"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			ch := readCatalog(t, channelCatalog(test.entries...)).Package("p").Channel("c")
			checktest.SameIn(t, "heads", test.heads, entryNames(ch.Heads))
			checktest.SameIn(t, "order", test.ordered, entryNames(ch.Ordered))
			var text string
			if ch.Err != nil {
				text = ch.Err.Error()
				if fault := (*olm.ChannelError)(nil); !errors.As(ch.Err, &fault) || fault.Channel != "c" || fault.Package != "p" {
					t.Errorf("error %#v", ch.Err)
				}
			}
			checktest.SameIn(t, "error", test.err, text)
		})
	}
}

func TestEntryWithoutBundleIsWalkedThrough(t *testing.T) {
	text := strings.Replace(channelCatalog("c>b", "b>a", "a"), `"olm.bundle","package":"p","name":"b"`, `"olm.bundle","package":"p","name":"other"`, 1)
	c := readCatalog(t, text)
	checktest.SameIn(t, "order", []string{"c", "a"}, entryNames(c.Package("p").Channel("c").Ordered))
	want := []string{
		`UnusedBundle: package "p", bundle "other" not found in any channel entries`,
		`MissingBundle: no olm.bundle blobs found in package "p" for olm.channel entries [b]`,
	}
	checktest.SameIn(t, "problems", want, problemTexts(c.Problems()))
}

func TestChannelUpdates(t *testing.T) {
	tests := []struct {
		name      string
		entries   []string
		installed string
		version   string
		want      []string
	}{
		{name: "replaces", entries: []string{"c>b", "b>a", "a"}, installed: "a", version: "1.0.2", want: []string{"b"}},
		{name: "skips", entries: []string{"c>b!a", "b>a", "a"}, installed: "a", version: "1.0.2", want: []string{"c", "b"}},
		{name: "skip range", entries: []string{"c>b@<1.0.1", "b>a", "a"}, installed: "a", version: "1.0.0", want: []string{"c", "b"}},
		{name: "pre-release in a range", entries: []string{"c@<2.0.0"}, installed: "a", version: "2.0.0-rc.1", want: []string{"c"}},
		{name: "without a version ranges do not count", entries: []string{"c>b@<9.0.0", "b>a", "a"}, installed: "a", want: []string{"b"}},
		{name: "installed by another package", entries: []string{"c>b", "b>old.v1"}, installed: "old.v1", version: "7.0.0", want: []string{"b"}},
		{name: "unparsable range is absent", entries: []string{"c>b@>=v1.0.0", "b>a", "a"}, installed: "a", version: "1.0.0", want: []string{"b"}},
		{name: "not itself", entries: []string{"c>b@<9.0.0", "b>a", "a"}, installed: "c", version: "1.0.0"},
		{name: "nothing below it", entries: []string{"c>b@>0.0.1", "b>a@>0.0.1", "a@>0.0.1"}, installed: "b", version: "1.0.0", want: []string{"c"}},
		{name: "nothing below a skipped one", entries: []string{"d>c!c@>0.0.1", "c>b@>0.0.1", "b>a@>0.0.1", "a"}, installed: "c", version: "1.0.0", want: []string{"d"}},
		{name: "stranded but in range", entries: []string{"c>b@<9.0.0", "b>a", "a", "x>y", "y>x"}, installed: "x", version: "1.0.0", want: []string{"c"}},
		{name: "skipped ones are no candidates", entries: []string{"c!b", "b>a", "a"}, installed: "a", version: "1.0.0"},
		{name: "nothing installed", entries: []string{"c>b", "b"}, installed: ""},
		{name: "nothing fits", entries: []string{"c>b", "b"}, installed: "q", version: "1.0.0"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			ch := readCatalog(t, channelCatalog(test.entries...)).Package("p").Channel("c")
			var v *semver.Version
			if test.version != "" {
				v = version(t, test.version)
			}
			checktest.SameIn(t, "updates", test.want, entryNames(ch.Updates(test.installed, v)))
		})
	}
}

func TestEntryUpdatesItself(t *testing.T) {
	// Entry.Updates is the edge alone; only the channel leaves the installed one out.
	ch := readCatalog(t, channelCatalog("a@<9.0.0")).Package("p").Channel("c")
	if !ch.Entry("a").Updates("a", version(t, "1.0.0")) {
		t.Error("its own range does not count")
	}
	if ch.Entry("a").Updates("", version(t, "1.0.0")) {
		t.Error("updates nothing")
	}
}
