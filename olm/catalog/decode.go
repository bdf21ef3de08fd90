package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/clusterupdate/clusterupdate/olm"
	"sigs.k8s.io/yaml"
)

// decoder makes objects of documents. It is not safe for concurrent use.
type decoder struct {
	options    Options
	properties *olm.BundleReader
}

// document is one document of a file.
type document struct {
	pos  position
	text []byte
	yaml bool
	err  error // why it could not be found whole
}

// fault is why a document is no object.
type fault struct {
	rule         Rule
	line, column int // in the document, from 1; 0 if not known
	err          error
}

func (f *fault) Error() string { return f.err.Error() }

// decode returns the object of a document, with no pointer set for an empty
// one. The error is a *fault, or a *LimitError.
func (d *decoder) decode(doc document) (object, error) {
	if doc.err != nil {
		return object{}, doc.err
	}
	text := doc.text
	if doc.yaml {
		var err error
		if text, err = d.yamlToJSON(text); err != nil {
			return object{}, err
		}
		if bytes.Equal(text, []byte("null")) {
			return object{}, nil
		}
	}
	o, err := d.object(text)
	if bad := (*fault)(nil); errors.As(err, &bad) && doc.yaml {
		bad.line, bad.column = 0, 0 // they are of the JSON
	} else if bad != nil && bad.rule == RuleSyntax {
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
			} else {
				b.Properties[i].Value = bytes.Clone(p.Value) // lets the file's text go
			}
		}
		for i := range b.MaxOpenShift {
			b.MaxOpenShift[i] = bytes.Clone(b.MaxOpenShift[i])
		}
		for i := range b.Requires {
			b.Requires[i].Property.Value = bytes.Clone(b.Requires[i].Property.Value)
		}
	}
	return b
}

// object decodes an object by the rules of encoding/json.
func (d *decoder) object(text []byte) (object, error) {
	if depth(text) > d.options.MaxDepth {
		return object{}, &LimitError{Limit: "MaxDepth", Max: int64(d.options.MaxDepth), What: "levels of nesting"}
	}
	if kind := jsonKind(text); kind != "" {
		return object{}, &fault{rule: RuleSyntax, err: errors.New("expected an object, found " + kind)}
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return object{}, syntaxFault(text, err)
	}
	m, err := newMeta(fields)
	if err != nil {
		return object{}, err
	}
	switch m.Schema {
	case SchemaPackage:
		o := object{pkg: new(PackageBlob)}
		return o, decodeAs("package", text, o.pkg)
	case SchemaChannel:
		o := object{channel: new(ChannelBlob)}
		return o, decodeAs("channel", text, o.channel)
	case SchemaBundle:
		var blob BundleBlob
		if err := decodeAs("bundle", text, &blob); err != nil {
			return object{}, err
		}
		return object{bundle: d.bundle(&blob)}, nil
	case SchemaDeprecations:
		o := object{deprecations: new(DeprecationsBlob)}
		return o, decodeAs("deprecation", text, o.deprecations)
	case "":
		return object{}, &fault{rule: RuleSchema, err: fmt.Errorf("object '%s' is missing root schema field", shortened(text))}
	}
	m.Blob = text
	return object{other: m}, nil
}

// jsonKind names the type of a value that is no object.
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

// newMeta finds schema, package and name, in whatever case their keys are.
func newMeta(fields map[string]json.RawMessage) (*Meta, error) {
	keys := make([]string, 0, len(fields))
	for key := range fields {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	if err := checkKeys(keys); err != nil {
		return nil, &fault{rule: RuleKeys, err: err}
	}
	m := new(Meta)
	for _, key := range keys {
		var into *string
		switch {
		case strings.EqualFold(key, "schema"):
			into = &m.Schema
		case strings.EqualFold(key, "package"):
			into = &m.Package
		case strings.EqualFold(key, "name"):
			into = &m.Name
		default:
			continue
		}
		var value *string
		if err := json.Unmarshal(fields[key], &value); err != nil || value == nil {
			return nil, &fault{rule: RuleSyntax, err: fmt.Errorf("expected value for key %q to be a string, got %s", key, shortened(fields[key]))}
		}
		*into = *value
	}
	return m, nil
}

// checkKeys refuses keys that differ by case only.
func checkKeys(sorted []string) error {
	same := make(map[string][]string, len(sorted))
	var folded []string
	for _, key := range sorted {
		f := strings.ToLower(strings.ToUpper(key))
		if same[f] = append(same[f], key); len(same[f]) == 2 {
			folded = append(folded, f)
		}
	}
	var errs []string
	slices.Sort(folded)
	for _, f := range folded {
		errs = append(errs, fmt.Sprintf("duplicate keys for key %q: %v", f, same[f]))
	}
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errors.New(errs[0])
	}
	return fmt.Errorf("[%s]", strings.Join(errs, ", "))
}

func decodeAs(what string, text []byte, into any) error {
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
	f := &fault{rule: RuleSyntax, err: err}
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

// depth is how deep braces and brackets are nested.
func depth(text []byte) int {
	level, deepest, quoted := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case quoted:
		case c == '{' || c == '[':
			level++
			deepest = max(deepest, level)
		case c == '}' || c == ']':
			level--
		}
	}
	return deepest
}

// yamlToJSON converts a document by the rules of YAML 1.1, as Kubernetes does.
func (d *decoder) yamlToJSON(text []byte) ([]byte, error) {
	if err := checkAliases(text, d.options.MaxAliases, d.options.MaxDocumentBytes); err != nil {
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
	f := &fault{rule: RuleSyntax, err: err}
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		f.line, _ = strconv.Atoi(m[1])
		f.err = errors.New("yaml: " + m[2])
	}
	return f
}
