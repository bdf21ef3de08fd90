package signature_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/signature/cluster"
)

// A remembered success ends when the signature does, the self-signature that
// decides about the key, or the key, whichever comes first.
func TestRememberedSuccessExpires(t *testing.T) {
	end := now.Add(time.Hour)
	left := func(from time.Time) uint32 { return uint32(end.Sub(from) / time.Second) }
	for _, tt := range []struct {
		name     string
		key      cert
		message  msg
		validity signature.Validity
		after    error // what the next verification says; nil: it looks again and succeeds
	}{
		{"signature", cert{}, msg{sig: sig{hashed: sub(3, u32(left(sigTime)))}}, signature.AtSignatureTime, &signature.Rejection{Reason: signature.Expired}},
		{"signature, key ignored", cert{}, msg{sig: sig{hashed: sub(3, u32(left(sigTime)))}}, signature.IgnoreValidity, &signature.Rejection{Reason: signature.Expired}},
		{"self-signature", cert{self: sig{hashed: sub(3, u32(left(keyTime)))}}, msg{}, signature.AtSignatureTime, &signature.Rejection{Reason: signature.InvalidKey}},
		{"key", cert{lifetime: left(keyTime)}, msg{}, signature.AtNow, &signature.Rejection{Reason: signature.BadSignature}},
		{"key, valid when it signed", cert{lifetime: left(keyTime)}, msg{}, signature.AtSignatureTime, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := newEd25519(keyTime)
			clock := clocktesting.NewFakePassiveClock(now)
			store := &fakeStore{name: "s", items: []any{k.message(tt.message)}}
			v := newVerifier(signature.Options{
				Keyrings: []*signature.Keyring{ring(t, k.public(tt.key))}, Stores: []signature.Store{store}, Clock: clock, Validity: tt.validity,
			})
			for _, at := range []time.Time{now, end.Add(-time.Second)} {
				clock.SetTime(at)
				checktest.Equal(t, at != now, checktest.Get(v.Verify(t.Context(), digestA))(t).Cached, "at %s", at)
			}
			checktest.Equal(t, 1, len(v.Signatures()), "remembered")
			clock.SetTime(end)
			checktest.Equal(t, 0, len(v.Signatures()), "remembered after the end")
			got, err := v.Verify(t.Context(), digestA)
			switch {
			case tt.after == nil:
				if err != nil || got.Cached || store.asked != 2 {
					t.Errorf("%v, %v", got, err)
				}
			case err == nil:
				t.Errorf("still verified: %v", got)
			default:
				var want, have *signature.Rejection
				if !errors.As(tt.after, &want) || !errors.As(err, &have) || have.Reason != want.Reason {
					t.Errorf("%v, want %s", err, want.Reason)
				}
			}
		})
	}
}

// A key that had expired before is not a reason to forget at once.
func TestSuccessOfAnOldKeyIsRemembered(t *testing.T) {
	k := newEd25519(keyTime)
	life := uint32(sigTime.Add(time.Hour).Sub(keyTime) / time.Second)
	v := newVerifier(signature.Options{
		Keyrings: []*signature.Keyring{ring(t, k.public(cert{lifetime: life}))}, Clock: clocktesting.NewFakePassiveClock(now),
		Stores: []signature.Store{signature.MemoryStore{digestA: {k.message(msg{})}}},
	})
	for _, cached := range []bool{false, true} {
		if got, err := v.Verify(t.Context(), digestA); err != nil || got.Cached != cached {
			t.Errorf("%v, %v", got, err)
		}
	}
}

// A clock that was set back does not bring back what a later one allowed.
func TestRememberedSuccessOfALaterTime(t *testing.T) {
	k := newEd25519(keyTime)
	clock, skew := clocktesting.NewFakePassiveClock(now), time.Hour
	v := newVerifier(signature.Options{
		Keyrings: []*signature.Keyring{ring(t, k.public(cert{}))}, Clock: clock, FutureSkew: &skew,
		Stores: []signature.Store{signature.MemoryStore{digestA: {k.message(msg{})}}},
	})
	must(v.Verify(t.Context(), digestA))
	clock.SetTime(sigTime.Add(-2 * time.Hour))
	if got, err := v.Verify(t.Context(), digestA); err == nil {
		t.Errorf("%v, before it was signed", got)
	}
}

// The text of an error begins with the operator's words and says what failed,
// without blaming a keyring that another signature satisfied.
func TestErrorTextSaysWhatFailed(t *testing.T) {
	k1, k2 := newEd25519(keyTime), newEd25519(keyTime)
	a, b := named(t, "a", k1.public(cert{})), named(t, "b", k2.public(cert{}))
	other := k1.message(msg{body: statement(digestB)})
	for _, tt := range []struct {
		name  string
		items []any
		want  string
	}{
		{"nothing", nil, "keyrings: a, b"},
		{"not found", []any{fmt.Errorf("s: %w", signature.ErrNotFound)}, "keyrings: a, b: no signature found"},
		{"down", []any{errors.New("down")}, "keyrings: a, b: s, signature 1: down"},
		{"down, which names the store", []any{errors.New("s, signature 1 is down")}, "keyrings: a, b: s, signature 1 is down"},
		{"ends", []any{&signature.StoreError{Store: "s", Err: context.Canceled}}, "keyrings: a, b: context canceled"},
		{"refused", []any{other}, "keyrings: a, b: s, signature 1 refused by a: signature digest does not match (signature is for " + digestB + ")"},
		{"refused by one that is satisfied", []any{other, k1.message(msg{})}, fmt.Sprintf("keyrings: b: s, signature 2 refused by b: invalid signature: no key %016X in the keyring", k1.id)},
	} {
		_, err := signature.NewVerifier([]*signature.Keyring{a, b}, &fakeStore{name: "s", items: tt.items}).Verify(t.Context(), digestA)
		if tt.name == "refused by one that is satisfied" {
			// Which of the two attempts at b is told of does not matter; a's is not.
			if err == nil || strings.Contains(err.Error(), "does not match") || !strings.HasPrefix(err.Error(), "unable to verify "+digestA+" against keyrings: b: ") || !strings.Contains(err.Error(), "refused by b: invalid signature") {
				t.Errorf("%s: %v", tt.name, err)
			}
			continue
		}
		if want := "unable to verify " + digestA + " against " + tt.want; err == nil || err.Error() != want {
			t.Errorf("%s: got  %v\nwant %s", tt.name, err, want)
		}
	}
}

// However much stores and keyrings say, texts stay short.
func TestErrorTextsAreBounded(t *testing.T) {
	long := strings.Repeat("ä", 1<<16)
	e := &signature.Error{Digest: "sha256:" + long, Omitted: 7}
	for i := range 2000 {
		e.Keyrings = append(e.Keyrings, fmt.Sprintf("%d %s", i, long))
		e.Attempts = append(e.Attempts, signature.Attempt{Store: long, Location: long, Number: 1, Keyring: e.Keyrings[0], Err: fmt.Errorf("%d %s", i, long)})
	}
	for _, e := range []*signature.Error{e, {Digest: "sha256:a", Err: errors.New(long)}} {
		if n := len(e.Error()); n > 2<<10 {
			t.Errorf("text of %d bytes", n)
		}
		if n := len(e.Summary()); n > 2<<10 {
			t.Errorf("summary of %d bytes", n)
		}
		if n := len(signature.Chain(fmt.Errorf("why: %w", e))); n > 32<<10 {
			t.Errorf("chain of %d bytes", n)
		}
	}
	if got := errors.Unwrap(e).Error(); len(got) > 32<<10 || !strings.Contains(got, " more]") {
		t.Errorf("causes of %d bytes end with %q", len(got), got[max(0, len(got)-40):])
	}
	v := &signature.Verification{Digest: "sha256:a", Version: long}
	for range 2000 {
		v.Signers = append(v.Signers, signature.Signer{Keyring: "k", UserID: long, Reference: long, Location: long, Fit: signature.FitOther})
	}
	if n := len(v.String()); n > 4<<10 {
		t.Errorf("verification of %d bytes", n)
	}
}

// The end of a composite is not told of beside the end of its stores, which
// would name each of them once more for every composite around it.
func TestCompositeErrorsNameStoresOnce(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	store := must(signature.NewHTTPStore(s.URL, signature.HTTPOptions{}))
	nested := signature.Serial(signature.Parallel(store), signature.MemoryStore{})
	_, err := signature.NewVerifier([]*signature.Keyring{ring(t, newEd25519(keyTime).public(cert{}))}, signature.Serial(nested)).Verify(t.Context(), digestA)
	if err == nil || !errors.Is(err, signature.ErrNotFound) {
		t.Fatal(err)
	}
	if text := signature.Chain(err); strings.Count(text, s.URL) != 1 || strings.Contains(text, "wrapping") {
		t.Error(text)
	}
	var e *signature.Error
	if errors.As(err, &e); len(e.Attempts) != 5 {
		t.Errorf("%d attempts", len(e.Attempts))
	}

	// With nothing else to tell, it is told.
	_, err = signature.NewVerifier([]*signature.Keyring{ring(t, newEd25519(keyTime).public(cert{}))}, signature.Serial(signature.Serial())).Verify(t.Context(), digestA)
	checktest.Has(t, signature.Chain(err), "serial signature store wrapping no stores: no more signatures to check")
}

// What fails behind a redirect is told with the signature's own URL, once, and
// without the secrets of where it led.
func TestRedirectErrorsNameTheStore(t *testing.T) {
	dead := httptest.NewServer(nil)
	dead.Close()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, dead.URL+"/bucket/key?token=secret", http.StatusFound)
	}))
	defer s.Close()
	got := collect(t.Context(), must(signature.NewHTTPStore(s.URL, signature.HTTPOptions{})), digestA)
	if want := "[unable to retrieve signature from " + s.URL + "/sha256=" + digestA[7:] + "/signature-1: redirected to " + dead.URL + ": "; len(got) != 3 || !strings.HasPrefix(got[0], want) || strings.Contains(fmt.Sprint(got), "secret") {
		t.Errorf("%q, want %s", got, want)
	}
}

// panicking panics at a point of its life.
type panicking struct {
	in    string // "call", "loop", "text" or "cleanup"
	first []byte // yielded before
}

func (p panicking) String() string {
	if p.in == "text" {
		panic("no text")
	}
	return "panicking"
}

func (p panicking) Candidates(context.Context, string) iter.Seq2[signature.Candidate, error] {
	return unplaced(p.signatures())
}

func (p panicking) signatures() iter.Seq2[[]byte, error] {
	if p.in == "call" {
		panic("no signatures")
	}
	return func(yield func([]byte, error) bool) {
		if p.in == "cleanup" {
			defer func() { panic("no end") }()
		}
		if p.first != nil && !yield(p.first, nil) {
			return
		}
		panic("out of order")
	}
}

// A store that panics is a store that fails: the process lives, and the other
// stores are asked.
func TestPanickingStores(t *testing.T) {
	k := newEd25519(keyTime)
	rings := []*signature.Keyring{ring(t, k.public(cert{}))}
	good := signature.MemoryStore{digestA: {k.message(msg{})}}
	for _, in := range []string{"call", "loop", "text"} {
		bad := panicking{in: in}
		for name, store := range map[string]signature.Store{
			"serial": signature.Serial(bad, good), "parallel": signature.Parallel(bad, good), "nested": signature.Parallel(signature.Serial(signature.Parallel(bad, bad)), good),
		} {
			if _, err := signature.NewVerifier(rings, store).Verify(t.Context(), digestA); err != nil {
				t.Errorf("%s, %s: %v", in, name, err)
			}
		}
		for name, store := range map[string]signature.Store{"alone": bad, "serial": signature.Serial(bad), "parallel": signature.Parallel(bad, bad)} {
			_, err := signature.NewVerifier(rings, store).Verify(t.Context(), digestA)
			var caught *clusterapi.PanicError
			if !errors.As(err, &caught) || len(caught.Stack) == 0 || !strings.Contains(err.Error(), "panic: ") {
				t.Errorf("%s, %s: %v", in, name, err)
			}
		}
	}
	// What a store does behind its end does not undo a success.
	checktest.Good(t, checktest.Err(
		signature.NewVerifier(rings, panicking{"cleanup", k.message(msg{})}).Verify(t.Context(), digestA)))
	// A consumer's own panic is its own.
	func() {
		defer func() {
			checktest.Equal(t, "mine", recover(), "recovered")
		}()
		for range signature.Serial(good).Candidates(t.Context(), digestA) {
			panic("mine")
		}
	}()
}

// endlessStore never runs out of failures.
type endlessStore struct{ until int }

func (endlessStore) String() string { return "endless" }

func (e endlessStore) Candidates(context.Context, string) iter.Seq2[signature.Candidate, error] {
	return unplaced(e.signatures())
}

func (e endlessStore) signatures() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for i := range e.until {
			var err error
			sig := []byte("rubbish")
			if i%2 == 0 {
				sig, err = nil, fmt.Errorf("no. %d: %w", i, signature.ErrNotFound)
			}
			if !yield(sig, err) {
				return
			}
		}
	}
}

// Failures past the limit are counted; those that tell most are kept.
func TestAttemptsAreBounded(t *testing.T) {
	_, err := signature.NewVerifier([]*signature.Keyring{ring(t, newEd25519(keyTime).public(cert{}))}, endlessStore{5000}).Verify(t.Context(), digestA)
	var e *signature.Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	refused := 0
	for _, a := range e.Attempts {
		if a.Keyring != "" {
			refused++
		}
	}
	if len(e.Attempts) != maxAttempts || e.Omitted != 5000-maxAttempts || refused != maxAttempts {
		t.Errorf("%d attempts, %d of them refusals, %d omitted", len(e.Attempts), refused, e.Omitted)
	}
	checktest.Has(t, errors.Unwrap(err).Error(), fmt.Sprintf("and %d more", e.Omitted))
}

// withHistory is a cluster whose history names digests, the newest first.
func withHistory(t testing.TB, digests ...string) *memory.Cluster {
	t.Helper()
	cv := object(t, "apiVersion: config.openshift.io/v1\nkind: ClusterVersion\nmetadata: {name: version}\nspec: {clusterID: 11111111-1111-1111-1111-111111111111}\n")
	var history []any
	for _, d := range digests {
		history = append(history, map[string]any{"image": "quay.example/release@" + d, "state": "Completed", "version": "1.0.0", "verified": true, "startedTime": "2024-01-01T00:00:00Z", "completionTime": "2024-01-01T00:00:00Z"})
	}
	cv.Object["status"] = map[string]any{"history": history}
	api := memory.NewOpenShift(memory.Options{})
	checktest.OK(t, api.Load(cv))
	return api
}

// The signatures of the releases that a cluster runs and ran are never dropped,
// then those that verified last are kept, and what only the ConfigMap knows goes
// first, wherever its digest sorts.
func TestKeptDigests(t *testing.T) {
	name := func(prefix string, i int) string { return fmt.Sprintf("sha256:%s%03d", prefix, i) }
	many := func(prefix string, n int) map[string][][]byte {
		out := map[string][][]byte{}
		for i := range n {
			out[name(prefix, i)] = [][]byte{[]byte("x")}
		}
		return out
	}
	has := func(api clusterapi.Reader, digest string) bool {
		return persisted(t, api).BinaryData[strings.Replace(digest, ":", "-", 1)+"-0"] != nil
	}

	running, before := "sha256:zzz", "sha256:zzy"
	api := withHistory(t, running, before)
	save(t, api, map[string][][]byte{running: {[]byte("r")}, before: {[]byte("b")}})
	save(t, api, many("a", 70))
	if !has(api, running) || !has(api, before) || len(persisted(t, api).BinaryData) != 64 {
		t.Errorf("%d kept; running %v, before %v", len(persisted(t, api).BinaryData), has(api, running), has(api, before))
	}

	// Those of this process come before the ones of the ConfigMap, which all
	// sort before them.
	api = withHistory(t, running)
	save(t, api, many("a", 64))
	p := many("m", 40)
	p[running] = [][]byte{[]byte("r")}
	save(t, api, p)
	for digest := range p {
		if !has(api, digest) {
			t.Errorf("%s is missing", digest)
		}
	}
	if !has(api, name("a", 22)) || has(api, name("a", 23)) {
		t.Error("the rest is not filled up in the order of the digests")
	}

	// Of those of this process, the last success stays.
	api = withHistory(t, running)
	found := many("p", 66)
	err := newPersister(cluster.PersistOptions{
		API: api, Signatures: func() map[string][][]byte { return found },
		Recent: func() []string {
			order := slices.Sorted(maps.Keys(found))
			slices.Reverse(order)
			return order
		},
	}).Save(t.Context())
	if err != nil || !has(api, name("p", 65)) || !has(api, name("p", 2)) || has(api, name("p", 1)) || has(api, name("p", 0)) {
		t.Error(err, slices.Sorted(maps.Keys(persisted(t, api).BinaryData)))
	}

	// A history of more than the limit is kept whole.
	var all []string
	of := map[string][][]byte{}
	for i := range 80 {
		all = append(all, name("h", i))
		of[name("h", i)] = [][]byte{[]byte("x")}
	}
	api = withHistory(t, all...)
	save(t, api, of)
	checktest.Equal(t, 80, len(persisted(t, api).BinaryData), "of a history of 80 kept")
	// What an object cannot hold goes all the same, the oldest entry first.
	for digest := range of {
		of[digest] = [][]byte{make([]byte, 20<<10)}
	}
	api = withHistory(t, all...)
	save(t, api, of)
	if n := len(persisted(t, api).BinaryData); n != 33 || !has(api, all[0]) || !has(api, all[32]) {
		t.Errorf("%d kept", n)
	}
}

// Where the history cannot be read nothing is dropped, since it could be what
// the cluster runs.
func TestNothingIsDroppedWithoutTheHistory(t *testing.T) {
	api := &noVersion{Cluster: withHistory(t)}
	of := map[string][][]byte{}
	for i := range 64 {
		of[fmt.Sprintf("sha256:%03d", i)] = [][]byte{[]byte("x")}
	}
	save(t, api, of) // fits: the history is not asked for
	of["sha256:zzz"] = [][]byte{[]byte("x")}
	err := newPersister(cluster.PersistOptions{API: api, Signatures: found(of)}).Save(t.Context())
	if !errors.Is(err, errNoVersion) || persisted(t, api).BinaryData["sha256-zzz-0"] != nil {
		t.Errorf("%v", err)
	}
}

var errNoVersion = errors.New("no ClusterVersion today")

// noVersion is a cluster whose ClusterVersion cannot be read.
type noVersion struct{ *memory.Cluster }

func (c *noVersion) Get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	if gvk.Kind == "ClusterVersion" {
		return nil, errNoVersion
	}
	return c.Cluster.Get(ctx, gvk, key)
}

// The order of the last success is that of the verifier, remembered ones
// included.
func TestRecent(t *testing.T) {
	k := newEd25519(keyTime)
	v := signature.NewVerifier([]*signature.Keyring{ring(t, k.public(cert{}))}, signature.MemoryStore{
		digestA: {k.message(msg{})}, digestB: {k.message(msg{body: statement(digestB)})},
	})
	for _, digest := range []string{digestA, digestB, digestA} {
		must(v.Verify(t.Context(), digest))
	}
	checktest.Same(t, []string{digestA, digestB}, v.Recent())
}

// panicLog is a handler of logs that panics.
type panicLog struct{ slog.Handler }

func (panicLog) Handle(context.Context, slog.Record) error { panic("no log") }

// Neither what it saves nor its log ends a persister, nor does an API server
// that does not answer.
func TestPersisterSurvives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		hang := memory.New(memory.Options{Intercept: func(ctx context.Context, _ memory.Call, do func(context.Context) error) error {
			if calls++; calls == 1 {
				<-ctx.Done()
				return ctx.Err()
			}
			return do(ctx)
		}})
		asked := 0
		p := newPersister(cluster.PersistOptions{
			API: hang, Interval: time.Minute, Logger: slog.New(panicLog{slog.DiscardHandler}),
			Signatures: func() map[string][][]byte {
				if asked++; asked == 2 {
					panic("no signatures")
				}
				return map[string][][]byte{digestA: {[]byte("x")}}
			},
		})
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Second)
		defer cancel()
		if err := p.Run(ctx); !errors.Is(err, context.DeadlineExceeded) || asked < 3 {
			t.Errorf("%v after %d", err, asked)
		}
		checktest.Equal(t, 1, len(persisted(t, hang).BinaryData), "nothing saved")
	})
}

func TestIdentity(t *testing.T) {
	const release = "quay.io/openshift-release-dev/ocp-release"
	for _, tt := range []struct {
		identity           signature.Identity
		reference, version string
		ok                 bool
	}{
		{signature.Identity{}, "registry.access.redhat.com/rhel7:7.6", "4.18.15", true},
		{signature.Identity{}, "", "", true},
		{signature.Identity{Version: true}, release + ":4.18.15-x86_64", "4.18.15", true},
		{signature.Identity{Version: true}, release + ":4.18.15-x86_64", "", false},
		{signature.Identity{Version: true}, "registry.access.redhat.com/rhel7:7.6", "4.18.15", false},
		{signature.Identity{Repositories: []string{release}}, release + ":4.18.15-x86_64", "", true},
		{signature.Identity{Repositories: []string{release}}, release + ":4.18.15@" + digestA, "", true},
		{signature.Identity{Repositories: []string{release}}, release, "", true},
		{signature.Identity{Repositories: []string{release}}, release + "-nightly:4.18.15", "", false},
		{signature.Identity{Repositories: []string{release}}, "evil.example/" + release + ":4.18.15", "", false},
		{signature.Identity{Repositories: []string{release}}, "registry.access.redhat.com/rhel7:7.6", "", false},
		{signature.Identity{Repositories: []string{"a.example/b", "quay.io/*/ocp-release"}}, release + ":1", "", true},
		{signature.Identity{Repositories: []string{"quay.io/*"}}, release + ":1", "", false}, // not past a "/"
		{signature.Identity{Repositories: []string{"localhost:5000/a"}}, "localhost:5000/a", "", true},
		{signature.Identity{Repositories: []string{"localhost:5000/a"}}, "localhost:5000/a:1", "", true},
		{signature.Identity{Repositories: []string{release}, Version: true}, release + ":4.18.15-x86_64", "4.18.15", true},
		{signature.Identity{Repositories: []string{release}, Version: true}, release + ":4.18.14-x86_64", "4.18.15", false},
		{signature.Identity{Repositories: []string{release}, Version: true}, "quay.io/other:4.18.15", "4.18.15", false},
	} {
		err := tt.identity.Check(tt.reference, tt.version)
		checktest.Equal(t, tt.ok, err == nil, "%+v of %s as %q: %v", tt.identity, tt.reference, tt.version, err)
		var r *signature.Rejection
		if err != nil && (!errors.As(err, &r) || r.Reason != signature.WrongIdentity || !strings.Contains(err.Error(), tt.reference)) {
			t.Errorf("%+v: %v", tt.identity, err)
		}
	}
}

func TestFitOf(t *testing.T) {
	for _, tt := range []struct {
		reference, version string
		want               signature.Fit
	}{
		{"quay.io/o/r:4.18.15-x86_64", "4.18.15", signature.FitSame},
		{"quay.io/o/r:4.18.15-aarch64", "4.18.15", signature.FitSame},
		{"quay.io/o/r:4.18.15-s390x", "4.18.15", signature.FitSame},
		{"quay.io/o/r:4.18.15-ppc64le", "4.18.15", signature.FitSame},
		{"quay.io/o/r:4.18.15-multi", "4.18.15", signature.FitSame},
		{"quay.io/o/r:4.18.15-multi-x86_64", "4.18.15", signature.FitSame},
		{"quay.io/o/r:4.18.15", "4.18.15", signature.FitSame},
		{"quay.io/o/r:4.18.15@" + digestA, "4.18.15", signature.FitSame},
		{"localhost:5000/r:4.18.15", "4.18.15", signature.FitSame},
		{"quay.io/o/r:4.19.0-rc.1-x86_64", "4.19.0-rc.1", signature.FitSame},
		{"r.example/ocp/release:4.0.0-0.ci-2019-04-19-181452", "4.0.0-0.ci-2019-04-19-181452", signature.FitSame},
		{"quay.io/o/r:4.18.15_build1-x86_64", "4.18.15+build1", signature.FitSame},
		{"quay.io/o/r:4.19.0-rc.1-x86_64", "4.19.0", signature.FitOther},
		{"quay.io/o/r:4.18.15-x86_64", "4.18.1", signature.FitOther},
		{"quay.io/o/r:4.18.1-x86_64", "4.18.15", signature.FitOther},
		{"quay.io/o/r:4.18.15-other", "4.18.15", signature.FitOther},
		{"quay.io/o/r:latest", "4.18.15", signature.FitOther},
		{"quay.io/o/r", "4.18.15", signature.FitOther},
		{"quay.io/o/r@" + digestA, "4.18.15", signature.FitOther},
		{"4.18.15:5000/r", "5000/r", signature.FitOther},
		{"", "4.18.15", signature.FitOther},
		{"quay.io/o/r:4.18.15", "", signature.FitUnknown},
	} {
		checktest.Equal(t, tt.want, fitOf(tt.reference, tt.version), "%s of %q", tt.reference, tt.version)
	}
}

func named1(reference string) []byte {
	return must(signature.Body(digestA, reference, "test", sigTime))
}

// A verifier that wants names refuses signatures under others, remembered ones
// too, and takes another signature that fits.
func TestVerifierWantsAnIdentity(t *testing.T) {
	k := newEd25519(keyTime)
	image := "mirror.example/r@" + digestA
	verifier := func(i signature.Identity, references ...string) *signature.OpenPGP {
		store := signature.MemoryStore{}
		for _, r := range references {
			store[digestA] = append(store[digestA], k.message(msg{body: named1(r)}))
		}
		return newVerifier(signature.Options{
			Keyrings: []*signature.Keyring{ring(t, k.public(cert{}))}, Stores: []signature.Store{store}, Identity: i, Clock: clocktesting.NewFakePassiveClock(now),
		})
	}
	ask := func(v *signature.OpenPGP, version, want string) {
		t.Helper()
		got, err := v.VerifyRelease(t.Context(), signature.Digest(image), version)
		if want == "" {
			var r *signature.Rejection
			if !errors.As(err, &r) || r.Reason != signature.WrongIdentity || !strings.Contains(err.Error(), "is not accepted") {
				t.Errorf("version %q: %v, %v", version, got, err)
			}
			return
		}
		if err != nil || got.Signers[0].Reference != want || got.Version != version || got.Signers[0].Fit != fitOf(want, version) {
			t.Errorf("version %q: %+v, %v", version, got, err)
		}
	}

	// The zero value shows and refuses nothing.
	v := verifier(signature.Identity{}, "rhel.example/rhel7:7.6")
	for range 2 { // the second is remembered
		ask(v, "4.18.15", "rhel.example/rhel7:7.6")
		ask(v, "", "rhel.example/rhel7:7.6")
	}
	got, _ := v.VerifyRelease(t.Context(), signature.Digest(image), "4.18.15")
	if text := got.String(); !got.Cached || !strings.Contains(text, "signed 2022-06-01T12:00:00Z as rhel.example/rhel7:7.6 (which does not fit version 4.18.15), found in ") {
		t.Error(text)
	}
	if got, err := v.Verify(t.Context(), digestA); err != nil || got.Version != "" || got.Signers[0].Fit != signature.FitUnknown {
		t.Errorf("%+v, %v", got, err)
	}

	v = verifier(signature.Identity{Repositories: []string{"a.example/*"}, Version: true}, "b.example/r:4.18.15", "a.example/r:4.18.14", "a.example/r:4.18.15-x86_64")
	for range 2 {
		ask(v, "4.18.15", "a.example/r:4.18.15-x86_64")
		ask(v, "4.18.14", "a.example/r:4.18.14")
		ask(v, "4.18.13", "")
		ask(v, "", "")
	}
	checktest.Fails(t, checktest.Err(v.Verify(t.Context(), digestA)), "verified without a version")

	// Nothing matches a pattern that cannot be read.
	v = verifier(signature.Identity{Repositories: []string{"a.example/*", "["}}, "a.example/r:1")
	if _, err := v.Verify(t.Context(), digestA); !errors.Is(err, signature.ErrMisconfigured) || !strings.Contains(err.Error(), `"["`) {
		t.Error(err)
	}
}
