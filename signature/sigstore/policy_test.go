package sigstore_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/signature/sigstore"
)

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	checktest.OK(t, yaml.Unmarshal([]byte(text), &u.Object))
	return u
}

// policyObject returns a policy with the given root of trust and the rest of
// its policy.
func policyObject(t testing.TB, kind, version, name, namespace, scopes, policy string) *unstructured.Unstructured {
	return object(t, fmt.Sprintf("apiVersion: config.openshift.io/%s\nkind: %s\nmetadata: {name: %s, namespace: %q}\nspec: {scopes: %s, policy: %s}\n", version, kind, name, namespace, scopes, policy))
}

func keyed(data []byte) string {
	return fmt.Sprintf("{policyType: PublicKey, publicKey: {keyData: %s}}", base64.StdEncoding.EncodeToString(data))
}

// one is a cluster with one object.
type one struct {
	clusterapi.Reader
	u *unstructured.Unstructured
}

func (o one) List(_ context.Context, gvk schema.GroupVersionKind, _ clusterapi.ListOptions) (*unstructured.UnstructuredList, error) {
	list := &unstructured.UnstructuredList{}
	if o.u.GroupVersionKind() == gvk {
		list.Items = append(list.Items, *o.u)
	}
	return list, nil
}

// decode reads a policy from a cluster; nil if it is none.
func decode(t testing.TB, u *unstructured.Unstructured) (*sigstore.Policy, error) {
	all, err := sigstore.ReadPolicies(t.Context(), one{u: u})
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return all[0], nil
}

func TestDecodePolicy(t *testing.T) {
	root := keyed(pemOf(rsa2048()))
	good := "{rootOfTrust: " + root + "}"
	identity := func(s string) string { return "{rootOfTrust: " + root + ", signedIdentity: " + s + "}" }
	accept := func(name string, u *unstructured.Unstructured, image, signed string, want bool) {
		t.Helper()
		p, err := decode(t, u)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		_, err = p.Verify(t.Context(), image+"@"+digestA, sigstore.MemorySource{digestA: {attach(rsa2048(), payload(digestA, signed))}})
		checktest.Equal(t, want, err == nil, "%s: %v", name, err)
	}
	cluster := func(policy string) *unstructured.Unstructured {
		return policyObject(t, "ClusterImagePolicy", "v1", "openshift", "", "["+repo+"]", policy)
	}
	accept("plain", cluster(good), repo, named, true)
	accept("plain, other name", cluster(good), "m.example/x", named, false)
	accept("older version", policyObject(t, "ClusterImagePolicy", "v1alpha1", "openshift", "", "[quay.io]", good), repo, named, true)
	accept("namespaced", policyObject(t, "ImagePolicy", "v1", "p", "ns", "['*.example.com']", good), repo, named, true)
	accept("repository", cluster(identity("{matchPolicy: MatchRepository}")), repo, repo, true)
	accept("exact", cluster(identity("{matchPolicy: ExactRepository, exactRepository: {repository: "+repo+"}}")), "m.example/x", named, true)
	accept("remap", cluster(identity("{matchPolicy: RemapIdentity, remapIdentity: {prefix: m.example/r, signedPrefix: quay.io/openshift-release-dev}}")), "m.example/r/ocp-release", named, true)

	p, err := decode(t, policyObject(t, "ImagePolicy", "v1", "p", "ns", "[a.io, b.io/c]", good))
	if err != nil || p.Name != "ImagePolicy ns/p" || p.Namespace != "ns" || len(p.Scopes) != 2 {
		t.Errorf("%+v %v", p, err)
	}

	text := string(pemOf(rsa2048()))
	data := func(s string) string { return "{rootOfTrust: " + keyed([]byte(s)) + "}" }
	for _, tt := range []struct {
		name string
		u    *unstructured.Unstructured
		want string
	}{
		{"field of another type", policyObject(t, "ClusterImagePolicy", "v1", "p", "", "5", good), "ClusterImagePolicy p: "},
		{"no scope", policyObject(t, "ClusterImagePolicy", "v1", "p", "", "[]", good), "ClusterImagePolicy p: spec.scopes: at least one"},
		{"scopes", policyObject(t, "ClusterImagePolicy", "v1", "p", "", "["+strings.Repeat("a.io, ", 257)+"]", good), "spec.scopes: 257 items"},
		{"scope without a dot", policyObject(t, "ClusterImagePolicy", "v1", "p", "", "[a.io, busybox]", good), "spec.scopes[1]: must begin with a host"},
		{"scope path", policyObject(t, "ClusterImagePolicy", "v1", "p", "", "[a.io/B]", good), "spec.scopes[0]"},
		{"scope wildcard", policyObject(t, "ClusterImagePolicy", "v1", "p", "", "['*.a.io/b']", good), "a wildcard stands for hosts"},
		{"scope wildcard inside", policyObject(t, "ClusterImagePolicy", "v1", "p", "", "['a.*.io']", good), "must begin with a host"},
		{"scope with an end", policyObject(t, "ClusterImagePolicy", "v1", "p", "", "['a.io/']", good), "spec.scopes[0]"},
		{"scope length", policyObject(t, "ClusterImagePolicy", "v1", "p", "", "[a.io/"+strings.Repeat("a", 508)+"]", good), "513 characters"},
		{"no type", cluster("{rootOfTrust: {}}"), `policyType: "" is none of`},
		{"unknown type", cluster("{rootOfTrust: {policyType: X}}"), `policyType: "X" is none of`},
		{"no key", cluster("{rootOfTrust: {policyType: PublicKey}}"), "rootOfTrust.publicKey: must be set if, and only if, policyType is PublicKey"},
		{"other sibling", cluster("{rootOfTrust: {policyType: PKI, publicKey: {keyData: ''}}}"), "rootOfTrust.pki: must be set"},
		{"short key", cluster(data("x")), "publicKey.keyData: 4 characters of base64: 68 to 8192 are accepted"},
		{"long key", cluster(data("-----BEGIN PUBLIC KEY-----\n" + strings.Repeat("A", 6100) + "\n-----END PUBLIC KEY-----")), "publicKey.keyData: 8204 characters"},
		{"key with text", cluster(data("x" + text)), "must begin with -----BEGIN PUBLIC KEY-----"},
		{"key with two newlines", cluster(data(text + "\n")), "and end with"},
		{"two keys", cluster(data(text + text)), "one key is expected"},
		{"broken key", cluster(data("-----BEGIN PUBLIC KEY-----\n" + strings.Repeat("A", 60) + "\n-----END PUBLIC KEY-----")), "malformed"},
		{"key that is not base64", cluster("{rootOfTrust: {policyType: PublicKey, publicKey: {keyData: '!'}}}"), "ClusterImagePolicy openshift: "},
		{"identity without a policy", cluster(identity("{}")), "signedIdentity.matchPolicy: is required"},
		{"unknown identity", cluster(identity("{matchPolicy: X}")), `matchPolicy "X" is unknown`},
		{"exact without a repository", cluster(identity("{matchPolicy: ExactRepository}")), "signedIdentity.exactRepository: must be set"},
		{"exact with a tag", cluster(identity("{matchPolicy: ExactRepository, exactRepository: {repository: 'a.io/b:1'}}")), "neither tag nor digest"},
		{"remap of no host", cluster(identity("{matchPolicy: RemapIdentity, remapIdentity: {prefix: a, signedPrefix: a.io}}")), "remapIdentity.prefix"},
		{"remap beside another policy", cluster(identity("{matchPolicy: MatchRepository, remapIdentity: {prefix: a.io, signedPrefix: b.io}}")), "signedIdentity.remapIdentity: must be set if, and only if"},
		{"fulcio lacks all", cluster("{rootOfTrust: {policyType: FulcioCAWithRekor, fulcioCAWithRekor: {}}}"), "signedEmail: is required"},
		{"pki lacks a subject", cluster("{rootOfTrust: {policyType: PKI, pki: {caRootsData: QQ==}}}"), "pkiCertificateSubject: email or hostname is required"},
	} {
		checktest.ErrorHas(t, tt.want, checktest.Err(decode(t, tt.u)))
	}
}

func TestScopes(t *testing.T) {
	all := sigstore.Policies{
		{Name: "host", Scopes: []string{"quay.io"}},
		{Name: "namespace", Scopes: []string{"quay.io/o"}},
		{Name: "repository", Scopes: []string{"quay.io/o/rel"}},
		{Name: "tag", Scopes: []string{"quay.io/o/rel:1"}},
		{Name: "digest", Scopes: []string{"quay.io/o/rel@" + digestA}},
		{Name: "wildcard", Scopes: []string{"*.example.com"}},
		{Name: "deeper wildcard", Scopes: []string{"*.deep.example.com"}},
		{Name: "second", Scopes: []string{"quay.io/o/rel"}},
		{Name: "local", Scopes: []string{"localhost:5000"}},
		{Name: "mine", Namespace: "ns", Scopes: []string{"other.io", "quay.io/o/rel/deep", "quay.io", "a.example.com", "quay.iox"}},
		{Name: "theirs", Namespace: "elsewhere", Scopes: []string{"other.io"}},
	}
	for _, tt := range []struct {
		image, namespace string
		want             []string
	}{
		{"quay.io/x/y:1", "", []string{"host"}},
		{"quay.io/o/y:1", "", []string{"namespace"}},
		{"quay.io/o/rel:2", "", []string{"repository", "second"}},
		{"quay.io/o/relx:2", "", []string{"namespace"}},
		{"quay.io/o/rel:1", "", []string{"tag"}},
		{"quay.io/o/rel@" + digestA, "", []string{"digest"}},
		{"quay.io/o/rel:1@" + digestA, "", []string{"digest"}},
		{"quay.io/o/rel@" + digestB, "", []string{"repository", "second"}},
		{"quay.io/o/rel/deep:1", "ns", []string{"repository", "second"}}, // within a cluster's scope
		{"a.example.com/x:1", "ns", []string{"wildcard"}},                // likewise
		{"a.deep.example.com/x:1", "", []string{"deeper wildcard"}},
		{"example.com/x:1", "", nil},
		{"quay.iox/x:1", "ns", []string{"mine"}},
		{"other.io/x:1", "ns", []string{"mine"}},
		{"other.io/x:1", "elsewhere", []string{"theirs"}},
		{"other.io/x:1", "", nil},
		{"localhost:5000/x:1", "", []string{"local"}},
		{"localhost:5001/x:1", "", nil},
		{"busybox", "", nil},
	} {
		got, err := all.For(tt.image, tt.namespace)
		var names []string
		for _, p := range got {
			names = append(names, p.Name)
		}
		if diff := cmp.Diff(tt.want, names); diff != "" || err != nil {
			t.Errorf("%s in %q: %v %s", tt.image, tt.namespace, err, diff)
		}
	}
	checktest.Fails(t, checktest.Err(all.For("A B", "")), "a name that is none: no error")
}

// All policies of one scope must be satisfied; an image that none governs needs
// nothing.
func TestPoliciesOfACluster(t *testing.T) {
	api := memory.NewOpenShift(memory.Options{})
	for i, k := range [][]byte{pemOf(rsa2048()), pemOf(ed())} {
		checktest.OK(t,
			api.Load(policyObject(t, "ClusterImagePolicy", "v1", fmt.Sprint("p", i),
				"", "["+repo+"]", "{rootOfTrust: "+keyed(k)+"}")))
	}
	all := checktest.Get(sigstore.ReadPolicies(t.Context(), api))(t)
	checktest.Equal(t, 2, len(all), "len(all) of %v", all)
	body := payload(digestA, named)
	image := repo + "@" + digestA
	both := sigstore.MemorySource{digestA: {attach(ed(), body), attach(rsa2048(), body)}}
	if v, err := all.Verify(t.Context(), image, "", both); err != nil || len(v.Signers) != 2 {
		t.Error(v, err)
	}
	checktest.ErrorHas(t, "cryptographic signature verification failed", checktest.Err(
		all.Verify(t.Context(), image, "", sigstore.MemorySource{digestA: {attach(ed(), body)}})))
	if v, err := all.Verify(t.Context(), "other.io/x@"+digestA, "", both); err != nil || len(v.Signers) != 0 {
		t.Error(v, err)
	}
	checktest.Fails(t, checktest.Err(all.Verify(t.Context(), "A B", "", both)), "no image: no error")

	checktest.OK(t, api.Load(policyObject(t, "ClusterImagePolicy", "v1", "bad", "", "[]", "{rootOfTrust: {}}")))
	checktest.ErrorHas(t, "ClusterImagePolicy bad: ", checktest.Err(sigstore.ReadPolicies(t.Context(), api)))
	down := memory.NewOpenShift(memory.Options{Intercept: func(context.Context, memory.Call, func(context.Context) error) error { return errors.New("down") }})
	checktest.Fails(t, checktest.Err(sigstore.ReadPolicies(t.Context(), down)), "no error")
	none := memory.NewOpenShift(memory.Options{})
	if p, err := sigstore.ReadPolicies(t.Context(), none); err != nil || len(p) != 0 {
		t.Errorf("a cluster without the kinds: %v %v", p, err)
	}
}

func FuzzPolicy(f *testing.F) {
	good, _ := policyObject(f, "ClusterImagePolicy", "v1", "p", "", "[quay.io]", "{rootOfTrust: "+keyed(pemOf(ed()))+"}").MarshalJSON()
	f.Add(good)
	f.Add([]byte(`{"apiVersion":"config.openshift.io/v1","kind":"ImagePolicy","spec":{"scopes":["*.a"],"policy":{"rootOfTrust":{"policyType":"PKI"}}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		u := &unstructured.Unstructured{}
		if u.UnmarshalJSON(data) != nil {
			return
		}
		p, err := decode(t, u)
		if err == nil && p != nil && len(p.Keys) == 0 && p.Fulcio == nil && p.PKI == nil {
			t.Errorf("a policy without a root of trust: %+v", p)
		}
	})
}
