package graphdata

import (
	"cmp"
	"strings"
)

// PromotionOrder compares versions as the maintainers' script does where it writes
// channels: -1, 0 or 1. The texts between dots, plus signs and hyphens are compared
// one by one, the first three as numbers. So pre-releases come after their release,
// and rc.10 before rc.2. [graph.CompareVersions] is the order of SemVer.
func PromotionOrder(a, b string) int {
	split := func(v string) []string {
		return strings.Split(strings.NewReplacer("+", ".", "-", ".").Replace(v), ".")
	}
	x, y := split(a), split(b)
	for i := range min(len(x), len(y)) {
		c := cmp.Compare(x[i], y[i])
		if i < 3 {
			c = compareNumbers(x[i], y[i])
		}
		if c != 0 {
			return c
		}
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(a, b))
}

// compareNumbers compares digits of any length.
func compareNumbers(a, b string) int {
	x, y := strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y))
}
