package signature_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/signature"
)

// fakeStore yields what it is told to, and counts.
type fakeStore struct {
	name  string
	items []any // []byte, error, time.Duration (a pause), func()
	asked int
	given int
}

func (s *fakeStore) String() string { return s.name }

func (s *fakeStore) Candidates(ctx context.Context, _ string) iter.Seq2[signature.Candidate, error] {
	return unplaced(s.signatures(ctx))
}

func (s *fakeStore) signatures(ctx context.Context) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		s.asked++
		for _, item := range s.items {
			switch x := item.(type) {
			case time.Duration:
				select {
				case <-time.After(x):
				case <-ctx.Done():
					yield(nil, &signature.StoreError{Store: s.name, Err: ctx.Err()})
					return
				}
				continue
			case func():
				x()
				continue
			case []byte:
				s.given++
				if !yield(x, nil) {
					return
				}
			case error:
				if !yield(nil, x) {
					return
				}
			}
		}
	}
}

func named(t testing.TB, name string, data ...[]byte) *signature.Keyring {
	t.Helper()
	return must(signature.ParseKeyring(name, cat(data...)))
}

func TestOrderOfChecks(t *testing.T) {
	k := newEd25519(keyTime)
	r := ring(t, k.public(cert{}))
	store := signature.MemoryStore{}
	for _, tt := range []struct {
		name   string
		v      signature.Verifier
		digest string
		want   string
		is     error
	}{
		{"no keyring", signature.NewVerifier(nil, store), digestA, "the release verifier is incorrectly configured, unable to verify digests", signature.ErrMisconfigured},
		{"no store", signature.NewVerifier([]*signature.Keyring{r}), digestA, "the release verifier is incorrectly configured, unable to verify digests", signature.ErrMisconfigured},
		{"nothing, no digest", signature.NewVerifier(nil), "", "the release verifier is incorrectly configured, unable to verify digests", signature.ErrMisconfigured},
		{"no digest", signature.NewVerifier([]*signature.Keyring{r}, store), "", "release images that are not accessed via digest cannot be verified", signature.ErrNoDigest},
		{"syntax", signature.NewVerifier([]*signature.Keyring{r}, store), "sha256:a/b", `the provided release image digest has an invalid format: "sha256:a/b"`, nil},
		{"strict", newVerifier(signature.Options{Keyrings: []*signature.Keyring{r}, Stores: []signature.Store{store}, StrictDigest: true}), "md5:x", "unsupported digest", signature.ErrUnsupportedDigest},
		{"not possible", signature.NotPossible{}, digestA, "verification is not possible", signature.ErrNotPossible},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tt.v.Verify(t.Context(), tt.digest)
			var e *signature.Error
			if !errors.As(err, &e) || !strings.HasPrefix(err.Error(), tt.want) || e.Digest != tt.digest {
				t.Fatalf("%v, want %s", err, tt.want)
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("%v is not %v", err, tt.is)
			}
		})
	}
}

// Rings A={k1}, B={k2,k3}; the store yields s(k3), s(k9), s(k1) and a fourth,
// which nobody asks for.
func TestCombination(t *testing.T) {
	var k [10]*pgpKey
	for i := range k {
		k[i] = newEd25519(keyTime)
	}
	a, b := named(t, "a", k[1].public(cert{})), named(t, "b", k[2].public(cert{}), k[3].public(cert{}))
	s := &fakeStore{name: "s", items: []any{k[3].message(msg{}), k[9].message(msg{}), k[1].message(msg{}), k[2].message(msg{})}}
	later := &fakeStore{name: "later"}
	v := signature.NewVerifier([]*signature.Keyring{b, a}, s, later)
	got := must(v.Verify(t.Context(), digestA))
	if s.given != 3 || later.asked != 0 {
		t.Errorf("took %d signatures, asked the second store %d times", s.given, later.asked)
	}
	var signers []string
	for _, g := range got.Signers {
		signers = append(signers, fmt.Sprintf("%s %s %s %d", g.Keyring, g.Fingerprint, g.Store, g.Number))
	}
	checktest.Same(t, []string{fmt.Sprintf("a %X s 3", k[1].print), fmt.Sprintf("b %X s 1", k[3].print)}, signers)
	if !strings.HasPrefix(got.String(), digestA+" verified by a: OpenPGP key ") {
		t.Error(got)
	}

	// One signature may satisfy several rings.
	both := signature.NewVerifier([]*signature.Keyring{a, named(t, "c", k[1].public(cert{}))}, signature.MemoryStore{digestA: {k[1].message(msg{})}})
	checktest.Good(t, checktest.Err(both.Verify(t.Context(), digestA)))
}

func TestFailureReport(t *testing.T) {
	k1, k2 := newEd25519(keyTime), newEd25519(keyTime)
	rings := []*signature.Keyring{named(t, "z", k1.public(cert{})), named(t, "a", k2.public(cert{}))}
	down := errors.New("server down")
	store := &fakeStore{name: "s", items: []any{down, k1.message(msg{body: statement(digestB)}), []byte("rubbish"), down, fmt.Errorf("s: %w", signature.ErrNotFound)}}
	v := newVerifier(signature.Options{Keyrings: rings, Stores: []signature.Store{store}, Clock: clocktesting.NewFakePassiveClock(now)})
	_, err := v.Verify(t.Context(), digestA)
	var e *signature.Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	if want := "unable to verify " + digestA + " against keyrings: a, z: s, signature 2 refused by z: signature digest does not match (signature is for " + digestB + ")"; e.Error() != want {
		t.Errorf("%q, want %q", e, want)
	}
	var got []string
	for _, a := range e.Attempts {
		if !a.Time.Equal(now) || a.Store != "s" {
			t.Errorf("%+v", a)
		}
		got = append(got, fmt.Sprintf("%d %s: %v", a.Number, a.Keyring, a.Err))
	}
	noKey := fmt.Sprintf("invalid signature: no key %016X in the keyring", k1.id)
	rubbish := "could not read the message: openpgp: invalid data: tag byte does not have MSB set"
	want := []string{
		"1 : server down", "2 a: " + noKey, "2 z: signature digest does not match",
		"3 a: " + rubbish, "3 z: " + rubbish, "4 : server down", "5 : s: no more signatures to check",
	}
	checktest.Same(t, want, got)
	text := "[server down, " + noKey + ", signature digest does not match, " + rubbish + ", s: no more signatures to check]"
	if u := errors.Unwrap(err); u == nil || u.Error() != text {
		t.Errorf("wraps %v, want %s", u, text)
	}
	if !errors.Is(err, down) || !errors.Is(err, signature.ErrNotFound) {
		t.Error("causes cannot be found by errors.Is")
	}
	checktest.Has(t, e.Summary(),
		"signature 2 refused by z: signature digest does not match (signature is for "+digestB+")")
	one := &signature.Error{Digest: digestA, Attempts: []signature.Attempt{{Err: down}, {Err: down}}}
	checktest.Equal(t, "server down", errors.Unwrap(one).Error(), "one cause prints as")
	checktest.Good(t, errors.Unwrap(&signature.Error{Digest: digestA}))
}

func TestSummaryRanks(t *testing.T) {
	nothing, down := fmt.Errorf("s: %w", signature.ErrNotFound), errors.New("down")
	unknown := &signature.Rejection{Reason: signature.InvalidKey}
	refused := &signature.Rejection{Reason: signature.BadSignature, Err: errors.New("x")}
	for _, tt := range []struct {
		errs []error
		want string
	}{
		{nil, "keyrings: "}, {[]error{nothing}, ": no signature found"}, {[]error{nothing, down}, ": down"},
		{[]error{down, unknown}, "invalid signature"}, {[]error{unknown, refused, down}, "signature error: x"},
	} {
		e := &signature.Error{Digest: digestA}
		for _, err := range tt.errs {
			e.Attempts = append(e.Attempts, signature.Attempt{Err: err})
		}
		if got := e.Summary(); !strings.HasSuffix(got, tt.want) {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// An error that ends the search does not undo a success, nor does what comes
// after it count.
func TestStoreErrorEndsSearch(t *testing.T) {
	k1, k2 := newEd25519(keyTime), newEd25519(keyTime)
	a, b := named(t, "a", k1.public(cert{})), named(t, "b", k2.public(cert{}))
	ends := &signature.StoreError{Store: "s", Err: errors.New("broken")}
	next := signature.MemoryStore{digestA: {k2.message(msg{})}}

	s := &fakeStore{name: "s", items: []any{k1.message(msg{}), ends}}
	_, err := signature.NewVerifier([]*signature.Keyring{a, b}, s, next).Verify(t.Context(), digestA)
	if err == nil || !strings.HasPrefix(err.Error(), "unable to verify "+digestA+" against keyrings: b: ") || !strings.HasSuffix(errors.Unwrap(err).Error(), "in the keyring, broken]") {
		t.Errorf("%v: %v", err, errors.Unwrap(err))
	}

	// In parallel, the others still run to their end.
	s = &fakeStore{name: "s", items: []any{ends}}
	slow := &fakeStore{name: "slow", items: []any{10 * time.Millisecond, k1.message(msg{}), 10 * time.Millisecond, k2.message(msg{})}}
	synctest.Test(t, func(t *testing.T) {
		checktest.Good(t, checktest.Err(
			signature.NewVerifier([]*signature.Keyring{a, b}, signature.Parallel(s, slow)).Verify(t.Context(),
				digestA)))
	})
}

func TestVerifyEndsWithItsContext(t *testing.T) {
	k := newEd25519(keyTime)
	for name, store := range map[string]func(signature.Store) signature.Store{
		"plain":    func(s signature.Store) signature.Store { return s },
		"serial":   func(s signature.Store) signature.Store { return signature.Serial(s, signature.MemoryStore{}) },
		"parallel": func(s signature.Store) signature.Store { return signature.Parallel(s, signature.MemoryStore{}) },
	} {
		checktest.Bubble(t, name, func(t *testing.T) {
			hang := &fakeStore{name: "hang", items: []any{time.Hour, k.message(msg{})}}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			start := time.Now()
			_, err := signature.NewVerifier([]*signature.Keyring{ring(t, k.public(cert{}))}, store(hang)).Verify(ctx, digestA)
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
				t.Errorf("%v after %s: %v", err, time.Since(start), errors.Unwrap(err))
			}
		})
	}

	// A store that does not care about the context is left all the same.
	ctx, cancel := context.WithCancel(t.Context())
	endless := &fakeStore{name: "endless", items: []any{[]byte("a"), cancel, []byte("b"), []byte("c")}}
	endless.items[1] = func() { cancel() }
	_, err := signature.NewVerifier([]*signature.Keyring{ring(t, k.public(cert{}))}, endless).Verify(ctx, digestA)
	if !errors.Is(err, context.Canceled) || endless.given != 2 {
		t.Errorf("%v after %d", err, endless.given)
	}
}

func TestCache(t *testing.T) {
	k := newEd25519(keyTime)
	clock := clocktesting.NewFakePassiveClock(now)
	store := &fakeStore{name: "s", items: []any{k.message(msg{})}}
	v := newVerifier(signature.Options{
		Keyrings: []*signature.Keyring{ring(t, k.public(cert{}))}, Stores: []signature.Store{store},
		Clock: clock, CacheMaxAge: time.Hour,
	})
	ask := func(digest string, cached bool, asked int) {
		t.Helper()
		got := must(v.Verify(t.Context(), digest))
		if got.Cached != cached || store.asked != asked || len(got.Signers) != 1 {
			t.Errorf("cached %v, asked %d times: %v", got.Cached, store.asked, got)
		}
		got.Signers[0].Keyring = "changed by the caller"
	}
	ask(digestA, false, 1)
	ask(digestA, true, 1)
	if s, _ := v.Verify(t.Context(), digestA); s.Signers[0].Keyring != "ring" {
		t.Error("the caller changed what is remembered")
	}
	got := v.Signatures()
	if len(got) != 1 || len(got[digestA]) != 1 {
		t.Fatalf("%v", got)
	}
	got[digestA][0][0] = 0
	if v.Signatures()[digestA][0][0] == 0 {
		t.Error("the caller changed what is remembered")
	}
	clock.SetTime(now.Add(time.Hour))
	ask(digestA, false, 2)

	// Failures are asked again; success needs no store.
	checktest.Fails(t, checktest.Err(v.Verify(t.Context(), digestB)), "verified")
	if _, err := v.Verify(t.Context(), digestB); err == nil || store.asked != 4 {
		t.Errorf("asked %d times: %v", store.asked, err)
	}
}

func TestCacheForgetsTheLeastRecentlyUsed(t *testing.T) {
	k := newEd25519(keyTime)
	store := signature.MemoryStore{}
	digest := func(i int) string { return fmt.Sprintf("sha256:%064x", i) }
	for i := range 66 {
		store[digest(i)] = [][]byte{k.message(msg{body: statement(digest(i))})}
	}
	v := signature.NewVerifier([]*signature.Keyring{ring(t, k.public(cert{}))}, store)
	verify := func(i int) bool {
		r := must(v.Verify(t.Context(), digest(i)))
		return r.Cached
	}
	for i := range 64 {
		verify(i)
	}
	verify(0)  // used again: 1 is now the oldest
	verify(64) // displaces 1
	if len(v.Signatures()) != 64 || !verify(0) || verify(1) {
		t.Errorf("%d remembered", len(v.Signatures()))
	}
}

func TestDescription(t *testing.T) {
	k1, k2 := newEd25519(keyTime), newEd25519(keyTime)
	b := named(t, "b", k1.public(cert{uid: "One"}), k2.public(cert{uid: "Two"}))
	a := named(t, "a", k1.public(cert{uid: "Un"}))
	for _, tt := range []struct {
		v    fmt.Stringer
		want string
	}{
		{signature.NewVerifier(nil), "All release image digests must have GPG signatures from <ERROR: no verifiers> - will check for signatures in containers/image format at <ERROR: no store>"},
		{signature.NewVerifier([]*signature.Keyring{b, a}, dirStore("/x")), fmt.Sprintf("All release image digests must have GPG signatures from a (%X: Un), b (%X: One, %X: Two) - will check for signatures in containers/image format at file:///x", k1.print, k1.print, k2.print)},
	} {
		checktest.Equal(t, tt.want, tt.v.String(), "tt.v.String()")
	}
}

// The order of signatures and stores, more keyrings and more bad signatures do
// not turn the result around.
func TestInvariants(t *testing.T) {
	keys := []*pgpKey{newEd25519(keyTime), newEd25519(keyTime), newEd25519(keyTime)}
	var pool [][]byte
	for _, k := range keys {
		pool = append(pool, k.message(msg{}), k.message(msg{body: statement(digestB)}), k.message(msg{sig: sig{badTag: true}}))
	}
	pool = append(pool, []byte("rubbish"))
	ringOf := func(set []int) *signature.Keyring {
		var data [][]byte
		for _, i := range set {
			data = append(data, keys[i].public(cert{}))
		}
		return named(t, fmt.Sprint(set), data...)
	}
	rapid.Check(t, func(t *rapid.T) {
		sets := rapid.SliceOfN(rapid.SliceOfNDistinct(rapid.IntRange(0, 2), 1, 3, rapid.ID), 1, 3).Draw(t, "rings")
		picks := rapid.SliceOfN(rapid.IntRange(0, len(pool)-1), 0, 8).Draw(t, "signatures")
		shuffled := rapid.Permutation(picks).Draw(t, "shuffled")
		cut := rapid.IntRange(0, len(shuffled)).Draw(t, "cut")

		want := true
		for _, set := range sets {
			any := false
			for _, p := range picks {
				for _, i := range set {
					any = any || p == 3*i
				}
			}
			want = want && any
		}
		var rings []*signature.Keyring
		for _, set := range sets {
			rings = append(rings, ringOf(set))
		}
		storeOf := func(picks []int) signature.Store {
			m := signature.MemoryStore{}
			for _, p := range picks {
				m[digestA] = append(m[digestA], pool[p])
			}
			return m
		}
		for name, store := range map[string]signature.Store{
			"one":      storeOf(picks),
			"serial":   signature.Serial(storeOf(shuffled[:cut]), storeOf(shuffled[cut:])),
			"parallel": signature.Parallel(storeOf(shuffled[:cut]), storeOf(shuffled[cut:])),
		} {
			_, err := signature.NewVerifier(rings, store).Verify(context.Background(), digestA)
			checktest.Equal(t, want, err == nil, "%s: %v, want success", name, err)
		}
	})
}
