package graphdata

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// file is a YAML file that is being read. Its faults are of three kinds: failed,
// stricter and warned.
type file struct {
	loader *loader
	name   string
	bad    bool // the file counts for nothing
}

// failed reports what no reader accepts.
func (f *file) failed(n *yaml.Node, field, rule, format string, args ...any) {
	f.bad = true
	f.report(false, n, field, rule, fmt.Sprintf(format, args...))
}

// stricter reports what a strict Load refuses and an update service accepts.
func (f *file) stricter(n *yaml.Node, field, rule, format string, args ...any) {
	if f.loader.opts.Compat {
		f.warned(n, field, rule, format, args...)
		return
	}
	f.failed(n, field, rule, format, args...)
}

// warned reports what every reader accepts.
func (f *file) warned(n *yaml.Node, field, rule, format string, args ...any) {
	f.report(true, n, field, rule, fmt.Sprintf(format, args...))
}

func (f *file) report(warning bool, n *yaml.Node, field, rule, message string) {
	p := Problem{File: f.name, Field: field, Rule: rule, Message: message, Warning: warning}
	if n != nil {
		p.Line, p.Column = n.Line, n.Column
	}
	f.loader.add(p)
}

// open reads a file that is one YAML document. The node is nil if it is not; the
// problem is reported then. The error ends the reading of the tree.
func (l *loader) open(name string) (*file, *yaml.Node, error) {
	f := &file{loader: l, name: name}
	text, stop, err := l.read(name)
	if stop != nil {
		return nil, nil, stop
	}
	if err != nil {
		f.bad = true
		l.unread(name, err)
		return f, nil, nil
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	var document, second yaml.Node
	if err := d.Decode(&document); err != nil {
		if err == io.EOF {
			f.failed(nil, "", ruleYAML, "is empty")
		} else {
			f.syntax(err)
		}
		return f, nil, nil
	}
	if err := d.Decode(&second); err == nil {
		f.failed(&second, "", ruleDocuments, "has more than one document, of which one would be ignored")
		return f, nil, nil
	} else if err != io.EOF {
		f.syntax(err)
		return f, nil, nil
	}
	if !f.aliases(&document, text) || !f.depth(&document, 0) {
		return f, nil, nil
	}
	return f, document.Content[0], nil
}

var yamlErrorLine = regexp.MustCompile(`^yaml: line ([0-9]+): `)

// syntax reports an error of the YAML reader, whose text has the line.
func (f *file) syntax(err error) {
	n, text := &yaml.Node{}, err.Error()
	if m := yamlErrorLine.FindStringSubmatch(text); m != nil {
		n.Line, _ = strconv.Atoi(m[1]) // a number that is too large gives no line
		text = text[len(m[0]):]
	}
	f.failed(n, "", ruleYAML, "%s", bounded.Text(strings.TrimPrefix(text, "yaml: "), bounded.MaxQuoted))
}

// aliases checks that a document has none or, under Compat, that what they stand
// for is within the limit of a file.
func (f *file) aliases(document *yaml.Node, text []byte) bool {
	if !bytes.ContainsRune(text, '*') {
		return true
	}
	n := firstAlias(document)
	if n == nil {
		return true
	}
	f.stricter(n, "", ruleAlias, "is an alias: write out what it stands for")
	if f.bad {
		return false
	}
	if expanded(document, map[*yaml.Node]int64{}, f.loader.limits.MaxFileBytes) > f.loader.limits.MaxFileBytes {
		f.limit(n, limitFileBytes, f.loader.limits.MaxFileBytes)
		return false
	}
	return true
}

// expanded is about the size of a node with its aliases replaced, and anything
// beyond limit for a larger one. An alias to a node that contains it counts as
// nothing; the YAML reader refuses it.
func expanded(n *yaml.Node, sizes map[*yaml.Node]int64, limit int64) int64 {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
		if size, ok := sizes[n]; ok {
			return size
		}
	}
	sizes[n] = 0
	size := int64(len(n.Value)) + 3
	for _, c := range n.Content {
		size += expanded(c, sizes, limit)
		if size > limit {
			break
		}
	}
	sizes[n] = size
	return size
}

func firstAlias(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n
	}
	for _, c := range n.Content {
		if a := firstAlias(c); a != nil {
			return a
		}
	}
	return nil
}

// depth checks how deep a document is nested, aliases included.
func (f *file) depth(n *yaml.Node, depth int) bool {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if depth > maxDepth {
		f.limit(n, limitDepth, maxDepth)
		return false
	}
	for _, c := range n.Content {
		if !f.depth(c, depth+1) {
			return false
		}
	}
	return true
}

// limit reports that the file passes one of its limits.
func (f *file) limit(n *yaml.Node, name string, most int64) {
	f.bad = true
	err := &LimitError{What: name, Max: most}
	f.loader.add(Problem{File: f.name, Line: n.Line, Column: n.Column, Rule: ruleLimit, Message: err.Error(), Err: err})
}

// fields are the keys and values of a map.
type fields struct {
	file    *file
	node    *yaml.Node
	where   string // "" or a prefix of field names that ends with a dot
	values  map[string]*yaml.Node
	lines   map[string]int // of all keys
	unknown []*yaml.Node   // keys
}

// mapping reads a map. If n is not one, or has a key twice, it reports that and
// returns nil.
func (f *file) mapping(n *yaml.Node, where string, known ...string) *fields {
	n = resolved(n)
	field := strings.TrimSuffix(where, ".")
	if n.Kind != yaml.MappingNode {
		f.failed(n, field, ruleType, "is %s, not a map", kindOf(n))
		return nil
	}
	m := &fields{file: f, node: n, where: where, values: map[string]*yaml.Node{}, lines: map[string]int{}}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := resolved(n.Content[i])
		if key.Kind != yaml.ScalarNode {
			f.failed(key, field, ruleType, "a key is %s, not a text", kindOf(key))
			return nil
		}
		if line, twice := m.lines[key.Value]; twice {
			f.failed(key, where+bounded.Text(key.Value, bounded.MaxQuoted), ruleDuplicateKey, "is there twice, first on line %d", line)
			return nil
		}
		m.lines[key.Value] = key.Line
		if slices.Contains(known, key.Value) {
			m.values[key.Value] = resolved(n.Content[i+1])
		} else {
			m.unknown = append(m.unknown, key)
		}
	}
	return m
}

// has reports whether a key is there.
func (m *fields) has(key string) bool { return m.values[key] != nil }

// required returns the value of a key that must be there; nil if it is not, which
// is reported.
func (m *fields) required(key string) *yaml.Node {
	n := m.values[key]
	if n == nil {
		m.file.failed(m.node, m.where+key, ruleRequired, "is a required property")
	}
	return n
}

// optional returns the text of a key that may be absent, then empty.
func (m *fields) optional(key string) string {
	n := m.values[key]
	if n == nil {
		return ""
	}
	text, _ := m.file.words(n, m.where+key)
	return text
}

// reportUnknown reports keys that nobody reads: warnings where the schema may be
// newer than this package.
func (m *fields) reportUnknown(report func(n *yaml.Node, field, rule, format string, args ...any)) {
	if m.file.loader.newer && !m.file.loader.opts.Compat {
		report = m.file.warned
	}
	for _, key := range m.unknown {
		report(key, m.where+bounded.Text(key.Value, bounded.MaxQuoted), ruleUnknownKey, "is not a known key")
	}
}

// text returns a scalar as it is written, whatever YAML takes it for: 4.20 is the
// start of a version, not a number. It reports anything but a scalar.
func (f *file) text(n *yaml.Node, field string) (text string, ok bool) {
	if n.Kind != yaml.ScalarNode {
		f.failed(n, field, ruleType, "is %s, not a text", kindOf(n))
		return "", false
	}
	return n.Value, true
}

// words returns a text for people or programs: a strict Load wants one that is not
// empty, and warns of text that other readers of YAML take for something else.
func (f *file) words(n *yaml.Node, field string) (text string, ok bool) {
	text, ok = f.text(n, field)
	switch {
	case !ok:
	case text == "" || isNull(n):
		f.stricter(n, field, ruleRequired, "is empty")
	case n.ShortTag() != "!!str":
		f.warned(n, field, ruleNotString, "must be a string, not %s: other readers of YAML need quotes", strings.TrimPrefix(n.ShortTag(), "!!"))
	}
	return text, ok
}

// version returns a version of the tree.
func (f *file) version(n *yaml.Node, field string) (version string, ok bool) {
	text, ok := f.text(n, field)
	if !ok {
		return "", false
	}
	_, err := graph.ParseVersion(text)
	if err != nil && f.loader.opts.Compat {
		if version, ok := compatVersion(text); ok {
			f.warned(n, field, ruleVersion, "%s is not a valid semver: %v", bounded.Quote(text), err)
			return version, true
		}
	}
	if err != nil {
		f.failed(n, field, ruleVersion, "%s is not a valid semver: %v", bounded.Quote(text), err)
		return "", false
	}
	if f.loader.opts.Compat {
		if _, ok := compatVersion(text); !ok {
			f.failed(n, field, ruleVersion, "%s is a version that the update service does not accept", bounded.Quote(text))
			return "", false
		}
	}
	return text, true
}

// items returns the elements of a list. An empty value is an empty list; null is
// not a list.
func (f *file) items(n *yaml.Node, field string) (items []*yaml.Node, ok bool) {
	if n.Kind == yaml.ScalarNode && n.Value == "" && n.ShortTag() == "!!null" {
		return nil, true
	}
	if n.Kind != yaml.SequenceNode {
		f.failed(n, field, ruleType, "is %s, not a list", kindOf(n))
		return nil, false
	}
	return n.Content, true
}

// resolved follows an alias.
func resolved(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

func kindOf(n *yaml.Node) string {
	switch {
	case isNull(n):
		return "null"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.MappingNode:
		return "a map"
	}
	return "a text"
}
