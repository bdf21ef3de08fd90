package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/clusterupdate/clusterupdate/internal/limit"
	"github.com/clusterupdate/clusterupdate/internal/yamljson"
	"github.com/clusterupdate/clusterupdate/olm"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"sigs.k8s.io/yaml"
)

// decoder makes objects of documents. It is not safe for concurrent use.
type decoder struct {
	options    Options
	properties *olm.BundleReader
	total      *limit.Meter // of all objects

	// of the object that is being decoded
	fields []field
	cost   int64 // bytes that it makes
}

// document is one document of a file.
type document struct {
	pos  position
	text []byte
	yaml bool
	bad  *fault // why it could not be found whole
}

// fault is why a document is not an object.
type fault struct {
	rule         string
	line, column int // in the document, from 1; 0 if not known
	err          error
}

func (f *fault) Error() string { return f.err.Error() }

// decode returns the object of a document, with no pointer set for an empty
// one. The error is a *fault, or a *LimitError.
func (d *decoder) decode(doc document) (object, error) {
	if doc.bad != nil {
		return object{}, doc.bad
	}
	d.cost = 0
	o, err := d.document(doc)
	if past := d.total.Spend(limit.Usage{Bytes: d.cost + int64(len(doc.text))}); past != nil {
		return object{}, past
	}
	return o, err
}

func (d *decoder) document(doc document) (object, error) {
	text := doc.text
	if doc.yaml {
		var err error
		text, err = d.yamlToJSON(text)
		if err != nil {
			return object{}, err
		}
		if bytes.Equal(text, []byte("null")) {
			return object{}, nil
		}
	}
	o, err := d.object(text)
	if bad := (*fault)(nil); errors.As(err, &bad) && doc.yaml {
		bad.line, bad.column = 0, 0 // they are of the JSON
	} else if bad != nil && bad.rule == ruleSyntax {
		// A flow mapping looks like JSON at first.
		if flow, err := d.yamlToJSON(text); err == nil && !json.Valid(text) {
			return d.object(flow)
		}
	}
	return o, err
}

// bundle reads the properties of a bundle, and drops contents if the options
// say so.
func (d *decoder) bundle(blob *BundleBlob) *olm.Bundle {
	b := readBundle(d.properties, blob)
	if d.options.DropContent {
		for i, p := range b.Properties {
			if p.Type == olm.PropertyBundleObject || p.Type == olm.PropertyCSVMetadata {
				b.Properties[i].Value = json.RawMessage("null")
			}
		}
	}
	return b
}

// object decodes an object by the rules of encoding/json.
func (d *decoder) object(text []byte) (object, error) {
	depth := d.outline(text)
	if err := d.spend(int64(len(d.fields)) * fieldCost); err != nil {
		return object{}, err
	}
	if depth > d.options.MaxDepth {
		return object{}, &LimitError{Limit: "MaxDepth", Max: int64(d.options.MaxDepth), What: "levels of nesting"}
	}
	if kind := jsonKind(text); kind != "" {
		return object{}, &fault{rule: ruleSyntax, err: errors.New("expected an object, found " + kind)}
	}
	if !json.Valid(text) {
		return object{}, syntaxFault(text, json.Unmarshal(text, new(json.RawMessage)))
	}
	m, err := d.meta()
	if err != nil {
		return object{}, err
	}
	switch m.Schema {
	case schemaPackage:
		o := object{pkg: new(PackageBlob)}
		return o, d.decodeAs("package", text, o.pkg)
	case schemaChannel:
		o := object{channel: new(ChannelBlob)}
		if err := d.decodeAs("channel", text, o.channel); err != nil {
			return o, err
		}
		return o, d.spend(entryCost * int64(len(o.channel.Entries)))
	case schemaBundle:
		var blob BundleBlob
		if err := d.decodeAs("bundle", text, &blob); err != nil {
			return object{}, err
		}
		if err := d.spendProperties(blob.Properties); err != nil {
			return object{}, err
		}
		return object{bundle: d.bundle(&blob)}, nil
	case schemaDeprecations:
		o := object{deprecations: new(DeprecationsBlob)}
		if err := d.decodeAs("deprecation", text, o.deprecations); err != nil {
			return o, err
		}
		return o, d.spend(entryCost * int64(len(o.deprecations.Entries)))
	case "":
		return object{}, &fault{rule: ruleSchema,
			err: fmt.Errorf("object '%s' is missing root schema field", shortened(text))}
	}
	m.Blob = text
	return object{other: m}, nil
}

// jsonKind names the type of a value that is not an object.
func jsonKind(text []byte) string {
	switch text[0] {
	case '{':
		return ""
	case '[':
		return "a list"
	case '"':
		return "a text"
	case 't', 'f':
		return "a boolean"
	}
	return "a number"
}

// field is a key of an object with its value, as written.
type field struct{ key, value []byte }

// outline finds the fields of an object, and how deep braces and brackets are
// nested. If the text is not JSON, the result is arbitrary. It stops at a field too
// many.
func (d *decoder) outline(text []byte) (depth int) {
	d.fields = d.fields[:0]
	level, quoted, start := 0, false, 0
	end := func(i int) { // of a value
		if n := len(d.fields); n > 0 && d.fields[n-1].value == nil {
			d.fields[n-1].value = bytes.TrimSpace(text[start:i])
		}
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case quoted:
		case c == '{' || c == '[':
			level++
			if level == 1 {
				start = i + 1
			}
			depth = max(depth, level)
		case c == '}' || c == ']':
			level--
			if level == 0 {
				end(i)
			}
		case level != 1:
		case c == ':':
			d.fields = append(d.fields, field{key: bytes.TrimSpace(text[start:i])})
			if len(d.fields) > d.options.maxFields() {
				return depth
			}
			start = i + 1
		case c == ',':
			end(i)
			start = i + 1
		}
	}
	return depth
}

// meta finds schema, package and name among the fields, in whatever case their
// keys are. Of fields with the same key the last counts.
func (d *decoder) meta() (*Meta, error) {
	for i := range d.fields {
		d.fields[i].key = unquoted(d.fields[i].key)
	}
	slices.SortStableFunc(d.fields, func(a, b field) int { return bytes.Compare(a.key, b.key) })
	if err := checkKeys(d.fields); err != nil {
		return nil, &fault{rule: ruleKeys, err: err}
	}
	m := new(Meta)
	for i, f := range d.fields {
		var into *string
		switch {
		case i+1 < len(d.fields) && bytes.Equal(f.key, d.fields[i+1].key):
		case bytes.EqualFold(f.key, []byte("schema")):
			into = &m.Schema
		case bytes.EqualFold(f.key, []byte("package")):
			into = &m.Package
		case bytes.EqualFold(f.key, []byte("name")):
			into = &m.Name
		}
		if into == nil {
			continue
		}
		if f.value[0] != '"' {
			err := fmt.Errorf("expected value for key %q to be a string, got %s", f.key, shortened(f.value))
			return nil, &fault{rule: ruleSyntax, err: err}
		}
		*into = string(unquoted(f.value))
	}
	return m, nil
}

// unquoted is the text of a string that was found to be JSON.
func unquoted(value []byte) []byte {
	if bytes.ContainsFunc(value, func(r rune) bool { return r == '\\' || r >= utf8.RuneSelf }) {
		var text string
		_ = json.Unmarshal(value, &text)
		return []byte(text)
	}
	return value[1 : len(value)-1]
}

// checkKeys refuses keys that differ by case only.
func checkKeys(sorted []field) error {
	if !mayCollide(sorted) {
		return nil
	}
	same := make(map[string][]string)
	for i, f := range sorted {
		if i == 0 || !bytes.Equal(f.key, sorted[i-1].key) {
			folded := strings.ToLower(strings.ToUpper(string(f.key)))
			same[folded] = append(same[folded], string(f.key))
		}
	}
	var errs []error
	for _, folded := range slices.Sorted(maps.Keys(same)) {
		if len(same[folded]) > 1 {
			errs = append(errs, fmt.Errorf("duplicate keys for key %q: %v", folded, same[folded]))
		}
	}
	return utilerrors.NewAggregate(errs)
}

// mayCollide is false where keys surely do not differ by case only. Most
// objects have few keys, and those of ASCII.
func mayCollide(keys []field) bool {
	const few = 16
	for i, a := range keys[:min(few, len(keys))] {
		if bytes.ContainsFunc(a.key, func(r rune) bool { return r >= utf8.RuneSelf }) ||
			slices.ContainsFunc(keys[:i], func(b field) bool {
				return bytes.EqualFold(a.key, b.key) && !bytes.Equal(a.key, b.key)
			}) {
			return true
		}
	}
	return len(keys) > few
}

func (d *decoder) decodeAs(what string, text []byte, into any) error {
	if err := d.spend(limit.Cost(text, into)); err != nil {
		return err
	}
	err := json.Unmarshal(text, into)
	if err == nil {
		return nil
	}
	f := syntaxFault(text, err)
	f.err = fmt.Errorf("parse %s: %w", what, f.err)
	return f
}

// syntaxFault places an error of encoding/json in the document.
func syntaxFault(text []byte, err error) *fault {
	f := &fault{rule: ruleSyntax, err: err}
	offset := int64(-1)
	if e := (*json.SyntaxError)(nil); errors.As(err, &e) {
		offset = e.Offset - 1
	} else if e := (*json.UnmarshalTypeError)(nil); errors.As(err, &e) {
		offset = e.Offset - 1
	}
	if offset >= 0 && offset <= int64(len(text)) {
		before := text[:offset]
		f.line = 1 + bytes.Count(before, []byte("\n"))
		f.column = len(before) - bytes.LastIndexByte(before, '\n')
	}
	return f
}

const shortText = 512

// shortened is a text that fits a message.
func shortened(text []byte) []byte {
	if len(text) > shortText {
		return append(bytes.ToValidUTF8(slices.Clip(text[:shortText]), nil), "..."...)
	}
	return text
}

// yamlToJSON converts a document by the rules of YAML 1.1, as Kubernetes does.
func (d *decoder) yamlToJSON(text []byte) ([]byte, error) {
	o := d.options
	size, err := yamljson.Measure(text, o.MaxDocumentBytes)
	switch {
	case size.Aliases > o.MaxAliases:
		return nil, &LimitError{Limit: "MaxAliases", Max: int64(o.MaxAliases), What: "YAML aliases in a document"}
	case errors.As(err, new(*LimitError)):
		return nil, err
	case err != nil:
		return nil, yamlFault(err) // rather than convert what cannot be counted
	case size.Aliases > 0 && size.Bytes > o.MaxDocumentBytes:
		return nil, &LimitError{Limit: "MaxDocumentBytes", Max: o.MaxDocumentBytes,
			What: "bytes in a document after the expansion of aliases"}
	}
	if err := d.spend(size.Heap); err != nil {
		return nil, err
	}
	converted, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, yamlFault(err)
	}
	return converted, nil
}

var yamlLine = regexp.MustCompile(`^(?:error converting YAML to JSON: )?yaml: line (\d+): (.*)`)

// yamlFault takes the line out of a text such as "yaml: line 3: did not find
// expected key".
func yamlFault(err error) *fault {
	f := &fault{rule: ruleSyntax, err: err}
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		f.line, _ = strconv.Atoi(m[1])
		f.err = errors.New("yaml: " + m[2])
	}
	return f
}
