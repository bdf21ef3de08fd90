package catalog

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/internal/regular"
)

// indexIgnore names the files that exclude others from a catalog, by the
// patterns of gitignore.
const indexIgnore = ".indexignore"

const maxIgnoreBytes = 1 << 20

// ignoreRules are the patterns of all .indexignore files read so far, from the
// root down. The last pattern that matches a file, or a directory above it,
// decides. So, unlike in git, a file below an excluded directory can be taken
// back in: "**/*" and "!*.yaml" leave the YAML files of the whole tree.
type ignoreRules []ignoreRule

type ignoreRule struct {
	dir      string   // where the file lies, "." for the root
	segments []string // of the pattern; a single one matches in any depth
	anchored bool     // the pattern starts at dir
	dirOnly  bool
	include  bool
}

// readDir reads the patterns of a directory, if it has any.
func (r *ignoreRules) readDir(fsys fs.FS, dir string) error {
	f, err := regular.Open(fsys, path.Join(dir, indexIgnore))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxIgnoreBytes+1))
	if err != nil {
		return err
	}
	if len(text) > maxIgnoreBytes {
		return errors.New(path.Join(dir, indexIgnore) + " is larger than 1 MiB")
	}
	for line := range strings.Lines(string(text)) {
		// Blanks before a pattern do not count, unlike in git.
		if rule, ok := parseIgnore(dir, strings.TrimLeft(strings.TrimRight(line, "\r\n"), " \t")); ok {
			*r = append(*r, rule)
		}
	}
	return nil
}

func parseIgnore(dir, line string) (rule ignoreRule, ok bool) {
	if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
		return ignoreRule{}, false
	}
	rule.dir = dir
	line, rule.include = strings.CutPrefix(line, "!")
	if strings.HasSuffix(line, `\ `) {
		line = strings.TrimSuffix(line, `\ `) + " "
	} else {
		line = strings.TrimRight(line, " ")
	}
	line, rule.dirOnly = strings.CutSuffix(line, "/")
	rule.anchored = strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	rule.segments = strings.Split(line, "/")
	return rule, line != ""
}

// match reports whether a file is excluded.
func (r ignoreRules) match(file string) bool {
	for _, rule := range slices.Backward(r) {
		if rule.match(file) {
			return !rule.include
		}
	}
	return false
}

func (r *ignoreRule) match(file string) bool {
	if r.dir != "." {
		rest, ok := strings.CutPrefix(file, r.dir+"/")
		if !ok {
			return false
		}
		file = rest
	}
	names := strings.Split(file, "/")
	if r.anchored {
		// A pattern that matches a directory excludes what is below it.
		for n := 1; n <= len(names); n++ {
			if (n < len(names) || !r.dirOnly) && matchSegments(r.segments, names[:n]) {
				return true
			}
		}
		return false
	}
	if r.dirOnly {
		names = names[:len(names)-1]
	}
	return slices.ContainsFunc(names, func(name string) bool { return matchName(r.segments[0], name) })
}

// matchSegments matches a whole path. "**" stands for any number of
// directories; at the end, for what is below one.
func matchSegments(pattern, names []string) bool {
	for len(pattern) > 0 {
		if pattern[0] == "**" {
			if len(pattern) == 1 {
				return len(names) > 0
			}
			for i := range names {
				if matchSegments(pattern[1:], names[i:]) {
					return true
				}
			}
			return false
		}
		if len(names) == 0 || !matchName(pattern[0], names[0]) {
			return false
		}
		pattern, names = pattern[1:], names[1:]
	}
	return len(names) == 0
}

// matchName matches a pattern with * ? and [...]; a malformed one matches
// nothing.
func matchName(pattern, name string) bool {
	if strings.HasPrefix(pattern, "[!") {
		pattern = "[^" + pattern[2:]
	}
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}
