package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	yamlv2 "go.yaml.in/yaml/v2"
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

// expansion returns about how many bytes of JSON a document becomes that has
// aliases, and anything more than limit for one that becomes longer. It is 0
// for a document without aliases. The YAML decoder bounds how many parts
// aliases may make, but neither their size nor their sum.
func expansion(document string, limit int64) int64 {
	if !hasName(document, '&') || !hasName(document, '*') {
		return 0
	}
	var value any
	if err := yamlv2.Unmarshal([]byte(document), &value); err != nil {
		return worstExpansion // the error comes again, and is worded, when the document is decoded
	}
	return expandedSize(value, limit)
}

// hasName reports whether a document may have an anchor ('&') or an alias
// ('*'): the sign at the beginning of a token, followed by a name.
func hasName(document string, sign byte) bool {
	for i := 0; ; i++ {
		next := strings.IndexByte(document[i:], sign)
		if next < 0 {
			return false
		}
		i += next
		if i+1 < len(document) && inName(document[i+1]) && (i == 0 || mayPrecede(document[i-1])) {
			return true
		}
	}
}

func inName(c byte) bool {
	return c == '_' || c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// mayPrecede reports whether a token can begin after c. It may be true where
// none can.
func mayPrecede(c byte) bool {
	return !inName(c) && c != '*' && c != '&' && c != '/' && c != '(' && c != '.'
}

// expandedSize returns about how long a value is as JSON, and anything more
// than limit for one that is longer than that.
func expandedSize(value any, limit int64) int64 {
	size := int64(1)
	switch value := value.(type) {
	case string:
		size += int64(len(value)) + 2
	case []any:
		for _, v := range value {
			if size += expandedSize(v, limit-size); size > limit {
				break
			}
		}
	case map[any]any:
		for k, v := range value {
			size += expandedSize(k, limit-size)
			if size += expandedSize(v, limit-size); size > limit {
				break
			}
		}
	default:
		size += 8
	}
	return size
}
