package signature_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/signature"
)

// gnupg is a GnuPG of one program (gpg or gpg1) with a home folder of its own.
type gnupg struct {
	t       testing.TB
	program string
	home    string
	// time is what gpg takes for now; gpg1 always uses the clock.
	time time.Time
}

// newGnuPG skips the test where the program is not installed. Nothing that it
// starts outlives the test.
func newGnuPG(t testing.TB, program string) *gnupg {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("%s is not installed", program)
	}
	// The sockets of an agent need a short path, which t.TempDir does not give.
	home := must(os.MkdirTemp("", "gpg"))
	g := &gnupg{t: t, program: program, home: home, time: sigTime}
	t.Cleanup(func() {
		if program == "gpg" {
			kill := exec.Command("gpgconf", "--homedir", home, "--kill", "all")
			if out, err := kill.CombinedOutput(); err != nil {
				t.Errorf("gpgconf: %v: %s", err, out)
			}
		}
		checktest.Good(t, os.RemoveAll(home))
	})
	return g
}

func (g *gnupg) command(args ...string) *exec.Cmd {
	common := []string{"--homedir", g.home, "--no-tty", "--quiet", "--yes", "--no-permission-warning"}
	if g.program == "gpg" {
		common = append(common, "--pinentry-mode", "loopback", "--passphrase", "", "--no-auto-check-trustdb", "--trust-model", "always",
			"--faked-system-time", g.time.UTC().Format("20060102T150405")+"!")
	}
	cmd := exec.Command(g.program, append(common, args...)...)
	cmd.Env = append(os.Environ(), "GNUPGHOME="+g.home, "LC_ALL=C")
	return cmd
}

// run returns what the program writes; it must succeed.
func (g *gnupg) run(stdin []byte, args ...string) []byte {
	g.t.Helper()
	cmd := g.command(args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &out, &errs
	if err := cmd.Run(); err != nil {
		g.t.Fatalf("%s %s: %v\n%s", g.program, strings.Join(args, " "), err, errs.String())
	}
	return out.Bytes()
}

// batch is run without questions.
func (g *gnupg) batch(stdin []byte, args ...string) []byte {
	g.t.Helper()
	return g.run(stdin, append([]string{"--batch"}, args...)...)
}

// answer runs a dialogue.
func (g *gnupg) answer(answers string, args ...string) {
	g.t.Helper()
	g.run([]byte(answers), append([]string{"--command-fd", "0"}, args...)...)
}

// key makes a key and returns its fingerprint.
func (g *gnupg) key(name, algorithm, expires string) string {
	g.t.Helper()
	g.batch(nil, "--quick-generate-key", name+" <"+name+"@example.com>", algorithm, "sign", expires)
	return g.fingerprint(name)
}

// fingerprint returns that of a key; of subkeys it is one of those that follow.
func (g *gnupg) fingerprint(name string) string { return g.fingerprints(name)[0] }

func (g *gnupg) fingerprints(name string) (out []string) {
	g.t.Helper()
	args := []string{"--with-colons", "--list-keys", name}
	if g.program == "gpg1" {
		args = append([]string{"--fingerprint", "--fingerprint"}, args...)
	}
	for line := range strings.Lines(string(g.batch(nil, args...))) {
		if fields := strings.Split(line, ":"); fields[0] == "fpr" {
			out = append(out, fields[9])
		}
	}
	if len(out) == 0 {
		g.t.Fatalf("no key %s", name)
	}
	return out
}

// sign signs a statement for digestA.
func (g *gnupg) sign(args ...string) []byte {
	g.t.Helper()
	return g.batch(statement(digestA), append(args, "--sign")...)
}

func (g *gnupg) export(names ...string) []byte {
	g.t.Helper()
	return g.batch(nil, append([]string{"--export"}, names...)...)
}

// revocation returns the revocation that gpg made together with a key.
func (g *gnupg) revocation(fingerprint string) []byte {
	g.t.Helper()
	text := must(os.ReadFile(filepath.Join(g.home, "openpgp-revocs.d", fingerprint+".rev")))
	// A colon keeps it from being imported by mistake.
	return bytes.Replace(text, []byte("\n:-----BEGIN"), []byte("\n-----BEGIN"), 1)
}

// gnupgCase is what a GnuPG made, and what is to be said about it.
type gnupgCase struct {
	name          string
	ring, message []byte
	now           time.Time // zero: the tests'
	policy        signature.Validity
	signer        string // fingerprint; else:
	reason        signature.Reason
	text          string
}

func (tt gnupgCase) run(t *testing.T) {
	t.Run(tt.name, func(t *testing.T) {
		r := must(signature.ParseKeyring("ring", tt.ring))
		o := signature.Options{Validity: tt.policy}
		if !tt.now.IsZero() {
			o.Clock = clocktesting.NewFakePassiveClock(tt.now)
		}
		v, err := verify(t, r, tt.message, o)
		if tt.reason != "" {
			wantRefused(t, err, tt.reason, tt.text)
			return
		}
		if err != nil {
			t.Fatal(cause(err))
		}
		checktest.Equal(t, tt.signer, v.Signers[0].Fingerprint, "signed by")
	})
}

const (
	unreadable = signature.Unreadable
	unsigned   = signature.NotSigned
	badSig     = signature.BadSignature
	badKey     = signature.InvalidKey
)

// Signatures of version 4 as Debian's gnupg writes them.
func TestGnuPG(t *testing.T) {
	g := newGnuPG(t, "gpg")
	g.time = keyTime
	ed, rsaKey, ec := g.key("ed", "ed25519", "0"), g.key("rsa", "rsa2048", "0"), g.key("ec", "nistp384", "0")
	short := g.key("short", "ed25519", "5y") // until the end of 2024
	renewed := g.key("renewed", "ed25519", "3y")
	sub := g.key("sub", "ed25519", "0")
	g.batch(nil, "--quick-add-key", sub, "ed25519", "sign", "0")
	g.batch(nil, "--quick-add-key", sub, "cv25519", "encr", "0")
	g.time = keyTime.Add(time.Hour)
	g.batch(nil, "--quick-add-key", sub, "ed25519", "sign", "0")
	revoked := g.key("revoked", "ed25519", "0")
	g.batch(nil, "--quick-add-key", revoked, "ed25519", "sign", "0")
	designated, revoker := g.key("designated", "ed25519", "0"), g.key("revoker", "ed25519", "0")
	subs := g.fingerprints("sub")

	g.time = sigTime
	edRing, subRing, revokedRing := g.export(ed), g.export(sub), g.export(revoked)
	plain := g.sign("-u", ed)
	bySub := g.sign("-u", subs[1]+"!")
	byRevoked := g.sign("-u", revoked+"!")
	byRevokedSub := g.sign("-u", revoked)
	byDesignated := g.sign("-u", designated)
	byShort := g.sign("-u", short)
	byRenewed := g.sign("-u", renewed)
	designatedRing := g.export(designated)
	revocation := g.revocation(revoked)

	cases := []gnupgCase{
		{name: "Ed25519", ring: edRing, message: plain, signer: ed},
		{name: "RSA", ring: g.export(rsaKey), message: g.sign("-u", rsaKey), signer: rsaKey},
		{name: "ECDSA", ring: g.export(ec), message: g.sign("-u", ec), signer: ec},
		{name: "armored ring", ring: g.batch(nil, "--armor", "--export", ed), message: plain, signer: ed},
		{name: "all keys", ring: g.export(), message: plain, signer: ed},
		{name: "text", ring: edRing, message: g.sign("-u", ed, "--textmode"), signer: ed},
		{name: "embedded file name", ring: edRing, message: g.sign("-u", ed, "--set-filename", "_rpmsig-req-XXXXXX.bin"), signer: ed},
		{name: "partial lengths", ring: edRing, message: g.batch(cat(statement(digestA), bytes.Repeat([]byte(" \n"), 20_000)), "-u", ed, "--compress-algo", "none", "--sign"), signer: ed},
		{name: "partial lengths, compressed", ring: edRing, message: g.batch(cat(statement(digestA), bytes.Repeat([]byte(" \n"), 20_000)), "-u", ed, "--sign"), signer: ed},
		{name: "notation", ring: edRing, message: g.sign("-u", ed, "--sig-notation", "a@example.com=b"), signer: ed},
		{name: "critical notation", ring: edRing, message: g.sign("-u", ed, "--sig-notation", "!a@example.com=b"), reason: unreadable, text: "critical signature subpacket type 20"},
		{name: "expired", ring: edRing, message: g.sign("-u", ed, "--default-sig-expire", "1y"), reason: signature.Expired, text: "signature expired on 2023-06-01 12:00:00"},
		{name: "expiring later", ring: edRing, message: g.sign("-u", ed, "--default-sig-expire", "2y"), signer: ed},
		{name: "expired since", ring: edRing, message: g.sign("-u", ed, "--default-sig-expire", "2y"), now: sigTime.AddDate(2, 0, 1), reason: signature.Expired, text: "signature expired on"},
		{name: "two signers", ring: g.export(ed, ec), message: g.sign("-u", ed, "-u", ec), reason: unreadable, text: "nested signatures"},
		{name: "SHA-1", ring: g.export(rsaKey), message: g.sign("-u", rsaKey, "--digest-algo", "SHA1", "--allow-weak-digest-algos"), reason: badSig, text: "SHA-1 is too weak"},
		{name: "SHA-224", ring: g.export(rsaKey), message: g.sign("-u", rsaKey, "--digest-algo", "SHA224"), reason: badSig, text: "SHA-224 is too weak"},
		{name: "clear-signed", ring: edRing, message: g.batch(statement(digestA), "-u", ed, "--clear-sign"), reason: unreadable, text: "MSB"},
		{name: "armored message", ring: edRing, message: g.sign("-u", ed, "--armor"), reason: unreadable, text: "MSB"},
		{name: "detached", ring: edRing, message: g.batch(statement(digestA), "-u", ed, "--detach-sign"), reason: unsigned, text: "not signed"},
		{name: "not signed", ring: edRing, message: g.batch(statement(digestA), "--store"), reason: unsigned, text: "not signed"},
		{name: "encrypted", ring: subRing, message: g.sign("-u", sub, "--encrypt", "-r", sub), reason: unreadable, text: "encrypted message"},
		{name: "encrypted by passphrase", ring: edRing, message: g.sign("-u", ed, "--passphrase", "secret", "--symmetric"), reason: unreadable, text: "encrypted message"},
		{name: "unknown key", ring: g.export(ec), message: plain, reason: badKey, text: "no key"},

		{name: "subkey", ring: subRing, message: bySub, signer: subs[1]},
		{name: "the newest subkey", ring: subRing, message: g.sign("-u", sub), signer: subs[3]},
		{name: "the primary", ring: subRing, message: g.sign("-u", sub+"!"), signer: sub},
		{name: "before the revocation", ring: revokedRing, message: byRevoked, signer: revoked},
		{name: "revoked, in a block of its own", ring: cat(g.batch(nil, "--armor", "--export", revoked), revocation), message: byRevoked, reason: badKey, text: "is revoked"},
		{name: "revoked, in a block before the key's", ring: cat(revocation, g.batch(nil, "--armor", "--export", revoked)), message: byRevoked, reason: badKey, text: "is revoked"},
		{name: "key that expires", ring: g.export(short), message: byShort, signer: short},
		{name: "key that has expired", ring: g.export(short), message: byShort, now: keyTime.AddDate(6, 0, 0), signer: short},
		{name: "key that has expired, strict", ring: g.export(short), message: byShort, now: keyTime.AddDate(6, 0, 0), policy: signature.AtNow, reason: badSig, text: "expired on"},
		{name: "key that has expired, before it was renewed", ring: g.export(renewed), message: byRenewed, policy: signature.AtNow, reason: badSig, text: "expired on"},
		{name: "before the designated revocation", ring: designatedRing, message: byDesignated, signer: designated},
	}
	for _, algorithm := range []string{"none", "zip", "zlib", "bzip2"} {
		cases = append(cases, gnupgCase{name: "compression " + algorithm, ring: edRing, message: g.sign("-u", ed, "--compress-algo", algorithm), signer: ed})
	}
	for _, hash := range []string{"SHA256", "SHA384", "SHA512"} {
		cases = append(cases, gnupgCase{name: hash, ring: g.export(rsaKey), message: g.sign("-u", rsaKey, "--digest-algo", hash), signer: rsaKey})
	}

	// What changes the keys comes last.
	g.time = sigTime.Add(time.Hour)
	g.answer("key 1\nrevkey\ny\n0\n\ny\nsave\n", "--edit-key", sub)
	g.batch(revocation, "--import")
	g.batch(nil, "--quick-set-expire", renewed, "10y")
	g.answer("addrevoker\n"+revoker+"\ny\nsave\n", "--edit-key", designated)
	certificate := filepath.Join(g.home, "designated.asc")
	g.answer("y\n0\n\ny\n", "-o", certificate, "--desig-revoke", designated)
	g.batch(nil, "--import", certificate)
	cases = append(cases,
		gnupgCase{name: "revoked subkey", ring: g.export(sub), message: bySub, reason: badKey, text: "is revoked"},
		gnupgCase{name: "another subkey than the revoked", ring: g.export(sub), message: g.sign("-u", sub), signer: subs[3]},
		gnupgCase{name: "revoked", ring: g.export(revoked), message: byRevoked, reason: badKey, text: "is revoked"},
		gnupgCase{name: "subkey of the revoked", ring: g.export(revoked), message: byRevokedSub, reason: badKey, text: "is revoked"},
		gnupgCase{name: "renewed", ring: g.export(renewed), message: byRenewed, policy: signature.AtNow, signer: renewed},
		gnupgCase{name: "revoked by the designated revoker", ring: g.export(designated, revoker), message: byDesignated, reason: badKey, text: "is revoked"},
	)
	for _, tt := range cases {
		tt.run(t)
	}

	// The revoker is needed to tell: without it, nothing of the ring is used.
	id := revoker[len(revoker)-16:]
	checktest.ErrorHas(t, "revocation of a key by key "+id+" matches nothing", checktest.Err(
		signature.ParseKeyring("ring", g.export(designated))))
	checktest.ErrorHas(t, "by key "+revoked[len(revoked)-16:], checktest.Err(
		signature.ParseKeyring("ring", cat(armored(t, publicBlock, edRing), revocation))))
}

// Signatures of version 3, which gpg stopped writing, as gnupg1 does.
func TestGnuPG1(t *testing.T) {
	g := newGnuPG(t, "gpg1")
	newKey := func(name, more string) string {
		g.batch([]byte("Key-Type: RSA\nKey-Length: 2048\nKey-Usage: sign\n"+more+"Name-Real: "+name+"\n%commit\n"), "--quick-random", "--gen-key")
		return g.fingerprint(name)
	}
	plain := newKey("Plain", "Expire-Date: 0\n")
	short := newKey("Short", "Expire-Date: 1d\n")
	sub := newKey("Subkey", "Subkey-Type: RSA\nSubkey-Length: 2048\nSubkey-Usage: sign\nExpire-Date: 0\n")
	subs := g.fingerprints("Subkey")
	sign := func(args ...string) []byte {
		m := g.sign(append(args, "--force-v3-sigs")...)
		packets := string(g.batch(m, "--list-packets"))
		if !strings.Contains(packets, "version 3, created") || strings.Contains(packets, "version 4, created") {
			t.Fatalf("not of version 3:\n%s", packets)
		}
		return m
	}
	plainRing, subRing := g.export(plain), g.export(sub)
	bySub, byPlain := sign("-u", "Subkey", "--digest-algo", "SHA256"), sign("-u", "Plain", "--digest-algo", "SHA256")
	now := time.Now()
	later := now.AddDate(0, 0, 2)
	cases := []gnupgCase{
		{name: "plain", ring: plainRing, message: byPlain, signer: plain},
		{name: "text", ring: plainRing, message: sign("-u", "Plain", "--digest-algo", "SHA256", "--textmode"), signer: plain},
		{name: "embedded file name", ring: plainRing, message: sign("-u", "Plain", "--digest-algo", "SHA256", "--set-filename", "_rpmsig-req-XXXXXX.bin"), signer: plain},
		{name: "asked to expire, which version 3 cannot", ring: plainRing, message: sign("-u", "Plain", "--digest-algo", "SHA256", "--default-sig-expire", "1d"), now: later, signer: plain},
		{name: "two signers", ring: g.export(plain, sub), message: sign("-u", "Plain", "-u", "Subkey", "--digest-algo", "SHA256"), reason: unreadable, text: "nested signatures"},
		{name: "SHA-1", ring: plainRing, message: sign("-u", "Plain", "--digest-algo", "SHA1"), reason: badSig, text: "SHA-1 is too weak"},
		{name: "detached", ring: plainRing, message: g.batch(statement(digestA), "-u", "Plain", "--force-v3-sigs", "--digest-algo", "SHA256", "--detach-sign"), reason: unsigned, text: "not signed"},
		{name: "unknown key", ring: subRing, message: byPlain, reason: badKey, text: "no key"},
		{name: "subkey", ring: subRing, message: bySub, signer: subs[1]},
		{name: "the primary", ring: subRing, message: sign("-u", sub+"!", "--digest-algo", "SHA256"), signer: sub},
		{name: "expired key", ring: g.export(short), message: sign("-u", "Short", "--digest-algo", "SHA256"), now: later, signer: short},
		{name: "expired key, strict", ring: g.export(short), message: sign("-u", "Short", "--digest-algo", "SHA256"), now: later, policy: signature.AtNow, reason: badSig, text: "expired on"},
	}
	for _, algorithm := range []string{"none", "zip", "zlib", "bzip2"} {
		cases = append(cases, gnupgCase{name: "compression " + algorithm, ring: plainRing, message: sign("-u", "Plain", "--digest-algo", "SHA512", "--compress-algo", algorithm), signer: plain})
	}
	revocation := filepath.Join(g.home, "revocation.asc")
	g.answer("y\n0\n\ny\n", "-o", revocation, "--gen-revoke", plain)
	g.answer("key 1\nrevkey\ny\n0\n\ny\nsave\n", "--edit-key", sub)
	cases = append(cases,
		gnupgCase{name: "revoked, in a block of its own", ring: cat(g.batch(nil, "--armor", "--export", plain), must(os.ReadFile(revocation))), message: byPlain, reason: badKey, text: "is revoked"},
		gnupgCase{name: "revoked subkey", ring: g.export(sub), message: bySub, reason: badKey, text: "is revoked"},
		gnupgCase{name: "primary of the revoked subkey", ring: g.export(sub), message: sign("-u", sub, "--digest-algo", "SHA256"), signer: sub},
	)
	g.batch(nil, "--import", revocation)
	cases = append(cases, gnupgCase{name: "revoked", ring: g.export(plain), message: byPlain, reason: badKey, text: "is revoked"})
	for _, tt := range cases {
		if tt.now.IsZero() {
			tt.now = now.Add(time.Minute)
		}
		tt.run(t)
	}
}
