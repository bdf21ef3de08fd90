package signature_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/signature"
)

// What mirror tools leave on disk is a store.
func TestMirrorStore(t *testing.T) {
	a, b := "sha256:"+strings.Repeat("a", 64), "sha256:"+strings.Repeat("a", 16)+strings.Repeat("b", 48)
	key := func(digest string) string { return strings.Replace(digest, ":", "-", 1) }
	configMap := func(kind string, data map[string][]byte) *fstest.MapFile {
		text := must(json.Marshal(map[string]any{"apiVersion": "v1", "kind": kind, "binaryData": data}))
		return &fstest.MapFile{Data: text}
	}
	many := map[string][]byte{}
	for i := range 65 {
		many[fmt.Sprintf("%s-%d", key(a), i)] = []byte("x")
	}
	name := "config/signature-" + key(a)[:len("sha256-")+16] + ".json"
	const working = "working-dir/signatures/"
	for _, tt := range []struct {
		name   string
		files  fstest.MapFS
		digest string
		want   []string
	}{
		{"of oc", fstest.MapFS{name: configMap("ConfigMap", map[string][]byte{
			key(a) + "-10": []byte("ten"), key(a) + "-2": []byte("two"), key(a) + "-x": []byte("x"), key(a) + "-3": nil, key(b) + "-1": []byte("b"),
		})}, a, []string{"two " + name + " key " + key(a) + "-2", "ten " + name + " key " + key(a) + "-10", "none"}},
		{"of oc, one that begins alike", fstest.MapFS{name: configMap("ConfigMap", map[string][]byte{key(b) + "-1": []byte("b")})}, b, []string{"b " + name + " key " + key(b) + "-1", "none"}},
		{"of oc, another digest", fstest.MapFS{name: configMap("ConfigMap", map[string][]byte{key(a) + "-1": []byte("a")})}, "sha256:" + strings.Repeat("c", 64), []string{"none"}},
		{"no ConfigMap", fstest.MapFS{name: configMap("Secret", nil)}, a, []string{"error no ConfigMap", "none"}},
		{"no JSON", fstest.MapFS{name: {Data: []byte("{")}}, a, []string{"error unexpected end of JSON input", "none"}},
		{"large ConfigMap", fstest.MapFS{name: {Data: make([]byte, 2<<20+1)}}, a, []string{"error more than 2097152 bytes", "none"}},
		{"many", fstest.MapFS{name: configMap("ConfigMap", many)}, a, nil},
		{"of oc-mirror", fstest.MapFS{working + "4.21.1-x86_64-" + key(a): {Data: []byte("one")}, working + "4.21.1-x86_64-" + key(b): {Data: []byte("b")}, working + "x" + key(a): {Data: []byte("x")}},
			a, []string{"one " + working + "4.21.1-x86_64-" + key(a), "none"}},
		{"of oc-mirror, large", fstest.MapFS{working + key(a): {Data: make([]byte, 50<<10+1)}}, a, []string{"error more than 51200 bytes", "none"}},
		{"a digest that leads out", fstest.MapFS{working + "x": {}}, "sha256:../x", []string{"store error"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			checktest.OK(t, os.CopyFS(dir, tt.files))
			s := checktest.Get(signature.OpenStore(dir, signature.HTTPOptions{}))(t)
			checktest.Equal(t, "file://"+dir, fmt.Sprint(s), "fmt.Sprint(s) of %v", s)
			var got []string
			for c, err := range s.Candidates(t.Context(), tt.digest) {
				switch {
				case errors.As(err, new(*signature.StoreError)):
					got = append(got, "store error")
				case errors.Is(err, signature.ErrNotFound):
					got = append(got, "none")
				case err != nil:
					text := err.Error()
					got = append(got, "error "+text[strings.LastIndex(text, ": ")+2:])
				default:
					place, _ := strings.CutPrefix(c.Location, "file://"+dir+string(filepath.Separator))
					got = append(got, string(c.Signature)+" "+place)
				}
			}
			if tt.want == nil {
				if len(got) != 65 || !strings.Contains(got[64], "than the limit of 64") {
					t.Error(len(got), got[len(got)-1])
				}
			} else if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			for _, err := range s.Candidates(ctx, a) {
				checktest.ErrorIs(t, context.Canceled, err)
			}
		})
	}
}
