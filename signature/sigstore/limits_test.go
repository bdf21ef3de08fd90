package sigstore_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/clusterupdate/clusterupdate/internal/limittest"
	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/signature/sigstore"
)

// refused wants a verification to fail by a limit, or, with an empty limit, by
// an error with a text.
func refused(t *testing.T, p *sigstore.Policy, src sigstore.Source, limit, text string) {
	t.Helper()
	v, err := p.Verify(t.Context(), repo+"@"+digestA, src)
	if err == nil {
		t.Fatalf("verified: %v", v)
	}
	if len(err.Error()) > 4<<10 {
		t.Errorf("text of %d bytes", len(err.Error()))
	}
	var past *sigstore.LimitError
	if limit != "" && (!errors.As(err, &past) || past.Limit != limit || !strings.Contains(past.Error(), limit)) {
		t.Errorf("got %v, want the limit %q", err, limit)
	}
	if !strings.Contains(signature.Chain(err), text) {
		t.Errorf("got %v, want %s", err, text)
	}
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

// opens counts the files that are opened.
type opens struct {
	fs.FS
	n *int64
}

func (o opens) Open(name string) (fs.File, error) { *o.n++; return o.FS.Open(name) }

func (o opens) Stat(name string) (fs.FileInfo, error) { return fs.Stat(o.FS, name) }

func TestLimits(t *testing.T) {
	good := attach(ed(), payload(digestA, named))
	foreign := attach(p256(), good.Payload)
	of := func(text string, key string) sigstore.MemorySource {
		return sigstore.MemorySource{digestA: {annotated(good, map[string]string{key: text})}}
	}

	// Many names for one manifest.
	many := newLayout()
	image := many.image(tagOf(digestA), many.blob("application/octet-stream", []byte("x")))
	for range sigstore.DefaultCandidates {
		many.manifests = append(many.manifests, image)
	}
	manySource := many.source()

	// A short index of large manifests.
	large := newLayout()
	blank := large.blob(signatureType, bytes.Repeat([]byte(" "), 4<<20))
	blank["annotations"] = map[string]string{"org.opencontainers.image.ref.name": tagOf(digestA)}
	for range 40 {
		large.manifests = append(large.manifests, blank)
	}
	largeSource := large.source()

	layers := newRegistry()
	var list []map[string]any
	for range sigstore.MaxAttachments + 1 {
		list = append(list, layers.layer(foreign))
	}
	layers.image(tagOf(digestA), list...)

	labels := newRegistry()
	labelled := labels.layer(good)
	names := map[string]string{sigstore.SignatureAnnotation: good.Annotations[sigstore.SignatureAnnotation]}
	for i := range 64 {
		names[fmt.Sprint(i)] = ""
	}
	labelled["annotations"] = names
	labels.image(tagOf(digestA), labelled)

	manifest := newRegistry()
	manifest.manifests[tagOf(digestA)] = bytes.Repeat([]byte(" "), 4<<20+1)

	items := newLayout().source()
	items.FS.(fstest.MapFS)["index.json"].Data = []byte(`{"manifests":[` + strings.Repeat("{},", 128<<10) + `{}]}`)

	body := newRegistry()
	body.image(tagOf(digestA), body.layer(attach(ed(), bytes.Repeat([]byte(" "), sigstore.MaxPayload+1))))

	token := func(answer string) *registry {
		r := newRegistry()
		r.challenge, r.want = `Bearer realm="https://registry.example/token"`, "Bearer x"
		r.token = []byte(answer)
		return r
	}
	longToken, longAnswer := token(`{"token":"`+strings.Repeat("x", 16<<10+1)+`"}`), token(strings.Repeat(" ", 64<<10)+`{"token":"x"}`)

	cert := fulcioLeaf(keep)
	roots := x509.NewCertPool()
	roots.AddCert(rootCert)
	fulcio := &sigstore.Policy{Name: "openshift", Fulcio: &sigstore.Fulcio{Roots: roots, Log: must(sigstore.NewKey(logKey.Public())), Issuer: issuer, Email: email}}
	long := string(pemOfCert(cert)) + strings.Repeat("\n", 64<<10)
	seventeen := strings.Repeat(string(pemOfCert(cert)), 17)
	logPolicy := policy(ed())
	logPolicy.Log = must(sigstore.ParseKey(pemOf(p256())))
	wide := sigstore.MemorySource{}
	for range sigstore.MaxAttachments {
		wide[digestA] = append(wide[digestA], attach(ed(), []byte(`{"critical":{"type":"`+strings.Repeat("x", 32<<10)+`","image":{"docker-manifest-digest":"a"},"identity":{"docker-reference":"a"}},"optional":null}`)))
	}

	limittest.Walk(t, []limittest.Case{
		{Limit: "candidates of an image", Default: sigstore.DefaultCandidates, Bytes: 8 << 20, Steps: 2 + sigstore.DefaultCandidates, Run: func(t *testing.T) (n int64) {
			refused(t, policy(ed()), &sigstore.Layout{FS: opens{manySource.FS, &n}, Name: "dir"}, "candidates of an image", "more than the limit of 64")
			refused(t, policy(ed()), &sigstore.Layout{FS: manySource.FS, Limits: sigstore.Limits{Candidates: 3}}, "candidates of an image", "more than the limit of 3")
			return n
		}},
		{Limit: "bytes of a verification", Default: sigstore.DefaultBytes, Bytes: 96 << 20, Steps: 6, Run: func(t *testing.T) (n int64) {
			refused(t, policy(ed()), &sigstore.Layout{FS: opens{largeSource.FS, &n}, Name: "dir"}, "bytes of a verification", "more than the limit of 16777216")
			return n
		}},
		{Limit: "attempts of a verification", Default: 1024, Bytes: 8 << 20, Steps: 1025, Run: func(t *testing.T) (n int64) {
			refused(t, policy(ed()), pairs{5000, sigstore.Attachment{}, errors.New("down"), &n}, "attempts of a verification", "down")
			return n
		}},
		{Limit: "layers of signatures", Default: sigstore.MaxAttachments, Bytes: 8 << 20, Steps: 33, Run: func(t *testing.T) int64 {
			layers.asked = nil
			refused(t, policy(ed()), serve(layers, sigstore.RegistryOptions{}), "layers of signatures", "holds more layers")
			return int64(len(layers.asked))
		}},
		{Limit: "annotations of a layer", Default: 64, Bytes: 1 << 20, Run: func(t *testing.T) int64 {
			refused(t, policy(ed()), serve(labels, sigstore.RegistryOptions{}), "annotations of a layer", "layer 1")
			return 0
		}},
		{Limit: "size of an index or manifest", Default: 4 << 20, Bytes: 48 << 20, Run: func(t *testing.T) int64 {
			refused(t, policy(ed()), serve(manifest, sigstore.RegistryOptions{}), "", "exceeds the limit of 4194304 bytes")
			return 0
		}},
		{Limit: "items of an index", Default: 128 << 10, Bytes: 8 << 20, Run: func(t *testing.T) int64 {
			refused(t, policy(ed()), items, "items of an index", "index.json")
			return 0
		}},
		{Limit: "size of a payload", Default: sigstore.MaxPayload, Bytes: 1 << 20, Run: func(t *testing.T) int64 {
			refused(t, policy(ed()), serve(body, sigstore.RegistryOptions{}), "", "more than the limit of 65536")
			return 0
		}},
		{Limit: "size of a signature", Default: 8 << 10, Bytes: 1 << 20, Run: func(t *testing.T) int64 {
			refused(t, policy(ed()), of(strings.Repeat("A", 8<<10+4), sigstore.SignatureAnnotation), "size of a signature", "annotation")
			return 0
		}},
		{Limit: "size of certificates", Default: 64 << 10, Bytes: 1 << 20, Run: func(t *testing.T) int64 {
			refused(t, fulcio, of(long, sigstore.CertificateAnnotation), "", "certificates of more than 65536 bytes")
			return 0
		}},
		{Limit: "certificates of a chain", Default: 16, Bytes: 1 << 20, Run: func(t *testing.T) int64 {
			refused(t, fulcio, of(seventeen, sigstore.CertificateAnnotation), "certificates of a chain", "certificate")
			return 0
		}},
		{Limit: "size of a log entry", Default: 64 << 10, Bytes: 1 << 20, Run: func(t *testing.T) int64 {
			refused(t, logPolicy, of(strings.Repeat(" ", 64<<10+1), sigstore.BundleAnnotation), "", "is larger than 65536 bytes")
			return 0
		}},
		{Limit: "size of a token", Default: 16 << 10, Bytes: 1 << 20, Run: func(t *testing.T) int64 {
			refused(t, policy(ed()), serve(longToken, sigstore.RegistryOptions{}), "size of a token", "token service")
			return 0
		}},
		{Limit: "size of a token answer", Default: 64 << 10, Bytes: 2 << 20, Run: func(t *testing.T) int64 {
			refused(t, policy(ed()), serve(longAnswer, sigstore.RegistryOptions{}), "", "exceeds the limit of 65536 bytes")
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

// Referrers are capped as candidates are, and answers count towards the total.
func TestRegistryLimits(t *testing.T) {
	r := newRegistry()
	one := map[string]any{"mediaType": signatureType, "artifactType": "application/vnd.dev.sigstore.bundle.v0.3+json", "digest": digestB, "size": 1}
	var all []any
	for range sigstore.DefaultCandidates + 1 {
		all = append(all, one)
	}
	r.referrers = must(json.Marshal(map[string]any{"manifests": all}))
	refused(t, policy(ed()), serve(r, sigstore.RegistryOptions{}), "candidates of an image", "more than the limit of 64")
	r.referrers = append(r.referrers, bytes.Repeat([]byte(" "), 1000)...)
	refused(t, policy(ed()), serve(r, sigstore.RegistryOptions{Limits: sigstore.Limits{Bytes: 1000}}), "bytes of a verification", "more than the limit of 1000")

	signed := newRegistry()
	good := attach(ed(), payload(digestA, named))
	signed.image(tagOf(digestA), signed.layer(good))
	size := int64(len(signed.manifests[tagOf(digestA)]) + len(good.Payload))
	if _, err := policy(ed()).Verify(t.Context(), repo+"@"+digestA, serve(signed, sigstore.RegistryOptions{Limits: sigstore.Limits{Bytes: size}})); err != nil {
		t.Error(err)
	}
	refused(t, policy(ed()), serve(signed, sigstore.RegistryOptions{Limits: sigstore.Limits{Bytes: size - 1}}), "bytes of a verification", "layer 1")
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
			r := newRegistry()
			layer := r.layer(good)
			r.image(tagOf(digestA), layer)
			changed := change(string(r.manifests[tagOf(digestA)]))
			r.manifests[tagOf(digestA)] = []byte(changed)
			refused(t, policy(ed()), serve(r, sigstore.RegistryOptions{}), "", "")

			l := newLayout()
			l.layer(good)
			d := l.blob(signatureType, []byte(changed))
			d["annotations"] = map[string]string{"org.opencontainers.image.ref.name": tagOf(digestA)}
			l.manifests = append(l.manifests, d)
			refused(t, policy(ed()), l.source(), "", "")
		})
	}
	t.Run("index", func(t *testing.T) {
		l := newLayout()
		l.image(tagOf(digestA), l.layer(good))
		src := l.source()
		index := string(l.fs["index.json"].Data)
		for _, changed := range []string{strings.Replace(index, `"manifests"`, `"Manifests"`, 1), strings.Replace(index, `{`, `{"manifests":[],`, 1)} {
			l.fs["index.json"].Data = []byte(changed)
			refused(t, policy(ed()), src, "", "")
		}
	})
	for _, answer := range []string{`{"Token":"x"}`, `{"token":"y","token":"x"}`} {
		r := newRegistry()
		r.challenge, r.want, r.token = `Bearer realm="https://registry.example/token"`, "Bearer x", []byte(answer)
		r.image(tagOf(digestA), r.layer(good))
		refused(t, policy(ed()), serve(r, sigstore.RegistryOptions{}), "", "token service")
	}
}
