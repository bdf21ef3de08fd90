package yamljson_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/yamljson"
)

// jsons are values that JSON readers may disagree about.
var jsons = []string{
	"", " ", "0", "-0", "00", "01", "-", "1.", ".5", "1.0", "1.50", "1e3", "1E+3", "1e-7", "1e21", "1e400", "-1e400", "5e-324", "9223372036854775807", "9223372036854775808", "-9223372036854775809", "123456789012345678901234567890",
	"true", "tru", "truex", "null", "nul", "false", `""`, `"a`, `"\`, `"\"`, `"a\tb\n\\\"\/\b\f\r"`, `"\u0041\u00e9\u2028"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\ud83dx"`, `"\ud83d\u0041"`, `"\ude00\ud83d"`, `"\u12"`, `"\q"`, "\"\x01\"", "\"\x7f\"", `"<&>"`, `"é"`,
	"[]", "[ ]", "[,]", "[1,]", "[1 2]", "[1,2]", "[[],{}]", "[", "]", "{}", "{ }", "{,}", `{"a":1}`, `{"a":1,}`, `{"a" : [ 1 , {"b":null} ] } `, `{"a":1 "b":2}`, `{"b":1,"a":2,"b":{"c":3}}`, `{"a":{"x":1},"a":{"y":2}}`, `{a:1}`, `{"a"}`, `{"a":}`, `{"a":1`, `{"a":1} {"b":2}`, "{}x", "\ufeff{}", "{\"a\":\v1}", "[1]\x00",
}

func checkJSON(t *testing.T, d *yamljson.Decoder, text string) {
	t.Helper()
	if !utf8.ValidString(text) {
		return
	}
	stream := json.NewDecoder(strings.NewReader(text))
	var raw json.RawMessage
	var value any
	err := stream.Decode(&raw)
	if err == nil {
		err = utiljson.Unmarshal(raw, &value)
	}
	got, n, ok := d.DecodeJSON(text)
	if ok != (err == nil) {
		t.Errorf("%q: accepted is %v, want %v", text, ok, err)
		return
	}
	if !ok {
		return
	}
	want := checktest.Get(json.Marshal(value))(t)
	checktest.FailIf(t, !bytes.Equal(got, want) || n != int(stream.InputOffset()),
		"%q gives %s of %d characters, want %s of %d", text, got, n, want, stream.InputOffset())
}

func TestDecodeJSON(t *testing.T) {
	var d yamljson.Decoder
	for _, text := range jsons {
		checkJSON(t, &d, text)
		checkJSON(t, &d, ` [`+text+`, {"k": `+text+`}]`)
	}
	for _, n := range []int{500, 501} {
		_, _, ok := d.DecodeJSON(strings.Repeat("[", n) + strings.Repeat("]", n))
		checktest.Equal(t, n == yamljson.DefaultDepth, ok, "%d levels", n)
	}
	d.MaxValues = 3
	for text, want := range map[string]bool{"[1,2]": true, "[1,2,3]": false, `{"a":[{}]}`: true, `{"a":[{},1]}`: false} {
		if _, _, ok := d.DecodeJSON(text); ok != want || d.Full() == want {
			t.Errorf("%s: accepted is %v, full %v", text, ok, d.Full())
		}
	}
}

// A large document gets its room at once.
func TestDecodeJSONLarge(t *testing.T) {
	text := "[" + strings.Repeat(`{"name":"a<b","value":1},`, 60_000) + "0]"
	var d yamljson.Decoder
	checkJSON(t, &d, text)
	n := testing.AllocsPerRun(3, func() { d.DecodeJSON(text) })
	checktest.FailIf(t, n > 0, "%v allocations", n)
}

func FuzzDecodeJSON(f *testing.F) {
	for _, text := range jsons {
		f.Add(text)
		f.Add(`[` + text + `, {"k": ` + text + `}]`)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if depth(text) > yamljson.DefaultDepth {
			return
		}
		var d yamljson.Decoder
		checkJSON(t, &d, text)
	})
}

// depth is how deep brackets are nested, at most.
func depth(text string) int { return strings.Count(text, "[") + strings.Count(text, "{") }
