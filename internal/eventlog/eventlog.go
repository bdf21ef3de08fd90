// Package eventlog gives the events of all packages one form: the same fields,
// in the same order, in JSON and in logs.
package eventlog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"time"
)

// Fields are the fields of one event, in order. Names are lower camel case.
// "time" comes first, "type" second; objects are named by what they are
// ("release", "pool", "node", "subscription", ...), texts for people are
// "message", failures "error".
type Fields []slog.Attr

// New begins the fields of an event.
func New(t time.Time, eventType string) Fields {
	f := make(Fields, 0, 12)
	if !t.IsZero() {
		f = append(f, slog.Time("time", t))
	}
	return append(f, slog.String("type", eventType))
}

// Add appends a field unless value is zero: nil, "", 0, false, an empty slice.
func (f *Fields) Add(name string, value any) {
	v := reflect.ValueOf(value)
	if !v.IsValid() || v.IsZero() || (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0 {
		return
	}
	f.Set(name, value)
}

// Set appends a field whatever its value. Errors and durations become texts.
func (f *Fields) Set(name string, value any) {
	switch v := value.(type) {
	case error:
		value = v.Error()
	case time.Duration:
		value = v.String()
	case fmt.Stringer:
		if _, ok := value.(json.Marshaler); !ok {
			value = v.String()
		}
	}
	*f = append(*f, slog.Any(name, value))
}

// JSON writes the fields as one flat object, in order.
func (f Fields) JSON() ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, a := range f {
		if i > 0 {
			out.WriteByte(',')
		}
		name, err := json.Marshal(a.Key)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(a.Value.Any())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.Key, err)
		}
		out.Write(name)
		out.WriteByte(':')
		out.Write(value)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// LogValue is the fields as a group, for slog. The time is left out: a log
// record has its own.
func (f Fields) LogValue() slog.Value {
	attrs := []slog.Attr(f)
	if len(attrs) > 0 && attrs[0].Key == "time" {
		attrs = attrs[1:]
	}
	return slog.GroupValue(attrs...)
}
