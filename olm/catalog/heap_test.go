package catalog_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/olm/catalog"
)

// TestMemory feeds the dearest catalogs that MaxMemory lets pass: reading them
// allocates no more than that, besides some copies of the text.
func TestMemory(t *testing.T) {
	if israce.Enabled {
		t.Skip("the race detector allocates too")
	}
	const most = 4 << 20
	list := func(before, item, after string) func(n int) string {
		return func(n int) string { return before + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + after }
	}
	property := func(text string) func(int) string {
		return list(`{"schema":"olm.bundle","package":"p","name":"p.v1","properties":[{"type":"olm.package","value":{"packageName":"p","version":"1.0.0"}},`, text, `]}`)
	}
	for name, text := range map[string]func(n int) string{
		"properties":         property(`{}`),
		"null values":        property(`{"value":null}`),
		"provided APIs":      property(`{"type":"olm.gvk","value":{}}`),
		"required APIs":      property(`{"type":"olm.gvk.required","value":{}}`),
		"required packages":  property(`{"type":"olm.package.required","value":{"versionRange":"1"}}`),
		"required labels":    property(`{"type":"olm.label.required","value":{}}`),
		"labels":             property(`{"type":"olm.label","value":{}}`),
		"packages":           property(`{"type":"olm.package","value":{"version":"1.0.0"}}`),
		"constraints":        property(`{"type":"olm.constraint","value":{"all":{"constraints":[` + strings.Repeat(`{"gvk":{}},`, 500) + `{"gvk":{}}]}}}`),
		"nested constraints": property(`{"type":"olm.constraint","value":` + strings.Repeat(`{"not":{"constraints":[`, 50) + `{"gvk":{}}` + strings.Repeat(`]}}`, 50) + `}`),
		"broken constraints": property(`{"type":"olm.constraint","value":{"all":{"constraints":[` + strings.Repeat(`{},`, 500) + `{}]}}}`),
		"CSV metadata":       property(`{"type":"olm.csv.metadata","value":{"customResourceDefinitions":{"owned":[` + strings.Repeat(`{},`, 50) + `{}]},"crdDescriptions":{"owned":[` + strings.Repeat(`{},`, 50) + `{}]},"installModes":[{},{}]}}`),
		"images":             list(`{"schema":"olm.bundle","relatedImages":[`, `{}`, `]}`),
		"entries":            list(`{"schema":"olm.package","name":"p","defaultChannel":"c"}{"schema":"olm.channel","package":"p","name":"c","entries":[`, `{}`, `]}`),
		"skips":              list(`{"schema":"olm.channel","package":"p","name":"c","entries":[{"name":"a","skips":[`, `""`, `]}]}`),
		"deprecations":       list(`{"schema":"olm.deprecations","package":"p","entries":[`, `{}`, `]}`),
		"keys":               list(`{"schema":"x"`, `,"a":0`, `}`),
		"other keys":         func(n int) string { return `{"schema":"x"` + strings.Repeat(`,"a":0`, n) + `}` },
		"YAML":               func(n int) string { return "schema: x\na:\n" + strings.Repeat("- {a}\n", n) },
		"YAML aliases":       func(n int) string { return "schema: x\na: &a {a}\nb: [" + strings.Repeat("*a,", min(n, 900)) + "]\n" },
	} {
		t.Run(name, func(t *testing.T) {
			for n := 1 << 14; ; n = n / 2 {
				input := text(n)
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				_, err := catalog.Read(t.Context(), strings.NewReader(input), "a", catalog.Options{MaxMemory: most})
				runtime.ReadMemStats(&after)
				made := after.TotalAlloc - before.TotalAlloc
				if err == nil {
					t.Logf("%d: %d bytes, %d made", n, len(input), made)
				}
				if limit := uint64(most + 8*len(input) + 2<<20); made > limit {
					t.Errorf("%d: %d bytes of text: %d allocated (%v)", n, len(input), made, err)
				}
				if err == nil {
					return
				}
				if !errors.As(err, new(*catalog.LimitError)) {
					t.Fatal(err)
				}
			}
		})
	}
}
