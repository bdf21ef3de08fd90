package graphdata

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// loadChannel returns what reads a file of channels or internal-channels.
func (l *loader) loadChannel(into *[]Channel) func(name string) error {
	return func(name string) error {
		f, root, err := l.open(name)
		if err != nil || root == nil {
			return err
		}
		c, err := f.channel(root)
		if err != nil {
			return err
		}
		if !f.bad {
			*into = append(*into, c)
		}
		return nil
	}
}

// channel reads a channel. The error is a limit of the tree.
func (f *file) channel(root *yaml.Node) (Channel, error) {
	c := Channel{File: f.name}
	m := f.mapping(root, "", "name", "versions", "feeder", "tombstones")
	if m == nil {
		return c, nil
	}
	c.Lines = m.lines
	m.reportUnknown(f.stricter)
	if n := m.required("name"); n != nil {
		c.Name, _ = f.words(n, "name")
	}
	var err error
	if n := m.required("versions"); n != nil {
		c.Versions, err = f.versions(n, "versions")
		if err != nil {
			return c, err
		}
	}
	// An update service reads no further.
	extra := f.beside()
	if n := m.values["tombstones"]; n != nil {
		c.Tombstones, err = extra.versions(n, "tombstones")
		if err != nil {
			return c, err
		}
	}
	if n := m.values["feeder"]; n != nil {
		c.Feeder = extra.feeder(n, c.Lines)
	}
	f.adopt(extra)
	return c, nil
}

// beside returns a reader of parts of the file that an update service ignores,
// whose faults adopt takes over.
func (f *file) beside() *file {
	if !f.loader.opts.Compat {
		return f
	}
	quiet := *f.loader
	quiet.problems, quiet.failed = nil, false
	quiet.opts.Compat = false // the peer ignores these parts, so none of its rules apply
	return &file{loader: &quiet, name: f.name}
}

// adopt reports the faults that beside returned, as warnings.
func (f *file) adopt(extra *file) {
	if extra.loader == f.loader {
		return
	}
	f.loader.entries, f.loader.bytes = extra.loader.entries, extra.loader.bytes
	for _, p := range extra.loader.problems {
		p.Warning = true
		f.loader.add(p)
	}
}

// versions reads a list of versions. The error is a limit of the tree.
func (f *file) versions(n *yaml.Node, field string) ([]Entry, error) {
	items, ok := f.items(n, field)
	if !ok {
		return nil, nil
	}
	f.loader.entries += len(items)
	if f.loader.entries > f.loader.limits.MaxEntries {
		return nil, &LimitError{What: limitEntries, Max: int64(f.loader.limits.MaxEntries)}
	}
	list := make([]Entry, 0, len(items))
	for i, n := range items {
		line := n.Line
		if v, ok := f.version(resolved(n), element(field, i)); ok {
			list = append(list, Entry{Version: v, Line: line})
		}
	}
	return list, nil
}

// feeder reads a feeder, and adds the lines of its keys to those of the channel.
func (f *file) feeder(n *yaml.Node, lines map[string]int) *Feeder {
	m := f.mapping(n, "feeder.", "name", "delay", "errata", "filter")
	if m == nil {
		return nil
	}
	m.reportUnknown(f.stricter)
	for key, line := range m.lines {
		lines["feeder."+key] = line
	}
	feeder := &Feeder{}
	if n := m.required("name"); n != nil {
		feeder.Name, _ = f.words(n, "feeder.name")
	}
	feeder.Delay = m.optional("delay")
	feeder.Errata = m.optional("errata")
	feeder.Filter = m.optional("filter")
	return feeder
}

// element names an element of a list.
func element(field string, i int) string { return fmt.Sprintf("%s[%d]", field, i) }
