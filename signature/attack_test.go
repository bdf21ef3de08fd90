package signature_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/signature/cluster"
)

// Attacks that are not in a message, but in where it comes from. Bodies without
// an end, signatures without an end, bombs and loops: TestLimitsOnWhatIsRead.
func TestStoreAttacks(t *testing.T) {
	k := newEd25519(keyTime)
	r := ring(t, k.public(cert{}))
	good := k.message(msg{})
	rings := []*signature.Keyring{r}
	prefix := "sha256-" + digestA[7:]
	mapWith := func(data map[string]any) fakeReader {
		return fakeReader{"ConfigMap openshift-config-managed/x": {"apiVersion": "v1", "kind": "ConfigMap", "binaryData": data,
			"metadata": map[string]any{"name": "x", "namespace": "openshift-config-managed", "labels": map[string]any{cluster.ConfigMapLabel: ""}}}}
	}

	t.Run("rollback shows when and what was signed", func(t *testing.T) {
		old := k.message(msg{sig: sig{created: keyTime.AddDate(0, 0, 1)}, body: must(signature.Body(digestA, "quay.io/openshift-release-dev/ocp-release:4.1.0-x86_64", "x", sigTime))})
		v, err := verify(t, r, old, signature.Options{})
		if err != nil || !v.Signers[0].Created.Equal(keyTime.AddDate(0, 0, 1)) || !strings.HasSuffix(v.Signers[0].Reference, ":4.1.0-x86_64") {
			t.Error(v, err)
		}
	})
	t.Run("poisoned config map", func(t *testing.T) {
		reader := mapWith(map[string]any{prefix + "-1": "!", prefix + "-2": 5, prefix + "-3": base64.StdEncoding.EncodeToString([]byte("rubbish")), prefix + "-4": base64.StdEncoding.EncodeToString(k.message(msg{body: statement(digestB)}))})
		checktest.Fails(t, checktest.Err(
			signature.NewVerifier(rings, &cluster.ConfigMapStore{Reader: reader}).Verify(t.Context(), digestA)),
			"verified")
		checktest.Good(t, checktest.Err(
			signature.NewVerifier(rings, &cluster.ConfigMapStore{Reader: reader},
				signature.MemoryStore{digestA: {good}}).Verify(t.Context(), digestA)))
	})
	t.Run("a store that changes what it gave", func(t *testing.T) {
		given := bytes.Clone(good)
		v := signature.NewVerifier(rings, signature.MemoryStore{digestA: {given}})
		must(v.Verify(t.Context(), digestA))
		given[0] = 0
		if kept := v.Signatures()[digestA][0]; !bytes.Equal(kept, good) {
			t.Error("what is remembered has changed")
		}
	})
	t.Run("two stores of nine rubbish signatures each do not hide a good one", func(t *testing.T) {
		rubbish := slices.Repeat([][]byte{[]byte("rubbish")}, 9)
		evil := signature.MemoryStore{digestA: rubbish}
		for _, store := range []signature.Store{signature.Serial(evil, evil, signature.MemoryStore{digestA: {good}}), signature.Parallel(evil, evil, signature.MemoryStore{digestA: {good}})} {
			checktest.Good(t, checktest.Err(signature.NewVerifier(rings, store).Verify(t.Context(), digestA)))
		}
	})
	checktest.Bubble(t, "a hanging list of config maps does not starve others", func(t *testing.T) {
		start := time.Now()
		hang := hangingReader{}
		_, err := signature.NewVerifier(rings, &cluster.ConfigMapStore{Reader: hang}, signature.MemoryStore{digestA: {good}}).Verify(t.Context(), digestA)
		checktest.OK(t, err)
		checktest.Equal(t, 30*time.Second, time.Since(start), "after")
		_, err = signature.NewVerifier(rings, &cluster.ConfigMapStore{Reader: hang, Timeout: time.Second}).Verify(t.Context(), digestA)
		if err == nil || !strings.Contains(signature.Chain(err), "unable to list config maps in") || time.Since(start) != 31*time.Second {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
		// What a ClusterVersion demands cannot be gone around, but it ends.
		_, err = signature.NewVerifier(rings, &cluster.ClusterVersionStore{Reader: hang}, signature.MemoryStore{digestA: {good}}).Verify(t.Context(), digestA)
		if err == nil || !strings.Contains(signature.Chain(err), "unable to read spec.signatureStores") || time.Since(start) != 61*time.Second {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
	})
}

// hangingReader answers when it is no longer waited for.
type hangingReader struct{}

func (hangingReader) Get(ctx context.Context, _ schema.GroupVersionKind, _ types.NamespacedName) (*unstructured.Unstructured, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (hangingReader) List(ctx context.Context, _ schema.GroupVersionKind, _ clusterapi.ListOptions) (*unstructured.UnstructuredList, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// endless is a body without an end, which counts what is read.
type endless struct{ read *atomic.Int64 }

func (e endless) Read(p []byte) (int, error) {
	clear(p)
	e.read.Add(int64(len(p)))
	return len(p), nil
}
func (e endless) Close() error { return nil }

// endlessFS holds one file without an end.
type endlessFS struct{ endless }

func (e endlessFS) Open(string) (fs.File, error) { return endlessFile(e), nil }
func (e endlessFS) Stat(name string) (fs.FileInfo, error) {
	return must(fs.Stat(fstest.MapFS{"x": {}}, "x")), nil
}

type endlessFile struct{ endless }

func (e endlessFile) Stat() (fs.FileInfo, error) {
	return must(fs.Stat(fstest.MapFS{"x": {}}, "x")), nil
}

// What is read and kept stays within the limits, however much is offered:
// bytes are counted, not sampled, and so is all that is allocated.
func TestLimitsOnWhatIsRead(t *testing.T) {
	var read atomic.Int64
	allocated := func(f func()) uint64 {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	server := func(body func(hops *atomic.Int64) io.ReadCloser, header http.Header, status int) (signature.Store, *atomic.Int64) {
		hops := &atomic.Int64{}
		return must(signature.NewHTTPStore("http://h.example", signature.HTTPOptions{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			hops.Add(1)
			return &http.Response{StatusCode: status, Header: header.Clone(), Body: body(hops), Request: r, ContentLength: -1}, nil
		})})), hops
	}
	gigabyte := func(*atomic.Int64) io.ReadCloser {
		return io.NopCloser(io.LimitReader(endless{&read}, 1<<30))
	}
	small := func(*atomic.Int64) io.ReadCloser { return io.NopCloser(strings.NewReader("x")) }
	huge, hugeAsked := server(gigabyte, http.Header{}, 200)
	missing, missingAsked := server(gigabyte, http.Header{}, 404)
	failing, failingAsked := server(gigabyte, http.Header{}, 503)
	packed, packedAsked := server(gigabyte, http.Header{"Content-Encoding": {"gzip"}}, 200)
	many, manyAsked := server(small, http.Header{}, 200)
	loop, loopAsked := server(small, http.Header{"Location": {"/"}}, 302)
	file := &signature.FileStore{FS: endlessFS{endless{&read}}, Name: "endless"}

	const perRequest = 51200 + 64<<10 // the limit, and what a buffer may read ahead
	for _, tt := range []struct {
		name  string
		store signature.Store
		asked *atomic.Int64
		most  int64 // requests
	}{
		{"a body of 1 GiB", huge, hugeAsked, 9}, {"a body of 1 GiB behind 404", missing, missingAsked, 1},
		{"a body of 1 GiB behind 503", failing, failingAsked, 9}, {"a body that claims to be compressed", packed, packedAsked, 9},
		{"endless signatures", many, manyAsked, 9}, {"endless redirects", loop, loopAsked, 8}, {"endless files", file, nil, 9},
	} {
		t.Run(tt.name, func(t *testing.T) {
			read.Store(0)
			n := allocated(func() {
				k := 0
				for range tt.store.Candidates(t.Context(), digestA) {
					if k++; k > 20 {
						t.Fatal("no end")
					}
				}
			})
			if tt.asked != nil && tt.asked.Load() > tt.most {
				t.Errorf("%d requests, more than %d", tt.asked.Load(), tt.most)
			}
			if got := read.Load(); got > tt.most*perRequest {
				t.Errorf("%d bytes read", got)
			}
			if n > 4<<20 {
				t.Errorf("%d bytes allocated", n)
			}
		})
	}

	// Memory of a bomb does not grow with the bomb.
	k := newEd25519(keyTime)
	r := ring(t, k.public(cert{}))
	for _, size := range []int{2 << 20, 64 << 20} {
		bomb := compressed(cat(onePass(0, 8, 22, k.id, 1), pkt(11, literalBody('b', "", bytes.Repeat([]byte{' '}, size)))))
		v := newVerifier(signature.Options{Keyrings: []*signature.Keyring{r}, Stores: []signature.Store{signature.MemoryStore{digestA: {bomb}}}, Clock: clocktesting.NewFakePassiveClock(now)})
		if n := allocated(func() {
			checktest.Fails(t, checktest.Err(v.Verify(context.Background(), digestA)), "verified")
		}); n > 2<<20 {
			t.Errorf("a bomb of %d bytes: %d allocated", size, n)
		}
	}
}

// Each limit can be set, and says so when it is reached.
func TestLimitsCanBeSet(t *testing.T) {
	asked := 0
	server := serve(func(w http.ResponseWriter, _ *http.Request) { asked++; fmt.Fprint(w, "four") })
	server.MaxSignatures, server.MaxSignature = 2, 3
	files := fstest.MapFS{}
	data := map[string]any{}
	for n := 1; n < 9; n++ {
		files[fmt.Sprintf("sha256=%s/signature-%d", digestA[7:], n)] = &fstest.MapFile{Data: []byte("four")}
		data[fmt.Sprintf("sha256-%s-%d", digestA[7:], n)] = "QQ=="
	}
	reader := fakeReader{"ConfigMap openshift-config-managed/x": {"binaryData": data,
		"metadata": map[string]any{"name": "x", "namespace": "openshift-config-managed", "labels": map[string]any{cluster.ConfigMapLabel: ""}}}}
	for _, tt := range []struct {
		store signature.Store
		want  []string
	}{
		{must(signature.NewHTTPStore("http://h.example", server)), []string{"more than 3 bytes", "more than 3 bytes", "has been asked for 2 signatures"}},
		{&signature.FileStore{FS: files, MaxSignatures: 2, MaxSignature: 3}, []string{"more than 3 bytes", "more than 3 bytes", "has been asked for 2 signatures"}},
		{&cluster.ConfigMapStore{Reader: reader, MaxSignatures: 2}, []string{"A", "A", "than the limit of 2"}},
	} {
		got := collect(t.Context(), tt.store, digestA)
		if len(got) != len(tt.want) {
			t.Errorf("%s: %q", tt.store, got)
			continue
		}
		for i := range got {
			checktest.Has(t, got[i], tt.want[i])
		}
	}
	checktest.Equal(t, 2, asked, "requests")
	hops := 0
	none := signature.HTTPOptions{DisableRedirects: true, Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		hops++
		return &http.Response{StatusCode: 302, Header: http.Header{"Location": {"/"}}, Body: http.NoBody, Request: r}, nil
	})}
	if got := collect(t.Context(), must(signature.NewHTTPStore("http://h.example", none)), digestA); hops != 2 || !strings.Contains(got[0], "redirect") {
		t.Errorf("%d requests: %v", hops, got)
	}
	if _, err := verify(t, ring(t, newEd25519(keyTime).public(cert{})), make([]byte, 11), signature.Options{MaxMessage: 10}); err == nil || !strings.Contains(cause(err).Error(), "limit of 10 bytes") {
		t.Error(err)
	}
}

// Every single bit of a message, flipped: what still verifies says the very
// same thing about the very same digest.
func TestEveryBit(t *testing.T) {
	k := newEd25519(keyTime)
	r := ring(t, k.public(cert{}))
	for name, good := range map[string][]byte{"plain": k.message(msg{}), "text": k.message(msg{sig: sig{typ: 1}}), "compressed": compressed(k.message(msg{}))} {
		want, err := verify(t, r, good, signature.Options{})
		if err != nil {
			t.Fatal(cause(err))
		}
		step := 1
		if testing.Short() {
			step = 7
		}
		survived := 0
		for bit := 0; bit < 8*len(good); bit += step {
			altered := bytes.Clone(good)
			altered[bit/8] ^= 1 << (bit % 8)
			v := newVerifier(signature.Options{Keyrings: []*signature.Keyring{r}, Clock: clocktesting.NewFakePassiveClock(now),
				Stores: []signature.Store{signature.MemoryStore{digestA: {altered}, digestB: {altered}}}})
			if got, err := v.Verify(t.Context(), digestA); err == nil {
				survived++
				checktest.Equal(t, fmt.Sprint(want), fmt.Sprint(got), "%s, bit %d: %s", name, bit, got)
			}
			if _, err := v.Verify(t.Context(), digestB); err == nil {
				t.Fatalf("%s, bit %d: another digest verified", name, bit)
			}
		}
		if survived > 8*len(good)/10 {
			t.Errorf("%s: %d of %d altered messages verified", name, survived, 8*len(good))
		}
	}
}
