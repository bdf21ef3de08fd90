package signature

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
)

// keyVerdict is what is said of one key or subkey at a time.
type keyVerdict struct {
	Signs   bool // it may sign: expired or not, but not revoked
	Revoked bool
	Expires string   // empty: never
	UserIDs []string // of a primary: those that count, sorted
}

// What this package says of the certificates of Debian's developers and archives
// is what gpg says of them, but for what is left out by name and for user ids
// that disagree.
func TestDebiansKeyrings(t *testing.T) {
	if israce.Enabled {
		t.Skip("checks some ten thousand signatures, one after the other")
	}
	rings := checktest.Must(filepath.Glob("/usr/share/keyrings/debian-*.gpg"))
	if len(rings) < 8 {
		t.Skip("debian-keyring and debian-archive-keyring are not installed")
	}
	compareWithGnuPG(t, rings)
}

// The keys that sign releases, too.
func TestReleaseKeysBesideGnuPG(t *testing.T) {
	rings, err := filepath.Glob(filepath.Join(testdata.Dir(t), "keys", "verifier-public-key-*"))
	if err != nil || len(rings) == 0 {
		t.Fatal(len(rings), err)
	}
	compareWithGnuPG(t, rings)
}

func compareWithGnuPG(t *testing.T, rings []string) {
	if _, err := exec.LookPath("gpg"); err != nil {
		t.Skip("gpg is not installed")
	}
	at := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	equal, left, undecided, unusable := 0, 0, 0, 0
	for _, file := range rings {
		data := checktest.Must(os.ReadFile(file))
		theirs := gnupgVerdicts(t, file, at)
		for i, packets := range splitKeyring(t, data) {
			if testing.Short() && i%10 != 0 {
				continue
			}
			ring, err := ParseKeyring("ring", packets)
			if err != nil {
				if !strings.Contains(err.Error(), "hash not available") {
					t.Errorf("%s, certificate %d: %v", file, i, err)
				}
				unusable++
				continue
			}
			primary := ring.keys[0]
			want, ours := theirs[primary.pub.print()], verdicts(ring, at)
			reasons := false
			for _, s := range ring.Skipped() {
				if _, isThere := want[s.ID]; isThere && !s.Used && strings.HasPrefix(s.Reason, "subkey of") {
					delete(want, s.ID) // left out by name
					left++
					reasons = true
				}
			}
			if k := want[primary.pub.print()]; k.Signs && !ours[primary.pub.print()].Signs && primary.undecided(at) {
				k.Signs = false
				want[primary.pub.print()] = k
				undecided++
				reasons = true
			}
			if diff := cmp.Diff(want, ours); diff != "" {
				t.Errorf("%s, %s (-gpg +here):\n%s", file, primary.pub.print(), diff)
			} else if !reasons {
				equal++
			}
			info := ring.Keys()[0]
			for print, v := range ours {
				if print != primary.pub.print() && v.Signs != slices.Contains(info.Subkeys, print) {
					t.Errorf("%s, %s: subkeys %v, but %s has %+v", file, primary.pub.print(), info.Subkeys, print, v)
				}
			}
			checktest.Equal(t, ours[info.Fingerprint].Revoked, info.Revoked, "%s: %+v", file, info)
		}
	}
	t.Logf("%d equal, %d subkeys left out by name, %d with user ids of one second that disagree (gpg takes the first), %d that cannot be used", equal, left, undecided, unusable)
	if others := left + undecided + unusable; others > equal/50 || equal == 0 {
		t.Errorf("%d certificates are equal, %d are not", equal, others)
	}
}

// undecided reports whether user ids that were certified in one second disagree
// on whether the key may sign.
func (k *key) undecided(at time.Time) bool {
	s := k.at(at)
	return slices.ContainsFunc(s.self, func(c *claim) bool {
		return c.sig.flags != nil && c.sig.created.Equal(s.use.sig.created) && c.signs() != s.use.signs()
	})
}

// verdicts are those of this package, by fingerprint.
func verdicts(ring *Keyring, at time.Time) map[string]keyVerdict {
	out := map[string]keyVerdict{}
	for _, k := range ring.keys {
		v := keyVerdict{Signs: k.usable(at) == nil, Revoked: k.revocation() != nil}
		if end, ok := k.end(at); ok {
			v.Expires = end.Format(time.DateTime)
		}
		if k.primary == nil {
			v.UserIDs = slices.Sorted(slices.Values(k.userIDs))
		}
		out[k.pub.print()] = v
	}
	return out
}

// splitKeyring returns the certificates of a keyring.
func splitKeyring(t *testing.T, data []byte) [][]byte {
	t.Helper()
	if blocks, err := armorBlocks(data); err == nil {
		data = bytes.Join(blocks, nil)
	}
	var out [][]byte
	for len(data) > 0 {
		p, after, err := nextPacket(data)
		checktest.OK(t, err)
		if p.tag == tagPublicKey {
			out = append(out, nil)
		}
		last := &out[len(out)-1]
		*last = append(*last, data[:len(data)-len(after)]...)
		data = after
	}
	return out
}

// gnupgVerdicts are those of gpg: by the fingerprint of the primary, then by
// that of each of its keys.
func gnupgVerdicts(t *testing.T, file string, at time.Time) map[string]map[string]keyVerdict {
	t.Helper()
	cmd := exec.Command("gpg", "--homedir", t.TempDir(), "--no-tty", "--quiet", "--no-permission-warning", "--no-auto-check-trustdb",
		"--faked-system-time", at.Format("20060102T150405")+"!", "--with-colons", "--fixed-list-mode", "--show-keys", file)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	raw, err := cmd.Output()
	if len(raw) == 0 {
		t.Fatal(err)
	}
	out := map[string]map[string]keyVerdict{}
	var cert map[string]keyVerdict
	var primary string
	var next keyVerdict // of the fingerprint that follows
	for line := range strings.Lines(string(raw)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), ":")
		switch f[0] {
		case "pub", "sub":
			if f[0] == "pub" {
				cert, primary = map[string]keyVerdict{}, ""
			}
			// f[11]: what the key may do, in small letters.
			next = keyVerdict{Revoked: f[1] == "r" || cert[primary].Revoked}
			next.Signs = strings.Contains(f[11], "s") && f[1] != "i" && !next.Revoked
			if f[6] != "" {
				seconds := checktest.Must(strconv.ParseInt(f[6], 10, 64))
				next.Expires = time.Unix(seconds, 0).UTC().Format(time.DateTime)
			}
		case "fpr":
			if primary == "" {
				primary = f[9]
				out[primary] = cert
			}
			cert[f[9]] = next
		case "uid":
			// With the key revoked, all of its user ids are.
			k := cert[primary]
			if f[1] == "i" || f[1] == "r" && !k.Revoked {
				continue
			}
			text := checktest.Must(strconv.Unquote(`"` + strings.ReplaceAll(f[9], `"`, `\"`) + `"`))
			k.UserIDs = append(k.UserIDs, strings.ToValidUTF8(text, "\uFFFD"))
			slices.Sort(k.UserIDs)
			cert[primary] = k
		}
	}
	return out
}
