package signature_test

import (
	"strings"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
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
		checktest.Equal(t, tt[1], signature.Digest(tt[0]), "%s", tt[0])
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
		_, err := signature.Insecure().Verify(t.Context(), tt.digest)
		checktest.Equal(t, tt.ok, err == nil, "%q: %v", tt.digest, err)
		if err != nil && !strings.HasPrefix(err.Error(), `the provided release image digest has an invalid format: "`) {
			t.Errorf("%q: %v", tt.digest, err)
		}
		checktest.Equal(t, tt.strict, signature.ValidateDigestStrict(tt.digest) == nil, "strict %q", tt.digest)
	}
}

func TestBody(t *testing.T) {
	got := must(signature.Body("sha256:abc", "quay.io/a/b:1<2", "tool/1", time.Unix(1700000000, 5)))
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
	checktest.Same(t, want, string(got))
	for _, args := range [][3]string{{"", "r", "c"}, {"sha256:a", "", "c"}, {"sha256:a", "r", ""}} {
		_, err := signature.Body(args[0], args[1], args[2], now)
		if err == nil || err.Error() != "you must specify a signer, current timestamp, release digest, and pull spec to sign" {
			t.Errorf("%v: %v", args, err)
		}
	}
	checktest.Fails(t, checktest.Err(signature.Body("sha256:a", "r", "c", time.Time{})), "no time: no error")
	checktest.Fails(t, checktest.Err(signature.Body("sha256:a/b", "r", "c", now)), "bad digest: no error")
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
