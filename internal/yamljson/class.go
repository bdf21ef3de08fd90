package yamljson

import "unicode/utf8"

// The classes of single bytes. Bytes of longer characters, and what is not
// accepted at all, have none.
const (
	text  = 1 + iota // means nothing within a plain scalar
	other            // may end a plain scalar
)

var class = func() (table [256]byte) {
	for c := byte(' '); c <= '~'; c++ {
		table[c] = text
	}
	for _, c := range []byte("\t\n#,:?[]{}") {
		table[c] = other
	}
	return table
}()

// plainInJSON are the bytes that encoding/json writes as they are, where they are
// alone.
var plainInJSON = func() (table [256]bool) {
	for c := byte(' '); c < utf8.RuneSelf; c++ {
		table[c] = c != '"' && c != '\\' && c != '<' && c != '>' && c != '&'
	}
	return table
}()

// allPrintable reports whether each of eight bytes is printable ASCII. It may
// be false for some that are.
func allPrintable(word uint64) bool {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	// A byte below 0x20 borrows from its high bit; one of 0x7f or more has it
	// once 1 is added.
	return ((word-ones*0x20)|(word+ones)|word)&high == 0
}

// cleanRune returns the length of the character of several bytes that data starts
// with, 0 if it is not accepted: broken UTF-8, controls, line and paragraph
// separators, byte order marks and what YAML forbids.
func cleanRune(data []byte) int {
	r, n := utf8.DecodeRune(data)
	switch {
	case r == utf8.RuneError && n == 1, r < 0xa0, r == 0x2028, r == 0x2029, r == 0xfeff, r == 0xfffe, r == 0xffff:
		return 0
	}
	return n
}
