package signature_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/limit"
	"github.com/clusterupdate/clusterupdate/internal/limittest"
	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/signature/cluster"
)

// Each row of the table in doc.go has a case here.
func TestLimits(t *testing.T) {
	limittest.Walk(t, slices.Concat(openPGPLimits(), storeLimits()))
}

// bzip2Blocks is "abcd" 30,000 times as one block, made with bzip2 -9.
const bzip2Blocks = "425a683931415926535973c59063003a9781003c0020005426a802941c14495814495a14495c052478bb9229c284839e2c8318"

// openPGPLimits proves the limits on keyrings and messages.
func openPGPLimits() []limittest.Case {
	k := newEd25519(keyTime)
	public := k.public(cert{})
	many := func(n int, part func(i int) []byte) []byte {
		out := slices.Clone(public)
		for i := range n {
			out = append(out, part(i)...)
		}
		return out
	}
	keyring := func(value []byte, text string) func(*testing.T) int64 {
		return func(t *testing.T) int64 {
			_, err := signature.ParseKeyring("ring", value)
			if err == nil || !strings.Contains(err.Error(), text) || len(err.Error()) > 1<<10+100 {
				t.Errorf("got %v, want an error with %q", err, text)
			}
			checktest.Equal(t, strings.HasPrefix(text, "more than"), errors.As(err, new(*limit.LimitError)), "a LimitError: %v", err)
			return 0
		}
	}
	refused := func(m []byte, reason signature.Reason, text string) func(*testing.T) int64 {
		return func(t *testing.T) int64 {
			_, err := verify(t, ring(t, public), m, signature.Options{})
			wantRefused(t, err, reason, text)
			if n := len(cause(err).Error()); n > 1<<10+100 {
				t.Errorf("an error of %d bytes", n)
			}
			return 0
		}
	}
	const unreadable = signature.Unreadable

	block := armoredBlock(publicBlock, public)
	selfSigned := many(5001, func(i int) []byte {
		return k.over(0x1f, keyTime.Add(time.Duration(i)*time.Second), nil, k.hashed())
	})
	longID := strings.Repeat("é", 70_000)
	longIDs := k.public(cert{uid: longID})
	manyKeys := many(400, func(i int) []byte { return newEd25519(keyTime).public(cert{uid: longID[:1000]}) })
	var bareKeys []byte
	for range 500 {
		bareKeys = append(bareKeys, pkt(6, newEd25519(keyTime).body)...)
	}
	// A certification by the key over a user id that is not there is compared
	// with every one.
	pictures := many(12, func(i int) []byte { return pkt(17, []byte{byte(i)}, make([]byte, 80_000)) })
	pictures = slices.Concat(pictures, many(80, func(i int) []byte {
		return k.over(0x13, keyTime, sub(20, []byte{byte(i)}), uidParts(k, "Gone")...)
	})[len(public):])
	bzip2 := must(hex.DecodeString(bzip2Blocks))
	return []limittest.Case{
		{Limit: "keyring", Default: maxKeyring, Bytes: 1 << 10, Run: keyring(make([]byte, maxKeyring+1), "larger than the limit of 1048576 bytes")},
		{Limit: "armored blocks of a keyring", Default: 100, Bytes: 2 << 20, Run: keyring(bytes.Repeat(block, 101), "more than 100 armored blocks")},
		{Limit: "keys and subkeys of a keyring", Default: 1000, Bytes: 2 << 20, Run: keyring(many(1000, func(i int) []byte { return pkt(14, newEd25519(keyTime).body) }), "more than 1000 keys")},
		{Limit: "user ids of a keyring", Default: 1000, Bytes: 1 << 20, Run: keyring(many(1000, func(i int) []byte { return pkt(13, fmt.Append(nil, i)) }), "more than 1000 user ids")},
		{Limit: "signature packets of a keyring", Default: 10_000, Bytes: 6 << 20, Run: keyring(many(10_000, func(i int) []byte { return pkt(2, u32(uint32(i))) }), "more than 10000 signature packets")},
		{Limit: "signatures checked in a keyring", Default: 10_000, Bytes: 16 << 20, Run: keyring(selfSigned, "more than 10000 checks of signatures in the keyring (one of RSA 2048 counts 1)")},
		{Limit: "bytes hashed to classify signatures", Default: 64 << 20, Bytes: 4 << 20, Run: keyring(pictures, "more than 67108864 hashed bytes")},
		{Limit: "text of a keyring's error", Default: 1 << 10, Bytes: 2 << 20, Run: keyring(bareKeys, " more")},
		{Limit: "text of a user id", Default: 256, Bytes: 1 << 20, Run: func(t *testing.T) int64 {
			if id := ring(t, longIDs).Keys()[0].UserIDs[0]; len(id) > 256 || !strings.HasPrefix(id, "éé") || !strings.Contains(id, "more bytes") {
				t.Errorf("%d bytes: %s", len(id), id)
			}
			return 0
		}},
		{Limit: "description of a keyring", Default: 4 << 10, Bytes: 4 << 20, Run: func(t *testing.T) int64 {
			if text := ring(t, manyKeys).String(); len(text) > 4<<10+20 || !strings.Contains(text, "more") {
				t.Errorf("%d bytes: %s", len(text), text)
			}
			return 0
		}},
		{Limit: "message", Default: maxMessage, Bytes: 64 << 10, Run: refused(k.message(msg{body: make([]byte, maxMessage)}), unreadable, "larger than the limit of 1048576 bytes")},
		{Limit: "decompressed message", Default: maxMessage, Bytes: 2 << 20, Run: refused(compressed(k.message(msg{body: make([]byte, maxMessage)})), unreadable, "larger than the limit of 1048576 bytes")},
		{Limit: "block of bzip2", Default: 100_000, Bytes: 2 << 20, Run: refused(pkt(8, []byte{3}, bzip2), unreadable, "limit of 100000 bytes")},
		{Limit: "levels of compression", Default: 1, Bytes: 128 << 10, Run: refused(compressed(compressed(k.message(msg{}))), unreadable, "more than one level of compression")},
		{Limit: "text of a decoding error", Default: 1 << 10, Bytes: 8 << 20, Run: refused(k.message(msg{body: fmt.Appendf(nil, `{%q: 1, %[1]q: 2}`, strings.Repeat("x", 100_000))}), signature.NotJSON, "more bytes")},
	}
}

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
