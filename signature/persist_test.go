package signature_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/signature/cluster"
)

var persistedKey = clusterapi.Key("openshift-config-managed", "signatures-managed")

// writes counts the writes to a cluster and fails some of them.
type writes struct {
	count atomic.Int64
	fail  func(n int, call memory.Call) error
}

func (w *writes) n() int { return int(w.count.Load()) }

func (w *writes) cluster() *memory.Cluster {
	return memory.NewOpenShift(memory.Options{Intercept: func(ctx context.Context, call memory.Call, do func(context.Context) error) error {
		if strings.EqualFold(call.Verb, "get") {
			return do(ctx)
		}
		n := int(w.count.Add(1))
		if w.fail != nil {
			if err := w.fail(n, call); err != nil {
				return err
			}
		}
		return do(ctx)
	}})
}

func found(of map[string][][]byte) func() map[string][][]byte {
	return func() map[string][][]byte { return of }
}

func persisted(t testing.TB, api clusterapi.Reader) *corev1.ConfigMap {
	t.Helper()
	cm := must(clusterapi.Get[corev1.ConfigMap](t.Context(), api, persistedKey))
	return cm
}

func save(t testing.TB, api clusterapi.ReadWriter, of map[string][][]byte) {
	t.Helper()
	checktest.OK(t, newPersister(cluster.PersistOptions{API: api, Signatures: found(of)}).Save(t.Context()))
}

func TestPersist(t *testing.T) {
	w := &writes{}
	api := w.cluster()
	a, b := "sha256-"+digestA[7:], "sha256-"+digestB[7:]

	save(t, api, nil)
	checktest.Equal(t, 0, w.n(), "wrote nothing into the cluster")
	save(t, api, map[string][][]byte{digestA: {[]byte("a0"), []byte("a1")}})
	cm := persisted(t, api)
	if diff := cmp.Diff(map[string][]byte{a + "-0": []byte("a0"), a + "-1": []byte("a1")}, cm.BinaryData); diff != "" || w.n() != 1 {
		t.Errorf("%d writes: %s", w.n(), diff)
	}
	checktest.Same(t, map[string]string{"release.openshift.io/verification-signatures": ""}, cm.Labels)

	// A process that starts again knows nothing: what is there stays.
	save(t, api, nil)
	save(t, api, map[string][][]byte{digestA: {[]byte("a0"), []byte("a1")}})
	checktest.Equal(t, 1, w.n(), "writes without a change")
	save(t, api, map[string][][]byte{digestB: {[]byte("b")}})
	if diff := cmp.Diff([]string{a + "-0", a + "-1", b + "-0"}, slices.Sorted(maps.Keys(persisted(t, api).BinaryData))); diff != "" || w.n() != 2 {
		t.Errorf("%d writes: %s", w.n(), diff)
	}
	// What verified replaces what was there for the same digest.
	save(t, api, map[string][][]byte{digestA: {[]byte("new")}})
	checktest.Same(t, map[string][]byte{a + "-0": []byte("new"), b + "-0": []byte("b")}, persisted(t, api).BinaryData)

	// Digests that cannot be keys are left out; the rest is written.
	save(t, api, map[string][][]byte{"a+b:c": {[]byte("x")}, "sha256:a=b": {[]byte("x")}, "": {[]byte("x")}, "sha256:" + strings.Repeat("a", 300): {[]byte("x")}, "sha256:none": nil, "sha256:Z_z": {[]byte("z")}})
	if got := persisted(t, api).BinaryData; string(got["sha256-Z_z-0"]) != "z" || len(got) != 3 {
		t.Errorf("%q", slices.Sorted(maps.Keys(got)))
	}

	// It is read again as any other ConfigMap with signatures.
	if got := collect(t.Context(), &cluster.ConfigMapStore{Reader: api}, digestB); len(got) != 2 || got[0] != "b" {
		t.Error(got)
	}
}

// Foreign content, broken values and other labels are written over.
func TestPersistCleans(t *testing.T) {
	w := &writes{}
	api := w.cluster()
	u := object(t, `
apiVersion: v1
kind: ConfigMap
metadata:
  name: signatures-managed
  namespace: openshift-config-managed
  labels: {other: label}
data: {a: b}
binaryData: {sha256-old-7: `+base64.StdEncoding.EncodeToString([]byte("old"))+`, rubbish: QQ==, sha256-bad-1: "%", sha256-empty-1: ""}
`)
	checktest.OK(t, api.Load(u))
	save(t, api, nil)
	save(t, api, nil)
	cm := persisted(t, api)
	if diff := cmp.Diff(map[string][]byte{"sha256-old-7": []byte("old")}, cm.BinaryData); diff != "" || w.n() != 1 || len(cm.Data) != 0 || len(cm.Labels) != 1 {
		t.Errorf("%d writes, %v, %v: %s", w.n(), cm.Labels, cm.Data, diff)
	}
}

func TestPersistLimits(t *testing.T) {
	many := func(from, to, size int) map[string][][]byte {
		out := map[string][][]byte{}
		for i := from; i < to; i++ {
			out[fmt.Sprintf("sha256:%03d", i)] = [][]byte{bytes.Repeat([]byte("x"), size)}
		}
		return out
	}
	api := (&writes{}).cluster()
	save(t, api, many(0, 60, 10))
	save(t, api, many(100, 110, 10))
	cm := persisted(t, api)
	if len(cm.BinaryData) != 64 || cm.BinaryData["sha256-109-0"] == nil || cm.BinaryData["sha256-053-0"] == nil || cm.BinaryData["sha256-054-0"] != nil {
		t.Errorf("%d digests: %v", len(cm.BinaryData), slices.Sorted(maps.Keys(cm.BinaryData)))
	}
	api = (&writes{}).cluster()
	save(t, api, many(0, 64, 50<<10))
	cm = persisted(t, api)
	size := 0
	for k, v := range cm.BinaryData {
		size += len(k) + base64.StdEncoding.EncodedLen(len(v))
	}
	if size > 900<<10 || size < 800<<10 {
		t.Errorf("%d bytes of %d digests", size, len(cm.BinaryData))
	}
}

// Smaller limits can be set.
func TestPersistSmallerLimits(t *testing.T) {
	of := map[string][][]byte{"sha256:a": {[]byte("a")}, "sha256:b": {[]byte("b")}, "sha256:c": {[]byte("c")}}
	for want, o := range map[int]cluster.PersistOptions{2: {MaxDigests: 2}, 1: {MaxBytes: len("sha256-a-0") + 4}, 3: {}} {
		o.API, o.Signatures = (&writes{}).cluster(), found(of)
		checktest.OK(t, newPersister(o).Save(t.Context()))
		checktest.Equal(t, want, len(persisted(t, o.API).BinaryData), "kept")
	}
}

func TestPersistRetries(t *testing.T) {
	resource := schema.GroupResource{Resource: "configmaps"}
	conflict := apierrors.NewConflict(resource, "signatures-managed", errors.New("changed"))
	exists := apierrors.NewAlreadyExists(resource, "signatures-managed")
	for _, tt := range []struct {
		name   string
		err    error
		times  int
		writes int
		ok     bool
	}{
		{"conflicts", conflict, 2, 3, true},
		{"already exists", exists, 1, 2, true},
		{"conflicts without an end", conflict, 100, 5, false},
		{"another failure", errors.New("down"), 1, 1, false},
	} {
		checktest.Bubble(t, tt.name, func(t *testing.T) {
			w := &writes{fail: func(n int, _ memory.Call) error {
				if n <= tt.times {
					return tt.err
				}
				return nil
			}}
			err := newPersister(cluster.PersistOptions{API: w.cluster(), Signatures: found(map[string][][]byte{digestA: {[]byte("a")}})}).Save(t.Context())
			if (err == nil) != tt.ok || w.n() != tt.writes || !tt.ok && !errors.Is(err, tt.err) {
				t.Errorf("%d writes: %v", w.n(), err)
			}
		})
	}

	// Somebody else creates the object meanwhile: both contents survive.
	w := &writes{}
	var api *memory.Cluster
	w.fail = func(n int, call memory.Call) error {
		if n == 1 {
			u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "binaryData": map[string]any{"sha256-other-0": "QQ=="}}}
			u.SetNamespace(persistedKey.Namespace)
			u.SetName(persistedKey.Name)
			return errors.Join(api.Load(u), nil)
		}
		return nil
	}
	api = w.cluster()
	save(t, api, map[string][][]byte{digestA: {[]byte("a")}})
	checktest.Equal(t, 2, len(persisted(t, api).BinaryData), "len(persisted(t, api).BinaryData)")
}

// At once, at each interval, and a last time after the end.
func TestPersisterRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &writes{fail: func(n int, _ memory.Call) error {
			if n == 4 {
				return errors.New("down")
			}
			return nil
		}}
		api := w.cluster()
		digests := 0
		var log bytes.Buffer
		p := newPersister(cluster.PersistOptions{
			API: api, Interval: time.Minute, Logger: slog.New(slog.NewTextHandler(&log, nil)), Clock: clock.RealClock{},
			Signatures: func() map[string][][]byte {
				digests++
				return map[string][][]byte{fmt.Sprintf("sha256:%d", digests): {[]byte("x")}}
			},
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.Run(ctx) }()
		for i, after := range []time.Duration{time.Second, time.Minute, time.Minute} {
			time.Sleep(after)
			synctest.Wait()
			checktest.Equal(t, i+1, w.n(), "writes")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) || w.n() != 5 {
			t.Errorf("%d writes: %v", w.n(), err)
		}
		if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `level=WARN msg="Unable to save signatures: down"`) {
			t.Error(got)
		}
		checktest.Equal(t, 4, len(persisted(t, api).BinaryData), "the last write is missing")
	})

	// A last write that hangs does not keep the program.
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		api := memory.NewOpenShift(memory.Options{Intercept: func(ctx context.Context, _ memory.Call, _ func(context.Context) error) error {
			<-ctx.Done()
			return ctx.Err()
		}})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		start := time.Now()
		err := newPersister(cluster.PersistOptions{API: api, Signatures: found(nil), Logger: slog.New(slog.NewTextHandler(&log, nil))}).Run(ctx)
		if !errors.Is(err, context.Canceled) || time.Since(start) != 30*time.Second {
			t.Errorf("%v after %s", err, time.Since(start))
		}
		checktest.Has(t, log.String(), "Unable to save signatures during final flush: context deadline exceeded")
	})
}

// A release that was verified once is verified again after a restart, with all
// stores gone.
func TestPersistedSignaturesSurviveARestart(t *testing.T) {
	k := newEd25519(keyTime)
	rings := []*signature.Keyring{ring(t, k.public(cert{}))}
	api := memory.NewOpenShift(memory.Options{})
	first := signature.NewVerifier(rings, &cluster.ConfigMapStore{Reader: api}, signature.MemoryStore{digestA: {k.message(msg{})}})
	must(first.Verify(t.Context(), digestA))
	checktest.OK(t, newPersister(cluster.PersistOptions{API: api, Signatures: first.Signatures}).Save(t.Context()))
	second := signature.NewVerifier(rings, &cluster.ConfigMapStore{Reader: api})
	v := must(second.Verify(t.Context(), digestA))
	if want := "config map openshift-config-managed/signatures-managed key sha256-" + digestA[7:] + "-0"; v.Signers[0].Location != want {
		t.Errorf("found in %s", v.Signers[0].Location)
	}

	// It is not trusted: one that is altered there is refused.
	cm := persisted(t, api)
	for _, v := range cm.BinaryData {
		v[len(v)-1] ^= 1
	}
	cm.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
	u := must(clusterapi.ToUnstructured(cm))
	must(api.Update(t.Context(), u, clusterapi.UpdateOptions{}))
	checktest.Fails(t, checktest.Err(
		signature.NewVerifier(rings, &cluster.ConfigMapStore{Reader: api}).Verify(t.Context(), digestA)),
		"an altered signature verified")
}

func TestChain(t *testing.T) {
	inner := &signature.Error{Digest: "sha256:a", Keyrings: []string{"k"}, Attempts: []signature.Attempt{{Err: errors.New("x")}, {Err: errors.New("y")}, {Err: errors.New("x")}}}
	for _, tt := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{errors.New("a"), "a"},
		{fmt.Errorf("a: %w", errors.New("b")), "a: b"},
		{inner, "unable to verify sha256:a against keyrings: k: x\n[x, y]"},
		{fmt.Errorf("The update cannot be verified: %w", inner), "The update cannot be verified: unable to verify sha256:a against keyrings: k: x\n[x, y]"},
		{errors.Join(errors.New("a"), inner), "a\nunable to verify sha256:a against keyrings: k: x"},
		{&signature.Error{Digest: "sha256:a", Err: signature.ErrNoDigest}, signature.ErrNoDigest.Error()},
	} {
		checktest.Equal(t, tt.want, signature.Chain(tt.err), "signature.Chain(tt.err)")
	}
}

// TestPersisterProcess: the persister saves in virtual time, at each interval
// and again after a conflict.
func TestPersisterProcess(t *testing.T) {
	w := &writes{fail: func(n int, _ memory.Call) error {
		if n == 2 {
			return apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "signatures-managed", errors.New("changed"))
		}
		return nil
	}}
	api := w.cluster()
	digests := 0
	p := newPersister(cluster.PersistOptions{Interval: time.Minute, Signatures: func() map[string][][]byte {
		digests++
		return map[string][][]byte{fmt.Sprintf("sha256:%d", digests): {[]byte("x")}}
	}})
	c := reconcile.NewClock(time.Unix(0, 0))
	v := reconcile.NewVirtual(reconcile.VirtualOptions{Cluster: api, Clock: c}, p.Process())
	defer v.Close()
	checktest.OK(t, v.RunUntil(c.Now().Add(150*time.Second)))
	if got := len(persisted(t, api).BinaryData); w.n() != 4 || got != 3 {
		t.Errorf("%d writes, %d signatures are kept", w.n(), got)
	}
}
