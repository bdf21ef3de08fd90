package dump

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/limit"
	"github.com/clusterupdate/clusterupdate/internal/yamljson"
)

// document is one document of a file, as JSON text.
type document struct {
	number, line int // from 1
	size         int // in the file
	text         string
}

// fault is why a part of a file cannot be used.
type fault struct {
	document, line int // 0 for the file as a whole
	err            error
	// lost reports that objects may have been there, as in a heap not all that is
	// YAML is one; kinds are the names of theirs, as far as the text shows them.
	lost  bool
	kinds []string
}

// decoder decodes the documents of one file after another. It is not safe for
// concurrent use.
type decoder struct {
	depth    int
	expanded int64 // bytes that a document may have with its aliases replaced
	fast     yamljson.Decoder
}

func newDecoder(o *Options) *decoder {
	return &decoder{depth: o.MaxDepth, expanded: o.MaxFileBytes, fast: yamljson.Decoder{MaxDepth: o.MaxDepth}}
}

// stream calls use for each document of a file that is not empty, and bad for each
// that cannot be decoded. An error is ctx's or use's.
func (d *decoder) stream(ctx context.Context, data []byte, use func(document) error, bad func(fault)) error {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if begin := bytes.TrimLeft(data, " \t\r\n"); len(begin) > 0 && begin[0] == '{' {
		if again, err := d.jsonStream(ctx, data, use, bad); !again {
			return err
		}
	}
	return d.yamlStream(ctx, data, use, bad)
}

// jsonStream reads JSON objects one after another. What cannot be read ends it,
// since nothing says where the next one starts. again is true for a file whose
// first object is not JSON, but may be YAML.
func (d *decoder) jsonStream(ctx context.Context, data []byte, use func(document) error, bad func(fault)) (again bool, err error) {
	d.fast.MaxValues = yamljson.MaxValues(len(data))
	if len(data) > reserved {
		values, _ := limit.Shape(data)
		d.fast.Reserve(int(values))
	}
	rest, line := string(data), 1
	for number := 1; ; number++ {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		begin := strings.TrimLeft(rest, " \t\r\n")
		line += strings.Count(rest[:len(rest)-len(begin)], "\n")
		rest = begin
		if rest == "" {
			return false, nil
		}
		text, n, err := d.json(rest)
		if n == 0 {
			if number == 1 && !isLimit(err) {
				return true, nil
			}
			if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
				line += strings.Count(rest[:min(int(syntax.Offset), len(rest))], "\n")
			}
			bad(fault{number, line, err, true, namedKinds([]byte(rest))})
			return false, nil
		}
		if err != nil {
			bad(fault{number, line, err, true, namedKinds([]byte(rest[:n]))})
		} else if err := use(document{number, line, n, text}); err != nil {
			return false, err
		}
		line += strings.Count(rest[:n], "\n")
		rest = rest[n:]
	}
}

// reserved is the size of a file from which room for its values is made at once.
const reserved = 1 << 20

// json returns the text of the JSON value at the beginning of s as encoding/json
// writes it, and its length there, which is 0 if it cannot be read to its end.
func (d *decoder) json(s string) (text string, n int, err error) {
	fast, n, ok := d.fast.DecodeJSON(s)
	if ok {
		if !utf8.ValidString(s[:n]) {
			return "", n, errUTF8
		}
		return string(fast), n, nil
	}
	if d.fast.Full() {
		return "", 0, heapError()
	}
	n = valueEnd(s, 0)
	raw := []byte(s[:n])
	if !json.Valid(raw) {
		err := json.Unmarshal([]byte(s), new(json.RawMessage))
		if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) && syntax.Offset >= int64(len(s)) {
			err = io.ErrUnexpectedEOF
		}
		return "", 0, err
	}
	if !utf8.Valid(raw) {
		return "", n, errUTF8
	}
	if _, depth := limit.Shape(raw); depth > int64(d.depth) {
		return "", n, d.depthError()
	}
	var value any
	if err := limit.JSON(raw, &value); err != nil {
		return "", n, err
	}
	return "", n, utiljson.Unmarshal(raw, &value) // a number that is too large
}

var errUTF8 = errors.New("it has characters that are not UTF-8")

// yamlStream reads YAML documents, separated by lines "---".
func (d *decoder) yamlStream(ctx context.Context, data []byte, use func(document) error, bad func(fault)) error {
	clean := yamljson.Clean(data)
	rest := string(data)
	if !clean {
		rest = strings.ReplaceAll(rest, "\r\n", "\n")
	}
	if rest != "" && rest[len(rest)-1] != '\n' {
		rest += "\n"
	}
	line, number := 1, 0
	for rest != "" {
		if err := ctx.Err(); err != nil {
			return err
		}
		skipped, text, after := nextDocument(rest)
		at := line + skipped
		line += strings.Count(rest[:len(rest)-len(after)], "\n")
		rest = after
		if blank(text) {
			continue
		}
		number++
		json, err := d.yaml(text, clean)
		if err != nil {
			at, err = whereIn(at, strings.Count(text, "\n"), err)
			bad(fault{number, at, err, true, namedKinds([]byte(text))})
			continue
		}
		if json == "" {
			number--
			continue
		}
		if err := use(document{number, at, len(text), json}); err != nil {
			return err
		}
	}
	return nil
}

// nextDocument cuts the next document off a stream whose lines all have an end. The
// document starts with its line "---" if it has one; skipped is how many lines are
// before it. A line "---" or "..." in the first column is never a part of a value.
func nextDocument(s string) (skipped int, text, rest string) {
	start := 0
	content, directive := false, false
	for at := 0; at < len(s); {
		end := at + strings.IndexByte(s[at:], '\n') + 1
		line := s[at:end]
		switch {
		case isMarker(line, "---"):
			switch {
			case content:
				return skipped, s[start:at], s[at:]
			case directive: // the document of a directive is behind the marker
				content = true
			default: // everything before it is blank
				skipped += strings.Count(s[start:at], "\n")
				start = at
				content = strings.TrimSpace(line[len("---"):]) != ""
			}
		case isMarker(line, "..."):
			return skipped, s[start:at], s[end:]
		case !content && line[0] == '%':
			directive = true
		case !content:
			line = strings.TrimSpace(line)
			content = line != "" && line[0] != '#'
		}
		at = end
	}
	return skipped, s[start:], ""
}

func isMarker(line, marker string) bool {
	return strings.HasPrefix(line, marker) && strings.ContainsRune(" \t\r\n", rune(line[len(marker)]))
}

// blank reports whether a document has nothing but its marker and comments.
func blank(text string) bool {
	if isMarker(text+"\n", "---") {
		text = text[len("---"):]
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line != "" && line[0] != '#' {
			return false
		}
	}
	return true
}

// yaml returns the JSON text of a YAML document, "" for an empty one.
func (d *decoder) yaml(text string, clean bool) (string, error) {
	if clean {
		d.fast.MaxValues = yamljson.MaxValues(len(text))
		if json, ok := d.fast.Decode(text); ok {
			return string(json), nil
		}
		if d.fast.Full() {
			return "", heapError()
		}
	}
	if !utf8.ValidString(text) {
		return "", errUTF8
	}
	size, err := yamljson.Measure(text, d.expanded)
	if isLimit(err) {
		return "", err
	}
	if err != nil { // what cannot be measured is not converted
		return "", errors.New(bounded.Text(err.Error(), bounded.MaxQuoted))
	}
	if size.Aliases > 0 && size.Bytes > d.expanded {
		return "", &clusterapi.LimitError{Limit: "MaxFileBytes", Max: d.expanded, What: "bytes with aliases replaced"}
	}
	json, err := yaml.YAMLToJSON([]byte(text))
	if err != nil { // some errors repeat what they are about
		return "", errors.New(bounded.Text(err.Error(), bounded.MaxQuoted))
	}
	if string(json) == "null" {
		return "", nil
	}
	if _, depth := limit.Shape(json); depth > int64(d.depth) {
		return "", d.depthError()
	}
	return string(json), nil
}

func (d *decoder) depthError() error {
	return &clusterapi.LimitError{Limit: "MaxDepth", Max: int64(d.depth), What: "levels of maps and lists"}
}

// heapError is about a document that would make too much, whatever the options.
func heapError() error {
	return &clusterapi.LimitError{Max: limit.Heap, What: "bytes of memory for a document"}
}

var yamlLine = regexp.MustCompile(`^(?:error converting YAML to JSON: )?yaml: line ([0-9]+): `)

// whereIn takes the line out of an error of a document that starts at line and has
// so many.
func whereIn(line, lines int, err error) (int, error) {
	m := yamlLine.FindStringSubmatch(err.Error())
	if m == nil {
		return line, err
	}
	if n, fail := strconv.Atoi(m[1]); fail == nil && n > 0 {
		line += min(n, lines) - 1
	}
	return line, errors.New("yaml: " + err.Error()[len(m[0]):])
}

// listed is what a document says about all objects of a kind.
type listed struct {
	// kind is a typed list's kind; for a v1 List it is the kind of its items, where
	// all have the same. It is empty if absent, or several.
	kind schema.GroupVersionKind
	// typed reports that it is not a v1 List; mixed that a v1 List has items of
	// several kinds.
	typed, mixed bool
	// partial reports that there are more: the list was cut into pages, or an item
	// cannot be used.
	partial        bool
	document, line int
}

// objects reads the objects of a document, and what list it is, nil for none. of is
// the kind of an object that does not say one.
func objects(doc document, of schema.GroupVersionKind, add func(*object) error, bad func(fault)) (*listed, error) {
	fail := func(err error) {
		// A map or list without these is something else that happens to be YAML; a
		// single word may be the beginning of an object.
		lost := field(doc.text, "apiVersion") != "" || field(doc.text, "items") != "" || doc.text[0] != '{' && doc.text[0] != '['
		bad(fault{doc.number, doc.line, err, lost, kindsOf(doc.text)})
	}
	if doc.text[0] != '{' {
		fail(errors.New("it is not an object"))
		return nil, nil
	}
	if !isList(doc.text) {
		o, err := readObject(doc.text, of)
		if err != nil {
			fail(err)
			return nil, nil
		}
		o.document = doc.number
		return nil, add(o)
	}
	var items, metadata string
	for key, value := range fields(doc.text) {
		switch key {
		case "items":
			items = value
		case "metadata":
			metadata = value
		}
	}
	if items != "null" && (items == "" || items[0] != '[') {
		fail(errors.New("it is a list without items"))
		return nil, nil
	}
	l := &listed{document: doc.number, line: doc.line}
	if token, ok := textOf(field(metadata, "continue")); ok && token != "" {
		l.partial = true
	}
	version, _ := textOf(field(doc.text, "apiVersion"))
	kind, _ := textOf(field(doc.text, "kind"))
	l.typed = kind != "List"
	if l.typed {
		gv, err := schema.ParseGroupVersion(version)
		if err != nil || gv.Version == "" {
			fail(fmt.Errorf("%s: apiVersion %s does not say which", bounded.Quote(kind), bounded.Quote(version)))
			return nil, nil
		}
		l.kind = gv.WithKind(strings.TrimSuffix(kind, "List"))
	}
	i := -1
	for item := range elements(items) {
		i++
		o, err := readItem(item, l)
		if err != nil {
			l.partial = true
			bad(fault{doc.number, doc.line, fmt.Errorf("items[%d]: %w", i, err), true, lostKinds(item, l.kind)})
			continue
		}
		if !l.typed {
			l.mixed = l.mixed || i > 0 && l.kind.Kind != "" && l.kind.GroupKind() != o.gvk.GroupKind()
			l.kind = o.gvk
		}
		o.document = doc.number
		if err := add(o); err != nil {
			return nil, err
		}
	}
	if l.mixed {
		l.kind = schema.GroupVersionKind{}
	}
	return l, nil
}

func readItem(item string, of *listed) (*object, error) {
	if item[0] != '{' {
		return nil, errors.New("it is not an object")
	}
	if isList(item) {
		return nil, errors.New("it is a list itself")
	}
	if !of.typed {
		return readObject(item, schema.GroupVersionKind{})
	}
	return readObject(item, of.kind)
}

// isList reports whether an object is a v1 List or a typed list.
func isList(text string) bool {
	kind, _ := textOf(field(text, "kind"))
	if !strings.HasSuffix(kind, "List") {
		return false
	}
	version, _ := textOf(field(text, "apiVersion"))
	return kind == "List" && version == "v1" || field(text, "items") != ""
}

// kindsOf is namedKinds for what can be decoded.
func kindsOf(text string) []string {
	if kind, ok := textOf(field(text, "kind")); ok && kind != "" && kind != "List" {
		return []string{strings.TrimSuffix(kind, "List")}
	}
	var out []string
	for item := range elements(field(text, "items")) {
		out = append(out, kindsOf(item)...)
	}
	return out
}

// lostKinds are the kinds of an item that cannot be used.
func lostKinds(item string, of schema.GroupVersionKind) []string {
	if kinds := kindsOf(item); kinds != nil || of.Kind == "" {
		return kinds
	}
	return []string{of.Kind}
}
