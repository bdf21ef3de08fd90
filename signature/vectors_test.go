package signature_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/checktest"

	"github.com/ProtonMail/go-crypto/openpgp/armor"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/clusterupdate/clusterupdate/signature"
)

// vector is a file of testdata/vectors; the README there describes the format.
type vector struct {
	name     string
	header   map[string]string
	skipped  []string // of the keyring
	validity signature.Validity
	time     time.Time
	keyring  []byte // armored, in any number of blocks
	message  []byte // binary
}

// verified stands for a Reason where there is none.
const verified = "verified"

// oracleErrs are the vectors that the oracle decides otherwise than the
// operator, because the library that it reads packets with does.
var oracleErrs = map[string]string{
	"message-md5": "it does not know MD5",
	"message-unknown-critical-subpacket-unhashed": "it ignores what is not signed",
	"message-creation-time-unhashed":              "it ignores what is not signed",
}

// TestVectors verifies every file of testdata/vectors. What the operator decides
// otherwise, this package does on purpose.
func TestVectors(t *testing.T) {
	seen := map[string]int{}
	for _, v := range readVectors(t) {
		t.Run(v.name, func(t *testing.T) {
			expect, digest := v.header["expect"], v.header["digest"]
			seen[expect]++
			got, text := v.verdict(t, false)
			if got == string(signature.NotJSON) { // the rest is encoding/json's
				text = text[:min(len(text), len(v.header["text"]))]
			}
			if got != expect || text != v.header["text"] {
				t.Errorf("got %s: %s, want %s: %s", got, text, expect, v.header["text"])
			}
			if want := cmp.Or(v.header["optional"], expect); strings.HasPrefix(v.name, "statement-") {
				if got, text := v.verdict(t, true); got != want {
					t.Errorf("unknown keys in optional are ignored: got %s: %s, want %s", got, text, want)
				}
			}
			want := v.header["operator"]
			if want == "" || oracleErrs[v.name] != "" {
				return
			}
			if err := operatorVerifies(v.keyring, v.message, digest, v.time); (err == nil) != (want == verified) {
				t.Errorf("as the operator does: %v, want %s", err, want)
			}
		})
	}
	for _, reason := range []signature.Reason{
		verified, signature.Unreadable, signature.NotSigned, signature.BadSignature, signature.InvalidKey, signature.Expired,
		signature.NotJSON, signature.WrongType, signature.NoIdentity, signature.WrongDigest,
	} {
		if seen[string(reason)] == 0 {
			t.Errorf("no vector expects %s", reason)
		}
	}
}

// readVectors returns all vectors in the order of their names.
func readVectors(t testing.TB) []*vector {
	files := must(filepath.Glob("testdata/vectors/*-*"))
	if len(files) < 350 {
		t.Fatalf("%d vectors", len(files))
	}
	out := make([]*vector, len(files))
	for i, file := range files {
		v, err := parseVector(must(os.ReadFile(file)))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		v.name = filepath.Base(file)
		out[i] = v
	}
	return out
}

// verdict verifies a vector: the result is "verified" with the signer, or a
// Reason with the text of the refusal, or "Keyring" with what is wrong with that.
func (v *vector) verdict(t *testing.T, ignoreOptional bool) (result, text string) {
	r, err := signature.ParseKeyring("ring", v.keyring)
	if err != nil {
		return "Keyring", err.Error()
	}
	var skipped []string
	for _, s := range r.Skipped() {
		skipped = append(skipped, strings.TrimSpace(fmt.Sprintf("%s %s: %s", s.ID, s.Use(), s.Reason)))
	}
	checktest.SameIn(t, "skipped keys (-want +got)", v.skipped, skipped)
	digest := v.header["digest"]
	found, err := newVerifier(signature.Options{
		Keyrings:              []*signature.Keyring{r},
		Stores:                []signature.Store{signature.MemoryStore{digest: {v.message}}},
		Clock:                 clocktesting.NewFakePassiveClock(v.time),
		Validity:              v.validity,
		IgnoreUnknownOptional: ignoreOptional,
	}).Verify(t.Context(), digest)
	if err == nil {
		return verified, "signed by " + found.Signers[0].Fingerprint
	}
	rejection, ok := errors.AsType[*signature.Rejection](cause(err))
	if !ok {
		t.Fatal(err)
	}
	return string(rejection.Reason), rejection.Error()
}

func parseVector(data []byte) (*vector, error) {
	head, blocks, ok := bytes.Cut(data, []byte("\n\n"))
	if !ok {
		return nil, errors.New("no empty line behind the header")
	}
	v := &vector{header: map[string]string{}}
	for line := range strings.Lines(string(head)) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch key {
		case "comment", "expect", "text", "validity", "optional", "operator", "digest", "time":
			v.header[key] = value
		case "skipped":
			v.skipped = append(v.skipped, value)
		default:
			return nil, fmt.Errorf("unknown key %q in the header", key)
		}
	}
	policies := map[string]signature.Validity{"": signature.AtSignatureTime, "now": signature.AtNow, "ignored": signature.IgnoreValidity}
	if v.validity, ok = policies[v.header["validity"]]; !ok {
		return nil, fmt.Errorf("unknown validity %q", v.header["validity"])
	}
	var err error
	if v.time, err = time.Parse(time.RFC3339, v.header["time"]); err != nil {
		return nil, err
	}
	at := bytes.Index(blocks, []byte("-----BEGIN PGP MESSAGE"))
	if at < 0 {
		return nil, errors.New("no message")
	}
	v.keyring = blocks[:at]
	block, err := armor.Decode(bytes.NewReader(blocks[at:]))
	if err != nil {
		return nil, err
	}
	var message bytes.Buffer
	if _, err := message.ReadFrom(block.Body); err != nil {
		return nil, err
	}
	v.message = message.Bytes()
	return v, nil
}
