package graphdata

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// compatExtension is what the update service asks of extensions: anywhere in it.
var compatExtension = regexp.MustCompile(`ya+ml`)

// chosen reports whether a file of a directory is one to read, and reports those
// that are not.
func (l *loader) chosen(name string) bool {
	base := path.Base(name)
	extension, has := extensionOf(base)
	if l.opts.Compat && has && compatExtension.MatchString(extension) {
		return true
	}
	switch {
	case has && extension == "yaml":
		return true
	case expected(base):
		return false
	}
	p := Problem{File: name, Rule: ruleMissingExtension, Message: "is missing an extension", Severity: SeverityWarning}
	if has {
		p.Rule, p.Message = ruleInvalidExtension, fmt.Sprintf("has an invalid extension %q", extension)
	}
	l.add(p)
	return false
}

// expected reports whether an entry that is not read is as it should be.
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
