package signature

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// The two published shapes of a statement are decoded the quick way.
func TestQuickBodyTakesPublishedShapes(t *testing.T) {
	compact := `{"critical": {"image": {"docker-manifest-digest": "sha256:a"}, "type": "atomic container signature", "identity": {"docker-reference": "q.io/a:1"}}, "optional": {"creator": "Red Hat RCM Pub "}}`
	indented := "{\n  \"critical\": {\n    \"type\": \"atomic container signature\",\n    \"image\": {\n      \"docker-manifest-digest\": \"sha256:a\"\n    },\n    \"identity\": {\n      \"docker-reference\": \"q.io/a:1\"\n    }\n  },\n  \"optional\": {\n    \"creator\": \"é\",\n    \"timestamp\": 1700000000\n  }\n}\n"
	for _, body := range []string{compact, indented, "{}", ` {"optional":{"timestamp":0},"critical":{}} `} {
		got, ok := quickBody([]byte(body))
		if !ok {
			t.Fatalf("%s: left to the full decoder", body)
		}
		want, err := fullBody([]byte(body), false)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

// What the quick way takes, the full decoder reads in the same way.
func sameBody(t interface {
	Helper()
	Fatalf(string, ...any)
}, body []byte) {
	t.Helper()
	if !utf8.Valid(body) {
		return // refused before either
	}
	got, ok := quickBody(body)
	if !ok {
		return
	}
	for _, ignore := range []bool{false, true} {
		want, err := fullBody(body, ignore)
		if err != nil {
			t.Fatalf("%q was taken, but is wrong: %v", body, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%q: %s", body, diff)
		}
	}
}

func FuzzQuickBody(f *testing.F) {
	f.Add([]byte(`{"critical":{"type":"t","image":{"docker-manifest-digest":"d"},"identity":{"docker-reference":"r"}},"optional":{"creator":"c","timestamp":12}}`))
	f.Add([]byte(`{"critical":{},"critical":{}}`))
	f.Add([]byte(`{"optional":{"timestamp":1.5}}`))
	f.Fuzz(func(t *testing.T, body []byte) { sameBody(t, body) })
}

// Texts made of pieces of statements reach further than random octets.
func TestQuickBodyAgrees(t *testing.T) {
	pieces := []string{
		`{`, `}`, `:`, `,`, ` `, "\n", `"`, `"critical"`, `"optional"`, `"type"`, `"image"`, `"identity"`, `"creator"`, `"timestamp"`,
		`"docker-manifest-digest"`, `"docker-reference"`, `"Type"`, `"t"`, `1`, `-1`, `0`, `01`, `1.5`, `1e3`, `999999999999999999`, `9223372036854775808`,
		`null`, `true`, `[]`, `{}`, `"é"`, "\"\x1f\"", `"\u0041"`, "\x00", `"critical":{`, `"optional":{`, `"image":{`, `"type":"t"`, `"timestamp":5`,
	}
	rapid.Check(t, func(t *rapid.T) {
		sameBody(t, []byte("{"+strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 12).Draw(t, "pieces"), "")))
	})
	members := func(t *rapid.T, name string, of []string) string {
		return "{" + strings.Join(rapid.SliceOfN(rapid.SampledFrom(of), 0, 4).Draw(t, name), ",") + "}"
	}
	rapid.Check(t, func(t *rapid.T) {
		image := members(t, "image", []string{`"docker-manifest-digest":"d"`, `"docker-manifest-digest" : "e"`, `"x":1`})
		optional := members(t, "optional", []string{`"creator":"c"`, `"timestamp":0`, `"timestamp":7`, `"timestamp":00`, `"creator":null`, `"timestamp":-0`})
		critical := members(t, "critical", []string{`"type":"t"`, `"image":` + image, `"identity":{"docker-reference":"r"}`, `"identity":null`})
		sameBody(t, []byte(members(t, "all", []string{`"critical":` + critical, `"optional":` + optional})+rapid.SampledFrom([]string{"", " ", "x", "\x00"}).Draw(t, "end")))
	})
}

// The digest's syntax is that of the operator's expression.
func TestDigestSyntax(t *testing.T) {
	expression := regexp.MustCompile(`^[a-z0-9]+(?:[.+_-][a-z0-9]+)*:[a-zA-Z0-9=_-]+$`)
	rapid.Check(t, func(t *rapid.T) {
		digest := rapid.StringOfN(rapid.SampledFrom([]rune("ab0Z.+_-:=/%\n\x00é ")), 0, 12, -1).Draw(t, "digest")
		if got, want := validDigest(digest), expression.MatchString(digest); got != want {
			t.Fatalf("%q: %v, want %v", digest, got, want)
		}
	})
	for _, digest := range []string{"sha256:a", "a.b:c", "a..b:c", ".a:c", "a.:c", "a:", ":a", "a:b:c", "a", "", "A:b", "a:b\n"} {
		if got, want := validDigest(digest), expression.MatchString(digest); got != want {
			t.Errorf("%q: %v, want %v", digest, got, want)
		}
	}
}

// How much of a verification is decoding.
func BenchmarkStatement(b *testing.B) {
	body, err := Body("sha256:"+strings.Repeat("a", 64), "quay.io/openshift-release-dev/ocp-release:4.18.15-x86_64", "test", unix([]byte{0x60, 0, 0, 0}))
	if err != nil {
		b.Fatal(err)
	}
	for _, way := range []struct {
		name   string
		decode func([]byte) (*Statement, error)
	}{
		{"quick", func(body []byte) (*Statement, error) {
			s, ok := quickBody(body)
			if !ok {
				return nil, fmt.Errorf("left over")
			}
			return s, nil
		}},
		{"full", func(body []byte) (*Statement, error) { return fullBody(body, false) }},
	} {
		b.Run(way.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := way.decode(body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
