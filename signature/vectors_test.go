package signature_test

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp/armor"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/clusterupdate/clusterupdate/signature"
)

var update = flag.Bool("update", false, "write the vectors that testdata/vectors lacks")

const vectors = "testdata/vectors"

// vector is a file of testdata/vectors; the README there describes the format.
type vector struct {
	comment  string
	expect   string // "verified" or a Reason
	operator string // "verified" or "refused"
	digest   string
	time     time.Time
	keyring  []byte // armored, in any number of blocks
	message  []byte // binary
}

// verified stands for a Reason where there is none.
const verified = "verified"

// TestVectors verifies every file of testdata/vectors.
func TestVectors(t *testing.T) {
	if *update {
		writeVectors(t)
	}
	files, err := filepath.Glob(filepath.Join(vectors, "*-*"))
	if err != nil || len(files) < 150 {
		t.Fatalf("%d vectors, %v", len(files), err)
	}
	seen := map[string]int{}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			v, err := parseVector(data)
			if err != nil {
				t.Fatal(err)
			}
			seen[v.expect]++
			if got := v.verdict(t, false); got != v.expect {
				t.Errorf("%s: got %s, want %s", v.comment, got, v.expect)
			}
			got := v.verdict(t, true)
			if got != verified {
				got = "refused"
			}
			if got != v.operator {
				t.Errorf("%s, as the operator does: got %s, want %s", v.comment, got, v.operator)
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

// verdict verifies a vector by our rules, or by the operator's.
func (v *vector) verdict(t *testing.T, compat bool) string {
	r, err := signature.ParseKeyring("ring", v.keyring)
	if err != nil {
		t.Fatal(err)
	}
	_, err = newVerifier(signature.Options{
		Keyrings: []*signature.Keyring{r},
		Stores:   []signature.Store{signature.MemoryStore{v.digest: {v.message}}},
		Clock:    clocktesting.NewFakePassiveClock(v.time),
		Compat:   compat,
	}).Verify(t.Context(), v.digest)
	if err == nil {
		return verified
	}
	if rejection := (*signature.Rejection)(nil); errors.As(cause(err), &rejection) {
		return string(rejection.Reason)
	}
	return err.Error()
}

const messageBlock = "PGP MESSAGE"

func parseVector(data []byte) (*vector, error) {
	head, blocks, ok := bytes.Cut(data, []byte("\n\n"))
	if !ok {
		return nil, errors.New("no empty line behind the header")
	}
	v := new(vector)
	for line := range strings.Lines(string(head)) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch key {
		case "comment":
			v.comment = value
		case "expect":
			v.expect = value
		case "operator":
			v.operator = value
		case "digest":
			v.digest = value
		case "time":
			at, err := time.Parse(time.RFC3339, value)
			if err != nil {
				return nil, err
			}
			v.time = at
		default:
			return nil, fmt.Errorf("unknown key %q in the header", key)
		}
	}
	at := bytes.Index(blocks, []byte("-----BEGIN "+messageBlock))
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

func (v *vector) text() []byte {
	return fmt.Appendf(nil, "expect: %s\noperator: %s\ndigest: %s\ntime: %s\ncomment: %s\n\n%s%s",
		v.expect, v.operator, v.digest, v.time.Format(time.RFC3339), v.comment, v.keyring, armoredBlock(messageBlock, v.message))
}

// maxVector is the size of the largest vector, in bytes: cases that are about
// size stay in the tables that make them.
const maxVector = 4 << 10

// writeVectors writes the cases of the tables that have no vector yet.
func writeVectors(t *testing.T) {
	write := func(kind, name string, public, message []byte, reason signature.Reason) {
		// The tables' names begin with the letter of the rule that they are about.
		name = regexp.MustCompile(`^([a-z]|[iz][0-9]) `).ReplaceAllString(name, "")
		slug := strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(name), "-"), "-")
		file := filepath.Join(vectors, kind+"-"+slug)
		if _, err := os.Stat(file); err == nil {
			return
		}
		if !bytes.Contains(public, []byte("-----BEGIN")) {
			public = armoredBlock(publicBlock, public)
		}
		v := &vector{comment: name, expect: cmp.Or(string(reason), verified), operator: "refused", digest: digestA, time: now, keyring: public, message: message}
		if v.verdict(t, true) == verified {
			v.operator = verified
		}
		data := v.text()
		if _, err := parseVector(data); len(data) > maxVector || err != nil {
			t.Logf("%s is left out: %d bytes, %v", file, len(data), err)
			return
		}
		if err := os.WriteFile(file, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(vectors, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range append(acceptedMessages(), refusedMessages()...) {
		if !strings.HasPrefix(c.name, "partial lengths with an empty end") {
			write("message", c.name, c.ring, c.message, c.reason)
		}
	}
	for _, c := range append(keyCases(), placedCases(t)...) {
		if c.policy == signature.AtSignatureTime {
			write("key", c.name, c.public, c.by.message(msg{}), c.reason)
		}
	}
	k := newEd25519(keyTime)
	for _, c := range bodyCases() {
		write("statement", c.name, k.public(cert{}), k.message(msg{body: []byte(c.body)}), c.reason)
	}
}
