package signature_test

import (
	"crypto/elliptic"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/signature"
)

// fipsCase is made where weak algorithms are allowed and read where not.
type fipsCase struct {
	Name          string
	Ring, Message []byte
	Signer        string // fingerprint; else:
	Error         string // of the ring or of the first attempt
}

const fipsFile = "SIGNATURE_TEST_FIPS_CASES"

// Where the system allows FIPS 140-3 alone, keys are still found by their
// fingerprints, which are SHA-1; and what does need SHA-1 says so.
func TestFIPSOnly(t *testing.T) {
	rsaKey, ed, ec, dsaKey := rsa2048(), newEd25519(keyTime), newECDSA(elliptic.P256()), dsaKey()
	self := func(k *pgpKey, hash byte) []byte { return k.public(cert{self: sig{hash: hash}}) }
	print := func(k *pgpKey) string { return fmt.Sprintf("%X", k.print) }
	sha1Binding := pkt(2, rsaKey.sign(sig{typ: 0x18, hash: 2, created: keyTime, hashed: cat(sub(27, []byte{2}), sub(32, ed.sign(sig{typ: 0x19}, rsaKey.hashed(), ed.hashed())))}, rsaKey.hashed(), ed.hashed()))
	cases := []fipsCase{
		{Name: "RSA", Ring: self(rsaKey, 8), Message: rsaKey.message(msg{}), Signer: print(rsaKey)},
		{Name: "RSA, version 3", Ring: self(rsaKey, 8), Message: rsaKey.message(msg{sig: sig{version: 3}}), Signer: print(rsaKey)},
		{Name: "Ed25519", Ring: self(ed, 8), Message: ed.message(msg{}), Signer: print(ed)},
		{Name: "ECDSA", Ring: self(ec, 9), Message: ec.message(msg{}), Signer: print(ec)},
		{Name: "subkey", Ring: cat(self(rsaKey, 8), rsaKey.subkey(ed, nil, 0, true)), Message: ed.message(msg{}), Signer: print(ed)},
		{Name: "SHA-1 self-signature beside another", Ring: cat(self(rsaKey, 8), pkt(2, rsaKey.sign(sig{typ: 0x13, hash: 2}, uidParts(rsaKey, testUID)...))), Message: rsaKey.message(msg{}), Signer: print(rsaKey)},
		{Name: "SHA-1 self-signature", Ring: self(rsaKey, 2), Error: "no user id with a valid self-signature: hash SHA-1 is forbidden in FIPS 140-only mode"},
		{Name: "MD5 self-signature", Ring: self(rsaKey, 1), Error: "hash MD5 is forbidden in FIPS 140-only mode"},
		{Name: "SHA-1 revocation", Ring: cat(self(rsaKey, 8), pkt(2, rsaKey.sign(sig{typ: 0x20, hash: 2}, rsaKey.hashed()))), Error: fmt.Sprintf("revocation of a key by key %016X matches nothing in the keyring (hash SHA-1 is forbidden in FIPS 140-only mode)", rsaKey.id)},
		{Name: "SHA-1 binding", Ring: cat(self(rsaKey, 8), pkt(14, ed.body), sha1Binding), Message: ed.message(msg{}), Error: "no key"},
		{Name: "DSA", Ring: self(dsaKey, 8), Error: "DSA is forbidden in FIPS 140-only mode"},
		{Name: "DSA beside another", Ring: cat(self(dsaKey, 8), self(rsaKey, 8)), Message: rsaKey.message(msg{}), Signer: print(rsaKey)},
		{Name: "RSA 1024", Ring: self(rsa1024(), 8), Error: "no user id"},
	}
	file := filepath.Join(t.TempDir(), "cases.json")
	checktest.OK(t, os.WriteFile(file, must(json.Marshal(cases)), 0o600))
	child := exec.Command(must(os.Executable()), "-test.run=^TestFIPSOnlyChild$", "-test.v")
	child.Env = append(os.Environ(), fipsFile+"="+file, "GODEBUG=fips140=only")
	out, err := child.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if n := strings.Count(string(out), "    --- PASS: TestFIPSOnlyChild/"); n < len(cases) {
		t.Fatalf("%d of %d cases have run:\n%s", n, len(cases), out)
	}
}

// TestFIPSOnlyChild runs in the process that TestFIPSOnly starts.
func TestFIPSOnlyChild(t *testing.T) {
	file := os.Getenv(fipsFile)
	if file == "" {
		t.Skip("runs in a process that TestFIPSOnly starts")
	}
	var cases []fipsCase
	checktest.OK(t, json.Unmarshal(must(os.ReadFile(file)), &cases))
	for _, tt := range cases {
		t.Run(tt.Name, func(t *testing.T) {
			r, err := signature.ParseKeyring("ring", tt.Ring)
			var v *signature.Verification
			if err == nil {
				v, err = verify(t, r, tt.Message, signature.Options{})
			}
			switch {
			case tt.Error != "" && (err == nil || !strings.Contains(cause(err).Error(), tt.Error)):
				t.Errorf("got %v, want %s", err, tt.Error)
			case tt.Error == "" && err != nil:
				t.Error(cause(err))
			case tt.Error == "" && v.Signers[0].Fingerprint != tt.Signer:
				t.Errorf("signed by %s, want %s", v.Signers[0].Fingerprint, tt.Signer)
			}
		})
	}
	t.Run("real keys", func(t *testing.T) {
		files := must(filepath.Glob(filepath.Join(testdata.Dir(t), "keys", "verifier-public-key-*")))
		if len(files) == 0 {
			t.Error("no keys")
		}
		for _, file := range files {
			if _, err := signature.ParseKeyring("ring", must(os.ReadFile(file))); err != nil && !strings.Contains(err.Error(), "SHA-1 is forbidden") {
				t.Errorf("%s: %v", file, err)
			}
		}
	})
}
