package graph

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/clusterupdate/clusterupdate/internal/options"
	"github.com/clusterupdate/clusterupdate/internal/strictjson"
)

// The defaults of [DecodeOptions].
const (
	defaultMaxBytes = 64 << 20 // bytes of JSON
	defaultMaxNodes = 100_000
	defaultMaxEdges = 4_000_000
)

// DecodeOptions say what a graph may be. The zero value is strict and bounded.
// A limit of zero means its default; one below zero is an error.
type DecodeOptions struct {
	// MaxBytes is the largest JSON text in bytes; 64 MiB by default.
	MaxBytes int64
	// MaxMemory is how many bytes of memory decoding may take in addition to the
	// text, as counted in advance for each element; 128 MiB by default. It bounds
	// what a short text of many small elements costs.
	MaxMemory int64
	// MaxNodes is the largest number of nodes; 100,000 by default.
	MaxNodes int
	// MaxEdges is the largest number of edges and conditional pairs together;
	// 4,000,000 by default.
	MaxEdges int
	// MaxConditional is the largest number of conditional entries; 100,000 by
	// default.
	MaxConditional int
	// MaxPairs is the largest number of edges of one conditional entry; 100,000
	// by default.
	MaxPairs int
	// MaxRisks is the largest number of risks of one conditional entry; 1,000 by
	// default, of which a ClusterVersion holds 200.
	MaxRisks int
	// MaxRules is the largest number of matching rules of one risk; 100 by
	// default.
	MaxRules int
	// MaxKeys is the largest number of keys of one JSON object, such as a node's
	// metadata; 1,000 by default.
	MaxKeys int
	// MaxChannels is the largest number of channels that one node's metadata
	// name; 1,000 by default.
	MaxChannels int
	// MaxText is the longest text that is kept, in bytes; 256 KiB by default.
	MaxText int
	// AnySchema accepts all schema versions.
	AnySchema bool
	// AllowNoPayload accepts nodes without a release image.
	AllowNoPayload bool
	// Compat decodes as the cluster-version operator does, faults included; see
	// compat.go. The limits stay. For comparisons only.
	Compat bool
}

func (o DecodeOptions) withDefaults() DecodeOptions {
	orElse(&o.MaxBytes, defaultMaxBytes)
	orElse(&o.MaxMemory, 128<<20)
	orElse(&o.MaxNodes, defaultMaxNodes)
	orElse(&o.MaxEdges, defaultMaxEdges)
	orElse(&o.MaxConditional, 100_000)
	orElse(&o.MaxPairs, 100_000)
	orElse(&o.MaxRisks, 1_000)
	orElse(&o.MaxRules, 100)
	orElse(&o.MaxKeys, 1_000)
	orElse(&o.MaxChannels, 1_000)
	orElse(&o.MaxText, 256<<10)
	return o
}

// orElse gives a limit that is not set its default.
func orElse[T int | int64](limit *T, or T) {
	if *limit == 0 {
		*limit = or
	}
}

// Decode reads a graph of schema version 1. The whole graph must be valid,
// also where a question would never look. Errors: [*DecodeError] with the place;
// a [*LimitError]; the reader's own; one that names an option below zero.
func Decode(r io.Reader, o DecodeOptions) (*Graph, error) {
	if err := options.NonNegative(o); err != nil {
		return nil, err
	}
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

// DecodeBytes is [Decode] for a text in memory, with the same errors. The graph
// keeps nothing of the text.
func DecodeBytes(data []byte, o DecodeOptions) (*Graph, error) {
	if err := options.NonNegative(o); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	if int64(len(data)) > o.MaxBytes {
		return nil, &LimitError{What: "bytes", Max: o.MaxBytes}
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
	d := decoder{memory: memory{max: o.MaxMemory}, o: o, interned: map[string]string{}}
	d.Scanner = strictjson.Scanner{Data: data, MaxKeys: o.MaxKeys, Spend: d.memory.spend}
	err := d.graph()
	if err == nil {
		return &d.parts, nil
	}
	at, ok := err.(*DecodeError)
	if !ok {
		at = &DecodeError{Err: err}
	}
	if errors.Is(err, strictjson.ErrSyntax) {
		at.Line, at.Err = d.Describe()
	}
	return nil, at
}

// within adds the place of an error: if one has a place already, it is within this
// one.
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
