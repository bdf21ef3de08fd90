package signature_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/signature/cluster"
)

// Each rule admits its own case, and no other rule does.
func TestCompatRules(t *testing.T) {
	type rules = signature.CompatRules
	ed := newEd25519(keyTime)
	rsaKey := rsa2048()
	short := rsa2048().public(cert{lifetime: day})
	loose := strings.Replace(string(statement(digestA)), `"critical"`, `"CRITICAL"`, 1)
	nested := ed.message(msg{})
	for range 31 {
		nested = compressed(nested)
	}
	cases := []struct {
		name    string
		rule    rules
		ring    []byte
		message []byte
	}{
		{"MD5", rules{WeakHashes: true}, rsaKey.public(cert{}), rsaKey.message(msg{sig: sig{hash: 1}})},
		{"SHA-1", rules{WeakHashes: true}, rsaKey.public(cert{}), rsaKey.message(msg{sig: sig{version: 3, hash: 2}})},
		{"SHA-224", rules{WeakHashes: true}, rsaKey.public(cert{}), rsaKey.message(msg{sig: sig{hash: 11}})},
		{"RSA 1024", rules{WeakKeys: true}, rsa1024().public(cert{}), rsa1024().message(msg{})},
		{"DSA", rules{WeakKeys: true}, dsaKey().public(cert{}), dsaKey().message(msg{})},
		{"data after the message", rules{TrailingData: true}, ed.public(cert{}), cat(ed.message(msg{}), []byte("more"))},
		{"a second message", rules{TrailingData: true}, ed.public(cert{}), cat(ed.message(msg{}), ed.message(msg{}))},
		{"data after the compressed stream", rules{TrailingData: true}, ed.public(cert{}), cat(compressed(ed.message(msg{})), []byte("more"))},
		{"data after the compressed packet", rules{TrailingData: true}, ed.public(cert{}), cat(pkt(8, []byte{1}, deflated(ed.message(msg{}))), []byte("more"))},
		{"data after the statement", rules{TrailingData: true}, ed.public(cert{}), ed.message(msg{body: cat(statement(digestA), []byte("{}"))})},
		{"keys in other case", rules{LooseJSON: true}, ed.public(cert{}), ed.message(msg{body: []byte(loose)})},
		{"a key twice", rules{LooseJSON: true}, ed.public(cert{}), ed.message(msg{body: []byte(strings.Replace(string(statement(digestA)), `"type"`, `"type": "x", "type"`, 1))})},
		{"invalid UTF-8", rules{LooseJSON: true}, ed.public(cert{}), ed.message(msg{body: []byte(strings.Replace(string(statement(digestA)), `"test"`, "\"\xff\"", 1))})},
		{"31 compressions", rules{NestedCompression: true}, ed.public(cert{}), nested},
		{"expired key", rules{ExpiredKeys: true}, short, rsaKey.message(msg{})},
	}
	all := reflect.TypeFor[rules]()
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			r := ring(t, tt.ring)
			if _, err := verify(t, r, tt.message, signature.Options{}); err == nil {
				t.Error("accepted without any rule")
			}
			if _, err := verify(t, r, tt.message, signature.Options{Rules: tt.rule}); err != nil {
				t.Errorf("refused under its rule: %v", cause(err))
			}
			if _, err := verify(t, r, tt.message, signature.Options{Compat: true}); err != nil {
				t.Errorf("refused under all rules: %v", cause(err))
			}
			others := signature.OperatorRules()
			for i := range all.NumField() {
				if reflect.ValueOf(tt.rule).Field(i).Bool() {
					reflect.ValueOf(&others).Elem().Field(i).SetBool(false)
				}
			}
			if _, err := verify(t, r, tt.message, signature.Options{Rules: others}); err == nil {
				t.Error("accepted under the other rules")
			}
		})
	}

	// What stays refused under every rule.
	for name, m := range map[string][]byte{
		"32 compressions": compressed(nested), "bomb": compressed(ed.message(msg{body: make([]byte, 2<<20)})),
		"altered": ed.message(msg{sig: sig{badTag: true}}), "nested signatures": ed.message(msg{notLast: true}),
		"other digest":         ed.message(msg{body: statement(digestB)}),
		"unknown key":          ed.message(msg{body: []byte(strings.Replace(string(statement(digestA)), `"type"`, `"x": 1, "type"`, 1))}),
		"unknown key, capital": ed.message(msg{body: []byte(strings.Replace(string(statement(digestA)), `"creator"`, `"X": 1, "creator"`, 1))}),
	} {
		if _, err := verify(t, ring(t, ed.public(cert{})), m, signature.Options{Compat: true}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	loosened := signature.Options{Rules: rules{LooseJSON: true}, IgnoreUnknownOptional: true}
	for body, ok := range map[string]bool{
		strings.Replace(loose, `"creator"`, `"x": 1, "creator"`, 1): true,
		strings.Replace(loose, `"type"`, `"x": 1, "type"`, 1):       false,
		loose + " \n":          true,
		loose + "{}":           false,
		`{"optional": "text"}`: false,
	} {
		if _, err := verify(t, ring(t, ed.public(cert{})), ed.message(msg{body: []byte(body)}), loosened); (err == nil) != ok {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestCompatKeyrings(t *testing.T) {
	type rules = signature.CompatRules
	ed := newEd25519(keyTime)
	if _, err := signature.ParseKeyring("ring", nil); err == nil {
		t.Error("empty value: no error")
	}
	empty, err := rules{EmptyKeyrings: true}.ParseKeyring("ring", nil)
	if err != nil || len(empty.Keys()) != 0 {
		t.Error(empty, err)
	}
	if _, err := verify(t, empty, ed.message(msg{}), signature.Options{}); err == nil {
		t.Error("an empty keyring was satisfied")
	}
	if _, err := (rules{EmptyKeyrings: true}).ParseKeyring("ring", []byte(" \n")); err == nil {
		t.Error("white space: no error")
	}

	two := cat(armored(t, publicBlock, rsa2048().public(cert{uid: "One"})), armored(t, publicBlock, rsa1024().public(cert{uid: "Two"})))
	for _, tt := range []struct {
		rules rules
		want  int
	}{{rules{}, 2}, {rules{FirstBlock: true}, 1}} {
		if r, err := tt.rules.ParseKeyring("ring", two); err != nil || len(r.Keys()) != tt.want {
			t.Errorf("%+v: %v %v", tt.rules, r, err)
		}
	}

	mixed := cat(rsa2048().public(cert{extra: rsa2048().subkey(ed, nil, 0, true)}), newEd25519v2().public(cert{}))
	r, err := rules{NoEd25519: true}.ParseKeyring("ring", mixed)
	if err != nil || len(r.Keys()) != 1 || len(r.Skipped()) != 2 || len(r.Keys()[0].Subkeys) != 0 || !strings.Contains(r.Skipped()[0].Reason, "unsupported public key algorithm 22") {
		t.Errorf("%v %+v %v", r, r.Skipped(), err)
	}
}

// A list of ConfigMaps that fails ends the search only where the operator is
// followed, by the store's own field and through a payload's configuration.
func TestCompatLists(t *testing.T) {
	k := newEd25519(keyTime)
	for compat, want := range map[bool]bool{false: true, true: false} {
		store := &cluster.ConfigMapStore{Reader: fakeReader{"error": nil}, Compat: compat}
		_, err := signature.NewVerifier([]*signature.Keyring{ring(t, k.public(cert{}))}, store, signature.MemoryStore{digestA: {k.message(msg{})}}).Verify(t.Context(), digestA)
		if (err == nil) != want {
			t.Errorf("compat %v: %v", compat, err)
		}
	}
}

func TestCompatRedirects(t *testing.T) {
	var leaked string
	end := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leaked += r.Header.Get("Authorization")
		fmt.Fprint(w, "found")
	}))
	defer end.Close()
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, end.URL, http.StatusFound)
	}))
	defer secure.Close()
	loops := 0
	loop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		loops++
		http.Redirect(w, r, r.URL.Path, http.StatusFound)
	}))
	defer loop.Close()
	get := func(url string, o signature.HTTPOptions) []string {
		s := must(signature.NewHTTPStore(strings.Replace(url, "://", "://user:secret@", 1), o))
		defer s.CloseIdleConnections()
		return collect(t.Context(), s, digestA)
	}
	if got := get(secure.URL, signature.HTTPOptions{Transport: secure.Client().Transport}); strings.Contains(fmt.Sprint(got), "found ") || len(got) != 3 {
		t.Error(got)
	}
	if got := get(secure.URL, signature.HTTPOptions{Transport: secure.Client().Transport, Compat: true}); got[0] != "found" || leaked != "" {
		t.Errorf("%v, leaked %q", got, leaked)
	}
	if got := get(loop.URL, signature.HTTPOptions{Compat: true}); loops != 2*11 || !strings.Contains(got[0], "stopped after 10 redirects") {
		t.Errorf("%d requests: %v", loops, got)
	}
}
