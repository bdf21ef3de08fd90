package signature_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/limittest"
	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/signature/cluster"
)

// storeLimits proves the limits on stores, caches and what is kept.
func storeLimits() []limittest.Case {
	const dir = "sha256=" + "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" + "/signature-"
	files := fstest.MapFS{}
	for i := range 10 {
		files[dir+fmt.Sprint(i+1)] = &fstest.MapFile{Data: []byte("x")}
	}
	large := fstest.MapFS{dir + "1": {Data: make([]byte, maxSignature+1)}}
	rings := []*signature.Keyring{mustRing(newEd25519(keyTime).public(cert{}))}
	ends := func(s signature.Store, want string) func(*testing.T) int64 {
		return func(t *testing.T) int64 {
			got := collect(t.Context(), s, digestA)
			checktest.Has(t, strings.Join(got, "\n"), want)
			return int64(len(got))
		}
	}
	inMaps := func(maps, keys int) *cluster.ConfigMapStore {
		api := memory.New(memory.Options{})
		for i := range maps {
			u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
			u.SetNamespace(cluster.ConfigMapNamespace)
			u.SetName(fmt.Sprintf("m%d", i))
			u.SetLabels(map[string]string{cluster.ConfigMapLabel: ""})
			data := map[string]any{}
			for k := range keys {
				data[fmt.Sprintf("sha256-%s-%d", digestA[7:], k)] = "eA=="
			}
			u.Object["binaryData"] = data
			if err := api.Load(u); err != nil {
				panic(err)
			}
		}
		return &cluster.ConfigMapStore{Reader: api}
	}
	config := map[string]string{}
	for i := range 64 + 1 {
		config[fmt.Sprintf("store-%d", i)] = "https://a.example"
	}
	many := map[string][][]byte{}
	for i := range 64 + 1 {
		many[fmt.Sprintf("sha256:%03d", i)] = [][]byte{[]byte("x")}
	}
	return []limittest.Case{
		{Limit: "signatures of a store", Default: maxSignatures, Bytes: 1 << 20, Steps: 10, Run: ends(&signature.FileStore{FS: files}, "has been asked for 9 signatures")},
		{Limit: "signature", Default: maxSignature, Bytes: 1 << 20, Steps: 2, Run: ends(&signature.FileStore{FS: large}, "signature is too large: more than 51200 bytes")},
		{Limit: "signatures in config maps", Default: 64, Bytes: 4 << 20, Steps: 65, Run: ends(inMaps(1, 65), "than the limit of 64")},
		{Limit: "config maps with signatures", Default: 4096, Bytes: 64 << 20, Steps: 1, Run: ends(inMaps(4096+1, 1), "4096")},
		{Limit: "keyrings and stores", Default: 64, Bytes: 1 << 20, Run: func(t *testing.T) int64 {
			cm := configMap(t, "")
			checktest.OK(t, unstructured.SetNestedStringMap(cm.Object, config, "data"))
			checktest.ErrorHas(t, "more than the limit of 64", checktest.Err(
				cluster.FromManifests([]cluster.ConfigSource{{Object: cm}}, cluster.ConfigOptions{})))
			return 0
		}},
		{Limit: "failures in an error", Default: maxAttempts, Bytes: 8 << 20, Steps: maxAttempts, Run: func(t *testing.T) int64 {
			_, err := signature.NewVerifier(rings, endlessStore{2000}).Verify(t.Context(), digestA)
			var e *signature.Error
			if !errors.As(err, &e) || e.Omitted != 2000-maxAttempts {
				t.Error(err)
				return 0
			}
			return int64(len(e.Attempts))
		}},
		{Limit: "text of an error", Default: 2 << 10, Bytes: 1 << 20, Run: func(t *testing.T) int64 {
			if n := len((&signature.Error{Digest: digestA, Err: errors.New(strings.Repeat("x", 2<<10+1))}).Error()); n > 2<<10 {
				t.Errorf("%d bytes", n)
			}
			return 0
		}},
		{Limit: "kept digests", Default: 64, Bytes: 4 << 20, Steps: 64, Run: func(t *testing.T) int64 {
			api := memory.New(memory.Options{})
			save(t, api, many)
			return int64(len(persisted(t, api).BinaryData))
		}},
	}
}

func mustRing(data []byte) *signature.Keyring { return must(signature.ParseKeyring("ring", data)) }
