package catalog_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/limittest"
	"github.com/clusterupdate/clusterupdate/olm/catalog"
)

// TestLimitsTable walks the table of docs/limits.md. Limits that no test
// can reach in reasonable time are lowered.
func TestLimitsTable(t *testing.T) {
	refuses := func(limit, text string, o catalog.Options) func(t *testing.T) int64 {
		return func(t *testing.T) int64 {
			_, err := catalog.Read(t.Context(), strings.NewReader(text), "big", o)
			past := (*catalog.LimitError)(nil)
			if !errors.As(err, &past) || past.Limit != limit {
				t.Errorf("%.300v", err)
			}
			return 0
		}
	}
	files := fstest.MapFS{}
	for i := range 101 {
		files[fmt.Sprintf("f%03d", i)] = &fstest.MapFile{}
	}
	long := strings.Repeat("x", 1<<20)
	var entries []string // of which each is a head
	for i := range 1000 {
		entries = append(entries, fmt.Sprintf(`{"name":"%s%d"}`, long[:100], i))
	}
	stranded := `{"schema":"olm.package","name":"p","defaultChannel":"c"}{"schema":"olm.channel","package":"p","name":"c","entries":[` + strings.Join(entries, ",") + `]}`
	limittest.Walk(t, []limittest.Case{
		{Limit: "bytes of a file or stream", Default: 1 << 30, Bytes: 16 << 20, Run: refuses("MaxFileBytes", strings.Repeat("{}", 1<<16), catalog.Options{MaxFileBytes: 1 << 16})},
		{Limit: "bytes of an object", Default: 64 << 20, Bytes: 8 << 20, Run: refuses("MaxDocumentBytes", `{"schema":"`+long+`"}`, catalog.Options{MaxDocumentBytes: 1 << 19})},
		{Limit: "memory of an object", Default: 256 << 20, Bytes: 256 << 20, Run: func(t *testing.T) int64 {
			refuses("", `{"schema":"olm.bundle","properties":[`+strings.Repeat("{},", 1<<20)+`{}]}`, catalog.Options{})(t)
			return 0
		}},
		{Limit: "memory of all objects", Default: 4 << 30, Bytes: 16 << 20, Run: refuses("MaxMemory", strings.Repeat(`{"schema":"olm.bundle","properties":[{},{}]}`, 1000), catalog.Options{MaxMemory: 1 << 20})},
		{Limit: "files", Default: 100_000, Bytes: 1 << 20, Run: func(t *testing.T) int64 {
			_, err := catalog.Load(t.Context(), files, catalog.Options{MaxFiles: 100})
			if past := (*catalog.LimitError)(nil); !errors.As(err, &past) || past.Limit != "MaxFiles" {
				t.Errorf("%v", err)
			}
			return 0
		}},
		{Limit: "objects", Default: 1_000_000, Bytes: 4 << 20, Run: refuses("MaxDocuments", strings.Repeat(`{"schema":"x"}`, 1001), catalog.Options{MaxDocuments: 1000})},
		{Limit: "levels of nesting", Default: 200, Bytes: 1 << 20, Run: refuses("MaxDepth", `{"schema":"x","a":`+strings.Repeat("[", 200)+strings.Repeat("]", 200)+`}`, catalog.Options{})},
		{Limit: "YAML aliases in an object", Default: 1000, Bytes: 4 << 20, Run: refuses("MaxAliases", "schema: x\na: &a 1\nb: ["+strings.Repeat("*a, ", 1001)+"]\n", catalog.Options{})},
		{Limit: "problems of a catalog", Default: 10_000, Bytes: 256 << 20, Run: func(t *testing.T) int64 {
			for _, fault := range []string{"{}", "---\na\n", "---\n\ta: b\n", "---\n{]\n", `{"schema":"olm.package","name":"P"}`, `{"schema":"olm.bundle","name":"b"}`} {
				refuses("MaxProblems", strings.Repeat(fault, 10_001), catalog.Options{})(t)
			}
			return 0
		}},
		{Limit: "message of a problem", Default: 32 << 10, Bytes: 16 << 20, Run: func(t *testing.T) int64 {
			c := checktest.Get(catalog.Read(t.Context(), strings.NewReader(stranded), "big", catalog.Options{}))(t)
			cut := 0
			for _, p := range c.Problems() {
				if len(p.Message) > 32<<10 {
					t.Errorf("a message of %d bytes", len(p.Message))
				}
				if strings.HasSuffix(p.Message, " more bytes)") {
					cut++
				}
			}
			if cut == 0 || len(c.Validate().Error()) > 1<<20 {
				t.Errorf("%d messages were cut, the report has %d bytes", cut, len(c.Validate().Error()))
			}
			return 0
		}},
	})
}

// TestNegativeLimits: a limit below zero is a mistake, not an empty catalog.
func TestNegativeLimits(t *testing.T) {
	for name, o := range map[string]catalog.Options{
		"MaxFileBytes": {MaxFileBytes: -1}, "MaxDocumentBytes": {MaxDocumentBytes: -1}, "MaxFiles": {MaxFiles: -1}, "MaxDocuments": {MaxDocuments: -1}, "MaxMemory": {MaxMemory: -1},
		"MaxDepth": {MaxDepth: -1}, "MaxAliases": {MaxAliases: -1}, "MaxProblems": {MaxProblems: -1},
	} {
		_, err := catalog.Read(t.Context(), strings.NewReader(goodCatalog), "good", o)
		_, treeErr := catalog.Load(t.Context(), fstest.MapFS{}, o)
		for _, err := range []error{err, treeErr} {
			if err == nil || !strings.Contains(err.Error(), "catalog.Options: "+name+" is negative") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
