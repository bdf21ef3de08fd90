package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode"
	"unicode/utf8"

	"github.com/clusterupdate/clusterupdate/internal/limit"
	"github.com/clusterupdate/clusterupdate/internal/yamljson"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// guessSize is how far the beginning of a file is searched for the brace that
// makes it JSON.
const guessSize = 1024

func isJSON(data []byte) bool {
	return utilyaml.IsJSONBuffer(data[:min(len(data), guessSize)])
}

// jsonStream reads JSON objects one after another. If that fails for one of the
// first two, the rest is read as YAML; if that fails as well, the error is the one
// of JSON.
func (d *decoder) jsonStream(data []byte) error {
	if left := d.valuesLeft(); len(data) > left {
		if values, _ := limit.Shape(data); values > int64(left) {
			return d.tooManyValues()
		}
	}
	stream := json.NewDecoder(bytes.NewReader(data))
	for count := 0; ; count++ {
		if d.ctx.Err() != nil {
			return contextError(d.ctx)
		}
		at := stream.InputOffset()
		// An object is read for its type and for its content, behind a buffer that grows.
		if 2*limit.Cost(data[at:], new(any))+4*int64(len(data)) > limit.Heap {
			return d.fault(heapError())
		}
		var o object
		err := stream.Decode(&o)
		if err == nil {
			if err := d.addObject(&o); err != nil {
				return err
			}
			continue
		}
		if err == io.EOF { // as the decoder documents it
			return nil
		}
		if count <= 1 {
			if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
				err = utilyaml.JSONSyntaxError{Offset: syntax.Offset, Err: syntax}
			}
			if rest, ok := afterBlanks(data[at:]); ok {
				return d.yamlStream(rest, err)
			}
		}
		return d.parseFault(err)
	}
}

// afterBlanks passes over white space up to and including the first line end.
// ok is false for a rest that apimachinery's decoder does not look at: broken
// characters, and white space with less than four bytes after it.
func afterBlanks(data []byte) (rest []byte, ok bool) {
	for {
		if len(data) < 4 {
			return nil, false
		}
		r, n := utf8.DecodeRune(data[:4])
		if r == utf8.RuneError {
			return nil, false
		}
		if !unicode.IsSpace(r) {
			return data, true
		}
		data = data[n:]
		if r == '\n' {
			return data, true
		}
	}
}

// size is what the conversion of a YAML document makes.
type size yamljson.Size

// measure returns the size of a document before it is converted. Objects take a
// quarter as much again as the conversion. The error is a [*LimitError], or the
// conversion's. Of aliases it counts no more than most bytes.
func measure(document string, most int64) (size, error) {
	s, err := yamljson.Measure(document, most)
	switch {
	case s.Heap > limit.Heap*4/5:
		err = heapError()
	case err != nil:
		err = fmt.Errorf("error converting YAML to JSON: %w", err)
	}
	return size(s), err
}

// expanded is the size of a document that may have aliases, else 0.
func (s size) expanded() int64 {
	if s.Aliases == 0 {
		return 0
	}
	return s.Bytes
}
