package graph

import (
	"bytes"
	"encoding/json"
	"iter"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/graph/internal/schema"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// The metadata keys that a client reads. All others are kept as they are.
const (
	// MetadataURL is the address of the errata or release notes.
	MetadataURL = "url"
	// MetadataChannels lists the channels that hold the release, separated by
	// commas.
	MetadataChannels = "io.openshift.upgrades.graph.release.channels"
	// MetadataArchitecture is "multi" on multi-architecture releases and
	// absent on others.
	MetadataArchitecture = "release.openshift.io/architecture"
	// MetadataManifestRef is the digest of the release image.
	MetadataManifestRef = "io.openshift.upgrades.graph.release.manifestref"
)

// The metadata keys that a graph is built by. A client ignores them; some are
// left in the graphs that a service serves.
const (
	// MetadataArch is the architecture of a release, in graphs of several.
	MetadataArch = "io.openshift.upgrades.graph.release.arch"
	// The edits of edges list versions, separated by commas, from which edges to
	// the release are added or removed (previous), or to which its edges lead
	// (next). MetadataPreviousRemoveRegex is a regular expression on versions.
	MetadataPreviousAdd         = "io.openshift.upgrades.graph.previous.add"
	MetadataPreviousRemove      = "io.openshift.upgrades.graph.previous.remove"
	MetadataPreviousRemoveRegex = "io.openshift.upgrades.graph.previous.remove_regex"
	MetadataNextAdd             = "io.openshift.upgrades.graph.next.add"
	MetadataNextRemove          = "io.openshift.upgrades.graph.next.remove"
)

// Metadata are the key-value pairs of a node. Values should be strings; those of a
// different type are kept, and matter only if the meaning of a key needs a string.
// The zero value is empty. It is immutable.
type Metadata struct {
	entries []metadataEntry // sorted by key
}

type metadataEntry struct {
	key   string
	value string // a string, or JSON text
	json  bool
}

// NewMetadata returns metadata of string values.
func NewMetadata(values map[string]string) Metadata {
	m := Metadata{}
	for k, v := range values {
		m.entries = append(m.entries, metadataEntry{key: k, value: v})
	}
	m.sort()
	return m
}

// Len is the number of keys.
func (m Metadata) Len() int { return len(m.entries) }

// Get returns the value of a key: a string, or for a value of another type
// what encoding/json makes of it. A JSON null is a nil value that is present.
func (m Metadata) Get(key string) (value any, ok bool) {
	if e := m.find(key); e != nil {
		return e.any(), true
	}
	return nil, false
}

// Text returns the value of a key if it is a string, else "".
func (m Metadata) Text(key string) string {
	if e := m.find(key); e != nil && !e.json {
		return e.value
	}
	return ""
}

// find returns the entry of a key, nil if absent.
func (m Metadata) find(key string) *metadataEntry {
	// Few keys: a scan beats a search.
	for i := range m.entries {
		if m.entries[i].key == key {
			return &m.entries[i]
		}
	}
	return nil
}

// All yields the pairs, ordered by key.
func (m Metadata) All() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		for i := range m.entries {
			if !yield(m.entries[i].key, m.entries[i].any()) {
				return
			}
		}
	}
}

// MarshalJSON writes an object with sorted keys, as [Graph.AppendJSON] does. The
// error is nil.
func (m Metadata) MarshalJSON() ([]byte, error) { return m.appendJSON(nil), nil }

func (m Metadata) sort() {
	slices.SortFunc(m.entries, func(a, b metadataEntry) int { return strings.Compare(a.key, b.key) })
}

func (e *metadataEntry) any() any {
	if !e.json {
		return e.value
	}
	var v any
	if err := json.Unmarshal([]byte(e.value), &v); err != nil {
		return e.value // cannot happen: the text was checked when decoded
	}
	return v
}

func (m Metadata) equal(o Metadata) bool {
	return slices.Equal(m.entries, o.entries)
}

func (d *decoder) metadata(m *Metadata) error {
	var room [16]metadataEntry // most nodes have fewer
	entries := room[:0]
	err := d.optionalObject(func(key []byte) error {
		name, err := d.shared(key)
		if err != nil {
			return within("key", err)
		}
		e := metadataEntry{key: name}
		if d.Peek() == '"' {
			e.value, err = d.metadataText(name)
		} else {
			e.value, err = d.metadataJSON()
			e.json = true
		}
		if err == nil {
			err = d.memory.spend(costMetadata)
		}
		entries = append(entries, e)
		return within(bounded.Text(name, bounded.MaxQuoted), err)
	})
	if err != nil || len(entries) == 0 {
		return err
	}
	m.entries = append([]metadataEntry(nil), entries...)
	m.sort()
	return nil
}

func (d *decoder) metadataText(key string) (string, error) {
	text, err := d.Text()
	if err != nil {
		return "", err
	}
	// Channel lists repeat on most nodes, other values do not.
	if key != MetadataChannels {
		return d.unique(text)
	}
	if s, ok := d.interned[string(text)]; ok {
		return s, nil
	}
	n := bytes.Count(text, []byte{','}) + 1
	if err := d.admit(n, d.o.MaxChannels, limitChannels, n*costChannel); err != nil {
		return "", err
	}
	return d.shared(text)
}

func (d *decoder) metadataJSON() (string, error) {
	raw, err := d.Skip()
	if err != nil {
		return "", err
	}
	if err := d.admit(len(raw), d.o.MaxText, limitText, len(raw)*costJSON); err != nil {
		return "", err
	}
	return canonicalJSON(raw)
}

// canonicalJSON brings a valid value into the one form that encoding gives it.
func canonicalJSON(raw []byte) (string, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return "", err
	}
	text, err := schema.JSON(v)
	return string(text), err
}
