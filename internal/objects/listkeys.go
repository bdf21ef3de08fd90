package objects

import (
	_ "embed"
	"reflect"
	"strings"
	"sync"
)

//go:generate go generate -C ../../clusterapi/memory/internal/genschema

// listKeysFile says, for fields of k8s.io/api and github.com/openshift/api, their
// list-map keys. Of k8s.io/api, "=set" marks a list that is a set, and "=atomic" a
// map or a struct that is one value. All this is in the packages' comments, which a
// program cannot see; the generator reads them.
//
//go:embed listkeys.txt
var listKeysFile string

var listKeys = sync.OnceValue(func() map[string][]string {
	m := make(map[string][]string)
	for line := range strings.Lines(listKeysFile) {
		words := strings.Fields(line)
		if len(words) > 1 {
			m[words[0]] = words[1:]
		}
	}
	return m
})

// mapKeys returns the list-map keys of a field of the struct t; nil if it has none.
// Types of neither package may say theirs in a patchMergeKey tag.
func mapKeys(t reflect.Type, f reflect.StructField) []string {
	if keys, ok := listKeys()[t.PkgPath()+"."+t.Name()+"."+f.Name]; ok && keys[0][0] != '=' {
		return keys
	}
	if key := f.Tag.Get("patchMergeKey"); key != "" {
		return []string{key}
	}
	return nil
}

// isMarked reports whether a field or a type has a mark instead of keys.
func isMarked(name, mark string) bool {
	words := listKeys()[name]
	return len(words) == 1 && words[0] == mark
}
