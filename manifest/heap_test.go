package manifest_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/internal/limit"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// TestHeapOfDocument feeds the dearest documents, the largest that are accepted:
// none allocates more than a document may.
func TestHeapOfDocument(t *testing.T) {
	if israce.Enabled || testing.Short() {
		t.Skip("allocates much")
	}
	header := "kind: K\nmetadata: {name: a}\n"
	lines := func(line string) func(n int) string {
		return func(n int) string { return header + "x:\n" + strings.Repeat(line, n) }
	}
	for name, document := range map[string]func(n int) string{
		"common form":  lines("- a:\n"),
		"unusual form": lines("- {a}\n"),
		"unusual text": func(n int) string { return "kind: !!str K\nmetadata: {name: a}\nx: '" + strings.Repeat("<", n) + "'\n" },
		"many keys":    func(n int) string { return header + "x: !!map {" + numbered(n) + "}\n" },
		"aliases":      func(n int) string { return header + "x: &x {a}\ny: [" + strings.Repeat("*x,", n) + "]\n" },
		"JSON": func(n int) string {
			return `{"kind":"K","metadata":{"name":"a"},"x":[` + strings.Repeat(`{"":0},`, n) + `1]}`
		},
		"JSON of nothing": func(n int) string {
			return `{"kind":"K","metadata":{"name":"a"},"x":[` + strings.Repeat(`{},`, n) + `1]}`
		},
	} {
		t.Run(name, func(t *testing.T) {
			accepted, made := 0, uint64(0)
			for n := 12 << 20; accepted == 0 && n > 1000; n = n * 3 / 4 {
				data := []byte(document(n))
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				_, err := manifest.Parse("a", data, manifest.Limits{})
				runtime.ReadMemStats(&after)
				if spent := after.TotalAlloc - before.TotalAlloc; spent > limit.Heap {
					t.Fatalf("%d parts, %d bytes: %d MiB allocated, %v", n, len(data), spent>>20, err)
				} else if err == nil {
					accepted, made = n, spent
				} else if !errors.As(err, new(*manifest.LimitError)) {
					t.Fatal(err)
				}
			}
			t.Logf("%d parts: %d MiB", accepted, made>>20)
			if accepted == 0 {
				t.Error("none is accepted")
			}
		})
	}
}

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d: 0, ", i)
	}
	return strings.TrimSuffix(b.String(), ", ")
}
