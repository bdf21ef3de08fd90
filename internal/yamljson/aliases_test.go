package yamljson_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/yamljson"
)

// laughs is a document in which each list stands for ten of the one before.
func laughs(levels int) string {
	var b strings.Builder
	b.WriteString("l0: &l0 [lol, lol]\n")
	for i := 1; i <= levels; i++ {
		fmt.Fprintf(&b, "l%d: &l%d [%s]\n", i, i, strings.Join(strings.Split(strings.Repeat(fmt.Sprintf("*l%d,", i-1), 10), ",")[:10], ","))
	}
	return b.String()
}

func TestMeasureAliases(t *testing.T) {
	const limit = 1 << 20
	for _, tt := range []struct {
		name, text string
		aliases    int
		least      int64
		most       int64
	}{
		{"none", "a: b\n", 0, 5, 5},
		{"signs that are not aliases", "a: \"*b & c\"\n", 0, 5, 30},
		{"one", "a: &x " + strings.Repeat("y", 1000) + "\nb: *x\n", 1, 2000, 2100},
		{"of a map", "a: &x {k: vvvvvvvvvv}\nb: *x\nc: *x\n", 2, 30, 90},
		{"aliases of aliases", laughs(9), 90, limit + 1, 1 << 40},
		{"an alias within itself", "a: &x [b, *x]\n", 1, 1, 100},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n, size, err := yamljson.MeasureAliases([]byte(tt.text), limit)
			if err != nil {
				t.Fatal(err)
			}
			if n != tt.aliases || size < tt.least || size > tt.most {
				t.Errorf("%d aliases, %d bytes, want %d and between %d and %d", n, size, tt.aliases, tt.least, tt.most)
			}
		})
	}
	if _, _, err := yamljson.MeasureAliases([]byte("a: &x [*x\n"), limit); err == nil {
		t.Error("no error for what is not YAML")
	}
}
