package sigstore_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/signature/sigstore"
)

// layout builds an OCI layout.
type layout struct {
	fs        fstest.MapFS
	manifests []map[string]any
}

func newLayout() *layout {
	return &layout{fs: fstest.MapFS{"oci-layout": {Data: []byte(`{"imageLayoutVersion": "1.0.0"}`)}}}
}

func (l *layout) blob(mediaType string, data []byte) map[string]any {
	digest := fmt.Sprintf("%x", sha256.Sum256(data))
	l.fs["blobs/sha256/"+digest] = &fstest.MapFile{Data: bytes.Clone(data)}
	return map[string]any{"mediaType": mediaType, "digest": "sha256:" + digest, "size": len(data)}
}

func (l *layout) layer(a sigstore.Attachment) map[string]any {
	d := l.blob(sigstore.LayerType, a.Payload)
	d["annotations"] = a.Annotations
	return d
}

func (l *layout) image(name string, layers ...map[string]any) map[string]any {
	m := must(json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "layers": layers}))
	d := l.blob("application/vnd.oci.image.manifest.v1+json", m)
	d["annotations"] = map[string]string{"org.opencontainers.image.ref.name": name}
	l.manifests = append(l.manifests, d)
	return d
}

func (l *layout) source() *sigstore.Layout {
	l.fs["index.json"] = &fstest.MapFile{Data: must(json.Marshal(map[string]any{"schemaVersion": 2, "manifests": l.manifests}))}
	return &sigstore.Layout{FS: l.fs, Name: "dir"}
}

func tagOf(digest string) string { return must(sigstore.SignatureTag(digest)) }

// list shows what a source yields, in short.
func list(ctx context.Context, s sigstore.Source, digest string) []string {
	var out []string
	for a, err := range s.Attachments(ctx, digest) {
		var other *sigstore.OtherError
		switch {
		case errors.As(err, &other):
			out = append(out, "other "+other.MediaType)
		case errors.Is(err, signature.ErrNotFound):
			out = append(out, "none")
		case err != nil:
			out = append(out, "error "+err.Error())
		default:
			out = append(out, fmt.Sprintf("%d %s", a.Number, a.Location))
		}
	}
	return out
}

func TestSignatureTag(t *testing.T) {
	if got := tagOf(digestA); got != "sha256-"+digestA[7:]+".sig" {
		t.Error(got)
	}
	for _, bad := range []string{"", "sha256:a", "md5:x", "sha256:../x"} {
		if _, err := sigstore.SignatureTag(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

func TestLayout(t *testing.T) {
	good := attach(ed(), payload(digestA, named))
	l := newLayout()
	l.image(tagOf(digestB), l.layer(attach(ed(), payload(digestB, named))))
	l.image(repo+":"+tagOf(digestA), l.blob("application/octet-stream", []byte("x")), l.layer(attach(p256(), good.Payload)), l.layer(good))
	src := l.source()
	v, err := policy(ed()).Verify(t.Context(), repo+"@"+digestA, src)
	if err != nil {
		t.Fatal(err)
	}
	if s := v.Signers[0]; s.Number != 2 || s.Store != "OCI layout dir" || s.Location != "dir "+repo+":"+tagOf(digestA)+" layer 3" {
		t.Errorf("%+v", s)
	}
	if got := list(t.Context(), src, digestA); len(got) != 3 || got[0] != "other application/octet-stream" {
		t.Error(got)
	}
	if got := list(t.Context(), src, strings.Replace(digestA, "a", "c", -1)); len(got) != 1 || !strings.HasPrefix(got[0], "error") {
		t.Error(got) // no digest at all
	}
	if got := list(t.Context(), src, "sha256:"+strings.Repeat("c", 64)); len(got) != 1 || got[0] != "none" {
		t.Error(got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := list(ctx, src, digestA); len(got) != 1 || got[0] != "error context canceled" {
		t.Error(got)
	}

	// From a directory, too.
	dir := t.TempDir()
	if err := os.CopyFS(dir, l.fs); err != nil {
		t.Fatal(err)
	}
	if _, err := policy(ed()).Verify(t.Context(), repo+"@"+digestA, sigstore.DirLayout(dir)); err != nil {
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(dir, "oci-layout")); err != nil {
		t.Fatal(err)
	}
	if _, err := policy(ed()).Verify(t.Context(), repo+"@"+digestA, sigstore.DirLayout(dir)); err == nil || !strings.Contains(err.Error(), "is no OCI layout") {
		t.Error(err)
	}
}

// Broken layouts: what is wrong is told, the rest is used.
func TestLayoutFaults(t *testing.T) {
	good := attach(ed(), payload(digestA, named))
	for _, tt := range []struct {
		name string
		make func(l *layout)
		want string
	}{
		{"missing blob", func(l *layout) {
			d := l.layer(good)
			delete(l.fs, "blobs/sha256/"+d["digest"].(string)[7:])
			l.image(tagOf(digestA), d)
		}, "error unable to read dir " + tagOf(digestA) + " layer 1"},
		{"size", func(l *layout) { d := l.layer(good); d["size"] = 5; l.image(tagOf(digestA), d) }, "is larger than 5 bytes"},
		{"size, too small", func(l *layout) { d := l.layer(good); d["size"] = 5000; l.image(tagOf(digestA), d) }, "blob differs from its descriptor"},
		{"negative size", func(l *layout) { d := l.layer(good); d["size"] = -1; l.image(tagOf(digestA), d) }, "more than the limit"},
		{"large payload", func(l *layout) { l.image(tagOf(digestA), l.layer(sigstore.Attachment{Payload: make([]byte, 65537)})) }, "blob of 65537 bytes, more than the limit of 65536"},
		{"digest", func(l *layout) {
			d := l.layer(good)
			l.fs["blobs/sha256/"+d["digest"].(string)[7:]].Data[3] ^= 1
			l.image(tagOf(digestA), d)
		}, "blob differs from its descriptor"},
		{"path in a digest", func(l *layout) { d := l.layer(good); d["digest"] = "sha256:../../x"; l.image(tagOf(digestA), d) }, "invalid format"},
		{"weak digest", func(l *layout) { d := l.layer(good); d["digest"] = "md5:x"; l.image(tagOf(digestA), d) }, "unsupported digest"},
		{"manifest that is none", func(l *layout) {
			d := l.blob("", []byte("{"))
			d["annotations"] = map[string]string{"org.opencontainers.image.ref.name": tagOf(digestA)}
			l.manifests = append(l.manifests, d)
		}, "error manifest sha256:"},
		{"manifest of another type", func(l *layout) { l.image(tagOf(digestA), l.layer(good))["mediaType"] = "application/x" }, "other application/x"},
		{"a blob that is no file", func(l *layout) {
			d := l.layer(good)
			l.fs["blobs/sha256/"+d["digest"].(string)[7:]] = &fstest.MapFile{Mode: fs.ModeNamedPipe}
			l.image(tagOf(digestA), d)
		}, "is not a regular file"},
		{"many", func(l *layout) {
			var layers []map[string]any
			for range 40 {
				layers = append(layers, l.layer(good))
			}
			l.image(tagOf(digestA), layers...)
		}, "than the limit of 32"},
		{"newer bundle", func(l *layout) {
			d := l.blob("application/vnd.oci.image.manifest.v1+json", must(json.Marshal(map[string]any{"subject": map[string]any{"digest": digestA}})))
			d["artifactType"] = "application/vnd.dev.sigstore.bundle.v0.3+json"
			l.manifests = append(l.manifests, d)
		}, "other application/vnd.dev.sigstore.bundle.v0.3+json"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLayout()
			tt.make(l)
			if got := list(t.Context(), l.source(), digestA); !strings.Contains(strings.Join(got, "\n"), tt.want) {
				t.Errorf("%q, want %s", got, tt.want)
			}
			l.image(tagOf(digestA), l.layer(good))
			_, err := policy(ed()).Verify(t.Context(), repo+"@"+digestA, l.source())
			if err != nil {
				t.Errorf("the good one beside it was not found: %v", err)
			}
		})
	}
	for name, files := range map[string]fstest.MapFS{
		"no version":   {"oci-layout": {Data: []byte(`{}`)}},
		"no index":     {"oci-layout": {Data: []byte(`{"imageLayoutVersion": "1.0.0"}`)}},
		"broken index": {"oci-layout": {Data: []byte(`{"imageLayoutVersion": "1.0.0"}`)}, "index.json": {Data: []byte("{")}},
		"huge index":   {"oci-layout": {Data: []byte(`{"imageLayoutVersion": "1.0.0"}`)}, "index.json": {Data: make([]byte, 5<<20)}},
	} {
		if got := list(t.Context(), &sigstore.Layout{FS: files, Name: "dir"}, digestA); len(got) != 1 || !strings.HasPrefix(got[0], "error") {
			t.Errorf("%s: %q", name, got)
		}
	}

	// An image that has only what is not read here is told apart from one that
	// has nothing.
	l := newLayout()
	l.image(tagOf(digestA), l.blob("application/octet-stream", []byte("x")))
	_, err := policy(ed()).Verify(t.Context(), repo+"@"+digestA, l.source())
	if err == nil || err.Error() != "A signature was required, but no signature exists (1 attachments of other types)" {
		t.Error(err)
	}
}

func FuzzLayout(f *testing.F) {
	l := newLayout()
	l.image(tagOf(digestA), l.layer(attach(ed(), payload(digestA, named))))
	l.source()
	f.Add(l.fs["index.json"].Data, []byte(base64.StdEncoding.EncodeToString([]byte("x"))))
	f.Fuzz(func(t *testing.T, index, manifest []byte) {
		files := fstest.MapFS{"oci-layout": l.fs["oci-layout"], "index.json": {Data: index}}
		d := fmt.Sprintf("%x", sha256.Sum256(manifest))
		files["blobs/sha256/"+d] = &fstest.MapFile{Data: manifest}
		for a, err := range (&sigstore.Layout{FS: files, Name: "dir"}).Attachments(t.Context(), digestA) {
			if err == nil && len(a.Payload) > sigstore.MaxPayload {
				t.Error("larger than the limit")
			}
		}
	})
}
