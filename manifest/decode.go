package manifest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/clusterupdate/clusterupdate/internal/limit"
	"github.com/clusterupdate/clusterupdate/internal/options"
	"github.com/clusterupdate/clusterupdate/internal/yamljson"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"sigs.k8s.io/yaml" // the YAML of Kubernetes; it words the errors
)

// Parse reads the objects of one file, JSON or YAML, in their order. name is what
// the manifests remember as their file name. An object without a kind or a name, or
// two of one identity, make the whole file an error, a [*Error] whose Document
// reports which object it is. So does a limit that is passed, where the limits of a
// payload hold for the file.
//
// The rules are those of apimachinery's decoder: YAML 1.1, documents separated
// by lines "---", JSON objects one after another. Empty documents are skipped,
// lists are not expanded.
func Parse(name string, data []byte, limits Limits) ([]*Manifest, error) {
	if err := options.NonNegative(limits); err != nil {
		return nil, err
	}
	limits = limits.complete()
	if err := limits.fileSize().Check(int64(len(data))); err != nil {
		return nil, &Error{File: name, Err: err}
	}
	d := newDecoder(limits)
	manifests, doc, err := d.file(context.Background(), name, data)
	if err != nil {
		return nil, &Error{File: name, Document: doc, Err: short(err)}
	}
	return manifests, nil
}

// decoder reads files one after another. It is not safe for concurrent use.
type decoder struct {
	limits Limits
	budget limit.Budget // of the limits
	fast   yamljson.Decoder
	buf    []byte            // for the contents of files
	kept   map[string]string // texts of manifests: see keep

	// of the file that is being read
	ctx       context.Context
	name      string
	manifests []*Manifest
	seen      map[Identity]bool
	used      limit.Usage
}

func newDecoder(limits Limits) *decoder {
	fast := yamljson.Decoder{MaxDepth: limits.Depth}
	return &decoder{limits: limits, budget: limits.budget(), kept: make(map[string]string), fast: fast}
}

// file reads the objects of a file, whose contents it does not keep. On an
// error, doc is the place of the object that caused it, 0 if none did. used is
// what the file takes of the limits, up to the fault if it has one.
func (d *decoder) file(ctx context.Context, name string, data []byte) (manifests []*Manifest, doc int, err error) {
	d.ctx, d.name, d.manifests = ctx, name, nil
	d.seen = make(map[Identity]bool)
	d.used = limit.Usage{Bytes: int64(len(data))}
	err = d.budget.Check(d.used)
	if err != nil {
		return nil, 0, err
	}
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

// documentError determines which object of a file an error is about.
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
		if d.ctx.Err() != nil {
			return contextError(d.ctx)
		}
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
		if err := d.decodeSlowly(document, jsonErr); err != nil {
			return err
		}
	}
	return nil
}

// decodeSlowly decodes a YAML document as apimachinery does, after a look at
// what that may cost.
func (d *decoder) decodeSlowly(document string, jsonErr error) error {
	if left := d.valuesLeft(); len(document) > left && yamljson.MayBegin(document) > left {
		return d.tooManyValues()
	}
	size, err := measure(document, d.limits.ExpandedSize-d.used.Aliases)
	d.used.Aliases += size.expanded()
	if over := d.budget.Check(d.used); over != nil {
		return d.fault(over)
	}
	if errors.As(err, new(*LimitError)) {
		return d.fault(err)
	}
	if err != nil {
		return d.parseFault(cmp.Or(jsonErr, err))
	}
	var o object
	if err := yaml.Unmarshal([]byte(document), &o); err != nil {
		return d.parseFault(cmp.Or(jsonErr, err))
	}
	return d.addObject(&o)
}

func (d *decoder) valuesLeft() int { return d.limits.Values - int(d.used.Values) }

// tooManyValues notes that a document has more values than are left.
func (d *decoder) tooManyValues() error {
	d.used.Values = int64(d.limits.Values) + 1
	return d.fault(d.budget.Check(d.used))
}

const separator = "---"

// nextDocument cuts the next document off rest, where each line ends with a line
// end. A line that starts with "---" ends a document; before the first line of one
// it is part of it.
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
	d.fast.MaxValues = min(max(d.valuesLeft(), 1), yamljson.MaxValues(len(document)))
	raw, ok := d.fast.Decode(document)
	if !ok {
		switch {
		case !d.fast.Full():
			return false, nil
		case d.fast.Values() > d.valuesLeft():
			return false, d.tooManyValues()
		}
		return false, d.fault(heapError())
	}
	if raw == nil {
		return true, nil
	}
	meta, ok := d.metaOf(d.fast.Root())
	if !ok || meta.validate() != nil {
		return false, nil
	}
	return true, d.add(&Manifest{Raw: bytes.Clone(raw), meta: meta}, d.fast.Values())
}

// metaOf reads what newMeta reads from an object. ok is false for an object
// whose apiVersion and kind need a closer look: encoding/json, which reads
// them, does not regard the case of keys.
func (d *decoder) metaOf(root yamljson.Node) (m meta, ok bool) {
	for key, value := range root.Fields() {
		text, isText := value.Text()
		switch {
		case len(key) != len("kind") && len(key) != len("apiVersion"):
		case strings.EqualFold(key, "kind"):
			if key != "kind" || !isText {
				return m, false
			}
			m.gvk.Kind = d.keep(text)
		case strings.EqualFold(key, "apiVersion"):
			gv, err := schema.ParseGroupVersion(text)
			if key != "apiVersion" || !isText || err != nil {
				return m, false
			}
			m.gvk.Group, m.gvk.Version = d.keep(gv.Group), d.keep(gv.Version)
		}
	}
	metadata := root.Field("metadata")
	namespace, _ := metadata.Field("namespace").Text()
	name, _ := metadata.Field("name").Text()
	m.id = Identity{Group: m.gvk.Group, Kind: m.gvk.Kind, Namespace: d.keep(namespace), Name: d.keep(name)}
	m.annotations, ok = d.annotationsOf(metadata.Field("annotations"))
	m.unreadable = !ok
	return m, true
}

// annotationsOf reads annotations, nil for none. ok is false where a value is
// neither a string nor null, or annotations are not a map.
func (d *decoder) annotationsOf(n yamljson.Node) (annotations map[string]string, ok bool) {
	if n.IsNull() {
		return nil, true
	}
	if !n.IsMap() {
		return nil, false
	}
	annotations = make(map[string]string, n.Len())
	var wrong map[string]bool // keys whose last value so far cannot be read
	for key, value := range n.Fields() {
		text, ok := value.Text()
		ok = ok || value.IsNull()
		if !ok && wrong == nil {
			wrong = make(map[string]bool)
		}
		key = d.keep(key)
		if ok {
			delete(wrong, key)
		} else {
			wrong[key] = true
		}
		annotations[key] = d.keep(text)
	}
	if len(wrong) > 0 {
		return nil, false
	}
	return annotations, true
}

// keep returns a copy of a text that does not keep its file in memory. Short
// texts, which come again and again, have one copy.
func (d *decoder) keep(text string) string {
	if kept, ok := d.kept[text]; ok {
		return kept
	}
	text = strings.Clone(text)
	if len(text) <= maxKeptText && len(d.kept) < maxKeptTexts {
		d.kept[text] = text
	}
	return text
}

// What a decoder remembers of texts.
const (
	maxKeptText  = 256
	maxKeptTexts = 4096
)

func (d *decoder) addObject(o *object) error {
	if isNull(o.raw) {
		return nil
	}
	values, depth := limit.Shape(o.raw)
	if err := d.budget.Depth.Check(depth); err != nil {
		return d.fault(err)
	}
	return d.add(&Manifest{Raw: o.raw, object: o.unstructured, meta: o.meta}, int(values))
}

// add takes up an object.
func (d *decoder) add(m *Manifest, values int) error {
	if err := d.limits.documentsPerFile().Check(int64(len(d.manifests) + 1)); err != nil {
		return err
	}
	d.used.Add(limit.Usage{Entries: 1, Bytes: int64(len(m.Raw)), Values: int64(values)})
	if err := d.budget.Check(d.used); err != nil {
		return d.fault(err)
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
	meta         meta
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
