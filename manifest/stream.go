package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"unicode"
	"unicode/utf8"

	"github.com/clusterupdate/clusterupdate/internal/yamljson"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// guessSize is how far the beginning of a file is searched for the brace that
// makes it JSON.
const guessSize = 1024

func isJSON(data []byte) bool {
	return utilyaml.IsJSONBuffer(data[:min(len(data), guessSize)])
}

// jsonStream reads JSON objects one after another. Where that fails for one of
// the first two, the rest is read as YAML; where that fails as well, the error
// is the one of JSON.
func (d *decoder) jsonStream(data []byte) error {
	if left := d.valuesLeft(); len(data) > left && countValues(data) > left {
		return d.tooManyValues()
	}
	stream := json.NewDecoder(bytes.NewReader(data))
	for count := 0; ; count++ {
		if d.ctx.Err() != nil {
			return contextError(d.ctx)
		}
		at := stream.InputOffset()
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
			if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
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

func countValues(data []byte) int {
	values, _ := jsonShape(data)
	return values
}

// jsonShape returns how many values a JSON text has, and how deep its maps and
// lists are nested. For a text that is not JSON the numbers mean
// nothing.
func jsonShape(data []byte) (values, depth int) {
	level := 0
	value := true // the next token begins a value
	for i := 0; i < len(data); i++ {
		c := data[i]
		switch c {
		case ' ', '\t', '\n', '\r':
			continue
		case ']', '}':
			level--
			value = false
			continue
		}
		if value {
			values++
			value = false
		}
		switch c {
		case '[', '{':
			level++
			depth = max(depth, level)
			value = true
		case ',':
			value = true
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		}
	}
	return values, depth
}

// worstExpansion is more than what the YAML decoder makes of aliases before it
// gives up: it allows 400,000 parts where most come from aliases.
const worstExpansion = 4 << 20

// expansion returns about how many bytes a document becomes that has aliases,
// and anything more than limit for one that becomes longer. It is 0 for a
// document without aliases. The YAML decoder bounds how many parts aliases may
// make, but neither their size nor their sum.
func expansion(document []byte, limit int64) int64 {
	aliases, size, err := yamljson.MeasureAliases(document, limit)
	switch {
	case err != nil:
		return worstExpansion // the error comes again, and is worded, when the document is decoded
	case aliases == 0:
		return 0
	}
	return size
}
