package limit

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// JSON returns a [*LimitError] if decoding data into v may make more than [Heap]
// bytes: by encoding/json or sigs.k8s.io/json, and v is what they fill, or a
// value of that type. It does not check that data is JSON.
func JSON(data []byte, v any) error {
	if len(data) <= small {
		return nil
	}
	return Limit{Max: Heap, What: heapWhat}.Check(Cost(data, v))
}

const (
	// small is a size of JSON that makes less than Heap, whatever it holds: a
	// value takes two bytes at least, and makes 32 KiB at most.
	small = 16 << 10

	heapWhat = "bytes of memory for a document"
)

// Cost returns how many bytes decoding data into v allocates at most, as
// [JSON] counts them. It stops counting above [Heap].
func Cost(data []byte, v any) int64 {
	w := &walker{data: data, types: make(map[reflect.Type]*typeInfo)}
	w.value(w.info(reflect.TypeOf(v)))
	return w.cost
}

// Shape returns how many values JSON text has, and how deep its maps and lists
// are nested. For a text that is not JSON the numbers mean nothing.
func Shape[T ~string | ~[]byte](text T) (values, depth int64) {
	var level int64
	begins := true // the next token starts a value
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch c {
		case ' ', '\t', '\n', '\r':
			continue
		case ']', '}':
			level--
			begins = false
			continue
		}
		if begins {
			values++
			begins = false
		}
		switch c {
		case '[', '{':
			level++
			depth = max(depth, level)
			begins = true
		case ',':
			begins = true
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		}
	}
	return values, depth
}

// What decoders allocate, as measured with Go 1.26 and rounded up: slices
// and maps grow several times until they have their size.
const (
	perElement = 6  // sizes of an element, for each element of a slice
	firstOnes  = 4  // elements that the first allocation of a slice holds
	perEntry   = 5  // sizes of an entry, for each entry of a large map
	groupSize  = 8  // entries of a map that are allocated at once
	mapHeader  = 64 // bytes of a map
	perText    = 32 // bytes of a string beyond its characters
	perLevel   = 64 // bytes of a level of nesting
	perError   = 96 // bytes of an error about a value of another type
)

// walker reads JSON along with the type that it is decoded into, and adds up
// what that allocates.
type walker struct {
	data           []byte
	pos            int
	depth, deepest int
	cost           int64
	key            []byte // that is being unescaped
	types          map[reflect.Type]*typeInfo
}

type kind uint8

const (
	kindOther kind = iota
	kindAny
	kindText
	kindRaw    // json.RawMessage
	kindCustom // decodes itself
	kindPointer
	kindStruct
	kindMap
	kindSlice
	kindArray
)

// typeInfo is what the walker needs to know of a type.
type typeInfo struct {
	kind       kind
	size       int64 // of the type itself
	entry      int64 // of an entry of a map
	elem       *typeInfo
	fields     map[string]*typeInfo // by name
	foldFields map[string]*typeInfo // by name in lower case
}

var (
	unmarshalerType     = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
	rawType             = reflect.TypeFor[json.RawMessage]()
	anyType             = reflect.TypeFor[any]()
)

func (w *walker) info(t reflect.Type) *typeInfo {
	if t == nil {
		t = anyType
	}
	if known := w.types[t]; known != nil {
		return known
	}
	n := &typeInfo{size: int64(t.Size())}
	w.types[t] = n // before its parts: a type can contain itself
	switch pointer := reflect.PointerTo(t); {
	case t == rawType:
		n.kind = kindRaw
	case t.Kind() == reflect.Pointer:
		n.kind, n.elem = kindPointer, w.info(t.Elem())
	case pointer.Implements(unmarshalerType), pointer.Implements(textUnmarshalerType):
		n.kind = kindCustom
	case t.Kind() == reflect.Interface:
		n.kind = kindAny
	case t.Kind() == reflect.Struct:
		n.kind, n.fields, n.foldFields = kindStruct, make(map[string]*typeInfo), make(map[string]*typeInfo)
		w.addFields(n, t)
	case t.Kind() == reflect.String:
		n.kind = kindText
	case t.Kind() == reflect.Map:
		n.kind, n.elem = kindMap, w.info(t.Elem())
		n.entry = int64(t.Key().Size()) + min(n.elem.size, 128)
	case t.Kind() == reflect.Slice:
		n.kind, n.elem = kindSlice, w.info(t.Elem())
	case t.Kind() == reflect.Array:
		n.kind, n.elem = kindArray, w.info(t.Elem())
	}
	return n
}

// addFields adds the fields of a struct, and those of structs embedded in it.
// Of fields with one name it keeps the first.
func (w *walker) addFields(n *typeInfo, t reflect.Type) {
	var embedded []reflect.Type
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		name, _, _ := strings.Cut(tag, ",")
		ft := f.Type
		if f.Anonymous && name == "" {
			if ft.Kind() == reflect.Pointer {
				ft = ft.Elem()
			}
			if ft.Kind() == reflect.Struct {
				embedded = append(embedded, ft)
				continue
			}
		}
		if !f.IsExported() || tag == "-" {
			continue
		}
		name = cmp.Or(name, f.Name)
		w.addField(n, name, w.info(f.Type))
	}
	for _, e := range embedded {
		if of := w.info(e); of.kind == kindStruct && of != n {
			for name, field := range of.fields {
				w.addField(n, name, field)
			}
		}
	}
}

func (w *walker) addField(n *typeInfo, name string, field *typeInfo) {
	if n.fields[name] == nil {
		n.fields[name] = field
	}
	if fold := strings.ToLower(name); n.foldFields[fold] == nil {
		n.foldFields[fold] = field
	}
}

// maxDepth is where decoders give up.
const maxDepth = 10_000

// peek skips white space and returns the next byte, 0 at the end.
func (w *walker) peek() byte {
	for ; w.pos < len(w.data); w.pos++ {
		if c := w.data[w.pos]; c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c
		}
	}
	return 0
}

// value reads a value that is decoded into a type, or skipped if n is nil. It
// reports false at the end, for what is not JSON, and if there is no need to
// read on.
func (w *walker) value(n *typeInfo) bool {
	for n != nil && n.kind == kindPointer {
		n = n.elem
		w.cost += n.size + n.size/8 + 16
	}
	if n != nil && (n.kind == kindCustom || n.kind == kindRaw) {
		return w.custom(n)
	}
	switch w.peek() {
	case '{':
		return w.object(n)
	case '[':
		return w.list(n)
	case '"':
		text, ok := w.text()
		if n != nil {
			w.cost += textCost(text)
		}
		w.mismatch(n, kindText)
		return ok && w.cost <= Heap
	}
	start := w.pos
	for w.pos < len(w.data) && isWord(w.data[w.pos]) {
		w.pos++
	}
	if n != nil && w.pos > start && w.data[start] <= '9' {
		w.cost += 16 + 2*int64(w.pos-start)
	}
	if n != nil && n.kind != kindAny && w.pos > start && w.data[start] != 'n' {
		w.cost += perError // a number may also be too large for its field
	}
	return w.pos > start && w.cost <= Heap
}

// mismatch counts an error, if a value is not of the kind that its place wants.
func (w *walker) mismatch(n *typeInfo, kinds ...kind) {
	if n != nil && n.kind != kindAny && !slices.Contains(kinds, n.kind) {
		w.cost += perError
	}
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c == '-' || c == '+' || c == '.' || c == 'E'
}

// custom reads a value that decodes itself: into its text, or at most into a
// generic value beside it.
func (w *walker) custom(n *typeInfo) bool {
	w.peek()
	start := w.pos
	var as *typeInfo
	if n.kind == kindCustom {
		as = w.info(anyType)
	}
	ok := w.value(as)
	w.cost += int64(w.pos-start) + perText
	return ok
}

// enter counts a level, which takes some memory of the decoder.
func (w *walker) enter() bool {
	w.depth++
	if w.depth > w.deepest {
		w.deepest = w.depth
		w.cost += perLevel
	}
	return w.depth <= maxDepth
}

func (w *walker) object(n *typeInfo) bool {
	if !w.enter() {
		return false
	}
	if n != nil && (n.kind == kindAny || n.kind == kindMap) {
		w.cost += mapHeader
	}
	w.mismatch(n, kindMap, kindStruct)
	w.pos++
	for count := int64(1); ; count++ {
		c := w.peek()
		if c == '}' {
			w.pos++
			w.depth--
			return true
		}
		if c != '"' {
			return false
		}
		key, ok := w.text()
		if !ok || w.peek() != ':' {
			return false
		}
		w.pos++
		if !w.value(w.entry(n, key, count)) {
			return false
		}
		if w.peek() == ',' {
			w.pos++
		}
	}
}

// entry counts the entry of an object with some key, the count-th one, and
// returns what its value is decoded into.
func (w *walker) entry(n *typeInfo, key []byte, count int64) *typeInfo {
	if n == nil {
		return nil
	}
	size := int64(32) // of a map[string]any
	elem := n
	switch n.kind {
	case kindStruct:
		return w.field(n, key)
	case kindMap:
		size, elem = n.entry, n.elem
		if elem.size > 128 {
			w.cost += elem.size + elem.size/8
		}
		w.cost += 16
		if count == 1 {
			w.cost += elem.size
		}
	case kindAny:
	default:
		return nil
	}
	switch {
	case count == 1:
		w.cost += groupSize*size + 32
	case count > groupSize:
		w.cost += perEntry * (size + 1)
	case count == groupSize:
		w.cost += 2 * perEntry * groupSize * (size + 1)
	}
	w.cost += textCost(key)
	return elem
}

// field returns the field that decoders take a key for, whatever its case.
func (w *walker) field(n *typeInfo, key []byte) *typeInfo {
	if f := n.fields[string(key)]; f != nil {
		return f
	}
	w.key = w.key[:0]
	for i := 0; i < len(key); i++ {
		c := key[i]
		switch {
		case c == '\\' && i+5 < len(key) && key[i+1] == 'u':
			r := rune(0)
			for _, digit := range key[i+2 : i+6] {
				r = r<<4 | rune(hexDigit(digit))
			}
			w.key = utf8.AppendRune(w.key, r)
			i += 5
		case c == '\\' && i+1 < len(key):
			i++
			w.key = append(w.key, key[i])
		default:
			w.key = append(w.key, c)
		}
	}
	ascii := true
	for i, c := range w.key {
		if 'A' <= c && c <= 'Z' {
			w.key[i] = c + 'a' - 'A'
		}
		ascii = ascii && c < utf8.RuneSelf
	}
	if ascii {
		return n.foldFields[string(w.key)]
	}
	for name, f := range n.foldFields {
		if strings.EqualFold(name, string(w.key)) {
			return f
		}
	}
	return nil
}

func hexDigit(c byte) byte {
	switch {
	case c >= 'a':
		return (c - 'a' + 10) & 15
	case c >= 'A':
		return (c - 'A' + 10) & 15
	}
	return (c - '0') & 15
}

func (w *walker) list(n *typeInfo) bool {
	if !w.enter() {
		return false
	}
	var elem *typeInfo
	size := int64(0)
	switch {
	case n == nil:
	case n.kind == kindAny:
		elem, size = n, 16
		w.cost += 32
	case n.kind == kindSlice:
		elem, size = n.elem, n.elem.size
	case n.kind == kindArray:
		elem = n.elem
	}
	w.mismatch(n, kindSlice, kindArray)
	w.pos++
	for count := 1; ; count++ {
		c := w.peek()
		if c == ']' {
			w.pos++
			w.depth--
			return true
		}
		switch {
		case count == 1:
			w.cost += firstOnes * size
		case count == firstOnes+1:
			w.cost += 3 * firstOnes * size
		case count > firstOnes:
			w.cost += perElement * size
		}
		if c == 0 || !w.value(elem) {
			return false
		}
		if w.peek() == ',' {
			w.pos++
		}
	}
}

// text reads a string and returns what is between its quotes.
func (w *walker) text() (text []byte, ok bool) {
	start := w.pos + 1
	for i := start; i < len(w.data); i++ {
		switch w.data[i] {
		case '"':
			w.pos = i + 1
			return w.data[start:i], true
		case '\\':
			i++
		}
	}
	w.pos = len(w.data)
	return nil, false
}

// textCost is what a string costs: a copy, and if it has escapes or broken
// characters what replacing these takes.
func textCost(text []byte) int64 {
	n := int64(len(text))
	switch {
	case !utf8.Valid(text):
		return 10*n + perText
	case n > 0 && bytes.IndexByte(text, '\\') >= 0:
		return 3*n + perText
	}
	return n + n/4 + perText
}
