package manifest

import (
	"path"
	"strconv"
	"strings"
)

// BuildNames gives the manifests of components the file names that a release
// build gives them. Its zero value is ready to use, for one release. It is not
// safe for concurrent use.
type BuildNames struct {
	taken map[string]int // the number that comes next to each name
}

// Name returns the name for a component's file, whose own name has no
// directory. Components come in the order of the release's list, and their
// files in byte order. A name that begins with 0000_ is kept, so it may carry
// another component's name; any other becomes 0000_50_<component>_<name>. If
// that is taken, _2, _3, … goes before the extension. ok is false for
// image-references, which is not a manifest.
func (b *BuildNames) Name(component, file string) (name string, ok bool) {
	if file == "image-references" {
		return "", false
	}
	name = file
	if !strings.HasPrefix(file, "0000_") {
		name = "0000_50_" + component + "_" + file
	}
	if b.taken == nil {
		b.taken = make(map[string]int)
	}
	n, taken := b.taken[name]
	if !taken {
		b.taken[name] = 2
		return name, true
	}
	ext := path.Ext(name)
	stem := strings.TrimSuffix(name, ext)
	for ; ; n++ {
		next := stem + "_" + strconv.Itoa(n) + ext
		if _, taken := b.taken[next]; !taken {
			b.taken[name], b.taken[next] = n+1, 2
			return next, true
		}
	}
}
