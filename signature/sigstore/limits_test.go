package sigstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/clusterupdate/clusterupdate/internal/limittest"
	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/signature/sigstore"
)

const bundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"

// Each row of the table in doc.go has a case here.
func TestLimits(t *testing.T) {
	ends := func(src sigstore.Source, text string) func(*testing.T) int64 {
		return func(t *testing.T) int64 {
			var last error
			pairs := int64(0)
			for _, err := range src.Attachments(t.Context(), digestA) {
				pairs, last = pairs+1, err
			}
			if last == nil || !strings.Contains(last.Error(), text) {
				t.Errorf("ends with %v, want %s", last, text)
			}
			return pairs
		}
	}
	indexed := func(index string) sigstore.Source {
		l := newLayout()
		src := l.source()
		l.fs["index.json"].Data = []byte(index)
		return src
	}
	repeat := func(n int, part string) string { return strings.TrimSuffix(strings.Repeat(part+",", n), ",") }

	candidates := newLayout()
	for range 65 {
		d := candidates.blob("application/vnd.oci.image.manifest.v1+json", []byte(`{"subject": {"digest": "sha256:other"}}`))
		d["artifactType"] = bundleType
		candidates.manifests = append(candidates.manifests, d)
	}
	bytes := newLayout()
	for i := range 6 {
		d := bytes.blob("application/vnd.oci.image.manifest.v1+json", fmt.Appendf(nil, "{%s\"a\": %d}", strings.Repeat(" ", 3<<20), i))
		d["artifactType"] = bundleType
		bytes.manifests = append(bytes.manifests, d)
	}
	var layers []map[string]any
	annotated := map[string]string{}
	for i := range 65 {
		annotated[fmt.Sprint(i)] = ""
	}
	many := newLayout()
	for range 33 {
		layers = append(layers, many.layer(attach(ed(), payload(digestA, "a.example/b:1"))))
	}
	many.image(tagOf(digestA), layers...)
	large := newLayout()
	large.image(tagOf(digestA), large.layer(sigstore.Attachment{Payload: make([]byte, sigstore.MaxPayload+1)}))
	token := serve(roundTripHandler(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/token") {
			fmt.Fprintf(w, `{"token": %q}`, strings.Repeat("a", 16<<10+1))
			return
		}
		w.Header().Set("WWW-Authenticate", `Bearer realm="https://r.example/token"`)
		w.WriteHeader(http.StatusUnauthorized)
	}), sigstore.RegistryOptions{})

	limittest.Walk(t, []limittest.Case{
		{Limit: "candidates", Default: sigstore.DefaultCandidates, Bytes: 8 << 20, Steps: 1, Run: ends(candidates.source(), "more candidates for "+digestA+" than the limit of 64 (Limits.Candidates)")},
		{Limit: "bytes of a verification", Default: sigstore.DefaultBytes, Bytes: 100 << 20, Steps: 1, Run: ends(bytes.source(), "more to read than the limit of 16777216 bytes a verification (Limits.Bytes)")},
		{Limit: "entries of an index or manifest", Default: sigstore.DefaultEntries, Bytes: 8 << 20, Steps: 1, Run: ends(indexed(`{"manifests": [`+repeat(10001, "{}")+`]}`), "10001 entries, more than the limit of 10000 (Limits.Entries)")},
		{Limit: "annotations of an entry", Default: sigstore.DefaultAnnotations, Bytes: 1 << 20, Steps: 1, Run: ends(indexed(string(must(json.Marshal(map[string]any{"manifests": []any{map[string]any{"annotations": annotated}}})))), "65 annotations, more than the limit of 64 (Limits.Annotations)")},
		{Limit: "signatures of an image", Default: sigstore.MaxAttachments, Bytes: 2 << 20, Steps: 33, Run: ends(many.source(), "than the limit of 32")},
		{Limit: "payload", Default: sigstore.MaxPayload, Bytes: 1 << 20, Steps: 1, Run: func(t *testing.T) int64 {
			return payloadTooLarge(t, large.source())
		}},
		{Limit: "manifest", Default: 4 << 20, Bytes: 24 << 20, Steps: 1, Run: ends(indexed("{"+strings.Repeat(" ", 4<<20)+"}"), "index.json is larger than 4194304 bytes")},
		{Limit: "token", Default: 16 << 10, Bytes: 1 << 20, Steps: 1, Run: ends(token, "a token of 16385 bytes, more than the limit of 16384")},
	})
}

type roundTripHandler func(http.ResponseWriter, *http.Request)

func (f roundTripHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) { f(w, r) }

// payloadTooLarge wants one failure to read, and nothing behind it.
func payloadTooLarge(t *testing.T, src sigstore.Source) int64 {
	n := int64(0)
	for _, err := range src.Attachments(t.Context(), digestA) {
		n++
		if err == nil || !strings.Contains(err.Error(), "more than the limit of 65536") {
			t.Errorf("%v", err)
		}
	}
	return n
}

// What takes little room in JSON and much in memory is refused before it is
// decoded.
func TestIndexOfNothing(t *testing.T) {
	l := newLayout()
	src := l.source()
	for _, part := range []string{"{},", `{"annotations":{"a":"","b":"","c":""}},`} {
		l.fs["index.json"].Data = []byte(`{"manifests": [` + strings.Repeat(part, 3<<20/len(part)) + "{}]}")
		allocated := testing.AllocsPerRun(1, func() {
			for _, err := range src.Attachments(t.Context(), digestA) {
				if err == nil || !strings.Contains(err.Error(), "(Limits.Entries)") {
					t.Errorf("%v", err)
				}
			}
		})
		if allocated > 1000 {
			t.Errorf("%v allocations", allocated)
		}
	}
}

// Keys count in their exact case, and once.
func TestIndexIsReadStrictly(t *testing.T) {
	for _, index := range []string{`{"manifests": [], "manifests": []}`, `{"manifests": [{"digest": "a", "digest": "b"}]}`, "{\"a\": \"\xff\"}"} {
		l := newLayout()
		src := l.source()
		l.fs["index.json"].Data = []byte(index)
		for _, err := range src.Attachments(t.Context(), digestA) {
			if err == nil || errors.Is(err, signature.ErrNotFound) {
				t.Errorf("%q: %v", index, err)
			}
		}
	}
	l := newLayout()
	l.image(tagOf(digestA), l.layer(attach(ed(), payload(digestA, "a.example/b:1"))))
	src := l.source()
	l.fs["index.json"].Data = []byte(strings.Replace(string(l.fs["index.json"].Data), `"manifests"`, `"Manifests"`, 1))
	for _, err := range src.Attachments(t.Context(), digestA) {
		if !errors.Is(err, signature.ErrNotFound) {
			t.Errorf("%v", err)
		}
	}
}

// badSource panics.
type badSource struct{}

func (badSource) String() string { return "bad" }

func (badSource) Attachments(context.Context, string) iter.Seq2[sigstore.Attachment, error] {
	panic("no attachments")
}

// A source that panics fails the verification, whose attempts are of the
// policy's time.
func TestPanickingSource(t *testing.T) {
	p := policy(ed())
	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	p.Clock = clocktesting.NewFakePassiveClock(at)
	_, err := p.Verify(t.Context(), "a.example/b@"+digestA, badSource{})
	var e *signature.Error
	if !errors.As(err, &e) || !strings.Contains(err.Error(), "panic: no attachments") || len(e.Attempts) != 1 || !e.Attempts[0].Time.Equal(at) {
		t.Errorf("%+v", err)
	}
}
