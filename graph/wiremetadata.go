package graph

import (
	"bytes"
	"encoding/json"

	"github.com/clusterupdate/clusterupdate/graph/internal/schema"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

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
	if err := atMost(n, d.o.MaxChannels, limitChannels); err != nil {
		return "", err
	}
	if err := d.memory.spend(n * costChannel); err != nil {
		return "", err
	}
	return d.shared(text)
}

func (d *decoder) metadataJSON() (string, error) {
	raw, err := d.Skip()
	if err != nil {
		return "", err
	}
	if err := atMost(len(raw), d.o.MaxText, limitText); err != nil {
		return "", err
	}
	if err := d.memory.spend(len(raw) * costJSON); err != nil {
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
