package signature_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
			data, err := os.ReadFile(filepath.Join(dir, "verifier-public-key-"+tt.file))
			if err != nil {
				t.Fatal(err)
			}
			ring, err := signature.ParseKeyring(tt.file, data)
			if err != nil {
				t.Fatal(err)
			}
			if s := ring.Skipped(); len(s) != 0 {
				t.Errorf("skipped %v", s)
			}
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
			want := []any{tt.fingerprint, "RSA", tt.bits, tt.created, tt.expires, false, 0}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
