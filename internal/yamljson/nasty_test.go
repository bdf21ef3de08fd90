package yamljson_test

import (
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/yamljson"
)

// scalars are values and keys that YAML 1.1 has its own ideas about.
var scalars = []string{
	"", "~", "null", "Null", "NULL", "nULL", "y", "Y", "n", "N", "yes", "Yes", "YES", "yEs", "no", "No", "NO",
	"on", "On", "ON", "off", "Off", "OFF", "true", "True", "TRUE", "tRue", "false", "False", "FALSE",
	"0", "-0", "+0", "00", "7", "-7", "+7", "007", "08", "-08", "0o17", "0O17", "0x1F", "0X1f", "-0x1F", "0b101", "-0b101", "0B11", "0b12", "0b-1",
	"1_000", "_1", "1_", "1__0", "0x_1", "999999999999999999", "1000000000000000000", "9223372036854775807", "9223372036854775808",
	"-9223372036854775808", "-9223372036854775809", "18446744073709551615", "18446744073709551616", "123456789012345678901234567890",
	"1.0", "-1.0", "-0.0", "1.5", "1.", ".5", "+.5", "-.5", "1e3", "1E3", "1e+3", "1e-3", "1e21", "1e22", "1e400", "-1e400", "1.7976931348623157e308", "5e-324", "1e", "e1",
	".inf", "-.inf", "+.inf", ".Inf", ".INF", ".iNf", ".nan", ".NaN", "+.nan", ".", "..", "-", "+", "-.", "+.", "./x", ".x", "-x", "--x", "+x",
	"12:30:45", "1:30", "190:20:30.15", "2001-12-14", "2001-12-14t21:59:43.10-05:00", "2001-12-14 21:59:43.10", "4.18.15", "4.18", "10.0.0.0/16", "100m", "10Gi", "0.5s",
	"1a", "1f", "0xg", "beef", "1e5e5", "1-2", "1+2", "0x", "0o", "1.2.3",
	`"null"`, `'true'`, `"1"`, `''`, `""`, `'it''s'`, `"a\tb\n\\\"\x41\u00e9\U0001F600"`, `"\/"`, `"\u2028\L\P\N\_\e\0\a\b\v\f\r"`, `"\ud800"`, `"\u12"`, `"\q"`, `"<&>"`, `'\n'`, `"unclosed`, `'unclosed`, `"a" b`, `"a"# c`, `"a" # c`, `"a": b`,
	"a b", "a  b ", "a # c", "a#c", "a:b", "a: b", "a:", "a:: b", "http://x", "-1 - 2", "- a", "-", "? a", "?a", ":a", "@a", "`a", "%a", "!a", "!!str 1", "!!int \"1\"", "&a b", "*a", "<<", "=", "(a)", "^a$", "\\d", "a\tb", "\ta", "a,b", "a]b", "a}b", "[a", "]", "}", ",", "#",
	"[]", "{}", "[ ]", "{ }", "[a]", "[a, b]", "[a,b]", "[a, ]", "[a,, b]", "[, a]", "[a b, c]", "[a: b]", "[\"a\",'b']", "[[a], {b: c}]", "[a]]", "[a] b", "[a]: b", "[a:b]", "[a:]", "[?a]", "[a?b]", "[-]", "[- a]", "[-1, -a]", "[a # c]", "[a, # c]", "[*]", "['*']", "[y, 1, 0x10, 1.0, ~]", "[#a]", "[\"a\"#b]", "[a #b\n]",
	"{a: b}", "{a: b, c: d}", "{a: b,}", "{a}", "{a: }", "{a:}", "{a:b}", "{a: b c}", "{\"a\":1}", "{\"a\" :1}", "{'a':'b'}", "{a: {b: [c]}}", "{a: b}}", "{1: a}", "{y: a}", "{<<: a}", "{a: b, a: c}", "{? a: b}", "{a: b: c}", "{a b: c}", "{\"a\":\"b\", \"c\":[1,2]}", "{,}", "{a: b # c\n}", "{a: 'b\n c'}", "{a\n: b}", "{\"a\"\n: b}",
	"|", ">", "|-", "|+", ">-", "|2", "|a", "| a", "|# a", "| # a", "|1-\n  x",
	"é", "日本", "\u00a0", "a\u2028b", "\ufeffa", "a\u0085b", "\x7f", "\x01", "\xff",
}

// nasty are documents of which the fast way must either think the same as the
// slow way or refuse to think. fast says that it must not refuse, since such
// documents are common.
var nasty = []struct {
	doc  string
	fast bool
}{
	{"", true}, {"# nothing", true}, {"---", true}, {"--- # c\n# d\n", true}, {"---#c\na: b", false}, {"---0", false}, {"--- {a: b}", false}, {"--- a: b", false}, {"---  \na: b", true}, {"null", false}, {"~", false}, {"a", false}, {"- a", false}, {"[a]", false}, {"{a: b}", true}, {"{}", true},
	{"a: b", true}, {"---\na: b", true}, {"  a: b\n  c: d", true}, {"  a: b\nc: d", false}, {"a: b\n  c: d", false}, {"a: b\n c", true}, {"a:\n b\n c", true}, {"a: b\nc", false}, {"a", false}, {"a\nb: c", false},
	{"a: b\na: c\n", true}, {"b: 1\na: 2\nc: 3\na: 4\n", true}, {"a:\nb:\n", true}, {"a: # c\n  b: c # d\n", true}, {"a:\n\n\n  b: c\n\n\n", true}, {"a:\n# c\n  b: c\n # d\n  d: e", true},
	{"a:\n- b\n- c\nd: e", true}, {"a:\n  - b\n  - c\nd: e", true}, {"a:\n  - b\n - c", false}, {"a:\n - b\n  - c", true}, {"a:\n- b\n  c\n- d", true}, {"a:\n- b: c\n  d: e\n- f: g", true}, {"a:\n- - b\n  - c\n- - d", true}, {"a:\n-\n- b\n-\n", true}, {"a:\n-\n  b: c\n-\n  - d", true}, {"a:\n- # c\n  b", true}, {"a:\n-   b: c\n    d: e", true}, {"a:\n-   b: c\n  d: e", false}, {"a:\n- b\nc\n", false}, {"a: - b", false}, {"a: b\n- c", false}, {"a:\n-b", false}, {"a:\n- |\n  x\n- >-\n  y\n  z\n- 'q'", true}, {"- a: b\n", false}, {"a:\n  b:\n  - c\n  d: e\n", true}, {"a:\n  b:\n  - c\n d: e\n", false},
	{"a: 'b\n  c'", true}, {"a: 'b\n\n\n  c'", true}, {"a: \"b\n  c\"", true}, {"a: \"b \\\n   c\"", true}, {"a: \"b\\\n  \\ c\"", true}, {"a: \"b\\\n\n\n  c\"", true}, {"a: \"b \\  \n  c\"", true}, {"a: \"b\\\\ \n  c\"", true}, {"a: '\n  b'", true}, {"a: '  \n  b  '", true}, {"a: 'b\nc'", true}, {"a: 'b\n...\nc'", false}, {"a: 'b\n... c'", false}, {"a: 'b\n  c' d", false}, {"'a\n b': c", false}, {"\"a\": 'b'\n'c' : d\n", true}, {"\"a\":b", false}, {"a: \"b\t\n\tc\"", false}, {"a: 'b\n\tc'", false}, {"a: ''''", true}, {"a: '''b'''", true}, {"a:\n  'b'\nc:\n  \"d\"", true}, {"a:\n'b'", false}, {"a: \"\\\n\"", true}, {"a: \"\n\"", true}, {"a: '\n\n'", true}, {"a: \"  \\\n  \\n\"", true},
	{"a: |\n  b\n  c\n", true}, {"a: |-\n  b\n\n", true}, {"a: |+\n  b\n\n\nc: d", true}, {"a: >\n  b\n  c\n\n  d\n", true}, {"a: >\n  b\n    c\n  d\n", true}, {"a: >\n  b\n\n    c\n\n  d\n", true}, {"a: >-\n\n\n  b\n", true}, {"a: |\n\n    \n  b\n", false}, {"a: |\n  \n   b\n", true}, {"a: |\n b\n  c\n", true}, {"a: |2\n   b\n  c\n", true}, {"a: |1+\n  b\n\n", true}, {"a: |+2\n   b\n", true}, {"a: |\nb: c", true}, {"a: |\n\nb: c", true}, {"a: |+\n\n\nb: c", true}, {"a: |", true}, {"a: |\n  b\n c: d", false}, {"a: |\n  b\n # c\n", true}, {"a: |\n  b\n# c\n  d\n", false}, {"a: |\n\tb", false}, {"a: |\n  b\n\tc", false}, {"a: |\n  \tb\n", false}, {"a: |2\n  \tb\n", true}, {"a: >\n  b\n  \tc\n  d\n", true}, {"a: |0\n  b", false}, {"a: |--\n  b", false}, {"a: |\n  b: c\n  # d\n  ---\n", true}, {"a:\n  |\n  b\n", true}, {"a:\n- |\n b\n", true}, {"a:\n- |\nb\n", false}, {"a:\n  - b: >\n      c\n    d: e\n", true}, {"a: >+\n  b\n\n\n  c\n\n\n", true}, {"a: |\n  b   \n  c\n", true}, {"a: >\n  b   \n  c\n", true}, {"a: >\n   b\n   \n  c\n", false}, {"|\n a", false}, {"a: |-\n  b\n   \n\n", true},
	{"a: b # c\n  d", false}, {"a: b\n  # c\n  d", false}, {"a: b\n\n  c\n", true}, {"a: b\n  c: d", false}, {"a: b\n  c # d\n", true}, {"a: b\n  c # d\n  e", false}, {"a: b\n  - c\n  ? d\n  & e", true}, {"a: b \n  c \n", true}, {"a: b\n\tc", false}, {"a:\tb", false}, {"a: b\t", false}, {"\ta: b", false}, {"a: b\n ...", true}, {"a: b\n...\n", false}, {"a: b\n...\nc: d", false}, {"...\na: b", false}, {"%YAML 1.1\n---\na: b", false}, {"a: 1\n  2", true}, {"a: y\n  n", true},
	{"? a\n: b", false}, {"a: &x b\nc: *x", false}, {"a: &x {b: c}\nd:\n  <<: *x\n  e: f", false}, {"<<: {a: b}", false}, {"'<<': {a: b}", true}, {"a: !!binary aGk=", false}, {"a: !x b", false}, {"!!map\na: b", false}, {"&a b: c", false}, {"a: *x", false},
	{"y: 1", false}, {"on: 1", false}, {"1: a", false}, {"1.5: a", false}, {"null: a", false}, {"~: a", false}, {"'1': a", true}, {": a", false}, {"a:\n  : b", false}, {"2001-01-01: a", true}, {"100m: a", true}, {"- : a", false}, {"-: a", true}, {"a b: c", true}, {"a : b", true}, {"a#b: c", true}, {"a #b: c", false}, {"a.b/c: d", true}, {"$ref: a", true}, {"{a: b}: c", false}, {"[a]: c", false}, {"a: b: c", false}, {"a: 'b': c", false}, {"a: [b]: c", false},
	{"a: [\nb,\n c\n]", true}, {"a: [\n  b, # c\n  c\n  ]\nd: e", true}, {"a: [b\n  c]", false}, {"a: {\n  \"b\": 1,\n  \"c\": [\n{}]\n}\n", true}, {"a:\n  [b]\n", true}, {"a:\n[b]", false}, {"a: [\n...\n]", false}, {"a: [b,\n- c]", false}, {"a: {b: c\n}", true}, {"a: {b:\n c}", true}, {"a: {b: [\n'c\n d']}", true}, {"a: [b\n]", true}, {"a: [b\n# c\n]", true}, {"a: [b\n# c\n d]", false}, {"a: [\tb]", false}, {"{\n\"a\": \"b\"\n}\n", true}, {"---\n{\"a\": {\"b\": [1, 2.0, \"c\\u003c\"]}}\n", true}, {"{a: b}\nc: d", false}, {"{a: b} c", false},
	{"a: [1_000, 0o17,\n 1e3, ~,\n2001-01-01, =, '']\n", true}, {"a: [.5, +1]", false}, {"a: =\n=: b", true}, {"a: [b,\n\n# c\n\n  c]\n", true}, {"a: [b # c]\n]", true}, {"a: {\"b\\n\": \"\\x41\\\n  \\ c\"}", true}, {"a: [\n  |\n  b]", false},
	{"a: |\n  b\n ---\n  c", false}, {"a: '\n --- b'", true}, {"a: >1\n   b\n  c\n\n d\n", true}, {"a: >\n\n # b\n c\n", true}, {"a:\n  - |2-\n      b\n     c\n  - d", true}, {"a: |\n  " + strings.Repeat("long ", 20000) + "\n  b", true}, {"a: '" + strings.Repeat("long ", 20000) + "\n  b'", true}, {"a: b\r\nc: d", false}, {"a: &x\nb: *x", false},
	{"é: ü\nü:\n- ß: é\n  x: y\n", true}, {"a: 日本\n  語\n", true}, {"a: \"\\u2028 \u00a0 <>&\"", true},
	{strings.Repeat("k", 999) + ": a", true}, {strings.Repeat("k", 1023) + ": a", false}, {strings.Repeat("k", 1025) + ": a", false}, {"'" + strings.Repeat("k", 1022) + "': a", false}, {"a: {" + strings.Repeat("k", 1025) + ": a}", false}, {"a: {'" + strings.Repeat("k", 1025) + "': a}", false}, {"a:\n- " + strings.Repeat("k", 2000), true}, {"a: " + strings.Repeat("[", 400) + strings.Repeat("]", 400), true}, {"a: " + strings.Repeat("[", 600) + strings.Repeat("]", 600), false}, {"a:\n" + strings.Repeat("- ", 400) + "b", true}, {"a:\n" + strings.Repeat("- ", 600) + "b", false},
}

func TestNastyDocuments(t *testing.T) {
	var d yamljson.Decoder
	for _, tt := range nasty {
		got := check(t, &d, tt.doc+"\n")
		checktest.FailIf(t, tt.fast && !got, "refused: %q", tt.doc)
	}
}

// TestScalars puts each scalar in every place where one can stand.
func TestScalars(t *testing.T) {
	var d yamljson.Decoder
	for _, s := range scalars {
		for _, place := range []string{
			"a: %", "%: a", "a:\n  %\n", "a:\n- %\nb: c", "a:\n  b: %\n  c: d", "a: b\n  %\n", "a: [%]", "a: [b, %, c]", "a: {b: %}", "a: {%: b}", "a: '%'", "a: \"%\"", "a: |\n  %\n", "a: %\n  x\n", "a: # %", "- %", "%", "a:\n- %: b\n  c: d", "a:\n- b: c\n  %: d", "a: >\n  b\n  %\n   c\n",
		} {
			doc := strings.ReplaceAll(place, "%", s) + "\n"
			check(t, &d, doc)
		}
	}
}

// TestDecodeRefuses holds the borders of what is accepted at all.
func TestDecodeRefuses(t *testing.T) {
	d := yamljson.Decoder{MaxDepth: 3}
	for doc, want := range map[string]bool{
		"":                           false, // a document ends with a line end
		"a: b":                       false,
		"a: {b: [c]}\n":              true,
		"a: {b: [[c]]}\n":            false,
		"a:\n  b:\n  - c\n":          true,
		"a:\n  b:\n  - c:\n":         false,
		"a:\n  b:\n    c:\n":         true,
		"a:\n  b:\n    c:\n      d:": false,
	} {
		_, ok := d.Decode(doc)
		checktest.FailIf(t, ok != want, "%q: accepted %v, want %v", doc, ok, want)
	}
}

func TestDecoderIsReusable(t *testing.T) {
	var d yamljson.Decoder
	text, ok := d.Decode("a: [string, string]\nb: {c: 1}\n")
	if !ok || string(text) != `{"a":["string","string"],"b":{"c":1}}` {
		t.Fatal(string(text), ok)
	}
	if _, ok := d.Decode("a: [b\n"); ok {
		t.Fatal("accepted a list without an end")
	}
	text, ok = d.Decode("a: string\n")
	if !ok || string(text) != `{"a":"string"}` {
		t.Fatal(string(text), ok)
	}
}

// TestStrings tries each ASCII character that a document may have in each place
// of a string, and a few others.
func TestStrings(t *testing.T) {
	var d yamljson.Decoder
	chars := []string{"é", "日", "\u00a0", "\\u2028", "\\0", "\\x7f", "\\b", "\\f", "\\r", "\\t", `\"`, `\\`}
	for c := byte(' '); c < 0x7f; c++ {
		if c != '"' && c != '\\' {
			chars = append(chars, string(c))
		}
	}
	for _, c := range chars {
		for at := range 20 {
			text := strings.Repeat("x", at) + c + strings.Repeat("y", 20-at)
			checktest.FailIf(t, !check(t, &d, `a: "`+text+"\"\n"), "%q is refused", text)
		}
	}
}

// TestClean tries each byte in each place, and characters of several bytes.
func TestClean(t *testing.T) {
	for c := range 256 {
		want := c == '\t' || c == '\n' || c >= 0x20 && c < 0x7f
		for at := range 20 {
			data := []byte(strings.Repeat("x", 20))
			data[at] = byte(c)
			got := yamljson.Clean(data)
			checktest.FatalIf(t, got != want, "byte %#x at %d: %v", c, at, got)
		}
	}
	for s, want := range map[string]bool{
		"é": true, "日本": true, "😀": true, "\u00a0": true, "\u009f": false, "\u0085": false, "\u2028": false, "\u2029": false, "\ufeff": false, "\ufffe": false, "\uffff": false, "\ufffd": true, "\xe6\x97": false, "\xc0\x80": false,
	} {
		checktest.Equal(t, want, yamljson.Clean([]byte("abc"+s+"abcdefghijkl")), "%q", s)
	}
}
