package limit_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/internal/limit"
)

// sample is a type with fields of all sorts.
type sample struct {
	Embedded
	Text   string            `json:"text"`
	Texts  []string          `json:"texts"`
	Pairs  map[string]string `json:"pairs"`
	Large  []Large           `json:"large"`
	Points []*Large          `json:"points"`
	ByName map[string]Large  `json:"byName"`
	Any    any               `json:"any"`
	Raw    []json.RawMessage `json:"raw"`
	Time   *time.Time        `json:"time"`
	Bytes  []byte            `json:"bytes"`
	Fixed  [2]Large          `json:"fixed"`
	Again  *sample           `json:"again"`
	Hidden []Large           `json:"-"`
}

type Embedded struct {
	Ones []int8 `json:"ones"`
}

type Large struct {
	A [40]int64
	B []Large `json:"b"`
}

// dearest is JSON whose parts cost much for their length.
func dearest(n int) map[string]string {
	list := func(item string) string { return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]" }
	numbered := func(value string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"%d":%s`, i, value)
		}
		return "{" + b.String()[1:] + "}"
	}
	out := map[string]string{
		"numbers": list("0"), "floats": list("1.5e3"), "texts": list(`""`), "words": list(`"abcdefghijklmnop"`), "maps": list("{}"),
		"maps of one": list(`{"":0}`), "maps of nine": list(`{"a":0,"b":0,"c":0,"d":0,"e":0,"f":0,"g":0,"h":0,"i":0}`),
		"lists": list("[]"), "lists of one": list("[0]"), "large map": numbered("0"), "large map of maps": numbered("{}"), "nulls": list("null"), "bools": list("true"),
		"text": `"` + strings.Repeat("x", 8*n) + `"`, "escapes": `"` + strings.Repeat(`\n`, 4*n) + `"`, "wide escapes": `"` + strings.Repeat(`\u2028`, n) + `"`,
		"broken": `"` + strings.Repeat("\xff", 8*n) + `"`, "number": strings.Repeat("1", n),
		"lists of lists": list("[[[0]]]"),
	}
	for _, field := range []string{"texts", "large", "points", "raw", "ones", "LARGE", `l\u0061rge`, "fixed"} {
		for _, item := range []string{"numbers", "texts", "maps", "lists", "nulls"} {
			out[field+" "+item] = `{"` + field + `":` + out[item] + `}`
		}
	}
	for _, field := range []string{"pairs", "byName"} {
		out[field+" few"] = list(`{"` + field + `":{"a":{}}}`)
		out[field] = `{"` + field + `":` + out["large map"] + `}`
		out[field+" of maps"] = `{"` + field + `":` + out["large map of maps"] + `}`
	}
	out["large of one"] = `{"large":` + list(`{"b":[{}]}`) + `}`
	out["any"] = `{"any":` + out["maps of one"] + `}`
	out["any maps"] = `{"any":` + out["large map of maps"] + `}`
	out["again"] = strings.Repeat(`{"again":`, min(n, 5000)) + "{}" + strings.Repeat("}", min(n, 5000))
	out["twice"] = `{"large":[{}]` + strings.Repeat(`,"large":[{},{}]`, n/8) + `}`
	out["bytes"] = `{"bytes":"` + strings.Repeat("AAAA", n) + `"}`
	return out
}

// TestCost: nothing allocates more than what is counted.
func TestCost(t *testing.T) {
	if israce.Enabled {
		t.Skip("the race detector allocates too")
	}
	decoders := map[string]func([]byte, any) error{"encoding/json": json.Unmarshal, "sigs.k8s.io/json": kjson.UnmarshalCaseSensitivePreserveInts}
	for _, n := range []int{1, 60, 700} {
		for name, text := range dearest(n) {
			for _, into := range []any{new(any), new(sample), new([]sample), new([]*sample), new(map[string]any), new([]corev1.Pod), new([]map[string]string)} {
				for decoder, decode := range decoders {
					data := []byte(text)
					v := reflect.New(reflect.TypeOf(into).Elem()).Interface()
					_ = decode(data, v) // what decoders remember of a type
					v = reflect.New(reflect.TypeOf(into).Elem()).Interface()
					var before, after runtime.MemStats
					runtime.ReadMemStats(&before)
					_ = decode(data, v)
					runtime.ReadMemStats(&after)
					const own = 8 << 10 // of a decoder
					made, most := int64(after.TotalAlloc-before.TotalAlloc), limit.Cost(data, into)
					checktest.FailIf(t, made > most+own,
						"%s of %d into %T by %s: %d bytes, counted are %d", name, n, into, decoder, made, most)
				}
			}
		}
	}
}

// Ordinary documents must not count for more than a few times what they cost.
func TestCostIsNear(t *testing.T) {
	if israce.Enabled {
		t.Skip("the race detector allocates too")
	}
	item := `{"metadata":{"name":"a-pod-%d","namespace":"openshift-etcd","labels":{"app":"etcd","tier":"a"}},"spec":{"containers":[{"name":"etcd","image":"quay.io/a/b","args":["a","b"]}]},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`
	var b strings.Builder
	for i := range 500 {
		fmt.Fprintf(&b, ","+item, i)
	}
	data := []byte("[" + b.String()[1:] + "]")
	for _, into := range []any{new(any), new([]corev1.Pod)} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		checktest.OK(t, json.Unmarshal(data, into))
		runtime.ReadMemStats(&after)
		made, most := int64(after.TotalAlloc-before.TotalAlloc), limit.Cost(data, into)
		checktest.FailIf(t, most > 3*made, "into %T: counted %d bytes, made are %d", into, most, made)
	}
}

func TestJSON(t *testing.T) {
	item := `{"":0},`
	many := []byte("[" + strings.Repeat(item, 1<<20) + "0]")
	err := limit.JSON(many, new(any))
	checktest.FailIf(t, !errors.As(err, new(*limit.LimitError)), "got %v, want a limit", err)
	checktest.Good(t, limit.JSON(many, new(struct{ A int })))
	checktest.Good(t, limit.JSON([]byte(strings.Repeat("[", 1<<20)), new(any)))
}

func TestShape(t *testing.T) {
	for _, tt := range []struct {
		text          string
		values, depth int64
	}{
		{`0`, 1, 0}, {`{}`, 1, 1}, {`[]`, 1, 1}, {` {"a" : [1, "[,\"", {"b": null}]} `, 6, 3},
	} {
		if values, depth := limit.Shape(tt.text); values != tt.values || depth != tt.depth {
			t.Errorf("%s: %d values, %d levels, want %d and %d", tt.text, values, depth, tt.values, tt.depth)
		}
	}
}

func FuzzCost(f *testing.F) {
	for _, text := range dearest(3) {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, into := range []any{new(any), new(sample), new([]sample)} {
			most := limit.Cost(data, into)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_ = json.Unmarshal(data, into)
			runtime.ReadMemStats(&after)
			const own = 64 << 10 // of the decoder, and of what runs at the same time
			made := int64(after.TotalAlloc - before.TotalAlloc)
			checktest.FailIf(t, made > most+own, "into %T: %d bytes, counted are %d", into, made, most)
		}
	})
}
