package oci

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// cleanName returns a name without a slash at either end; "." is the root. A
// name that leads out of the tree is refused, and so is one that might. What is
// returned holds nothing else of the header in memory that the name stood in.
func cleanName(name string) (string, error) {
	if err := pathLimit.Check(int64(len(name))); err != nil {
		return "", err
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return "", errors.New("the name leads out of the tree")
		}
	}
	return strings.Clone(path.Clean(strings.TrimLeft(name, "/"))), nil
}

// hardLink makes n what another name stands for.
func (t *tree) hardLink(n *node, target string) error {
	name, err := cleanName(target)
	if err != nil {
		return fmt.Errorf("hard link to %s: %w", bounded.Quote(target), err)
	}
	other := t.get(name)
	if other == nil || other.mode.IsDir() {
		among := bounded.Join(t.paths, ", ", maxReason)
		return fmt.Errorf("hard link to %s, which is not a file among %s", bounded.Quote(target), among)
	}
	*n = *other
	n.layer = t.layer
	return nil
}

// checkLink refuses the target of a symbolic link that leads above the root.
func checkLink(dir, target string) error {
	if err := pathLimit.Check(int64(len(target))); err != nil {
		return err
	}
	fail := func(why string) error { return fmt.Errorf("symbolic link to %s %s", bounded.Quote(target), why) }
	if target == "" || !utf8.ValidString(target) {
		return fail("which is not a name")
	}
	depth := 0
	if !path.IsAbs(target) && dir != "." {
		depth = strings.Count(dir, "/") + 1
	}
	for part := range strings.SplitSeq(target, "/") {
		switch part {
		case "", ".":
		case "..":
			depth--
			if depth < 0 {
				return fail("leads out of the tree")
			}
		default:
			depth++
		}
	}
	return nil
}
