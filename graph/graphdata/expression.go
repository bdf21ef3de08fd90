package graphdata

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// CompileFrom compiles the expression of a blocked edge. The trees are written
// for the regular expressions of Rust, which the update service uses. They and
// Go's agree on all that trees hold today; where they would not, the text is
// refused rather than read in another sense. An expression is searched for in the
// complete version of a source, build included, and is not anchored.
//
// The error reports that the text has more than 1024 bytes, is one of
// [regexp/syntax], or names the construct that has two meanings.
func CompileFrom(text string) (*regexp.Regexp, error) {
	if len(text) > maxExpression {
		return nil, &LimitError{What: limitExpression, Max: maxExpression}
	}
	return compile(text)
}

// compile is CompileFrom without the limit.
func compile(text string) (*regexp.Regexp, error) {
	// Parsing before compiling: what is refused need not become a program.
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	if construct := differs(text, parsed); construct != "" {
		return nil, fmt.Errorf("%q means something else in the update service's regular expressions", construct)
	}
	return regexp.Compile(text)
}

// differs returns the first construct that Go accepts and Rust's regular
// expressions read otherwise or not at all; "" if absent. The text is one that Go
// can parse.
func differs(text string, parsed *syntax.Regexp) string {
	class := false // within brackets
	first := 0     // where the elements of the class begin
	for i := 0; i < len(text); i++ {
		rest := text[i:]
		switch c := text[i]; {
		case c == '\\':
			if e := escape(rest); e != "" {
				return e
			}
			i++ // what is escaped
		case class && c == ']' && i > first:
			class = false
		case class && c == '[' && !strings.HasPrefix(rest, "[:"):
			return "["
		case class && c == '[': // a class with a name, as [:alpha:]
			end := strings.Index(rest[2:], ":]")
			if end < 0 {
				return "["
			}
			i += 2 + end + 1
		case class:
			for _, operator := range []string{"&&", "--", "~~"} {
				if strings.HasPrefix(rest, operator) {
					return operator
				}
			}
		case c == '[':
			class, first = true, i+1
			if strings.HasPrefix(text[first:], "^") {
				first++
				i++
			}
		case c == '{':
			if !repetition.MatchString(rest) {
				return "{"
			}
		}
	}
	seen := map[string]bool{}
	for _, name := range parsed.CapNames() {
		if name != "" && seen[name] {
			return "(?P<" + name + ">"
		}
		seen[name] = true
	}
	return ""
}

var repetition = regexp.MustCompile(`^\{[0-9]+(,[0-9]*)?\}`)

// escape returns the escape at the beginning of text if it differs.
func escape(text string) string {
	if len(text) < 2 {
		return ""
	}
	switch c := text[1]; {
	case strings.IndexByte("<>QE", c) >= 0, '0' <= c && c <= '9':
		return text[:2]
	case strings.HasPrefix(text, `\b{`):
		return text[:3]
	}
	return ""
}
