package yamljson

import "unicode/utf8"

// The classes of single bytes. Bytes of longer characters, and what is not
// accepted at all, have none.
const (
	text  = 1 + iota // means nothing within a plain scalar
	other            // may end a plain scalar
)

var class = [256]byte{
	'\t': other, '\n': other,
	' ': text, '!': text, '"': text, '#': other, '$': text, '%': text, '&': text, '\'': text,
	'(': text, ')': text, '*': text, '+': text, ',': other, '-': text, '.': text, '/': text,
	'0': text, '1': text, '2': text, '3': text, '4': text, '5': text, '6': text, '7': text,
	'8': text, '9': text, ':': other, ';': text, '<': text, '=': text, '>': text, '?': other,
	'@': text, 'A': text, 'B': text, 'C': text, 'D': text, 'E': text, 'F': text, 'G': text,
	'H': text, 'I': text, 'J': text, 'K': text, 'L': text, 'M': text, 'N': text, 'O': text,
	'P': text, 'Q': text, 'R': text, 'S': text, 'T': text, 'U': text, 'V': text, 'W': text,
	'X': text, 'Y': text, 'Z': text, '[': other, '\\': text, ']': other, '^': text, '_': text,
	'`': text, 'a': text, 'b': text, 'c': text, 'd': text, 'e': text, 'f': text, 'g': text,
	'h': text, 'i': text, 'j': text, 'k': text, 'l': text, 'm': text, 'n': text, 'o': text,
	'p': text, 'q': text, 'r': text, 's': text, 't': text, 'u': text, 'v': text, 'w': text,
	'x': text, 'y': text, 'z': text, '{': other, '|': text, '}': other, '~': text,
}

// plainInJSON are the bytes that encoding/json writes as they are, where they
// stand alone.
var plainInJSON = func() (table [256]bool) {
	for c := byte(' '); c < utf8.RuneSelf; c++ {
		table[c] = c != '"' && c != '\\' && c != '<' && c != '>' && c != '&'
	}
	return table
}()

// The functions below look at eight bytes at once. Each bit of highs belongs to
// one of them.
const (
	ones  = 0x0101010101010101
	highs = 0x80 * ones
	lows  = 0x7f * ones
)

// equal marks the bytes that are c, which is below 0x80.
func equal(word uint64, c byte) uint64 {
	diff := word ^ ones*uint64(c)
	return ^(diff&lows + lows | diff) & highs
}

// control marks the bytes below 0x20, and perhaps others above 0x7f.
func control(word uint64) uint64 { return ^(word&lows + 0x60*ones) & highs }

// isText reports whether each of eight bytes is printable ASCII or a line end.
func isText(word uint64) bool {
	return word&highs|control(word)&^equal(word, '\n')|equal(word, 0x7f) == 0
}

// isPlain reports whether encoding/json writes each of eight bytes as it is:
// all ASCII but controls, \ and the quotes, brackets and ampersands, each two of
// which differ in one bit.
func isPlain(word uint64) bool {
	return word&highs|control(word)|equal(word, '\\')|equal(word|('<'^'>')*ones, '<'|'>')|equal(word|('"'^'&')*ones, '"'|'&') == 0
}

// cleanRune returns the length of the character of several bytes that data
// begins with, 0 if it is not accepted: broken UTF-8, controls, line and
// paragraph separators, byte order marks and what YAML forbids.
func cleanRune(data []byte) int {
	r, n := utf8.DecodeRune(data)
	switch {
	case r == utf8.RuneError && n == 1, r < 0xa0, r == 0x2028, r == 0x2029, r == 0xfeff, r == 0xfffe, r == 0xffff:
		return 0
	}
	return n
}
