package signature

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
)

// CompatRules name the rules in which this package differs from the
// cluster-version operator and that can be switched, each to what the operator
// does. They serve comparisons: nobody publishes what they let pass.
//
// They are not all differences. Under every rule, this package alone
//   - limits sizes and numbers, see the package's table of limits;
//   - wants the whole message to have one shape: one one-pass signature that
//     agrees with the signature in type, hash, algorithm and issuer, no packets
//     in between, no critical notation, a hash tag that is right;
//   - refuses RIPEMD-160, and signature packets of version 2 or that state a
//     time twice;
//   - takes an expiry of 0 for "never";
//   - refuses signatures that are older than their key, and all of a revoked
//     subkey, whether or not the revocation gives a reason;
//   - refuses a keyring with a private key, or with a revocation that matches
//     nothing in it; and leaves out a bad subkey alone, not its primary key;
//   - finds what a signature of a keyring is about by what it verifies over,
//     wherever it stands.
type CompatRules struct {
	// WeakHashes accepts signatures over MD5, SHA-1 and SHA-224, unless the
	// system allows FIPS 140-3 alone.
	WeakHashes bool
	// WeakKeys accepts signatures of RSA keys of 1024 bits or more, and of DSA.
	WeakKeys bool
	// TrailingData accepts anything after the message, in and after its
	// compressed packet, too, and after the statement.
	TrailingData bool
	// LooseJSON accepts keys in other case and twice (the last counts), and
	// text that is not UTF-8.
	LooseJSON bool
	// NestedCompression accepts 31 levels of compression.
	NestedCompression bool
	// ExpiredKeys accepts signatures of keys that had expired, whatever
	// Options.Validity says.
	ExpiredKeys bool
	// Redirects follows 10 redirects of a store, from https to http, too.
	// Credentials still stay with the host they were given for.
	Redirects bool
	// EmptyKeyrings accepts an empty value as a keyring without keys, which no
	// signature can satisfy.
	EmptyKeyrings bool
	// FirstBlock reads only the first armored block of a keyring.
	FirstBlock bool
	// NoEd25519 skips Ed25519 keys.
	NoEd25519 bool
	// FatalLists ends a search when the ConfigMaps cannot be listed. It serves
	// verifiers that are made from a payload's configuration; a store has a
	// field of its own, [ConfigMapStore].Compat.
	FatalLists bool
}

// OperatorRules returns all rules switched to what the operator does: the points
// that Options.Compat covers.
func OperatorRules() CompatRules {
	return CompatRules{
		WeakHashes: true, WeakKeys: true, TrailingData: true, LooseJSON: true, NestedCompression: true, ExpiredKeys: true,
		Redirects: true, EmptyKeyrings: true, FirstBlock: true, NoEd25519: true, FatalLists: true,
	}
}

// levels is how many compressions a message may have.
func (r CompatRules) levels() int {
	if r.NestedCompression {
		return 31
	}
	return 1
}

// decode reads a statement in the way of the operator, as far as the rules say.
func (r CompatRules) decode(body []byte, ignoreOptional bool) (*Statement, error) {
	if r.TrailingData {
		var first json.RawMessage
		if err := json.NewDecoder(bytes.NewReader(body)).Decode(&first); err != nil {
			return nil, err
		}
		body = first
	}
	if !r.LooseJSON {
		return decodeBody(body, ignoreOptional)
	}
	var s Statement
	d := json.NewDecoder(bytes.NewReader(body))
	if ignoreOptional {
		// Unknown keys are looked for in all but "optional".
		var outer struct {
			Critical Critical        `json:"critical"`
			Optional json.RawMessage `json:"optional"`
		}
		d.DisallowUnknownFields()
		if err := d.Decode(&outer); err != nil {
			return nil, err
		}
		s.Critical = outer.Critical
		if len(outer.Optional) > 0 {
			if err := json.Unmarshal(outer.Optional, &s.Optional); err != nil {
				return nil, err
			}
		}
	} else {
		d.DisallowUnknownFields()
		if err := d.Decode(&s); err != nil {
			return nil, err
		}
	}
	if strings.Trim(string(body[d.InputOffset():]), " \t\r\n") != "" {
		return nil, errors.New("data after the statement")
	}
	return &s, nil
}

// follower follows redirects as http.Client does by default, within a
// transport: what lies above sees only the last answer.
type follower struct{ next http.RoundTripper }

const operatorRedirects = 10

func (f follower) RoundTrip(r *http.Request) (*http.Response, error) {
	for hops := 0; ; hops++ {
		resp, err := f.next.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		switch resp.StatusCode {
		case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		default:
			return resp, nil
		}
		location := resp.Header.Get("Location")
		if location == "" {
			return resp, nil
		}
		resp.Body.Close()
		if hops == operatorRedirects {
			return nil, errors.New("stopped after 10 redirects")
		}
		to, err := r.URL.Parse(location)
		if err != nil {
			return nil, errors.New("the location of a redirect cannot be parsed")
		}
		from := r.URL
		r = r.Clone(r.Context())
		r.URL, r.Host = to, ""
		if from.Host != to.Host || from.Scheme != to.Scheme {
			r.Header.Del("Authorization")
		}
	}
}

// CloseIdleConnections closes those of the transport, where it can do so.
func (f follower) CloseIdleConnections() {
	if c, ok := f.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
