package graphdata

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/clusterupdate/clusterupdate/internal/regular"
)

// File is a file of a tree as it is to be. It is plain data.
type File struct {
	Name string // path in the tree
	Text []byte
}

// PromotionFiles returns the files of channels with what is to be promoted to them;
// promotions that wait are passed over. Versions are put into an order: nil means
// [PromotionOrder], as the maintainers' script writes them. Comments stay with the
// versions and keys that they stand before.
//
// The errors are those of the file system, or name a file that is no channel or
// whose YAML cannot be written again.
func PromotionFiles(fsys fs.FS, promotions []Promotion, order func(a, b string) int) ([]File, error) {
	e := newEditor(fsys)
	versions := map[string][]string{}
	for _, p := range promotions {
		if p.Decision == Promote {
			versions[p.File] = append(versions[p.File], p.Version)
		}
	}
	for _, name := range sortedKeys(versions) {
		if err := e.addVersions(name, versions[name], order); err != nil {
			return nil, err
		}
	}
	return e.done()
}

// Encode returns the file of a blocked edge, which [Load] reads as the same but for
// the line. The error says that a text is not UTF-8.
func (b BlockedEdge) Encode() (File, error) {
	pairs := []*yaml.Node{yamlText("to"), yamlText(b.To), yamlText("from"), yamlText(b.From)}
	add := func(key string, value *yaml.Node) { pairs = append(pairs, yamlText(key), value) }
	if b.FixedIn != "" {
		add("fixedIn", yamlText(b.FixedIn))
	}
	if b.AutoExtend != "" {
		add("autoExtend", yamlText(b.AutoExtend))
	}
	if b.Risk != nil {
		add("url", yamlText(b.Risk.URL))
		add("name", yamlText(b.Risk.Name))
		add("message", yamlText(b.Risk.Message))
		rules := &yaml.Node{Kind: yaml.SequenceNode}
		for _, r := range b.Risk.MatchingRules {
			rule := yamlMap(yamlText("type"), yamlText(r.Type))
			if r.PromQL != nil {
				rule.Content = append(rule.Content, yamlText("promql"), yamlMap(yamlText("promql"), yamlText(r.PromQL.PromQL)))
			}
			rules.Content = append(rules.Content, rule)
		}
		add("matchingRules", rules)
	}
	text, err := encodeYAML(yamlMap(pairs...))
	if err != nil {
		return File{}, fmt.Errorf("%s: %w", b.File, err)
	}
	return File{b.File, text}, nil
}

// editor changes files of a tree. Load accepts them, so their shape is known.
type editor struct {
	fsys  fs.FS
	files map[string]*edited
}

type edited struct {
	old      []byte
	document *yaml.Node
}

func newEditor(fsys fs.FS) *editor { return &editor{fsys, map[string]*edited{}} }

// open returns the map that a file is.
func (e *editor) open(name string) (*yaml.Node, error) {
	if f := e.files[name]; f != nil {
		return root(f.document), nil
	}
	file, err := regular.Open(e.fsys, name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := appendAll(nil, io.LimitReader(file, maxEdited+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxEdited {
		return nil, fmt.Errorf("%s: %w", name, &LimitError{limitFileBytes, maxEdited})
	}
	document := &yaml.Node{}
	if err := yaml.Unmarshal(text, document); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(document.Content) == 0 || document.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s: is not a map", name)
	}
	e.files[name] = &edited{text, document}
	return root(document), nil
}

const maxEdited = 1 << 20

func root(document *yaml.Node) *yaml.Node {
	if document.Kind == yaml.DocumentNode {
		return document.Content[0]
	}
	return document
}

// create adds a file that there is not yet.
func (e *editor) create(name string, content *yaml.Node) error {
	_, err := fs.Stat(e.fsys, name)
	if err == nil || e.files[name] != nil {
		return &fs.PathError{Op: "create", Path: name, Err: fs.ErrExist}
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	e.files[name] = &edited{document: content}
	return nil
}

// done returns the files that changed, by name.
func (e *editor) done() ([]File, error) {
	var files []File
	for _, name := range sortedKeys(e.files) {
		f := e.files[name]
		text, err := encodeYAML(f.document)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		var again yaml.Node
		if err := yaml.Unmarshal(text, &again); err != nil || !equalYAML(root(f.document), root(&again)) {
			return nil, fmt.Errorf("%s: cannot be written as it is meant", name) // a fault of the YAML writer
		}
		if !e.same(f, text) {
			files = append(files, File{name, text})
		}
	}
	return files, nil
}

// same reports whether a text is the old one, but for how it is written.
func (e *editor) same(f *edited, text []byte) bool {
	var old yaml.Node
	if f.old == nil || yaml.Unmarshal(f.old, &old) != nil {
		return false
	}
	again, err := encodeYAML(&old)
	return err == nil && bytes.Equal(again, text)
}

// addVersions adds versions to a channel and puts all of them into an order.
func (e *editor) addVersions(name string, versions []string, order func(a, b string) int) error {
	channel, err := e.open(name)
	if err != nil {
		return err
	}
	list := child(channel, "versions")
	if list == nil || list.Kind != yaml.SequenceNode && !isNull(list) {
		return fmt.Errorf("%s: versions: is not a list", name)
	}
	if len(list.Content) == 0 {
		*list = yaml.Node{Kind: yaml.SequenceNode, HeadComment: list.HeadComment, LineComment: list.LineComment, FootComment: list.FootComment}
	}
	for _, v := range versions {
		if !slices.ContainsFunc(list.Content, func(n *yaml.Node) bool { return n.Value == v }) {
			list.Content = append(list.Content, yamlText(v))
		}
	}
	if order == nil {
		order = PromotionOrder
	}
	slices.SortStableFunc(list.Content, func(a, b *yaml.Node) int {
		return cmp.Or(order(a.Value, b.Value), cmp.Compare(a.Value, b.Value))
	})
	return nil
}
