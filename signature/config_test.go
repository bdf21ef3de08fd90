package signature_test

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/signature/cluster"
)

// fakeReader holds objects by kind, namespace and name; "error" fails lists.
type fakeReader map[string]map[string]any

func (f fakeReader) Get(_ context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	obj, ok := f[gvk.Kind+" "+key.String()]
	if !ok {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: gvk.Kind}, key.Name)
	}
	return &unstructured.Unstructured{Object: obj}, nil
}

func (f fakeReader) List(ctx context.Context, gvk schema.GroupVersionKind, opts clusterapi.ListOptions) (*unstructured.UnstructuredList, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if _, ok := f["error"]; ok {
		return nil, errors.New("list failed")
	}
	list := &unstructured.UnstructuredList{}
	for key, obj := range f {
		u := unstructured.Unstructured{Object: obj}
		if strings.HasPrefix(key, gvk.Kind+" "+opts.Namespace+"/") && opts.Labels.Matches(labels.Set(u.GetLabels())) {
			list.Items = append(list.Items, u)
		}
	}
	return list, nil
}

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	checktest.OK(t, yaml.Unmarshal([]byte(text), &u.Object))
	return u
}

func configMap(t testing.TB, data string) *unstructured.Unstructured {
	return object(t, `
apiVersion: v1
kind: ConfigMap
metadata:
  name: release-verification
  namespace: openshift-config-managed
  annotations:
    release.openshift.io/verification-config-map: ""
`+data)
}

func TestReadConfig(t *testing.T) {
	k := newEd25519(keyTime)
	key := "  verifier-public-key-a: |\n    " + strings.ReplaceAll(string(armored(t, publicBlock, k.public(cert{uid: "A"}))), "\n", "\n    ") + "\n"
	const (
		store = "  store-a: https://a.example/sigs\n"
		src   = "the config map openshift-config-managed/release-verification"
	)
	other := object(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {store-a: http://x}")
	deployment := configMap(t, "data: {}")
	deployment.SetKind("Deployment")
	valid := configMap(t, "data:\n"+key+store)

	for _, tt := range []struct {
		name    string
		objects []*unstructured.Unstructured
		want    string // the verifier's description, its end
		err     []string
	}{
		{"valid", []*unstructured.Unstructured{nil, other, deployment, valid}, "from verifier-public-key-a (" + fmt.Sprintf("%X", k.print) + ": A) - will check for signatures in containers/image format at parallel signature store wrapping containers/image signature store under https://a.example/sigs", nil},
		{"several", []*unstructured.Unstructured{configMap(t, "data:\n"+key+"  store-z: ' HTTP://z.example '\n  store-: file://../x\n  store-a: http://a.example\n  other: x\n")}, "parallel signature store wrapping file:///x, containers/image signature store under http://a.example, containers/image signature store under http://z.example", nil},
		{"the first counts, even without data", []*unstructured.Unstructured{configMap(t, ""), valid}, "", []string{src + " did not provide any signature stores to read from and cannot be used"}},
		{"no store", []*unstructured.Unstructured{configMap(t, "data:\n"+key)}, "", []string{src + " did not provide any signature stores to read from and cannot be used"}},
		{"no key", []*unstructured.Unstructured{configMap(t, "data:\n"+store)}, "", []string{src + " did not provide any GPG public keys to verify signatures from and cannot be used"}},
		{"binaryData is not read", []*unstructured.Unstructured{configMap(t, "binaryData:\n  store-a: aHR0cDovL3g=\n")}, "", []string{"did not provide any signature stores"}},
		{"null data", []*unstructured.Unstructured{configMap(t, "data: null")}, "", []string{src + " is not valid: "}},
		{"null value", []*unstructured.Unstructured{configMap(t, "data:\n"+key+store+"  x: null\n")}, "", []string{src + " is not valid: "}},
		{"a number is not skipped", []*unstructured.Unstructured{configMap(t, "data:\n"+key+store+"  x: 1\n"), valid}, "", []string{src + " is not valid: "}},
		{"a boolean elsewhere is not skipped", []*unstructured.Unstructured{configMap(t, "immutable: x\ndata:\n"+key+store), valid}, "", []string{src + " is not valid: "}},
		{"a version that there is not", []*unstructured.Unstructured{withVersion(valid, "v2"), valid}, "", []string{src + ` is not valid: no ConfigMap has the apiVersion "v2"`}},
		{"another group's kind", []*unstructured.Unstructured{withVersion(valid, "example.com/v1"), configMap(t, "")}, "", []string{src + " did not provide any signature stores"}},
		{"unknown fields do not matter", []*unstructured.Unstructured{configMap(t, "unknown: 1\ndata:\n"+key+store)}, "https://a.example/sigs", nil},
		{"all faults, sorted", []*unstructured.Unstructured{configMap(t, "data:\n  verifier-public-key-z: x\n  verifier-public-key-b: ''\n  store-b: ftp://x\n  store-a: 'https:'\n  store-c: ':'\n")}, "", []string{
			src + ` has an invalid key "store-a": must be a valid URL with scheme file://, http://, or https://` + "\n",
			src + ` has an invalid key "store-b": must be`, src + ` has an invalid key "store-c": must be`,
			src + ` has an invalid key "verifier-public-key-b" that must be a GPG public key: unable to read keyring with armor (EOF) or without armor (EOF)` + "\n",
			src + ` has an invalid key "verifier-public-key-z" that must be a GPG public key: unable to read`,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var sources []cluster.ConfigSource
			for _, o := range tt.objects {
				sources = append(sources, cluster.ConfigSource{Name: "0000_90.yaml", Object: o})
			}
			v, err := cluster.FromManifests(sources, cluster.ConfigOptions{})
			if tt.err != nil {
				if err == nil || !strings.HasPrefix(err.Error(), "0000_90.yaml: ") {
					t.Fatal(err)
				}
				rest := err.Error()
				for _, want := range tt.err {
					_, after, ok := strings.Cut(rest, want)
					if !ok {
						t.Fatalf("%s\nlacks, in order, %s", err, want)
					}
					rest = after
				}
				return
			}
			checktest.OK(t, err)
			if got := v.(*signature.OpenPGP).String(); !strings.HasSuffix(got, tt.want) {
				t.Errorf("got %s\nwant %s", got, tt.want)
			}
		})
	}

	none := []cluster.ConfigSource{{Object: other}}
	if v, err := cluster.FromManifests(none, cluster.ConfigOptions{}); err != nil || v != (signature.NotPossible{}) {
		t.Errorf("%v, %v", v, err)
	}
	checktest.ErrorIs(t, cluster.ErrNoConfig, checktest.Err(cluster.ReadConfig(none, signature.HTTPOptions{})))
}

func withVersion(u *unstructured.Unstructured, version string) *unstructured.Unstructured {
	u = u.DeepCopy()
	u.SetAPIVersion(version)
	return u
}

func TestConfigWarningsAndSources(t *testing.T) {
	good, bad := newEd25519(keyTime), newEd25519(keyTime)
	cm := &corev1.ConfigMap{Data: map[string]string{
		"verifier-public-key-a": string(armored(t, publicBlock, cat(good.public(cert{}), bad.public(cert{noUserID: true})))),
		"store-a":               "http://a.example", "x": "y",
	}}
	cm.Namespace, cm.Name = "n", "m"
	want := `serial signature store wrapping in-memory signature store, config maps in openshift-config-managed with label "release.openshift.io/verification-signatures", serial signature store wrapping ClusterVersion signatureStores unset, falling back to default stores, parallel signature store wrapping containers/image signature store under http://a.example`
	u := configMap(t, "")
	u.Object["data"] = map[string]any{}
	for key, value := range cm.Data {
		u.Object["data"].(map[string]any)[key] = value
	}
	c := must(cluster.ReadConfig([]cluster.ConfigSource{{Object: u}}, signature.HTTPOptions{}))
	v := must(c.Verifier(cluster.ConfigOptions{Reader: fakeReader{}, Options: signature.Options{Stores: []signature.Store{signature.MemoryStore{}}}}))
	if !strings.HasSuffix(v.String(), want) {
		t.Error(v)
	}
	checktest.Same(t, []string{
		fmt.Sprintf(`%s: key %X in "verifier-public-key-a" is not used: no user id with a valid self-signature`, c.Source, bad.print),
		c.Source + ` has an unknown key "x", which is ignored`,
	}, c.Warnings)
}

func TestConfigMapStore(t *testing.T) {
	prefix := "sha256-" + digestA[7:]
	cm := func(name string, label bool, data map[string]string) map[string]any {
		binary := map[string]any{}
		for k, v := range data {
			binary[k] = base64.StdEncoding.EncodeToString([]byte(v))
		}
		meta := map[string]any{"name": name, "namespace": "openshift-config-managed"}
		if label {
			meta["labels"] = map[string]any{"release.openshift.io/verification-signatures": "x"}
		}
		return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "binaryData": binary}
	}
	r := fakeReader{
		"ConfigMap openshift-config-managed/b": cm("b", true, map[string]string{prefix + "-10": "b10", prefix + "-9": "b9", prefix + "-007": "b7", prefix + "-0": "b0", prefix + "cd-1": "no", prefix + "-x": "no", prefix: "no", prefix + "-": "no", prefix + "-1a": "no", prefix + "-8": ""}),
		"ConfigMap openshift-config-managed/a": cm("a", true, map[string]string{prefix + "-5": "a5"}),
		"ConfigMap openshift-config-managed/c": cm("c", false, map[string]string{prefix + "-1": "no"}),
		"ConfigMap elsewhere/d":                cm("d", true, map[string]string{prefix + "-1": "no"}),
	}
	s := &cluster.ConfigMapStore{Reader: r}
	want := []string{"a5", "[prefix " + prefix + " in config map a" + noMore, "b0", "b7", "b9", "b10", "[prefix " + prefix + " in config map b" + noMore}
	checktest.Same(t, want, collect(t.Context(), s, digestA))
	bad := cm("a", true, nil)
	bad["binaryData"] = map[string]any{prefix + "-1": "!", prefix + "-2": 5, prefix + "-3": "Yw=="}
	got := collect(t.Context(), &cluster.ConfigMapStore{Reader: fakeReader{"ConfigMap openshift-config-managed/a": bad}}, digestA)
	if len(got) != 4 || !strings.HasPrefix(got[0], "[unable to read signature from config map openshift-config-managed/a key "+prefix+"-1: ") || got[2] != "c" {
		t.Error(got)
	}
	many := map[string]string{}
	for i := range 70 {
		many[fmt.Sprintf("%s-%d", prefix, i)] = "x"
	}
	got = collect(t.Context(), &cluster.ConfigMapStore{Reader: fakeReader{"ConfigMap openshift-config-managed/a": cm("a", true, many)}}, digestA)
	if len(got) != 65 || !strings.Contains(got[64], "than the limit of 64") {
		t.Errorf("%d: %v", len(got), got)
	}
	if got := collect(t.Context(), &cluster.ConfigMapStore{Reader: fakeReader{}}, digestA); len(got) != 0 {
		t.Error(got)
	}

	// A failing list is not a reason not to ask the next store.
	got = collect(t.Context(), signature.Serial(&cluster.ConfigMapStore{Reader: fakeReader{"error": nil}}, signature.MemoryStore{digestA: {[]byte("a")}}), digestA)
	if len(got) != 4 || !strings.Contains(got[0], "list failed") || got[1] != "a" {
		t.Error(got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := collect(ctx, s, digestA); len(got) != 1 || !strings.HasPrefix(got[0], "![") {
		t.Error(got)
	}
}

// A field below zero is refused by name.
func TestConfigMapStoreRefusesNegative(t *testing.T) {
	for _, s := range []*cluster.ConfigMapStore{{Timeout: -1}, {MaxConfigMaps: -1}, {MaxSignatures: -1}} {
		for _, err := range s.Candidates(t.Context(), digestA) {
			checktest.ErrorHas(t, "is negative", err)
		}
	}
}

// What is written for a disconnected cluster is found there.
func TestConfigMapRoundTrip(t *testing.T) {
	cm := must(cluster.ConfigMap(digestA, [][]byte{[]byte("a"), []byte("b")}))
	u := must(clusterapi.ToUnstructured(cm))
	if u.GetName() != "sha256-"+digestA[7:] || u.GetNamespace() != "openshift-config-managed" {
		t.Error(u.GetNamespace(), u.GetName())
	}
	got := collect(t.Context(), &cluster.ConfigMapStore{Reader: fakeReader{"ConfigMap openshift-config-managed/x": u.Object}}, digestA)
	if len(got) != 3 || got[0] != "a" || got[1] != "b" || string(cm.BinaryData[cm.Name+"-1"]) != "a" || string(cm.BinaryData[cm.Name+"-2"]) != "b" {
		t.Error(got)
	}
	for _, digest := range []string{"", "sha256:ABC", "sha256:a=b", "a+b:c"} {
		checktest.Fails(t, checktest.Err(cluster.ConfigMap(digest, nil)), "%q: no error", digest)
	}
	checktest.Fails(t, checktest.Err(cluster.ConfigMap(digestA, [][]byte{make([]byte, 1<<20)})), "too large: no error")
}

func TestClusterVersionStore(t *testing.T) {
	found := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/signature-1") {
			w.Write([]byte("custom"))
			return
		}
		w.WriteHeader(404)
	}))
	found.Config.ErrorLog = log.New(io.Discard, "", 0) // refused handshakes are wanted here
	found.StartTLS()
	defer found.Close()
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: found.Certificate().Raw}))
	caMap := func(data map[string]any) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "ca", "namespace": "openshift-config"}, "data": data}
	}
	next := signature.MemoryStore{digestA: {[]byte("default")}}
	const exhausted = "![ClusterVersion spec.signatureStores exhausted without finding a valid signature]"
	with := func(stores string) fakeReader {
		spec := map[string]any{}
		u := object(t, "spec: {"+stores+"}")
		if s, ok := u.Object["spec"].(map[string]any); ok {
			spec = s
		}
		return fakeReader{"ClusterVersion /version": {"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", "metadata": map[string]any{"name": "version"}, "spec": spec}}
	}
	for _, tt := range []struct {
		name        string
		reader      fakeReader
		ca          map[string]any
		o           signature.HTTPOptions
		first, last string
		description string
	}{
		{"unset", with(""), nil, signature.HTTPOptions{}, "default", "", "ClusterVersion signatureStores unset, falling back to default stores"},
		{"null", with("signatureStores: null"), nil, signature.HTTPOptions{}, "default", "", "ClusterVersion signatureStores unset, falling back to default stores"},
		{"empty", with("signatureStores: []"), nil, signature.HTTPOptions{}, "![ClusterVersion spec.signatureStores is an empty array. Unset signatureStores entirely if you want to enable the default signature stores]", "", "0 ClusterVersion signatureStores"},
		{"missing object", fakeReader{}, nil, signature.HTTPOptions{}, "![unable to read spec.signatureStores of ClusterVersion version: ", "", ""},
		{"too many", with("signatureStores: [" + strings.Repeat("{url: 'https://x'}, ", 33) + "]"), nil, signature.HTTPOptions{}, "![ClusterVersion spec.signatureStores has 33 items, more than the limit of 32]", "", ""},
		{"scheme", with("signatureStores: [{url: 'ftp://u:p@x/a'}]"), nil, signature.HTTPOptions{}, "![the store ftp://x/a scheme is unrecognized]", "", "ClusterVersion signatureStores: ftp://x/a"},
		{"found", with("signatureStores: [{url: '" + found.URL + "'}, {url: '" + found.URL + "/b'}]"), nil, signature.HTTPOptions{Transport: found.Client().Transport}, "custom", exhausted, "ClusterVersion signatureStores: " + found.URL + ", " + found.URL + "/b"},
		{"not trusted", with("signatureStores: [{url: '" + found.URL + "'}]"), nil, signature.HTTPOptions{}, "[Get ", exhausted, ""},
		{"ca", with("signatureStores: [{url: '" + found.URL + "', ca: {name: ca}}]"), caMap(map[string]any{"ca.crt": ca}), signature.HTTPOptions{}, "custom", exhausted, ""},
		{"ca replaces the transport's", with("signatureStores: [{url: '" + found.URL + "', ca: {name: ca}}]"), caMap(map[string]any{"ca.crt": ca}), signature.HTTPOptions{Transport: &http.Transport{}}, "custom", exhausted, ""},
		{"ca without a map", with("signatureStores: [{url: '" + found.URL + "', ca: {name: ca}}]"), nil, signature.HTTPOptions{}, "[signature store " + found.URL + " is not honoured: certificate authorities of config map openshift-config/ca: ", exhausted, ""},
		{"ca without its key", with("signatureStores: [{url: '" + found.URL + "', ca: {name: ca}}]"), caMap(map[string]any{"ca": ca}), signature.HTTPOptions{}, "[signature store " + found.URL + " is not honoured: certificate authorities of config map openshift-config/ca: no key ca.crt]", exhausted, ""},
		{"ca broken", with("signatureStores: [{url: '" + found.URL + "', ca: {name: ca}}]"), caMap(map[string]any{"ca.crt": "x"}), signature.HTTPOptions{Transport: found.Client().Transport}, "[signature store " + found.URL + " is not honoured", exhausted, ""},
		{"ca of a foreign transport", with("signatureStores: [{url: '" + found.URL + "', ca: {name: ca}}]"), caMap(map[string]any{"ca.crt": ca}), serve(nil), "[signature store " + found.URL + " is not honoured", exhausted, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.ca != nil {
				tt.reader["ConfigMap openshift-config/ca"] = tt.ca
			}
			s := &cluster.ClusterVersionStore{Reader: tt.reader, HTTP: tt.o}
			got := collect(t.Context(), signature.Serial(s, next), digestA)
			if !strings.HasPrefix(got[0], tt.first) || tt.last != "" && got[len(got)-1] != tt.last {
				t.Errorf("%v, want %q … %q", got, tt.first, tt.last)
			}
			if tt.description != "" && s.String() != tt.description {
				t.Errorf("described as %q", s)
			}
		})
	}
}

// The stores that a ClusterVersion names trust the proxy's authorities and the
// system's.
func TestClusterVersionStoreTrustsTheProxysAuthorities(t *testing.T) {
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "custom") }))
	defer secure.Close()
	api := memory.NewOpenShift(memory.Options{})
	u := object(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: trusted-ca-bundle, namespace: openshift-config-managed}\n")
	u.Object["data"] = map[string]any{"ca-bundle.crt": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}))}
	cv := object(t, "apiVersion: config.openshift.io/v1\nkind: ClusterVersion\nmetadata: {name: version}\nspec: {clusterID: x, signatureStores: [{url: '"+secure.URL+"'}]}\n")
	checktest.OK(t, api.Load(u, cv))
	e := must(clusterapi.ReadEgress(t.Context(), api))
	o := signature.HTTPOptions{Proxy: e.Proxy, RootCAs: e.RootCAs, Bundle: e.Bundle}
	got := collect(t.Context(), &cluster.ClusterVersionStore{Reader: api, HTTP: o}, digestA)
	checktest.Equal(t, "custom", got[0], "got[0] (%v)", got)
}

// The update service serves signatures below /signatures, with its own words
// for what it does not have.
func TestUpdateServiceServesAStore(t *testing.T) {
	k := newEd25519(keyTime)
	service := func(w http.ResponseWriter, r *http.Request) {
		path, ok := strings.CutPrefix(r.URL.Path, "/api/upgrades_info/signatures/")
		parts := strings.Split(path, "/")
		fail := func(status int, kind string) {
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"kind":%q}`, kind)
		}
		switch {
		case !ok || len(parts) != 2 || strings.Count(parts[0], "=") != 1:
			fail(http.StatusBadRequest, "invalid_params")
		case !strings.HasPrefix(parts[0], "sha256="):
			fail(http.StatusBadRequest, "invalid_params")
		case parts[0] == "sha256="+digestA[7:] && parts[1] == "signature-1":
			w.Write(k.message(msg{}))
		default:
			fail(http.StatusNotFound, "does_not_exist")
		}
	}
	s := must(signature.NewHTTPStore("http://updates.example/api/upgrades_info/signatures", serve(service)))
	checktest.Good(t, checktest.Err(
		signature.NewVerifier([]*signature.Keyring{ring(t, k.public(cert{}))}, s).Verify(t.Context(), digestA)))
	if got := collect(t.Context(), s, digestB); len(got) != 1 || !strings.Contains(got[0], "no more signatures") {
		t.Error(got)
	}
	if got := collect(t.Context(), s, "md5:abc"); len(got) != 10 || !strings.Contains(got[0], "response status 400") {
		t.Error(got)
	}
}
