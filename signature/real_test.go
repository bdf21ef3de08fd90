package signature_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/signature"
)

// The public keys that sign releases load with the identities that Red Hat
// publishes for them.
func TestRealKeys(t *testing.T) {
	dir := filepath.Join(testdata.Dir(t), "keys")
	for _, tt := range []struct {
		file, fingerprint string
		bits              int
		created, expires  string
		owner             string
	}{
		{"redhat-release", "567E347AD0044ADE55BA8A5F199E2F91FD431D51", 4096, "2009-10-22", "", "Red Hat, Inc. (release key 2)"},
		{"redhat-beta-2", "B08B659EE86AF623BC90E8DB938A80CAF21541EB", 4096, "2009-02-24", "", "Red Hat, Inc. (beta key 2)"},
		{"openshift-ci", "D04761B116203B0C0859B61628B76E05B923888E", 2048, "2019-04-22", "2021-04-21", "openshift-ci"},
		{"openshift-ci-2", "20CCC7AD272DCD3AA169F12A65C28371F55D29A9", 4096, "2021-04-27", "2023-04-27", "openshift-ci"},
		{"openshift-ci-3", "FE526D8F6FEDC123BE219E45CF4B45E2071F0337", 2048, "2023-03-30", "2025-03-29", "openshift-ci"},
		{"openshift-ci-4", "6A9588F07F2D3AE7973AD2A9193E53CCD2E2F7A4", 2048, "2025-03-04", "2027-03-31", "openshift-ci"},
	} {
		t.Run(tt.file, func(t *testing.T) {
			data := must(os.ReadFile(filepath.Join(dir, "verifier-public-key-"+tt.file)))
			ring := must(signature.ParseKeyring(tt.file, data))
			checktest.Equal(t, 0, len(ring.Skipped()), "skipped")
			keys := ring.Keys()
			if len(keys) != 1 {
				t.Fatalf("%d keys", len(keys))
			}
			k := keys[0]
			if !strings.HasPrefix(k.UserIDs[0], tt.owner) {
				t.Errorf("key of %q, want %q", k.UserIDs, tt.owner)
			}
			date := func(at time.Time) string {
				if at.IsZero() {
					return ""
				}
				return at.Format(time.DateOnly)
			}
			got := []any{k.Fingerprint, k.Algorithm, k.Bits, date(k.Created), date(k.Expires), k.Revoked, len(k.Subkeys)}
			checktest.Same(t, []any{tt.fingerprint, "RSA", tt.bits, tt.created, tt.expires, false, 0}, got)
		})
	}
}

// realSignature is a published signature, what it says, and who made it.
type realSignature struct {
	name, keyring, digest, fingerprint, owner, reference, created string
	head                                                          []byte // what the file begins with
}

// realSignatures are one of version 3, as releases had them for years, and one
// of version 4 in partial lengths.
var realSignatures = []realSignature{
	{
		"version 3", "redhat.txt", "sha256:e3f12513a4b22a2d7c0e7c9207f52128113758d9d68c7d06b11a0ac7672966f7",
		"567E347AD0044ADE55BA8A5F199E2F91FD431D51", "Red Hat, Inc. (release key 2) <security@redhat.com>",
		"registry.access.redhat.com/rhel7:7.6", "2019-04-09T18:14:24Z", []byte{0xa3, 1},
	},
	{
		"version 4 in partial lengths", "simple.txt", "sha256:edd9824f0404f1a139688017e7001370e2f3fbc088b94da84506653b473fe140",
		"D04761B116203B0C0859B61628B76E05B923888E", "openshift-ci",
		"registry.svc.ci.openshift.org/ocp/release:4.0.0-0.ci-2019-04-19-181452", "2019-04-22T14:35:51Z", []byte{0xc4, 13},
	},
}

func TestRealSignatures(t *testing.T) {
	dir := filepath.Join(testdata.Dir(t), "signatures")
	store := &signature.FileStore{FS: os.DirFS(dir), Name: "published"}
	var rings []*signature.Keyring
	for _, tt := range realSignatures {
		r := must(signature.ParseKeyring(tt.keyring, must(os.ReadFile(filepath.Join(dir, tt.keyring)))))
		rings = append(rings, r)
	}
	for i, tt := range realSignatures {
		t.Run(tt.name, func(t *testing.T) {
			v, err := signature.NewVerifier(rings[i:i+1], store).Verify(t.Context(), tt.digest)
			if err != nil {
				t.Fatal(signature.Chain(err))
			}
			s := v.Signers[0]
			got := []string{s.System, s.Keyring, s.Fingerprint, s.UserID, s.Reference, s.Created.Format(time.RFC3339)}
			checktest.Same(t, []string{signature.SystemOpenPGP, tt.keyring, tt.fingerprint, tt.owner, tt.reference, tt.created}, got)
			if _, err := signature.NewVerifier(rings[1-i:2-i], store).Verify(t.Context(), tt.digest); err == nil || !strings.Contains(signature.Chain(err), "no key "+tt.fingerprint[24:]) {
				t.Errorf("with the keyring of the other: %v", err)
			}
			checktest.Fails(t, checktest.Err(
				signature.NewVerifier(rings, store).Verify(t.Context(), tt.digest)), "both keyrings are satisfied")

			// Whatever is altered: it is refused, or it says the very same.
			message := must(os.ReadFile(filepath.Join(dir, strings.Replace(tt.digest, ":", "=", 1), "signature-1")))
			if !bytes.HasPrefix(message, tt.head) {
				t.Errorf("begins with %x", message[:2])
			}
			good := v.Signers[0]
			good.Store, good.Location, good.Number = "", "", 0
			survived, tried := 0, 0
			for at := range message {
				head, tail := message[:at], message[at+1:]
				for _, altered := range [][]byte{
					cat(head, []byte{message[at] ^ 1}, tail), cat(head, []byte{message[at] ^ 0x80}, tail), cat(head, []byte{^message[at]}, tail),
					cat(head, tail), cat(head, []byte{message[at], message[at]}, tail), head,
				} {
					tried++
					both := signature.MemoryStore{tt.digest: {altered}, digestA: {altered}}
					verifier := signature.NewVerifier(rings[i:i+1], both)
					if v, err := verifier.Verify(t.Context(), digestA); err == nil {
						t.Fatalf("octet %d: another digest verified: %v", at, v)
					}
					v, err := verifier.Verify(t.Context(), tt.digest)
					if err != nil {
						continue
					}
					survived++
					s := v.Signers[0]
					s.Store, s.Location, s.Number = "", "", 0
					checktest.SameIn(t, fmt.Sprintf("octet %d", at), good, s)
				}
			}
			// The name and the date within the literal packet are not signed, nor
			// are parts of the framing.
			if survived > tried/5 {
				t.Errorf("%d of %d altered messages verified", survived, tried)
			}
		})
	}
}
