package graph

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// The defaults of [DecodeOptions].
const (
	DefaultMaxBytes = 64 << 20
	DefaultMaxNodes = 100_000
	DefaultMaxEdges = 4_000_000
)

// DecodeOptions say what a graph may be. The zero value is strict and bounded.
type DecodeOptions struct {
	// MaxBytes is the largest JSON text; zero means DefaultMaxBytes.
	MaxBytes int64
	// MaxNodes is the largest number of nodes; zero means DefaultMaxNodes.
	MaxNodes int
	// MaxEdges is the largest number of edges and conditional pairs together;
	// zero means DefaultMaxEdges.
	MaxEdges int
	// AnySchema accepts other schema versions than 1.
	AnySchema bool
	// AllowNoPayload accepts nodes without a release image.
	AllowNoPayload bool
	// Compat decodes as the cluster-version operator does, faults included:
	// names of any case, nodes without a version (0.0.0), repeated keys that
	// merge, edges to nowhere. The limits stay. For comparisons only.
	Compat bool
}

func (o DecodeOptions) withDefaults() DecodeOptions {
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.MaxNodes <= 0 {
		o.MaxNodes = DefaultMaxNodes
	}
	if o.MaxEdges <= 0 {
		o.MaxEdges = DefaultMaxEdges
	}
	return o
}

// Decode reads a graph of schema version 1. The whole graph must be valid,
// also where a question would never look. Errors: [*DecodeError] with the place;
// a [*LimitError]; the reader's own.
func Decode(r io.Reader, o DecodeOptions) (*Graph, error) {
	o = o.withDefaults()
	var buf bytes.Buffer
	if sized, ok := r.(interface{ Len() int }); ok {
		buf.Grow(min(sized.Len(), 1<<20) + bytes.MinRead)
	}
	if _, err := buf.ReadFrom(io.LimitReader(r, o.MaxBytes+1)); err != nil {
		return nil, err
	}
	return DecodeBytes(buf.Bytes(), o)
}

// DecodeBytes is [Decode] for a text in memory. The graph keeps nothing of it.
func DecodeBytes(data []byte, o DecodeOptions) (*Graph, error) {
	o = o.withDefaults()
	if int64(len(data)) > o.MaxBytes {
		return nil, &LimitError{Limit: "bytes", Max: o.MaxBytes}
	}
	p, err := decodeParts(data, o)
	if err != nil {
		return nil, err
	}
	return p.index(o)
}

func decodeParts(data []byte, o DecodeOptions) (*parts, error) {
	if o.Compat {
		return decodeCompat(data, o)
	}
	d := decoder{scanner: scanner{data: data}, o: o}
	err := d.graph()
	if err == nil {
		return &d.parts, nil
	}
	at, ok := err.(*DecodeError)
	if !ok {
		at = &DecodeError{Err: err}
	}
	if errors.Is(err, errSyntax) {
		at.Line, at.Err = d.describe()
	}
	return nil, at
}

// within adds the place of an error: where one has a place already, it is
// within this one.
func within(place string, err error) error {
	if err == nil {
		return nil
	}
	e, ok := err.(*DecodeError)
	if !ok {
		return &DecodeError{Path: place, Err: err}
	}
	if e.Path != "" && !strings.HasPrefix(e.Path, "[") {
		place += "."
	}
	e.Path = place + e.Path
	return e
}

func withinIndex(list string, i int, err error) error {
	if err == nil {
		return nil
	}
	return within(fmt.Sprintf("%s[%d]", list, i), err)
}
