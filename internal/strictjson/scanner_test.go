package strictjson_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/strictjson"
)

func Example() {
	s := strictjson.Scanner{Data: []byte(`{"name":"a","sizes":[1,2]}`)}
	err := s.Object(func(key []byte) error {
		switch string(key) {
		case "name":
			text, err := s.Text()
			fmt.Printf("name %s\n", text)
			return err
		case "sizes":
			return s.Array(func(i int) error {
				n, err := s.Integer()
				fmt.Printf("size %d is %s\n", i, n)
				return err
			})
		}
		return fmt.Errorf("unknown key %q", key)
	})
	fmt.Println(err, s.End())
	// Output:
	// name a
	// size 0 is 1
	// size 1 is 2
	// <nil> <nil>
}

func TestScanner(t *testing.T) {
	keys := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"%d":0`, i)
		}
		return "{" + b.String()[1:] + "}"
	}
	broke := errors.New("no memory left")
	for name, tt := range map[string]struct {
		text string
		s    strictjson.Scanner
		want string
	}{
		"key twice":           {text: `{"a":1,"\u0061":2}`, want: `key "a" comes twice`},
		"key twice of many":   {text: keys(20)[:len(keys(20))-1] + `,"3":1}`, want: `key "3" comes twice`},
		"keys":                {text: keys(4), s: strictjson.Scanner{MaxKeys: 3}, want: "more than 3 keys of an object"},
		"keys suffice":        {text: keys(4), s: strictjson.Scanner{MaxKeys: 4}, want: "<nil>"},
		"depth":               {text: strings.Repeat("[", 501) + strings.Repeat("]", 501), want: "more than 500 levels of nested JSON"},
		"depth suffices":      {text: strings.Repeat("[", 500) + strings.Repeat("]", 500), want: "<nil>"},
		"memory of many keys": {text: keys(20), s: strictjson.Scanner{Spend: func(int) error { return broke }}, want: "no memory left"},
		"cut":                 {text: `{"a":`, want: "invalid JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			s := tt.s
			s.Data = []byte(tt.text)
			if _, err := s.Skip(); fmt.Sprint(err) != tt.want {
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
	s := strictjson.Scanner{Data: []byte("{\n\"a\": truf}")}
	checktest.ErrorIs(t, strictjson.ErrSyntax, checktest.Err(s.Skip()))
	if line, err := s.Describe(); line != 2 || err.Error() != "invalid character 'f' in literal true (expecting 'e')" {
		t.Errorf("line %d: %v", line, err)
	}
}

// What the scanner accepts is what encoding/json does, but for keys that come
// twice and depth.
func FuzzScanner(f *testing.F) {
	for _, s := range []string{`{"a":[1,-2.5e+3,true,false,null,"\u00e9\n"]}`, `[01]`, `"\q"`, "\"\x01\"", `{"a" 1}`, `[1 2]`, `-`, `1.`, `{}x`, " \n[ ]\t", "\"\xff\"", `{,}`, `[1,]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s := strictjson.Scanner{Data: text}
		_, err := s.Skip()
		if err == nil {
			err = s.End()
		}
		valid := json.Valid(text)
		checktest.FailIf(t, err == nil && !valid, "%q is accepted", text)
		checktest.FailIf(t, valid && errors.Is(err, strictjson.ErrSyntax), "%q: %v", text, err)
	})
}
