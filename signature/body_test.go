package signature_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/signature"
)

func TestDigest(t *testing.T) {
	for _, tt := range [][2]string{
		{"quay.io/a/b@sha256:abc", "sha256:abc"},
		{"quay.io/a/b:tag@sha256:abc", "sha256:abc"},
		{"quay.io/a@b@sha256:abc", "sha256:abc"},
		{"quay.io/a/b:tag", ""},
		{"quay.io/a/b@", ""},
		{"", ""},
	} {
		if got := signature.Digest(tt[0]); got != tt[1] {
			t.Errorf("%s: %q, want %q", tt[0], got, tt[1])
		}
	}
}

func TestValidateDigest(t *testing.T) {
	for _, tt := range []struct {
		digest     string
		ok, strict bool
	}{
		{digestA, true, true},
		{"sha384:" + strings.Repeat("0", 96), true, true},
		{"sha512:" + strings.Repeat("f", 128), true, true},
		{"sha256:123", true, false},
		{"md5:x", true, false},
		{"sha256:ABC", true, false},
		{"sha256:" + strings.Repeat("A", 64), true, false},
		{"sha256:" + strings.Repeat("g", 64), true, false},
		{"a+b.c_d-e:x=_-", true, false},
		{"sha256:abc\n", false, false},
		{"sha256:../../x", false, false},
		{"sha256:a%2Fb", false, false},
		{"sha256:a:b", false, false},
		{"SHA256:abc", false, false},
		{"..:abc", false, false},
		{"a..b:abc", false, false},
		{"sha256:", false, false},
		{":abc", false, false},
		{"sha256", false, false},
		{"sha256:a\x00", false, false},
	} {
		err := signature.ValidateDigest(tt.digest)
		if (err == nil) != tt.ok {
			t.Errorf("%q: %v", tt.digest, err)
		}
		if err != nil && !strings.HasPrefix(err.Error(), `the provided release image digest has an invalid format: "`) {
			t.Errorf("%q: %v", tt.digest, err)
		}
		if err := signature.ValidateDigestStrict(tt.digest); (err == nil) != tt.strict {
			t.Errorf("strict %q: %v", tt.digest, err)
		}
	}
}

func TestBody(t *testing.T) {
	got, err := signature.Body("sha256:abc", "quay.io/a/b:1<2", "tool/1", time.Unix(1700000000, 5))
	if err != nil {
		t.Fatal(err)
	}
	want := `{
  "critical": {
    "type": "atomic container signature",
    "image": {
      "docker-manifest-digest": "sha256:abc"
    },
    "identity": {
      "docker-reference": "quay.io/a/b:1<2"
    }
  },
  "optional": {
    "creator": "tool/1",
    "timestamp": 1700000000
  }
}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
	for _, args := range [][3]string{{"", "r", "c"}, {"sha256:a", "", "c"}, {"sha256:a", "r", ""}} {
		_, err := signature.Body(args[0], args[1], args[2], now)
		if err == nil || err.Error() != "you must specify a signer, current timestamp, release digest, and pull spec to sign" {
			t.Errorf("%v: %v", args, err)
		}
	}
	if _, err := signature.Body("sha256:a", "r", "c", time.Time{}); err == nil {
		t.Error("no time: no error")
	}
	if _, err := signature.Body("sha256:a/b", "r", "c", now); err == nil {
		t.Error("bad digest: no error")
	}
}

// bodyCase is a signed body.
type bodyCase struct {
	name, body string
	reason     signature.Reason // empty: accepted
	loose      signature.Reason // with IgnoreUnknownOptional
}

func bodyCases() []bodyCase {
	const (
		digest   = `"image": {"docker-manifest-digest": "` + digestA + `"}`
		identity = `"identity": {"docker-reference": "quay.io/a/b:1"}`
		typ      = `"type": "atomic container signature"`
		critical = `"critical": {` + digest + `, ` + typ + `, ` + identity + `}`
	)
	return []bodyCase{
		{"compact", `{` + critical + `, "optional": {"creator": "Red Hat RCM Pub "}}`, "", ""},
		{"indented", "{\n  " + critical + "\n}\n", "", ""},
		{"optional absent", `{` + critical + `}`, "", ""},
		{"optional null", `{` + critical + `, "optional": null}`, "", ""},
		{"optional empty", `{` + critical + `, "optional": {}}`, "", ""},
		{"white space at the end", `{` + critical + "} \r\n\t", "", ""},
		{"timestamp", `{` + critical + `, "optional": {"timestamp": 1}}`, "", ""},
		{"null members", `{` + critical + `, "optional": {"timestamp": null, "creator": null}}`, "", ""},
		{"lone surrogate escape", `{` + critical + `, "optional": {"creator": "\ud800"}}`, "", ""},
		{"escaped key", strings.Replace(`{`+critical+`}`, `"type"`, `"\u0074ype"`, 1), "", ""},
		{"timestamp with a fraction", `{` + critical + `, "optional": {"timestamp": 1.5}}`, signature.NotJSON, signature.NotJSON},
		{"timestamp with an exponent", `{` + critical + `, "optional": {"timestamp": 1e3}}`, signature.NotJSON, signature.NotJSON},
		{"timestamp as text", `{` + critical + `, "optional": {"timestamp": "1"}}`, signature.NotJSON, signature.NotJSON},
		{"timestamp too large", `{` + critical + `, "optional": {"timestamp": 9223372036854775808}}`, signature.NotJSON, signature.NotJSON},
		{"unknown key in optional", `{` + critical + `, "optional": {"x": 1}}`, signature.NotJSON, ""},
		{"duplicate key in optional", `{` + critical + `, "optional": {"creator": "a", "creator": "b"}}`, signature.NotJSON, signature.NotJSON},
		{"duplicate unknown key in optional", `{` + critical + `, "optional": {"x": 1, "x": 2}}`, signature.NotJSON, signature.NotJSON},
		{"unknown key", `{` + critical + `, "x": 1}`, signature.NotJSON, signature.NotJSON},
		{"unknown key that looks like one in optional", `{` + critical + `, "optional.x": 1}`, signature.NotJSON, signature.NotJSON},
		{"unknown key in critical", `{"critical": {"x": 1, ` + digest + `, ` + typ + `, ` + identity + `}}`, signature.NotJSON, signature.NotJSON},
		{"unknown key in image", strings.Replace(`{`+critical+`}`, `"image": {`, `"image": {"x": 1, `, 1), signature.NotJSON, signature.NotJSON},
		{"other case", `{"CRITICAL": {` + digest + `, ` + typ + `, ` + identity + `}}`, signature.NotJSON, signature.NotJSON},
		{"other case of type", strings.Replace(`{`+critical+`}`, `"type"`, `"Type"`, 1), signature.NotJSON, signature.NotJSON},
		{"duplicate type, last right", `{"critical": {"type": "x", ` + digest + `, ` + typ + `, ` + identity + `}}`, signature.NotJSON, signature.NotJSON},
		{"duplicate critical", `{` + critical + `, ` + critical + `}`, signature.NotJSON, signature.NotJSON},
		{"second value", `{` + critical + `}{}`, signature.NotJSON, signature.NotJSON},
		{"trailing comma", `{` + critical + `},`, signature.NotJSON, signature.NotJSON},
		{"trailing NUL", `{` + critical + "}\x00", signature.NotJSON, signature.NotJSON},
		{"array", `[{` + critical + `}]`, signature.NotJSON, signature.NotJSON},
		{"empty", " ", signature.NotJSON, signature.NotJSON},
		{"byte order mark", "\ufeff{" + critical + "}", signature.NotJSON, signature.NotJSON},
		{"invalid UTF-8", `{` + critical + `, "optional": {"creator": "` + "\xff" + `"}}`, signature.NotJSON, signature.NotJSON},
		{"invalid UTF-8 in a key", `{` + critical + `, "optional": {"` + "\xff" + `": 1}}`, signature.NotJSON, signature.NotJSON},
		{"text for an object", `{"critical": "x"}`, signature.NotJSON, signature.NotJSON},
		{"null", "null", signature.WrongType, signature.WrongType},
		{"object", "{}", signature.WrongType, signature.WrongType},
		{"type of another product", strings.Replace(`{`+critical+`}`, "atomic container", "cosign container image", 1), signature.WrongType, signature.WrongType},
		{"type in capitals", strings.Replace(`{`+critical+`}`, "atomic", "Atomic", 1), signature.WrongType, signature.WrongType},
		{"wrong type comes before the rest", `{"critical": {"type": "x"}}`, signature.WrongType, signature.WrongType},
		{"no identity", `{"critical": {` + digest + `, ` + typ + `}}`, signature.NoIdentity, signature.NoIdentity},
		{"null identity", `{"critical": {` + digest + `, ` + typ + `, "identity": null}}`, signature.NoIdentity, signature.NoIdentity},
		{"empty reference", strings.Replace(`{`+critical+`}`, "quay.io/a/b:1", "", 1), signature.NoIdentity, signature.NoIdentity},
		{"identity comes before the digest", strings.NewReplacer("quay.io/a/b:1", "", digestA, digestB).Replace(`{` + critical + `}`), signature.NoIdentity, signature.NoIdentity},
		{"another digest", strings.Replace(`{`+critical+`}`, digestA, digestB, 1), signature.WrongDigest, signature.WrongDigest},
		{"digest in capitals", strings.Replace(`{`+critical+`}`, digestA, strings.ToUpper(digestA), 1), signature.WrongDigest, signature.WrongDigest},
		{"digest with a blank", strings.Replace(`{`+critical+`}`, digestA, digestA+" ", 1), signature.WrongDigest, signature.WrongDigest},
	}
}

// What a signed body must look like.
func TestStatements(t *testing.T) {
	k := newEd25519(keyTime)
	r := ring(t, k.public(cert{}))
	for _, tt := range bodyCases() {
		t.Run(tt.name, func(t *testing.T) {
			m := k.message(msg{body: []byte(tt.body)})
			for loose, reason := range map[bool]signature.Reason{false: tt.reason, true: tt.loose} {
				_, err := verify(t, r, m, signature.Options{IgnoreUnknownOptional: loose})
				if reason == "" {
					if err != nil {
						t.Errorf("loose %v: %v", loose, cause(err))
					}
					continue
				}
				wantRefused(t, err, reason, map[signature.Reason]string{
					signature.NotJSON:     "the signature is not valid JSON: ",
					signature.WrongType:   "the signature is not the correct type",
					signature.NoIdentity:  "signature must have an identity",
					signature.WrongDigest: "signature digest does not match",
				}[reason])
			}
		})
	}
}

// Nothing of a body that nobody vouched for may show.
func TestUnauthenticBodyIsNotParsed(t *testing.T) {
	k, other := newEd25519(keyTime), newEd25519(keyTime)
	m := other.message(msg{body: []byte(`{"secret-marker": 1}`)})
	_, err := verify(t, ring(t, k.public(cert{})), m, signature.Options{})
	wantRefused(t, err, signature.InvalidKey, "")
	if strings.Contains(cause(err).Error(), "marker") {
		t.Error(cause(err))
	}
}
