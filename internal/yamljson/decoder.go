package yamljson

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/internal/limit"
)

// DefaultDepth is how deep maps and lists may be nested where a [Decoder] does
// not say otherwise.
const DefaultDepth = 500

// maxKey is the length from which a key is refused. The limit of YAML is 1024
// characters.
const maxKey = 1000

// Decoder decodes documents one after another and keeps its buffers in
// between. Its zero value is ready to use. It is not safe for concurrent use.
type Decoder struct {
	// MaxDepth is how deep maps and lists may be nested; deeper documents are
	// refused. 0 means DefaultDepth.
	MaxDepth int
	// MaxValues is how many values (maps, lists and what they hold) a document
	// may have; longer ones are refused. 0 means any number.
	MaxValues int

	s         string
	pos       int // of the next character
	lineStart int // of the line that pos is on, where columns matter
	col       int // of the token that skip found
	bol       bool
	eof       bool

	root  int32
	nodes []node // nodes[0] is not used, so that 0 can mean none
	buf   []byte // a scalar that is being joined
	out   []byte // the JSON that is being written
	order []int32
}

// MaxValues returns how many values a document of some size may have, so that a
// [Decoder] and who keeps its text make no more than [limit.Heap] of it.
func MaxValues(size int) int {
	const perByte, perValue = 3, 64 // the text, its JSON and a copy of that; a node
	return max(1, (limit.Heap-perByte*size)/perValue)
}

// large is the size from which room for a document is made at once: a slice that
// grows by and by takes several times as much.
const large = 1 << 20

// Reserve makes room for a number of values, at most [Decoder.MaxValues].
func (d *Decoder) Reserve(values int) {
	if d.MaxValues > 0 {
		values = min(values, d.MaxValues)
	}
	d.nodes = slices.Grow(d.nodes[:0], values+2)
}

// room returns the buffer for the JSON of the document that has been read.
func (d *Decoder) room(size int) []byte {
	if size < large {
		return d.out[:0]
	}
	n := 0
	for i := range d.nodes {
		n += len(d.nodes[i].key) + len(d.nodes[i].str) + len(`"":"",`)
	}
	return slices.Grow(d.out[:0], n)
}

type kind uint8

const (
	kindNull kind = iota
	kindFalse
	kindTrue
	kindInt
	kindFloat
	kindString
	kindSeq
	kindMap
)

// node is a part of the document that is being read.
type node struct {
	key   string // in a mapping
	str   string // of a string; of a float, its JSON text
	num   int64
	first int32 // child
	next  int32 // sibling
	n     int32 // number of children
	kind  kind
}

// Clean reports whether data holds only characters that a [Decoder] is
// prepared for. Others are forbidden in YAML, or break lines, or are carriage
// returns.
func Clean(data []byte) bool {
	for i := 0; i < len(data); {
		if i+8 <= len(data) && allPrintable(binary.LittleEndian.Uint64(data[i:])) {
			i += 8
			continue
		}
		c := data[i]
		if class[c] != 0 {
			i++
			continue
		}
		if c < 0x80 {
			return false
		}
		n := cleanRune(data[i:])
		if n == 0 {
			return false
		}
		i += n
	}
	return true
}

// Decode converts one document, which ends with a line end and may start with a
// line "---". All its characters must be [Clean]. text is its JSON form: a map, or
// nil for an empty document; it is valid until the next call. ok is false for a
// document that needs the slow way.
func (d *Decoder) Decode(doc string) (text []byte, ok bool) {
	d.nodes = append(d.nodes[:0], node{})
	if doc == "" || doc[len(doc)-1] != '\n' {
		return nil, false
	}
	if len(doc) >= large {
		d.Reserve(MayBegin(doc))
		d.nodes = append(d.nodes, node{})
	}
	d.s, d.pos, d.lineStart, d.bol, d.eof = doc, 0, 0, true, false
	if strings.HasPrefix(doc, "---") {
		d.pos = len("---")
		if !d.lineEnds() {
			return nil, false
		}
		d.pos = strings.IndexByte(doc, '\n') + 1
		d.lineStart = d.pos
	}
	if !d.skip() {
		return nil, false
	}
	if d.eof {
		return nil, true
	}
	d.root, ok = d.block(-1, 1)
	if !ok || !d.eof || d.nodes[d.root].kind != kindMap {
		return nil, false
	}
	d.out, d.order = d.room(len(doc)), d.order[:0]
	d.emitMap(d.root)
	return d.out, true
}

// Root returns the map that the last call of [Decoder.Decode] accepted. It is
// valid until the next call.
func (d *Decoder) Root() Node { return Node{d, d.root} }

// Values returns how many values the last document has, or had until it was
// refused.
func (d *Decoder) Values() int { return len(d.nodes) - 1 }

// Full reports whether the last document was refused for its number of values.
func (d *Decoder) Full() bool { return d.MaxValues > 0 && d.Values() > d.MaxValues }

// skip goes to the next token and notes its column, whether it is the first of
// its line, and the end of the document. It returns false for what must be
// refused.
func (d *Decoder) skip() bool {
	if d.Full() {
		return false
	}
	s, pos := d.s, d.pos
	d.bol = false
	if pos == d.lineStart {
		d.bol = true
	}
	for pos < len(s) {
		switch c := s[pos]; c {
		case ' ':
			pos++
		case '\n':
			pos++
			d.lineStart = pos
			d.bol = true
		case '#':
			if pos > 0 && s[pos-1] != ' ' && s[pos-1] != '\n' {
				return false
			}
			pos += strings.IndexByte(s[pos:], '\n')
		case '\t':
			return false
		case '.':
			if pos == d.lineStart && strings.HasPrefix(s[pos:], "...") {
				return false
			}
			fallthrough
		default:
			d.pos, d.col = pos, pos-d.lineStart
			return true
		}
	}
	d.pos, d.col, d.eof = pos, -1, true
	return true
}

// lineEnds reports whether nothing but blanks and a comment follow on the line.
func (d *Decoder) lineEnds() bool {
	for i := d.pos; ; i++ {
		switch d.s[i] {
		case ' ':
		case '\n':
			return true
		case '#':
			return d.s[i-1] == ' '
		default:
			return false
		}
	}
}

func (d *Decoder) tooDeep(depth int) bool {
	if d.MaxDepth > 0 {
		return depth > d.MaxDepth
	}
	return depth > DefaultDepth
}

func (d *Decoder) add(n node) int32 {
	d.nodes = append(d.nodes, n)
	return int32(len(d.nodes) - 1) // a document is far smaller
}

// link makes child the next child of parent, whose last one is last.
func (d *Decoder) link(parent, last, child int32) {
	if last == 0 {
		d.nodes[parent].first = child
	} else {
		d.nodes[last].next = child
	}
	d.nodes[parent].n++
}

func blankOrEnd(c byte) bool { return c == ' ' || c == '\n' || c == '\t' }
