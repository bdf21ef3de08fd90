package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
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
	stream := json.NewDecoder(bytes.NewReader(data))
	for count := 0; ; count++ {
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

// checkAliases refuses a document whose aliases expand it to more than limit
// bytes. The YAML decoder bounds how many parts aliases may make, but not their
// size.
func checkAliases(document string, limit int64) error {
	var anchor, alias bool
	for i := range len(document) {
		switch document[i] {
		case '&':
			anchor = true
		case '*':
			alias = true
		}
	}
	if !anchor || !alias {
		return nil
	}
	var value any
	if err := yamlv2.Unmarshal([]byte(document), &value); err != nil {
		return nil // the error comes again, and is worded, when the document is decoded
	}
	if expandedSize(value, limit) > limit {
		return &LimitError{Limit: "ExpandedSize", Max: limit, What: "bytes after the expansion of aliases"}
	}
	return nil
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
