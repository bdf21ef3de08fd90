package sigstore_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"

	"github.com/clusterupdate/clusterupdate/internal/limit"
	"github.com/clusterupdate/clusterupdate/internal/limittest"
	"github.com/clusterupdate/clusterupdate/internal/oci"
	"github.com/clusterupdate/clusterupdate/internal/oci/ocitest"
	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/signature/sigstore"
)

// refused wants a verification to fail by a limit of a field, or, with an empty field,
// by an error with a text.
func refused(t *testing.T, p *sigstore.Policy, src sigstore.Source, field, text string) {
	t.Helper()
	v, err := p.Verify(t.Context(), repo+"@"+digestA, src)
	if err == nil {
		t.Fatalf("verified: %v", v)
	}
	if len(err.Error()) > 4<<10 {
		t.Errorf("text of %d bytes", len(err.Error()))
	}
	if past, ok := errors.AsType[*limit.LimitError](err); field != "" && (!ok || past.Limit != field) {
		t.Errorf("got %v, want the limit %q", err, field)
	}
	checktest.Has(t, signature.Chain(err), text)
}

// pairs yields the same again and again.
type pairs struct {
	n     int
	a     sigstore.Attachment
	err   error
	count *int64
}

func (p pairs) Attachments(context.Context, string) iter.Seq2[sigstore.Attachment, error] {
	return func(yield func(sigstore.Attachment, error) bool) {
		for range p.n {
			if *p.count++; !yield(p.a, p.err) {
				return
			}
		}
	}
}

func (pairs) String() string { return "pairs" }

func TestLimits(t *testing.T) {
	good := attach(ed(), payload(digestA, named))
	foreign := attach(p256(), good.Payload)
	of := func(text string, key string) sigstore.MemorySource {
		return sigstore.MemorySource{digestA: {annotated(good, map[string]string{key: text})}}
	}

	// Many names for one manifest.
	many := ocitest.NewLayout()
	image := signed(many, tagOf(digestA), many.Blob("application/octet-stream", []byte("x")))
	// A short index of large manifests.
	large := ocitest.NewLayout()
	blank := ocitest.Named(large.Blob(oci.TypeManifest, bytes.Repeat([]byte(" "), 4<<20)), tagOf(digestA))
	for range 64 {
		many.Write(image)
		large.Write(blank)
	}
	manySource, fewSource, largeSource := fromFiles(t, many, sigstore.Limits{}), fromFiles(t, many, sigstore.Limits{Candidates: 3}), fromFiles(t, large, sigstore.Limits{})
	// Signatures of images that are served.
	serve := func(layers ...oci.Descriptor) (*store, sigstore.Source) {
		l := ocitest.NewLayout()
		layer(l, good)
		layer(l, foreign)
		signed(l, tagOf(digestA), layers...)
		s := storeOf(l)
		return s, fromStore(s, sigstore.Limits{})
	}
	var list []oci.Descriptor
	for range 33 {
		list = append(list, layer(ocitest.NewLayout(), foreign))
	}
	layers, layersSource := serve(list...)
	names := map[string]string{sigstore.SignatureAnnotation: good.Annotations[sigstore.SignatureAnnotation]}
	for i := range 64 {
		names[fmt.Sprint(i)] = ""
	}
	_, labels := serve(layer(ocitest.NewLayout(), sigstore.Attachment{Payload: good.Payload, Annotations: names}))
	_, body := serve(layer(ocitest.NewLayout(), attach(ed(), bytes.Repeat([]byte(" "), 64<<10+1))))
	itemsLayout := ocitest.NewLayout()
	itemsLayout.Write(ocitest.Named(itemsLayout.Blob("", []byte(`{"layers":[`+strings.Repeat("{},", 128<<10)+`{}]}`)), tagOf(digestA)))
	items := fromStore(storeOf(itemsLayout), sigstore.Limits{})

	cert := fulcioLeaf(keep)
	roots := x509.NewCertPool()
	roots.AddCert(rootCert)
	fulcio := &sigstore.Policy{Name: "openshift", Fulcio: &sigstore.Fulcio{Roots: roots, Log: keyOf(logKey), Issuer: issuer, Email: email}}
	long := string(pemOfCert(cert)) + strings.Repeat("\n", 64<<10)
	seventeen := strings.Repeat(string(pemOfCert(cert)), 17)
	logPolicy := policy(ed())
	logPolicy.Log = must(sigstore.ParseKey(pemOf(p256())))
	wide := sigstore.MemorySource{}
	for range 32 {
		wide[digestA] = append(wide[digestA], attach(ed(), []byte(`{"critical":{"type":"`+strings.Repeat("x", 32<<10)+`","image":{"docker-manifest-digest":"a"},"identity":{"docker-reference":"a"}},"optional":null}`)))
	}

	limittest.Walk(t, []limittest.Case{
		{Limit: "candidates of an image", Default: 64, Bytes: 8 << 20, Run: func(t *testing.T) int64 {
			refused(t, policy(ed()), manySource, "Candidates", "more than 64 candidates in images in dir")
			refused(t, policy(ed()), fewSource, "Candidates", "more than 3 candidates in images in dir")
			return 0
		}},
		{Limit: "bytes of a verification", Default: 16 << 20, Bytes: 96 << 20, Run: func(t *testing.T) int64 {
			refused(t, policy(ed()), largeSource, "Bytes", "more than 16777216 bytes in all")
			return 0
		}},
		{Limit: "attempts of a verification", Default: 1024, Bytes: 8 << 20, Steps: 1025, Run: func(t *testing.T) (n int64) {
			refused(t, policy(ed()), pairs{5000, sigstore.Attachment{}, errors.New("down"), &n}, "", "down")
			_, err := policy(ed()).Verify(t.Context(), repo+"@"+digestA, pairs{2000, sigstore.Attachment{}, errors.New("down"), new(int64)})
			if past, ok := errors.AsType[*limit.LimitError](err); !ok || past.Max != 1024 {
				t.Error(past)
			}
			return n
		}},
		{Limit: "layers of signatures", Default: 32, Bytes: 8 << 20, Steps: 33, Run: func(t *testing.T) int64 {
			layers.asked = nil
			refused(t, policy(ed()), layersSource, "", "more than 32 layers for "+digestA)
			return int64(len(layers.asked))
		}},
		{Limit: "annotations of a layer", Default: 64, Bytes: 1 << 20, Run: func(t *testing.T) int64 {
			refused(t, policy(ed()), labels, "", " layer 1: more than 64 annotations")
			return 0
		}},
		{Limit: "size of an index or manifest", Default: 4 << 20, Bytes: 48 << 20, Run: func(t *testing.T) int64 {
			refused(t, policy(ed()), fromStore(endless{}, sigstore.Limits{}), "", "more than 4194304 bytes in an index or manifest")
			return 0
		}},
		{Limit: "items of an index", Default: 128 << 10, Bytes: 8 << 20, Run: func(t *testing.T) int64 {
			refused(t, policy(ed()), items, "Items", "more than 131072 items in JSON")
			return 0
		}},
		{Limit: "size of a payload", Default: 64 << 10, Bytes: 1 << 20, Run: func(t *testing.T) int64 {
			refused(t, policy(ed()), body, "", "more than 65536 bytes in a payload")
			return 0
		}},
		{Limit: "size of a signature", Default: 8 << 10, Bytes: 1 << 20, Run: func(t *testing.T) int64 {
			refused(t, policy(ed()), of(strings.Repeat("A", 8<<10+4), sigstore.SignatureAnnotation), "", "more than 8192 bytes in the annotation ")
			return 0
		}},
		{Limit: "size of certificates", Default: 64 << 10, Bytes: 1 << 20, Run: func(t *testing.T) int64 {
			refused(t, fulcio, of(long, certificateAnnotation), "", "certificates of more than 65536 bytes")
			return 0
		}},
		{Limit: "certificates of a chain", Default: 16, Bytes: 1 << 20, Run: func(t *testing.T) int64 {
			refused(t, fulcio, of(seventeen, certificateAnnotation), "", "more than 16 certificates in PEM")
			return 0
		}},
		{Limit: "size of a log entry", Default: 64 << 10, Bytes: 1 << 20, Run: func(t *testing.T) int64 {
			refused(t, logPolicy, of(strings.Repeat(" ", 64<<10+1), bundleAnnotation), "", "is larger than 65536 bytes")
			return 0
		}},
		{Limit: "text of a refusal", Default: 1536, Bytes: 32 << 20, Run: func(t *testing.T) int64 {
			_, err := policy(ed()).Verify(t.Context(), repo+"@"+digestA, wide)
			refusal, ok := errors.AsType[*sigstore.Refusal](err)
			if !ok || len(refusal.Text) > 1536+64 || !strings.Contains(refusal.Text, " more") {
				t.Errorf("%d bytes", len(refusal.Text))
			}
			return 0
		}},
	})
}

// endless is a store of blobs without an end.
type endless struct{}

func (endless) Manifest(context.Context, string, string) (io.ReadCloser, error) {
	return io.NopCloser(rand.Reader), nil
}

func (e endless) Blob(ctx context.Context, repository, digest string) (io.ReadCloser, error) {
	return e.Manifest(ctx, repository, digest)
}

// Referrers are capped as candidates are, and answers count towards the total.
func TestStoreLimits(t *testing.T) {
	l := ocitest.NewLayout()
	for range 65 {
		newBundle(l, digestA, bundleType)
	}
	s := storeOf(l)
	refused(t, policy(ed()), fromStore(s, sigstore.Limits{}), "Candidates", "more than 64 candidates")
	refused(t, policy(ed()), fromStore(s, sigstore.Limits{Bytes: 1000}), "Bytes", "more than 1000 bytes in all in repository registry.example/o/rel")

	good := attach(ed(), payload(digestA, named))
	l = ocitest.NewLayout()
	size := signed(l, tagOf(digestA), layer(l, good)).Size + int64(len(good.Payload))
	checktest.Good(t, checktest.Err(
		policy(ed()).Verify(t.Context(), repo+"@"+digestA, fromStore(storeOf(l), sigstore.Limits{Bytes: size}))))
	refused(t, policy(ed()), fromStore(storeOf(l), sigstore.Limits{Bytes: size - 1}), "Bytes", "layer 1")
}

// Keys count only as they are spelt, and once.
func TestKeysOfJSON(t *testing.T) {
	good := attach(ed(), payload(digestA, named))
	for name, change := range map[string]func(string) string{
		"manifest, other case": func(s string) string { return strings.Replace(s, `"layers"`, `"Layers"`, 1) },
		"manifest, twice":      func(s string) string { return strings.Replace(s, `{`, `{"layers":[],`, 1) },
		"layer, other case":    func(s string) string { return strings.Replace(s, `"annotations"`, `"Annotations"`, 1) },
		"annotation, twice": func(s string) string {
			return strings.Replace(s, `"annotations":{`, `"annotations":{"`+sigstore.SignatureAnnotation+`":"",`, 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := ocitest.NewLayout()
			text := change(string(l.FS[oci.BlobPath(signed(l, "", layer(l, good)).Digest)].Data))
			l.Entries = nil
			l.Write(ocitest.Named(l.Blob(oci.TypeManifest, []byte(text)), tagOf(digestA)))
			refused(t, policy(ed()), fromStore(storeOf(l), sigstore.Limits{}), "", "")
			refused(t, policy(ed()), fromFiles(t, l, sigstore.Limits{}), "", "")
		})
	}
}
