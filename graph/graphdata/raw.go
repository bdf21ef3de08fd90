package graphdata

import (
	"bytes"
	"errors"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/strictjson"
)

const rawFile = "raw/metadata.json"

// loadRaw reads raw/metadata.json, without which no update service builds a graph.
func (l *loader) loadRaw() error {
	const name = rawFile
	text, stop, err := l.read(name)
	if stop != nil {
		return stop
	}
	if err != nil {
		l.fatal = true
		l.unread(name, err)
		return nil
	}
	s := &strictjson.Scanner{Data: text}
	lines := &lineCounter{text: text}
	var entries []RawEntry
	field := ""
	err = s.Object(func(key []byte) error {
		version := string(key)
		field = version
		line := lines.at(s.Pos)
		if _, err := graph.ParseVersion(version); err != nil {
			l.add(Problem{File: name, Line: line, Field: bounded.Text(version, bounded.MaxQuoted), Rule: ruleVersion,
				Message: "is not a valid semver: " + bounded.Text(err.Error(), bounded.MaxQuoted), Warning: l.opts.Compat})
		}
		return s.Object(func(key []byte) error {
			k := string(key)
			field = version + "." + k
			line := lines.at(s.Pos)
			value, err := s.Text()
			if err != nil {
				return err
			}
			entries = append(entries, RawEntry{Line: line, Version: version, Key: k, Value: string(value)})
			field = version
			return nil
		})
	})
	if err == nil {
		field = ""
		err = s.End()
	}
	if err != nil {
		l.fatal = true
		line := lines.at(s.Pos)
		if errors.Is(err, strictjson.ErrSyntax) {
			line, err = s.Describe()
			field = ""
		}
		l.add(Problem{File: name, Line: line, Field: bounded.Text(field, bounded.MaxQuoted), Rule: ruleRaw,
			Message: bounded.Text(err.Error(), bounded.MaxQuoted)})
		return nil
	}
	l.tree.Raw = entries
	return nil
}

// lineCounter returns the lines of ascending offsets, and looks at each byte once.
type lineCounter struct {
	text      []byte
	pos, line int // line breaks before pos
}

func (c *lineCounter) at(pos int) int {
	pos = min(pos, len(c.text))
	if pos > c.pos {
		c.line += bytes.Count(c.text[c.pos:pos], []byte("\n"))
		c.pos = pos
	}
	return c.line + 1
}
