package sigstore_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/signature/sigstore"
)

const (
	digestA = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	digestB = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	repo    = "quay.io/openshift-release-dev/ocp-release"
	named   = repo + ":4.21.1-x86_64"
)

func must[T any](v T, err error) T { return checktest.Must(v, err) }

var (
	p256    = sync.OnceValue(func() crypto.Signer { return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) })
	rsa2048 = sync.OnceValue(func() crypto.Signer { return must(rsa.GenerateKey(rand.Reader, 2048)) })
	ed      = sync.OnceValue(func() crypto.Signer { return ed25519.NewKeyFromSeed(make([]byte, 32)) })
)

func sign(k crypto.Signer, payload []byte) []byte {
	if _, ok := k.(ed25519.PrivateKey); ok {
		return must(k.Sign(nil, payload, crypto.Hash(0)))
	}
	sum := sha256.Sum256(payload)
	return must(k.Sign(rand.Reader, sum[:], crypto.SHA256))
}

func attach(k crypto.Signer, payload []byte) sigstore.Attachment {
	return sigstore.Attachment{Payload: payload, Annotations: map[string]string{
		sigstore.SignatureAnnotation: base64.StdEncoding.EncodeToString(sign(k, payload)),
	}}
}

func payload(digest, reference string) []byte {
	return must(sigstore.MarshalPayload(digest, reference))
}

func pemOf(k crypto.Signer) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: must(x509.MarshalPKIXPublicKey(k.Public()))})
}

func keyOf(k crypto.Signer) *sigstore.Key { return must(sigstore.ParseKey(pemOf(k))) }

func policy(keys ...crypto.Signer) *sigstore.Policy {
	p := &sigstore.Policy{Name: "openshift"}
	for _, k := range keys {
		p.Keys = append(p.Keys, keyOf(k))
	}
	return p
}

func TestKeys(t *testing.T) {
	for name, k := range map[string]crypto.Signer{
		"P-256": p256(), "P-384": must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader)), "P-521": must(ecdsa.GenerateKey(elliptic.P521(), rand.Reader)),
		"RSA 2048": rsa2048(), "RSA 3072": must(rsa.GenerateKey(rand.Reader, 3072)), "Ed25519": ed(),
	} {
		t.Run(name, func(t *testing.T) {
			body := payload(digestA, named)
			src := sigstore.MemorySource{digestA: {attach(k, body)}}
			v := must(policy(k).Verify(t.Context(), repo+"@"+digestA, src))
			s := v.Signers[0]
			want := fmt.Sprintf("%X", sha256.Sum256(must(x509.MarshalPKIXPublicKey(k.Public()))))
			if s.System != "sigstore" || s.Keyring != "openshift" || s.Fingerprint != want || s.Reference != named || s.Number != 1 || s.Store != "signatures in memory" || v.Digest != digestA {
				t.Errorf("%+v", s)
			}
			key := must(sigstore.ParseKey(pemOf(k)))
			checktest.Has(t, key.Algorithm(), name)
			good := sign(k, body)
			for name, bad := range map[string][2][]byte{
				"blob": {append([]byte(" "), body...), good}, "cut": {body, good[:len(good)-1]}, "longer": {body, append(slices.Clone(good), 0)},
				"flipped": {body, append(slices.Clone(good[:len(good)-1]), good[len(good)-1]^1)}, "empty": {body, nil},
			} {
				a := sigstore.Attachment{Payload: bad[0], Annotations: map[string]string{sigstore.SignatureAnnotation: base64.StdEncoding.EncodeToString(bad[1])}}
				if _, err := policy(k).Verify(t.Context(), repo+"@"+digestA, sigstore.MemorySource{digestA: {a}}); err == nil || !strings.Contains(err.Error(), "made with none of the keys, or altered") {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
	pkcs1 := pem.EncodeToMemory(&pem.Block{Type: "RSA PUBLIC KEY", Bytes: x509.MarshalPKCS1PublicKey(rsa2048().Public().(*rsa.PublicKey))})
	if k, err := sigstore.ParseKey(pkcs1); err != nil || k.Fingerprint() != must(sigstore.ParseKey(pemOf(rsa2048()))).Fingerprint() {
		t.Error(k, err)
	}
	short := must(rsa.GenerateKey(rand.Reader, 1024))
	private := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: must(x509.MarshalPKCS8PrivateKey(p256()))})
	p224 := must(ecdsa.GenerateKey(elliptic.P224(), rand.Reader))
	for _, c := range map[string]struct{ pem, want string }{
		"empty":    {"", "no PEM block"},
		"text":     {"hello", "no PEM block"},
		"trailing": {string(pemOf(p256())) + "x", "1 bytes after the first PEM block"},
		"two":      {string(pemOf(p256())) + string(pemOf(ed())), "one key is expected"},
		"private":  {string(private), "private key"},
		"other":    {"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", `PEM block of type "CERTIFICATE" is not a public key`},
		"broken":   {"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "malformed public key"},
		"short":    {string(pemOf(short)), "RSA key of 1024 bits"},
		"curve":    {string(pemOf(p224)), "unsupported curve P-224"},
		"headers":  {strings.Replace(string(pemOf(ed())), "KEY-----\n", "KEY-----\nA: b\n\n", 1), "no headers"},
		"large":    {strings.Repeat("x", 64<<10+1), "larger than the limit"},
	} {
		checktest.ErrorHas(t, c.want, checktest.Err(sigstore.ParseKey([]byte(c.pem))))
	}
	checktest.Good(t, checktest.Err(sigstore.ParseKey(append(pemOf(ed()), " \n\t"...))))
}

func TestPayloads(t *testing.T) {
	good := string(payload(digestA, named))
	const (
		typ      = `"type":"cosign container image signature"`
		image    = `"image":{"docker-manifest-digest":"` + digestA + `"}`
		identity = `"identity":{"docker-reference":"` + named + `"}`
		critical = `"critical":{` + typ + `,` + image + `,` + identity + `}`
	)
	verify := func(body string) (*signature.Verification, error) {
		return policy(ed()).Verify(t.Context(), repo+"@"+digestA, sigstore.MemorySource{digestA: {attach(ed(), []byte(body))}})
	}
	must(verify(good))
	for body, want := range map[string]time.Time{
		`{` + critical + `,"optional":null}`:                                          {},
		` {"optional":{},` + critical + "}\n":                                         {},
		`{` + critical + `,"optional":{"x":[1],"creator":"c","timestamp":1e3}}`:       time.Unix(1000, 0),
		`{` + critical + `,"optional":{"timestamp":1.5e1}}`:                           time.Unix(15, 0),
		`{` + critical + `,"optional":{"timestamp":-1}}`:                              time.Unix(-1, 0),
		`{"critical":{` + identity + `,` + image + `,` + typ + `},"optional":{}}`:     {},
		strings.Replace(`{`+critical+`,"optional":{}}`, `"type"`, `"\u0074ype"`, 1):   {},
		`{` + critical + `,"optional":{"timestamp":1700000000.0,"creator":"\ud800"}}`: time.Unix(1700000000, 0),
	} {
		v, err := verify(body)
		if err != nil || !v.Signers[0].Created.Equal(want) || v.Signers[0].Reference != named {
			t.Errorf("%s: %+v %v", body, v, err)
		}
	}
	for _, tt := range []struct{ body, want string }{
		{``, "EOF"},
		{`null`, "not a JSON object"},
		{`[]`, "not a JSON object"},
		{"\ufeff{" + critical + `,"optional":null}`, "invalid"},
		{`{` + critical + `}`, `no key "optional"`},
		{`{"optional":null}`, `no key "critical"`},
		{`{` + critical + `,"optional":null,"x":1}`, `unknown key "x"`},
		{`{` + critical + `,"optional":null}{}`, "data after"},
		{`{` + critical + `,"optional":null,` + critical + `}`, `duplicate key "critical"`},
		{`{` + critical + `,"optional":null,}`, "invalid"},
		{`{` + critical + `,"optional":[]}`, "optional: not a JSON object"},
		{`{` + critical + `,"optional":"x"}`, "optional: not a JSON object"},
		{`{` + critical + `,"optional":{"creator":1}}`, "optional: creator: not a text"},
		{`{` + critical + `,"optional":{"creator":null}}`, "optional: creator: not a text"},
		{`{` + critical + `,"optional":{"timestamp":1.5}}`, "optional: timestamp: not an integral number"},
		{`{` + critical + `,"optional":{"timestamp":"1"}}`, "optional: timestamp: not a number"},
		{`{` + critical + `,"optional":{"timestamp":null}}`, "optional: timestamp: not a number"},
		{`{` + critical + `,"optional":{"timestamp":1e999999999}}`, "exponent is too large"},
		{`{` + critical + `,"optional":{"timestamp":` + strings.Repeat("9", 41) + `}}`, "too long"},
		{`{` + critical + `,"optional":{"timestamp":9223372036854775808}}`, "not an integral number"},
		{`{` + critical + `,"optional":{"x":1,"x":2}}`, `duplicate key "x"`},
		{`{"critical":null,"optional":null}`, "critical: not a JSON object"},
		{`{"critical":{` + typ + `,` + image + `},"optional":null}`, `critical: no key "identity"`},
		{`{"critical":{` + typ + `,` + image + `,` + identity + `,"x":1},"optional":null}`, `critical: unknown key "x"`},
		{`{"critical":{` + typ + `,` + typ + `,` + image + `,` + identity + `},"optional":null}`, `critical: duplicate key "type"`},
		{strings.Replace(good, `"critical"`, `"CRITICAL"`, 1), `no key "critical"`},
		{strings.Replace(good, `docker-manifest-digest`, `Docker-manifest-digest`, 1), `critical.image: no key`},
		{strings.Replace(good, `docker-manifest-digest`, `docker-manifest-Digest`, 1), `critical.image: no key`},
		{strings.Replace(good, `"docker-reference":"`, `"x":1,"docker-reference":"`, 1), `critical.identity: unknown key "x"`},
		{strings.Replace(good, `"`+named+`"`, `1`, 1), "critical.identity.docker-reference: not a text"},
		{strings.Replace(good, named, ``, 1), "docker-reference is empty"},
		{strings.Replace(good, `cosign container image`, `atomic container`, 1), `type is "atomic container signature"`},
		{strings.Replace(good, digestA, `sha256:x`, 1), "unsupported digest"},
		{strings.Replace(good, digestA, strings.ToUpper(digestA), 1), "invalid format"},
		{strings.Replace(good, named, "\xff", 1), "invalid UTF-8"},
		{strings.Repeat(`{"critical":`, 10), ""},
		{strings.Repeat(`[`, 30000), ""},
	} {
		v, err := verify(tt.body)
		if refused, ok := errors.AsType[*signature.Rejection](err); !ok || refused.Reason != signature.NotJSON || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.200s: %+v %v, want %s", tt.body, v, err, tt.want)
		}
	}
	for _, args := range [][2]string{{"", named}, {"sha256:a", named}, {digestA, ""}, {digestA, "A B"}} {
		checktest.Fails(t, checktest.Err(sigstore.MarshalPayload(args[0], args[1])), "%v: no error", args)
	}
}

func TestIdentities(t *testing.T) {
	exact := sigstore.Identity{}
	same := sigstore.Identity{Match: configv1.IdentityMatchPolicyMatchRepository}
	one := sigstore.Identity{Match: configv1.IdentityMatchPolicyExactRepository, Repository: "quay.io/o/rel"}
	remap := func(prefix, signed string) sigstore.Identity {
		return sigstore.Identity{Match: configv1.IdentityMatchPolicyRemapIdentity, Prefix: prefix, SignedPrefix: signed}
	}
	at := "@" + digestA
	for _, tt := range []struct {
		id            sigstore.Identity
		image, signed string
		want          bool
	}{
		// The default.
		{exact, "quay.io/o/rel" + at, "quay.io/o/rel:1-x", true},
		{exact, "quay.io/o/rel" + at, "quay.io/o/rel@" + digestB, true},
		{exact, "quay.io/o/rel" + at, "quay.io/o/rel", false},
		{exact, "quay.io/o/rel" + at, "quay.io/o/other:1", false},
		{exact, "m.example/r/rel" + at, "quay.io/o/rel:1-x", false},
		{exact, "quay.io/o/rel:1", "quay.io/o/rel:1", true},
		{exact, "quay.io/o/rel:1", "quay.io/o/rel:2", false},
		{exact, "quay.io/o/rel:1", "quay.io/o/rel" + at, false},
		{exact, "quay.io/o/rel:1" + at, "quay.io/o/rel:1", false},
		{exact, "quay.io/o/rel:1" + at, "quay.io/o/rel:1" + at, true},
		{exact, "quay.io/o/rel", "quay.io/o/rel:1", false},
		{exact, "busybox" + at, "docker.io/library/busybox:1", true},
		{exact, "busybox" + at, "index.docker.io/library/busybox:1", true},
		{exact, "quay.io/o/Rel" + at, "quay.io/o/Rel:1", false},
		{exact, "quay.io/o/rel" + at, "quay.io/o/rel:", false},
		{exact, "quay.io/o/rel" + at, "", false},
		{exact, "localhost/a" + at, "localhost/a:1", true},
		{exact, "localhost:5000/a" + at, "localhost:5000/a:1", true},
		{exact, "localhost:5000/a" + at, "localhost:5001/a:1", false},
		{exact, "Host/a" + at, "Host/a:1", true},
		{exact, "[::1]:5000/a" + at, "[::1]:5000/a:1", true},
		{exact, strings.Repeat("a", 64) + at, strings.Repeat("a", 64) + ":1", true},
		{exact, "quay.io/" + strings.Repeat("a", 256) + at, "quay.io/" + strings.Repeat("a", 256) + ":1", false},
		// The others.
		{same, "quay.io/o/rel" + at, "quay.io/o/rel", true},
		{same, "quay.io/o/rel:1", "quay.io/o/rel:2", true},
		{same, "quay.io/o/rel:1", "quay.io/o/re:1", false},
		{one, "m.example/x" + at, "quay.io/o/rel:7", true},
		{one, "m.example/x" + at, "quay.io/o/rel", true},
		{one, "m.example/x" + at, "m.example/x:1", false},
		{remap("m.example/r", "quay.io/o"), "m.example/r/rel" + at, "quay.io/o/rel:1-x", true},
		{remap("m.example/r", "quay.io/o"), "m.example/r/r/rel" + at, "quay.io/o/r/rel:1-x", true},
		{remap("m.example/r/rel", "quay.io/o/rel"), "m.example/r/rel" + at, "quay.io/o/rel:1-x", true},
		{remap("m.example/r/re", "quay.io/o/re"), "m.example/r/rel" + at, "quay.io/o/rel:1-x", false},
		{remap("m.example", "quay.io"), "m.example/o/rel:1", "quay.io/o/rel:1", true},
		{remap("m.example", "quay.io"), "m.example/o/rel:1", "quay.io/o/rel:2", false},
		{remap("m.example", "quay.io"), "other.io/o/rel" + at, "other.io/o/rel:1", true},
		{remap("m.example", "quay.io"), "other.io/o/rel" + at, "quay.io/o/rel:1", false},
		{remap("m.example", "Not A Name"), "m.example/o/rel" + at, "quay.io/o/rel:1", false},
		{sigstore.Identity{Match: "Other"}, "quay.io/o/rel" + at, "quay.io/o/rel:1", false},
	} {
		checktest.Equal(t, tt.want, tt.id.Matches(tt.image, tt.signed), "%+v: %s signed as %s", tt.id, tt.image,
			tt.signed)
	}
}

func TestVerify(t *testing.T) {
	k, other := ed(), p256()
	good := attach(k, payload(digestA, named))
	image := repo + "@" + digestA
	ok := func(k crypto.Signer, reference string) sigstore.Attachment {
		return attach(k, payload(digestA, reference))
	}
	bare := sigstore.Attachment{Payload: good.Payload}
	sig := func(text string) sigstore.Attachment {
		return sigstore.Attachment{Payload: good.Payload, Annotations: map[string]string{sigstore.SignatureAnnotation: text}}
	}
	altered := sigstore.Attachment{Payload: append(slices.Clone(good.Payload), ' '), Annotations: good.Annotations}
	const failed = "cryptographic signature verification failed"
	for _, tt := range []struct {
		name   string
		all    []sigstore.Attachment
		want   string // of the error; empty: accepted
		reason signature.Reason
	}{
		{"one", []sigstore.Attachment{good}, "", ""},
		{"one among bad ones", []sigstore.Attachment{bare, altered, good}, "", ""},
		{"any key", []sigstore.Attachment{attach(rsa2048(), payload(digestA, named))}, "", ""},
		{"none", nil, "A signature was required, but no signature exists", ""},
		{"unknown key", []sigstore.Attachment{ok(other, named)}, failed, signature.BadSignature},
		{"altered payload", []sigstore.Attachment{altered}, failed, signature.BadSignature},
		{"no annotation", []sigstore.Attachment{bare}, "could not read the message: missing dev.cosignproject.cosign/signature annotation", signature.Unreadable},
		{"not base64", []sigstore.Attachment{sig("!")}, "could not read the message: annotation dev.cosignproject.cosign/signature: illegal base64", signature.Unreadable},
		{"base64 of the URL kind", []sigstore.Attachment{sig("__-_")}, "illegal base64", signature.Unreadable},
		{"empty signature", []sigstore.Attachment{sig("")}, failed, signature.BadSignature},
		{"other digest", []sigstore.Attachment{attach(k, payload(digestB, named))}, "signature digest does not match", signature.WrongDigest},
		{"other name", []sigstore.Attachment{ok(k, "quay.io/other/repo:1")}, `Signature for identity "quay.io/other/repo:1" is not accepted`, signature.WrongIdentity},
		{"name without tag", []sigstore.Attachment{ok(k, repo)}, `Signature for identity "` + repo + `" is not accepted`, signature.WrongIdentity},
		{"other type", []sigstore.Attachment{attach(k, []byte(strings.Replace(string(good.Payload), "cosign container image", "atomic container", 1)))}, "is not valid JSON", signature.NotJSON},
		{"two bad ones", []sigstore.Attachment{ok(k, "quay.io/x/y:1"), bare}, `None of the signatures were accepted, reasons: Signature for identity "quay.io/x/y:1" is not accepted; could not read the message: missing`, signature.WrongIdentity},
		{"too large", []sigstore.Attachment{attach(k, make([]byte, 64<<10+1))}, "payload is larger than the limit of 65536 bytes", signature.Unreadable},
		{"too many", slices.Repeat([]sigstore.Attachment{bare}, 40), "None of the signatures were accepted", signature.Unreadable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := policy(k, rsa2048())
			v, err := p.Verify(t.Context(), image, sigstore.MemorySource{digestA: tt.all})
			if tt.want == "" {
				if err != nil || len(v.Signers) != 1 {
					t.Fatal(err)
				}
				return
			}
			var e *signature.Error
			if !errors.As(err, &e) || !strings.Contains(err.Error(), tt.want) || e.Digest != digestA || e.Keyrings[0] != "openshift" {
				t.Fatalf("%v, want %s", err, tt.want)
			}
			if tt.reason != "" {
				var r *signature.Rejection
				if !errors.As(e.Attempts[0].Err, &r) || r.Reason != tt.reason {
					t.Errorf("%+v, want %s", e.Attempts[0], tt.reason)
				}
			}
			if tt.name == "too many" && (len(e.Attempts) != 33 || !strings.Contains(e.Attempts[32].Err.Error(), "more than 32 signatures")) {
				t.Errorf("%d attempts", len(e.Attempts))
			}
			if tt.name == "other digest" && !strings.Contains(e.Summary(), digestB) {
				t.Error(e.Summary())
			}
		})
	}

	// What needs no source.
	for name, c := range map[string]struct {
		p     *sigstore.Policy
		image string
		is    error
		want  string
	}{
		"by tag":               {policy(k), named, signature.ErrNoDigest, ""},
		"no key":               {policy(), image, signature.ErrMisconfigured, ""},
		"weak digest":          {policy(k), repo + "@md5:x", signature.ErrUnsupportedDigest, ""},
		"short":                {policy(k), repo + "@sha256:abc", signature.ErrUnsupportedDigest, ""},
		"bad name":             {policy(k), "A B@" + digestA, nil, "invalid"},
		"two roots of trust":   {&sigstore.Policy{Keys: policy(k).Keys, PKI: &sigstore.PKI{Roots: x509.NewCertPool()}}, image, signature.ErrMisconfigured, ""},
		"half a root of trust": {&sigstore.Policy{Fulcio: &sigstore.Fulcio{}}, image, signature.ErrMisconfigured, ""},
	} {
		_, err := c.p.Verify(t.Context(), c.image, sigstore.MemorySource{digestA: {good}})
		if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	checktest.ErrorIs(t, signature.ErrMisconfigured, checktest.Err(policy(k).Verify(t.Context(), image, nil)))
	checktest.ErrorHas(t, "does not have the digest", checktest.Err(
		policy(k).VerifyAs(t.Context(), image, digestB, sigstore.MemorySource{})))
	checktest.Good(t, checktest.Err(
		policy(k).VerifyAs(t.Context(), named, digestA, sigstore.MemorySource{digestA: {good}})))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	checktest.ErrorIs(t, context.Canceled, checktest.Err(
		policy(k).Verify(ctx, image, sigstore.MemorySource{digestA: {good}})))
}

// It takes the place of an OpenPGP verifier.
func TestVerifier(t *testing.T) {
	var v signature.Verifier = policy(ed()).Verifier(repo, sigstore.MemorySource{digestA: {attach(ed(), payload(digestA, named))}})
	got, err := v.Verify(t.Context(), digestA)
	if err != nil || !strings.Contains(got.String(), "sigstore key ") || !strings.Contains(got.String(), named) {
		t.Errorf("%v %v", got, err)
	}
	checktest.ErrorIs(t, signature.ErrNotFound, checktest.Err(v.Verify(t.Context(), digestB)))
	checktest.Fails(t, checktest.Err(v.Verify(t.Context(), "")), "no digest: verified")
	checktest.Has(t, fmt.Sprint(v), "openshift wants sigstore signatures of images in "+repo)
}

func FuzzPayload(f *testing.F) {
	f.Add([]byte(must(sigstore.MarshalPayload(digestA, named))))
	f.Add([]byte(`{"critical":{},"optional":{"timestamp":1e3}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := policy(ed()).Verify(t.Context(), repo+"@"+digestA, sigstore.MemorySource{digestA: {attach(ed(), data)}})
		if err == nil && (!strings.Contains(string(data), digestA) || v.Signers[0].Reference == "") {
			t.Errorf("%+v", v)
		}
	})
}

// No change of a payload or its signature verifies.
func FuzzAlteredAttachment(f *testing.F) {
	body := payload(digestA, named)
	good := sign(ed(), body)
	p := policy(ed())
	f.Add(uint16(0), byte(1), uint16(0), byte(0))
	f.Add(uint16(30), byte(0x20), uint16(3), byte(1))
	f.Fuzz(func(t *testing.T, at uint16, x byte, sigAt uint16, y byte) {
		changed, sig := slices.Clone(body), slices.Clone(good)
		changed[int(at)%len(body)] ^= x
		sig[int(sigAt)%len(sig)] ^= y
		a := sigstore.Attachment{Payload: changed, Annotations: map[string]string{sigstore.SignatureAnnotation: base64.StdEncoding.EncodeToString(sig)}}
		_, err := p.Verify(t.Context(), repo+"@"+digestA, sigstore.MemorySource{digestA: {a}})
		checktest.Equal(t, x == 0 && y == 0, err == nil, "%d^%d %d^%d: %v", at, x, sigAt, y, err)
	})
}

func BenchmarkVerify(b *testing.B) {
	for _, kind := range []struct {
		name string
		key  crypto.Signer
	}{
		{"RSA-4096", must(rsa.GenerateKey(rand.Reader, 4096))}, {"RSA-2048", rsa2048()}, {"P-256", p256()}, {"Ed25519", ed()},
	} {
		name, k := kind.name, kind.key
		body := payload(digestA, named)
		a := attach(k, body)
		p := policy(k)
		b.Run(name, func(b *testing.B) {
			src := sigstore.MemorySource{digestA: {a}}
			b.ReportAllocs()
			for b.Loop() {
				must(p.Verify(context.Background(), repo+"@"+digestA, src))
			}
		})
	}
}

// faulty panics in one of its methods.
type faulty struct {
	sigstore.MemorySource
	in string
}

func (f faulty) String() string {
	if f.in == "String" {
		panic("no name")
	}
	return "faulty"
}

func (f faulty) Attachments(ctx context.Context, digest string) iter.Seq2[sigstore.Attachment, error] {
	if f.in == "Attachments" {
		panic("no list")
	}
	return func(yield func(sigstore.Attachment, error) bool) {
		yield(sigstore.Attachment{}, errors.New("down"))
		panic("in the middle")
	}
}

type faultyClock struct{ clock.PassiveClock }

func (faultyClock) Now() time.Time { panic("no time") }

func TestPanics(t *testing.T) {
	clockless := policy(ed())
	clockless.Clock = faultyClock{}
	for name, c := range map[string]struct {
		policy *sigstore.Policy
		src    sigstore.Source
		want   string
	}{
		"String":      {policy(ed()), faulty{in: "String"}, "no name"},
		"Attachments": {policy(ed()), faulty{in: "Attachments"}, "no list"},
		"iterator":    {policy(ed()), faulty{}, "in the middle"},
		"clock":       {clockless, sigstore.MemorySource{}, "no time"},
		"key":         {&sigstore.Policy{Name: "p", Keys: []*sigstore.Key{nil}}, sigstore.MemorySource{digestA: {attach(ed(), payload(digestA, named))}}, "nil pointer"},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := c.policy.Verify(t.Context(), repo+"@"+digestA, c.src)
			caught := new(clusterapi.PanicError)
			if v != nil || !errors.As(err, &caught) || len(caught.Stack) == 0 || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, %v, want %s", v, err, c.want)
			}
		})
	}
}

func TestClockOfAttempts(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	p := policy(ed())
	p.Clock = testingclock.NewFakePassiveClock(now)
	_, err := p.Verify(t.Context(), repo+"@"+digestA, sigstore.MemorySource{digestA: {attach(p256(), payload(digestA, named))}})
	failure, ok := errors.AsType[*signature.Error](err)
	if !ok || len(failure.Attempts) != 1 || !failure.Attempts[0].Time.Equal(now) {
		t.Errorf("%+v", err)
	}
}

func TestVerifyRelease(t *testing.T) {
	older := attach(ed(), payload(digestA, repo+":4.20.9-x86_64"))
	fitting := attach(ed(), payload(digestA, named))
	for name, c := range map[string]struct {
		release     signature.Identity
		attachments []sigstore.Attachment
		version     string
		fit         signature.Fit
		want        string // of the error
	}{
		"fits":                     {attachments: []sigstore.Attachment{fitting}, version: "4.21.1", fit: signature.FitSame},
		"another version is shown": {attachments: []sigstore.Attachment{older}, version: "4.21.1", fit: signature.FitOther},
		"unknown version":          {attachments: []sigstore.Attachment{older}},
		"refused":                  {release: signature.Identity{Version: true}, attachments: []sigstore.Attachment{older}, version: "4.21.1", want: "does not fit version 4.21.1"},
		"the next one counts":      {release: signature.Identity{Version: true}, attachments: []sigstore.Attachment{older, fitting}, version: "4.21.1", fit: signature.FitSame},
		"version wanted":           {release: signature.Identity{Version: true}, attachments: []sigstore.Attachment{fitting}, want: "is not known"},
		"repository":               {release: signature.Identity{Repositories: []string{"registry.example/*"}}, attachments: []sigstore.Attachment{fitting}, version: "4.21.1", want: "its repository is none of"},
		"bad pattern":              {release: signature.Identity{Repositories: []string{"["}}, attachments: []sigstore.Attachment{fitting}, version: "4.21.1", want: "Release.Repositories"},
	} {
		t.Run(name, func(t *testing.T) {
			p := policy(ed())
			p.Release = c.release
			verifier := p.Verifier(repo, sigstore.MemorySource{digestA: c.attachments}).(signature.ReleaseVerifier)
			v, err := verifier.VerifyRelease(t.Context(), digestA, c.version)
			if c.want != "" {
				checktest.ErrorHas(t, c.want, err)
				return
			}
			checktest.OK(t, err)
			s := v.Signers[0]
			if v.Version != c.version || s.Fit != c.fit || s.Reference == "" {
				t.Errorf("%+v", v)
			}
			if err := (signature.Identity{Version: true}).CheckAll(v, c.version); (err == nil) != (c.fit == signature.FitSame) {
				t.Error(err)
			}
		})
	}
	checktest.ErrorIs(t, signature.ErrNoDigest, checktest.Err(
		policy(ed()).Verifier(repo, sigstore.MemorySource{}).(signature.ReleaseVerifier).VerifyRelease(t.Context(),
			signature.Digest(repo+":4.21.1"), "4.21.1")))
}
