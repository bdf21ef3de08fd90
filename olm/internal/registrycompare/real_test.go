package registrycompare

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/operator-registry/alpha/declcfg"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/olm"
	"github.com/clusterupdate/clusterupdate/olm/catalog"
)

func TestCommunityCatalog(t *testing.T) {
	dir := os.DirFS(filepath.Join(testdata.Dir(t), "catalogs"))
	config, err := declcfg.LoadFS(context.Background(), dir, declcfg.WithConcurrency(1))
	checktest.OK(t, err)
	contents := checktest.Get(catalog.Load(t.Context(), dir, catalog.Options{}))(t)
	compareContents(t, config, contents.Contents)

	_, err = declcfg.ConvertToModel(*config)
	if err == nil {
		t.Fatal("the tools accept the catalog")
	}
	their, our := leaves(err.Error()), leaves(contents.Validate().Error())
	checktest.SameIn(t, "(-theirs +ours)", without(their, stranded), without(our, stranded, skipRange))
	// Stranded entries: the tools walk through skipped ones, and so find fewer.
	theirStranded, ourStranded := channelsWith(their, stranded), channelsWith(our, stranded)
	if len(theirStranded) != 8 || len(ourStranded) != 17 {
		t.Errorf("stranded entries in %d and %d channels", len(theirStranded), len(ourStranded))
	}
	for _, ch := range theirStranded {
		if !slices.Contains(ourStranded, ch) {
			t.Errorf("%s has stranded entries for the tools alone", ch)
		}
	}
}

func channelsWith(all []string, text string) []string {
	var channels []string
	for _, leaf := range all {
		if place, _, ok := strings.Cut(leaf, " / "+text); ok {
			channels = append(channels, place)
		}
	}
	return channels
}

// compareContents compares what the two read: names, edges, properties.
func compareContents(t *testing.T, config *declcfg.DeclarativeConfig, contents *olm.Contents) {
	t.Helper()
	for _, p := range config.Packages {
		if our := contents.Package(p.Name); our == nil || our.DefaultChannel != p.DefaultChannel {
			t.Errorf("package %s: %v", p.Name, our)
		}
	}
	entries := 0
	for _, ch := range config.Channels {
		our := contents.Package(ch.Package).Channel(ch.Name)
		if our == nil || len(our.Entries) != len(ch.Entries) {
			t.Errorf("channel %s of %s: %v", ch.Name, ch.Package, our)
			continue
		}
		for i, e := range ch.Entries {
			entries++
			got := our.Entries[i]
			want := declcfg.ChannelEntry{Name: got.Name, Replaces: got.Replaces, Skips: got.Skips, SkipRange: got.SkipRange}
			if diff := cmp.Diff(e, want); diff != "" {
				t.Errorf("entry %s (-theirs +ours):\n%s", e.Name, diff)
			}
		}
	}
	for _, b := range config.Bundles {
		our := contents.Package(b.Package).Bundle(b.Name)
		if our == nil || our.Image != b.Image || len(our.Properties) != len(b.Properties) {
			t.Errorf("bundle %s: %v", b.Name, our)
			continue
		}
		for i, p := range b.Properties {
			if p.Type != our.Properties[i].Type || !sameJSON(t, p.Value, our.Properties[i].Value) {
				t.Errorf("bundle %s: property %s and %s", b.Name, p, our.Properties[i].Value)
			}
		}
	}
	t.Logf("%d packages, %d channels, %d entries, %d bundles", len(config.Packages), len(config.Channels), entries, len(config.Bundles))
}

// sameJSON: the tools encode values again, with sorted keys and other numbers.
func sameJSON(t *testing.T, a, b json.RawMessage) bool {
	t.Helper()
	var x, y any
	checktest.OK(t, json.Unmarshal(a, &x))
	checktest.OK(t, json.Unmarshal(b, &y))
	return cmp.Equal(x, y)
}

// BenchmarkCommunityCatalog loads, orders and checks the real catalog in both
// ways.
func BenchmarkCommunityCatalog(b *testing.B) {
	text := checktest.Get(os.ReadFile(filepath.Join(testdata.Dir(b), "catalogs", "community.jsonl")))(b)
	b.Run("ours", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			c, err := catalog.Read(b.Context(), bytes.NewReader(text), "", catalog.Options{})
			if err != nil || c.Validate() == nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("theirs", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			config := checktest.Get(declcfg.LoadReader(bytes.NewReader(text)))(b)
			if _, err := declcfg.ConvertToModel(*config); err == nil {
				b.Fatal("accepted")
			}
		}
	})
}
