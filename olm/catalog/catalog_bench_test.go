package catalog_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/olm"
	"github.com/clusterupdate/clusterupdate/olm/catalog"
)

func benchmarkRead(b *testing.B, text []byte, o catalog.Options) {
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		checktest.OK(b, checktest.Err(catalog.Read(b.Context(), bytes.NewReader(text), "catalog", o)))
	}
}

// BenchmarkReadCommunity loads and indexes the real catalog.
func BenchmarkReadCommunity(b *testing.B) {
	text := checktest.Get(os.ReadFile(filepath.Join(testdata.Dir(b), "catalogs", "community.jsonl")))(b)
	benchmarkRead(b, text, catalog.Options{})
}

// generatedCatalog has packages of 20 bundles in one channel, each bundle with
// as much metadata as asked for.
func generatedCatalog(packages, metadata int) []byte {
	var s bytes.Buffer
	padding := bytes.Repeat([]byte("x"), metadata)
	for p := range packages {
		fmt.Fprintf(&s, `{"schema":"olm.package","name":"p%d","defaultChannel":"c"}`+"\n"+`{"schema":"olm.channel","package":"p%d","name":"c","entries":[{"name":"p%d.v0"}`, p, p, p)
		for v := 1; v < 20; v++ {
			fmt.Fprintf(&s, `,{"name":"p%d.v%d","replaces":"p%d.v%d"}`, p, v, p, v-1)
		}
		s.WriteString("]}\n")
		for v := range 20 {
			fmt.Fprintf(&s, `{"schema":"olm.bundle","package":"p%d","name":"p%d.v%d","image":"registry.example/p%d:v%d","properties":[{"type":"olm.package","value":{"packageName":"p%d","version":"1.%d.0"}},{"type":"olm.gvk","value":{"group":"p%d.example","version":"v1","kind":"K"}}`, p, p, v, p, v, p, v, p)
			if metadata > 0 {
				fmt.Fprintf(&s, `,{"type":"olm.csv.metadata","value":{"description":"%s"}}`, padding)
			}
			s.WriteString("]}\n")
		}
	}
	return s.Bytes()
}

func BenchmarkRead(b *testing.B) {
	for _, packages := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("bundles=%d", 20*packages), func(b *testing.B) {
			benchmarkRead(b, generatedCatalog(packages, 0), catalog.Options{})
		})
	}
}

// BenchmarkReadContent reads 100 MB of bundles that hold 50 KB of metadata each.
func BenchmarkReadContent(b *testing.B) {
	text := generatedCatalog(100, 50_000)
	for _, drop := range []bool{false, true} {
		b.Run(fmt.Sprintf("drop=%t", drop), func(b *testing.B) {
			benchmarkRead(b, text, catalog.Options{DropContent: drop})
		})
	}
}

// BenchmarkNewContents orders and indexes what is decoded already.
func BenchmarkNewContents(b *testing.B) {
	for _, packages := range []int{10, 100, 1000} {
		var blobs catalog.Blobs
		for p := range packages {
			name := fmt.Sprintf("p%d", p)
			channel := catalog.ChannelBlob{Package: name, Name: "c"}
			for v := range 20 {
				entry := catalog.ChannelEntry{Name: fmt.Sprintf("%s.v%d", name, v)}
				if v > 0 {
					entry.Replaces = fmt.Sprintf("%s.v%d", name, v-1)
				}
				channel.Entries = append(channel.Entries, entry)
				blobs.Bundles = append(blobs.Bundles, catalog.BundleBlob{
					Package: name, Name: entry.Name, Image: "registry.example/" + name,
					Properties: []olm.Property{property(olm.PropertyPackage, fmt.Sprintf(`{"packageName":%q,"version":"1.%d.0"}`, name, v))},
				})
			}
			blobs.Packages = append(blobs.Packages, catalog.PackageBlob{Name: name, DefaultChannel: "c"})
			blobs.Channels = append(blobs.Channels, channel)
		}
		b.Run(fmt.Sprintf("entries=%d", 20*packages), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if c := catalog.New(blobs); len(entries(c)) != 20*packages {
					b.Fatal(len(entries(c)))
				}
			}
		})
	}
}
