package graphdata

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// compatExtension is what the update service asks of extensions: anywhere in it.
var compatExtension = regexp.MustCompile(`ya+ml`)

// chosen reports whether a file of a directory is one to read. The others are
// problems of a severity, unless they are expected.
func (l *loader) chosen(name string, warn bool) bool {
	extension, has := extensionOf(path.Base(name))
	if l.opts.Compat && has && compatExtension.MatchString(extension) {
		return true
	}
	p := unreadEntry(name, false)
	if p == nil {
		return has && extension == "yaml"
	}
	p.Warning = warn
	l.add(*p)
	return false
}

// unreadEntry returns the problem of an entry that neither is read nor may be
// there; nil if it is read or expected.
func unreadEntry(name string, directory bool) *Problem {
	base := path.Base(name)
	extension, has := extensionOf(base)
	p := &Problem{File: name}
	switch {
	case directory && strings.HasPrefix(base, "."), !directory && expected(base), !directory && has && extension == "yaml":
		return nil
	case directory:
		p.Rule, p.Message = ruleDirectory, "is a directory, whose files are not read"
	case has:
		p.Rule, p.Message = ruleInvalidExtension, fmt.Sprintf("has an invalid extension %q", extension)
	default:
		p.Rule, p.Message = ruleMissingExtension, "is missing an extension"
	}
	return p
}

// expected reports whether a file that is not read is as it should be.
func expected(base string) bool {
	return base == "README.md" || base == "OWNERS" || strings.HasPrefix(base, ".")
}

// extensionOf returns what follows the last dot of a name. A dot at the beginning
// does not count.
func extensionOf(base string) (extension string, has bool) {
	i := strings.LastIndexByte(base, '.')
	if i <= 0 {
		return "", false
	}
	return base[i+1:], true
}
