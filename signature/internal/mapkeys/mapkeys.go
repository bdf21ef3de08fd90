// Package mapkeys finds signatures in the data of ConfigMaps.
package mapkeys

import (
	"cmp"
	"slices"
	"strings"
)

// Numbered returns the keys <prefix>-<decimal number> of data in the order of their
// numbers, which may have zeros in front.
func Numbered[T any](data map[string]T, prefix string) []string {
	number := func(key string) string { return strings.TrimLeft(key[len(prefix)+1:], "0") }
	var keys []string
	for key := range data {
		digits, ok := strings.CutPrefix(key, prefix+"-")
		if ok && digits != "" && strings.Trim(digits, "0123456789") == "" {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b string) int {
		x, y := number(a), number(b)
		return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y), cmp.Compare(a, b))
	})
	return keys
}
