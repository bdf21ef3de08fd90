package signature_test

import (
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/limittest"
	"github.com/clusterupdate/clusterupdate/signature"
)

// openPGPLimits proves the limits on keyrings and messages.
func openPGPLimits() []limittest.Case {
	k := newEd25519(keyTime)
	public := k.public(cert{})
	keyring := func(value []byte, text string) func(*testing.T) int64 {
		return func(t *testing.T) int64 {
			if _, err := signature.ParseKeyring("ring", value); err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("got %v, want an error with %q", err, text)
			}
			return 0
		}
	}
	message := func(m []byte, text string) func(*testing.T) int64 {
		return func(t *testing.T) int64 {
			_, err := verify(t, ring(t, public), m, signature.Options{})
			wantRefused(t, err, signature.Unreadable, text)
			return 0
		}
	}
	return []limittest.Case{
		{Limit: "keyring", Default: signature.MaxKeyring, Bytes: 1 << 10, Run: keyring(make([]byte, signature.MaxKeyring+1), "larger than the limit of 1048576 bytes")},
		{Limit: "message", Default: signature.MaxMessage, Bytes: 64 << 10, Run: message(k.message(msg{body: make([]byte, signature.MaxMessage)}), "larger than the limit of 1048576 bytes")},
		{Limit: "decompressed message", Default: signature.MaxMessage, Bytes: 2 << 20, Run: message(compressed(k.message(msg{body: make([]byte, signature.MaxMessage)})), "larger than the limit of 1048576 bytes")},
	}
}
