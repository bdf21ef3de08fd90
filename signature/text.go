package signature

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Text says in lines who signed, under which name, when, and where the signature
// was found.
func (v *Verification) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is verified\n", v.Digest)
	for _, s := range v.Signers {
		signer := s.Fingerprint
		if s.UserID != "" {
			signer += " (" + s.UserID + ")"
		}
		when := "at an unknown time"
		if !s.Created.IsZero() {
			when = s.Created.UTC().Format(time.RFC3339)
		}
		where := cmp.Or(s.Location, s.Store)
		fmt.Fprintf(&b, "  %s\n    signed by  %s\n    signed as  %s\n    signed on  %s\n    found in   %s\n", s.Keyring, signer, s.Reference, when, where)
	}
	return b.String()
}

// Text says in lines why a digest could not be verified: the Summary, then each
// attempt, but for the end of a composite whose members have said so.
func (e *Error) Text() string {
	var b strings.Builder
	b.WriteString(e.Summary() + "\n")
	for _, a := range e.Attempts {
		if _, ended := a.Err.(*exhaustedError); ended && len(e.Attempts) > 1 {
			continue
		}
		where, text := cmp.Or(a.Location, a.Store), a.Err.Error()
		switch {
		case a.Keyring != "":
			text = where + ", " + a.Keyring + ": " + text
		case !strings.Contains(text, where):
			text = where + ": " + text
		}
		b.WriteString("  " + text + "\n")
	}
	if e.Omitted > 0 {
		fmt.Fprintf(&b, "  and %d more\n", e.Omitted)
	}
	return b.String()
}
