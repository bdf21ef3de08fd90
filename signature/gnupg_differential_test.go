package signature_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/signature"
)

// acceptedHereAlone are the vectors that count here and that gpg refuses, each
// with its reason.
var acceptedHereAlone = map[string]string{
	"message-v3-over-text": "gpg hashes text as sent, this package with the line ends that RFC 9580 wants, whether the writer has put them in or not",
	"message-text-partial-lengths-first-chunk-of-2-as-the-ci-signs":          "the same",
	"message-no-issuer-at-all":                                               "the one-pass signature names the key here; gpg looks only at the signature",
	"message-known-critical-subpackets":                                      "gpg does not know the signer's user id (28) as a critical subpacket; it alters nothing",
	"key-expires-a-second-later":                                             "gpg wants the key valid now; by default it counts here when the signature was made, so that old releases stay signed",
	"key-expired-lax":                                                        "Options.Validity asks for it",
	"key-the-key-s-first-second-counts":                                      "gpg refuses self-signatures that are older than their key; when they were made does not matter here",
	"key-subkey-behind-another-key":                                          "gpg looks for a binding by the key in front; here the binding is by the key whose signature it is",
	"key-revocation-of-a-direct-key-signature":                               "gpg does not know revocations of direct-key signatures, and takes the revoked one for valid, by which the key has expired",
	"key-primary-that-is-another-s-subkey-first":                             "gpg looks at the first key that has the id, which is not for signing; here each is tried",
	"key-weak-self-signature-the-only-one-md5":                               "gpg takes no self-signature over MD5; here it counts, with a warning: the keyring is trusted as it is",
	"key-skipped-encryption-primary":                                         "gpg imports nothing of a file with such a key; here that key alone is left out",
	"key-skipped-rsa-cut":                                                    "the same",
	"key-skipped-too-short":                                                  "the same",
	"key-withdrawn-by-a-stranger-a-key-of-version-6-with-its-own-revocation": "the same",
}

// Nothing counts here that gpg refuses, but for what is listed, and the signer
// is the same.
func TestAgainstGnuPG(t *testing.T) {
	if testing.Short() || israce.Enabled {
		t.Skip("runs gpg some hundred times, one after the other")
	}
	rings := map[string]*gnupg{}
	seen := map[string]bool{}
	both, neither, gpgAlone := 0, 0, 0
	for _, v := range readVectors(t) {
		if strings.HasPrefix(v.name, "statement-") {
			continue // gpg does not read what is signed
		}
		seen[v.name] = true
		g := rings[string(v.keyring)]
		if g == nil {
			g = newGnuPG(t, "gpg")
			g.time = v.time
			file := filepath.Join(g.home, "ring")
			checktest.OK(t, os.WriteFile(file, v.keyring, 0o600))
			g.command("--batch", "--import", file).Run() // it may refuse parts of it
			rings[string(v.keyring)] = g
		}
		ours := authentic(t, v)
		theirs := g.verified(v.message)
		reason := acceptedHereAlone[v.name]
		switch {
		case ours == "" && theirs == "":
			neither++
		case ours == "":
			gpgAlone++
		case theirs == "" && reason == "":
			t.Errorf("%s: accepted here, refused by gpg", v.name)
		case theirs == "":
		case theirs != ours:
			t.Errorf("%s: signed by %s, gpg says %s", v.name, ours, theirs)
		default:
			both++
		}
		if reason != "" && (ours == "" || theirs != "") {
			t.Errorf("%s: listed as accepted here alone (%s); here %q, gpg %q", v.name, reason, ours, theirs)
		}
	}
	for name := range acceptedHereAlone {
		if !seen[name] {
			t.Errorf("%s: listed as accepted here alone, but there is no such case", name)
		}
	}
	t.Logf("%d accepted by both, %d by neither, %d by gpg alone, %d here alone", both, neither, gpgAlone, len(acceptedHereAlone))
	if both < 20 || neither < 50 {
		t.Error("gpg refuses or accepts everything: it does not work")
	}
}

// authentic returns the fingerprint of the key that made a message, whatever
// its text says; "" if none did.
func authentic(t *testing.T, v *vector) string {
	t.Helper()
	got, text := v.verdict(t, false)
	switch signature.Reason(got) {
	case verified:
		return strings.TrimPrefix(text, "signed by ")
	case signature.NotJSON, signature.WrongType, signature.NoIdentity, signature.WrongDigest:
		return ring(t, v.keyring).Keys()[0].Fingerprint // these cases have one key
	}
	return ""
}

// verified returns the fingerprint of the key whose signature over message gpg
// calls good; "" where it has any objection.
func (g *gnupg) verified(message []byte) string {
	g.t.Helper()
	file := filepath.Join(g.home, "message")
	checktest.OK(g.t, os.WriteFile(file, message, 0o600))
	out, err := g.command("--batch", "--status-fd", "1", "--verify", file).Output()
	good, signer := false, ""
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "[GNUPG:]" {
			continue
		}
		switch fields[1] {
		case "GOODSIG":
			good = true
		case "VALIDSIG":
			signer = fields[2]
		case "BADSIG", "ERRSIG", "EXPSIG", "EXPKEYSIG", "REVKEYSIG", "NODATA":
			return ""
		}
	}
	if err != nil || !good {
		return ""
	}
	return signer
}
