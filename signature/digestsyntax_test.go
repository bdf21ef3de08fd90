package signature

import (
	"regexp"
	"testing"

	"pgregory.net/rapid"
)

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
