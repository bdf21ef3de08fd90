package oci

import (
	"errors"
	"strings"
)

// The names of whiteouts.
const (
	whiteout       = ".wh."     // before the name of the removed entry
	whiteoutAll    = ".wh..opq" // after that: removes all that lower layers have beside it
	whiteoutSystem = ".wh."     // after that: of file systems that make layers; no file
)

// whiteout removes what lower layers have in a directory: what the whiteout names,
// whose name comes without its beginning.
func (t *tree) whiteout(dir, name string) error {
	switch {
	case name == whiteoutAll:
		if n := t.get(dir); n != nil && n.mode.IsDir() {
			t.removeLower(n)
		}
		return nil
	case strings.HasPrefix(name, whiteoutSystem):
		return nil
	case name == "" || name == "." || name == "..":
		return errors.New("a whiteout of nothing")
	}
	parent := t.get(dir)
	if parent == nil {
		return nil
	}
	n := parent.children[name]
	if n == nil {
		return nil
	}
	if n.mode.IsDir() {
		t.removeLower(n)
	}
	if n.layer < t.layer {
		delete(parent.children, name)
	}
	return nil
}

// removeLower removes what lower layers have in a directory. It need not look twice
// in one layer, which only adds its own entries.
func (t *tree) removeLower(dir *node) {
	if dir.cleared == t.layer {
		return
	}
	dir.cleared = t.layer
	for name, n := range dir.children {
		if n.layer < t.layer {
			delete(dir.children, name)
		} else if n.mode.IsDir() {
			t.removeLower(n)
		}
	}
}
