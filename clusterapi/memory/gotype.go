package memory

import (
	"encoding/base64"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterupdate/clusterupdate/internal/objects"
)

// goType is what a Go type of an API accepts in JSON. It is made once for each
// type, so that trees are judged as a decoder would, without decoding them.
type goType struct {
	name   string // of the Go type, for errors
	shape  shape
	bits   int // of an integer
	unsign bool
	fields map[string]goField // of a struct
	elem   *goType            // of a map or a list
}

type goField struct {
	of *goType
	// empty reports that the encoder leaves out a value that is empty.
	empty bool
}

type shape int

const (
	anything shape = iota
	object
	mapping
	list
	text
	boolean
	integer
	float
	bytesText
	dateTime
	microTime
	duration
	quantity
	intOrText
)

var goTypes = struct {
	sync.Mutex
	known map[reflect.Type]*goType
}{known: make(map[reflect.Type]*goType)}

// goTypeOf returns what a type takes.
func goTypeOf(t reflect.Type) *goType {
	goTypes.Lock()
	defer goTypes.Unlock()
	return readType(t)
}

var opaque = map[reflect.Type]shape{
	reflect.TypeFor[metav1.Time]():          dateTime,
	reflect.TypeFor[metav1.MicroTime]():     microTime,
	reflect.TypeFor[metav1.Duration]():      duration,
	reflect.TypeFor[resource.Quantity]():    quantity,
	reflect.TypeFor[intstr.IntOrString]():   intOrText,
	reflect.TypeFor[runtime.RawExtension](): anything,
	reflect.TypeFor[metav1.FieldsV1]():      anything,
	reflect.TypeFor[[]byte]():               bytesText,
}

// readType is called with the lock held. A type is known before its parts are
// read, since types may hold themselves.
func readType(t reflect.Type) *goType {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if known := goTypes.known[t]; known != nil {
		return known
	}
	out := &goType{name: t.String(), bits: 64}
	goTypes.known[t] = out
	if s, ok := opaque[t]; ok {
		out.shape = s
		return out
	}
	switch t.Kind() {
	case reflect.Struct:
		out.shape, out.name, out.fields = object, t.Name(), make(map[string]goField)
		readFields(t, out.fields)
	case reflect.Map:
		out.shape, out.elem = mapping, readType(t.Elem())
	case reflect.Slice, reflect.Array:
		out.shape, out.elem = list, readType(t.Elem())
	case reflect.String:
		out.shape = text
	case reflect.Bool:
		out.shape = boolean
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		out.shape, out.bits = integer, t.Bits()
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		out.shape, out.bits, out.unsign = integer, t.Bits(), true
	case reflect.Float32, reflect.Float64:
		out.shape = float
	}
	return out
}

func readFields(t reflect.Type, into map[string]goField) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case f.Anonymous && name == "":
			ft := f.Type
			for ft.Kind() == reflect.Pointer {
				ft = ft.Elem()
			}
			readFields(ft, into)
		case f.IsExported() && name != "":
			kind := f.Type.Kind()
			empty := slices.Contains(strings.Split(options, ","), "omitempty") && kind != reflect.Pointer && kind != reflect.Struct
			into[name] = goField{of: readType(f.Type), empty: empty}
		}
	}
}

// decoding is one pass of a tree through a type.
type decoding struct {
	path []string
	// tolerant leaves out what is empty: the form in which a server stores.
	clean bool
}

// decode returns v in the form in which the type writes it, or an error that
// names the field. What is as in old, which was stored without question, is
// not judged.
func (t *goType) decode(v, old any, clean bool) (any, error) {
	d := &decoding{clean: clean}
	return d.value(t, v, old)
}

func (d *decoding) value(t *goType, v, old any) (any, error) {
	if v == nil {
		return nil, nil
	}
	switch t.shape {
	case anything:
		return v, nil
	case object, mapping:
		m, ok := v.(map[string]any)
		if !ok {
			return d.refuse(t, v, old)
		}
		return d.members(t, m, old)
	case list:
		l, ok := v.([]any)
		if !ok {
			return d.refuse(t, v, old)
		}
		return d.elements(t, l, old)
	}
	out, ok := t.scalar(v)
	if !ok {
		return d.refuse(t, v, old)
	}
	return out, nil
}

func (d *decoding) members(t *goType, m map[string]any, old any) (any, error) {
	before, _ := old.(map[string]any)
	if objects.SameMap(m, before) {
		return m, nil
	}
	var failed error
	out := objects.Rewrite(m, func(name string, e any) (any, bool) {
		of, empty := t.elem, false
		if t.shape == object {
			f, ok := t.fields[name]
			if !ok {
				return e, true // left to the schema
			}
			of, empty = f.of, f.empty
		}
		d.path = append(d.path, name)
		kept, err := d.value(of, e, before[name])
		d.path = d.path[:len(d.path)-1]
		if err != nil && failed == nil {
			failed = err
		}
		return kept, !d.clean || !empty || !isEmpty(kept)
	}, nil)
	return out, failed
}

func (d *decoding) elements(t *goType, l []any, old any) (any, error) {
	before, _ := old.([]any)
	var failed error
	i := -1
	out := objects.Rewrite(l, nil, func(e any) any {
		i++
		var was any
		if i < len(before) {
			was = before[i]
		}
		kept, err := d.value(t.elem, e, was)
		if err != nil && failed == nil {
			failed = err
		}
		return kept
	})
	return out, failed
}

func isEmpty(v any) bool {
	switch v := v.(type) {
	case string:
		return v == ""
	case bool:
		return !v
	case int64:
		return v == 0
	case float64:
		return v == 0
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return v == nil
}

// scalar returns the canonical form of a value.
func (t *goType) scalar(v any) (any, bool) {
	s, isText := v.(string)
	n, isInt := v.(int64)
	switch t.shape {
	case text:
		return v, isText
	case boolean:
		_, ok := v.(bool)
		return v, ok
	case integer:
		return v, isInt && t.holds(n)
	case float:
		_, ok := v.(float64)
		return v, ok || isInt
	case intOrText:
		return v, isText || isInt && n >= math.MinInt32 && n <= math.MaxInt32
	case bytesText:
		_, err := base64.StdEncoding.DecodeString(s)
		return v, isText && err == nil
	case duration:
		d, err := time.ParseDuration(s)
		if !isText || err != nil {
			return nil, false
		}
		return d.String(), true
	case dateTime:
		at, err := time.Parse(time.RFC3339, s)
		if !isText || err != nil {
			return nil, false
		}
		return at.UTC().Format(time.RFC3339), true
	case microTime:
		at, err := time.Parse(metav1.RFC3339Micro, s)
		if !isText || err != nil {
			return nil, false
		}
		return at.UTC().Format(metav1.RFC3339Micro), true
	case quantity:
		switch {
		case isInt:
			s = strconv.FormatInt(n, 10)
		case !isText:
			f, ok := v.(float64)
			if !ok {
				return nil, false
			}
			s = strconv.FormatFloat(f, 'f', -1, 64)
		}
		q, err := resource.ParseQuantity(s)
		if err != nil {
			return nil, false
		}
		if c := q.String(); c != s || !isText {
			return c, true
		}
		return v, true
	}
	return v, true
}

func (t *goType) holds(n int64) bool {
	if t.unsign {
		return n >= 0 && (t.bits == 64 || n < 1<<t.bits)
	}
	shift := 64 - t.bits
	return n<<shift>>shift == n
}

// refuse is the error of a value that does not fit, unless it was stored.
func (d *decoding) refuse(t *goType, v, old any) (any, error) {
	if old != nil && objects.Equal(v, old) {
		return v, nil
	}
	where := strings.Join(d.path, ".")
	switch t.shape {
	case bytesText:
		if s, ok := v.(string); ok {
			_, err := base64.StdEncoding.DecodeString(s)
			return v, fmt.Errorf("%s: %w", where, err)
		}
	case quantity:
		return v, fmt.Errorf("%s: %w", where, resource.ErrFormatWrong)
	case dateTime, microTime:
		if s, ok := v.(string); ok {
			_, err := time.Parse(time.RFC3339, s)
			return v, fmt.Errorf("%s: %v", where, err)
		}
	case duration:
		if s, ok := v.(string); ok {
			_, err := time.ParseDuration(s)
			return v, fmt.Errorf("%s: %v", where, err)
		}
	}
	return v, fmt.Errorf("json: cannot unmarshal %s into Go struct field %s of type %s", jsonName(v), where, t.name)
}

// jsonName is what encoding/json calls a value in its errors.
func jsonName(v any) string {
	switch v := v.(type) {
	case string:
		return "string"
	case bool:
		return "bool"
	case int64, float64:
		return fmt.Sprintf("number %v", v)
	case []any:
		return "array"
	}
	return "object"
}

// typedForm passes a tree through the Go type of its kind; old is what is
// stored. Clean leaves out what the type does not write.
func (k *kind) typedForm(content, old map[string]any, clean bool) (map[string]any, error) {
	if k.goType == nil {
		return content, nil
	}
	out, err := k.goType.decode(content, old, clean)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", k.gvk.Kind, k.gvk.Version, k.gvk.Kind, err))
	}
	m, _ := out.(map[string]any)
	return m, nil
}
