package manifest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/clusterupdate/clusterupdate/manifest/internal/yamljson"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"sigs.k8s.io/yaml"
)

// Parse reads the objects of one file, JSON or YAML, in their order. name is
// what the manifests remember as their file name. An object without a kind or
// a name, or two of one identity, make the whole file an error, a [*Error]
// whose Document says which object it is.
//
// The rules are those of apimachinery's decoder: YAML 1.1, documents separated
// by lines "---", JSON objects one after another. Empty documents are skipped,
// lists are not expanded.
func Parse(name string, data []byte, limits Limits) ([]*Manifest, error) {
	d := newDecoder(limits.withDefaults())
	if int64(len(data)) > d.limits.FileSize {
		return nil, &Error{File: name, Err: fileSizeError(d.limits.FileSize)}
	}
	manifests, doc, err := d.file(name, data)
	if err != nil {
		return nil, &Error{File: name, Document: doc, Err: err}
	}
	return manifests, nil
}

// decoder reads files one after another. It is not safe for concurrent use.
type decoder struct {
	limits Limits
	fast   yamljson.Decoder
	buf    []byte // for the contents of files

	// of the file that is being read
	name      string
	manifests []*Manifest
	seen      map[Identity]bool
}

func newDecoder(limits Limits) *decoder {
	return &decoder{limits: limits, fast: yamljson.Decoder{MaxDepth: limits.Depth}}
}

// file reads the objects of a file, whose contents it does not keep. On an
// error, doc is the place of the object that caused it, 0 if none did.
func (d *decoder) file(name string, data []byte) (manifests []*Manifest, doc int, err error) {
	d.name, d.manifests = name, nil
	d.seen = make(map[Identity]bool)
	if isJSON(data) {
		err = d.jsonStream(data)
	} else {
		err = d.yamlStream(data, nil)
	}
	if err == nil {
		return d.manifests, 0, nil
	}
	if fault, ok := err.(*documentError); ok { // never wrapped
		return nil, fault.document, fault.err
	}
	return nil, 0, err
}

// documentError says which object of a file an error is about.
type documentError struct {
	document int
	err      error
}

func (e *documentError) Error() string { return e.err.Error() }

func (d *decoder) fault(err error) error {
	return &documentError{document: len(d.manifests) + 1, err: err}
}

func (d *decoder) parseFault(err error) error { return d.fault(fmt.Errorf("error parsing: %w", err)) }

// yamlStream reads YAML documents separated by lines "---". If the first one
// cannot be read and jsonErr is not nil, that is the error.
func (d *decoder) yamlStream(data []byte, jsonErr error) error {
	fast := yamljson.Clean(data)
	rest := string(data)
	if !fast {
		rest = strings.ReplaceAll(rest, "\r\n", "\n")
	}
	if rest != "" && rest[len(rest)-1] != '\n' {
		rest += "\n"
	}
	for ; rest != ""; jsonErr = nil {
		document, err := nextDocument(&rest)
		if err != nil {
			return d.parseFault(cmp.Or(jsonErr, err))
		}
		if fast {
			if done, err := d.decodeFast(document); err != nil {
				return err
			} else if done {
				continue
			}
		}
		if err := checkAliases(document, d.limits.ExpandedSize); err != nil {
			return d.fault(err)
		}
		var o object
		if err := yaml.Unmarshal([]byte(document), &o); err != nil { // as apimachinery does
			return d.parseFault(cmp.Or(jsonErr, err))
		}
		if err := d.addObject(&o); err != nil {
			return err
		}
	}
	return nil
}

const separator = "---"

// nextDocument cuts the next document off rest, where each line ends with a
// line end. A line that begins with "---" ends a document; before the first
// line of one it is part of it.
func nextDocument(rest *string) (document string, err error) {
	s := *rest
	at := 0
	if strings.HasPrefix(s, separator) {
		end := strings.IndexByte(s, '\n') + 1
		if err := checkSeparator(s[:end]); err != nil {
			return "", err
		}
		at = end - 1 // the line end belongs to the next match
	}
	i := strings.Index(s[at:], "\n"+separator)
	if i < 0 {
		*rest = ""
		return s, nil
	}
	at += i + 1
	end := at + strings.IndexByte(s[at:], '\n') + 1
	if err := checkSeparator(s[at:end]); err != nil {
		return "", err
	}
	*rest = s[end:]
	return s[:at], nil
}

// checkSeparator allows blanks and a comment after the separator.
func checkSeparator(line string) error {
	after := strings.TrimSpace(line[len(separator):])
	if after != "" && after[0] != '#' {
		return fmt.Errorf("invalid Yaml document separator: %s", after)
	}
	return nil
}

// decodeFast decodes a YAML document in the common form. done is false for one
// that needs the slow way, also to word an error.
func (d *decoder) decodeFast(document string) (done bool, err error) {
	object, raw, ok := d.fast.Decode(document)
	if !ok {
		return false, nil
	}
	if object == nil {
		return true, nil
	}
	obj := &unstructured.Unstructured{Object: object}
	if !plainTypeMeta(object) {
		return false, nil
	}
	meta := newMeta(obj)
	if meta.validate() != nil {
		return false, nil
	}
	return true, d.add(&Manifest{Raw: bytes.Clone(raw), Object: obj, meta: meta})
}

// plainTypeMeta reports whether apiVersion and kind need no closer look:
// encoding/json, which reads them, does not regard the case of keys.
func plainTypeMeta(object map[string]any) bool {
	for key, value := range object {
		switch {
		case len(key) != len("kind") && len(key) != len("apiVersion"):
		case strings.EqualFold(key, "kind"):
			if kind, ok := value.(string); !ok || kind == "" || key != "kind" {
				return false
			}
		case strings.EqualFold(key, "apiVersion"):
			version, ok := value.(string)
			if !ok || key != "apiVersion" {
				return false
			}
			if _, err := schema.ParseGroupVersion(version); err != nil {
				return false
			}
		}
	}
	return true
}

func (d *decoder) addObject(o *object) error {
	if isNull(o.raw) {
		return nil
	}
	if tooDeep(o.unstructured.Object, d.limits.Depth-1) {
		return d.fault(&LimitError{Limit: "Depth", Max: int64(d.limits.Depth), What: "levels of maps and lists"})
	}
	return d.add(&Manifest{Raw: o.raw, Object: o.unstructured, meta: o.meta})
}

// add takes up an object.
func (d *decoder) add(m *Manifest) error {
	if len(d.manifests) == d.limits.DocumentsPerFile {
		return &LimitError{Limit: "DocumentsPerFile", Max: int64(d.limits.DocumentsPerFile), What: "documents in the file"}
	}
	if d.seen[m.meta.id] {
		return d.fault(fmt.Errorf("duplicate resource: (%s)", m.meta.id))
	}
	d.seen[m.meta.id] = true
	m.Filename, m.Document = d.name, len(d.manifests)+1
	d.manifests = append(d.manifests, m)
	return nil
}

// object is one document as the JSON decoder fills it.
type object struct {
	raw          []byte
	unstructured *unstructured.Unstructured
	meta         *meta
}

// UnmarshalJSON decodes an object with the checks, and so the errors, of the
// serializer that the cluster-version operator uses.
func (o *object) UnmarshalJSON(data []byte) error {
	if isNull(data) {
		return nil
	}
	o.raw = bytes.TrimFunc(bytes.Clone(data), unicode.IsSpace)
	if _, err := serializer.DefaultMetaFactory.Interpret(data); err != nil {
		return fmt.Errorf("unable to decode manifest: %w", err)
	}
	o.unstructured = new(unstructured.Unstructured)
	if _, _, err := unstructured.UnstructuredJSONScheme.Decode(data, nil, o.unstructured); err != nil {
		return fmt.Errorf("unable to decode manifest: %w", err)
	}
	o.meta = newMeta(o.unstructured)
	return o.meta.validate()
}

var _ json.Unmarshaler = (*object)(nil)

// tooDeep reports whether maps and lists are nested more than limit deep.
func tooDeep(value any, limit int) bool {
	switch value := value.(type) {
	case map[string]any:
		if limit < 0 {
			return true
		}
		for _, v := range value {
			if tooDeep(v, limit-1) {
				return true
			}
		}
	case []any:
		if limit < 0 {
			return true
		}
		for _, v := range value {
			if tooDeep(v, limit-1) {
				return true
			}
		}
	}
	return false
}
