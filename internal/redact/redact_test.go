package redact_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/redact"
)

// key makes the digits the same in each run.
var key = []byte("of these tests")

func TestHidden(t *testing.T) {
	r := redact.New(key)
	for _, tt := range []struct {
		value any
		want  string
	}{
		// As by printf %s TEXT | openssl sha256 -mac HMAC -macopt hexkey:$(printf 'of these tests' | sha256sum | cut -c-64).
		{"hunter2", "(redacted-51c7085e575e)"},
		{`{"a":1}`, "(redacted-db25fc325b91)"},
		{map[string]any{"a": 1}, "(redacted-db25fc325b91)"},
	} {
		checktest.Equal(t, tt.want, r.Hidden(tt.value), "%v", tt.value)
	}
	got := r.Hidden(func() {})
	checktest.FailIf(t, !strings.HasPrefix(got, "(redacted-"), "what JSON cannot hold: %s", got)
	checktest.Equal(t, r.Hidden("hunter2"), r.Hidden(r.Hidden("hunter2")), "hidden twice")
	a, b := redact.New(nil), redact.New(nil)
	x := a.Hidden("x")
	again := a.Hidden("x")
	checktest.FailIf(t, x == b.Hidden("x") || x != again || x == a.Hidden("y"), "the key of a report is not its own")
	checktest.Equal(t, "(redacted)", new(redact.Redactor).Hidden("x"), "without a key")
}

func TestValue(t *testing.T) {
	r := redact.New(key)
	const pem = "-----BEGIN EC PRIVATE KEY-----\nhunter2\n-----END EC PRIVATE KEY-----\n"
	zipped := func(s string) string {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		w.Write([]byte(s))
		w.Close()
		return base64.StdEncoding.EncodeToString(b.Bytes())
	}
	const kubeconfig = "apiVersion: v1\nkind: Config\ncurrent-context: a\nusers:\n- name: a\n  user: {token: hunter2}\n"
	hidden := r.Hidden("hunter2")
	for _, tt := range []struct {
		name      string
		value, to any
	}{
		{"plain", map[string]any{"a": []any{int64(1), "b", nil, true}}, map[string]any{"a": []any{int64(1), "b", nil, true}}},
		{"key", map[string]any{"adminPassword": "hunter2"}, map[string]any{"adminPassword": hidden}},
		{"key with separators", map[string]any{"api-key": "hunter2"}, map[string]any{"api-key": hidden}},
		{"whole object", map[string]any{"credentials": map[string]any{"user": "a"}}, map[string]any{"credentials": r.Hidden(map[string]any{"user": "a"})}},
		{"reference", map[string]any{"credentials": map[string]any{"name": "a"}}, map[string]any{"credentials": map[string]any{"name": "a"}}},
		{"variable", []any{map[string]any{"name": "DB_PASSWD", "value": "hunter2"}}, []any{map[string]any{"name": "DB_PASSWD", "value": hidden}}},
		{"variable, abbreviated", []any{map[string]any{"name": "DB_PASS", "value": "hunter2"}}, []any{map[string]any{"name": "DB_PASS", "value": hidden}}},
		{"other variable", []any{map[string]any{"name": "LEVEL", "value": "2"}}, []any{map[string]any{"name": "LEVEL", "value": "2"}}},
		{"variable with an address", []any{map[string]any{"name": "DB", "value": "postgres://me:hunter2@db/x?sslmode=off"}}, []any{map[string]any{"name": "DB", "value": "postgres://" + r.Hidden("me:hunter2") + "@db/x?" + r.Hidden("sslmode=off")}}},
		{"volume", map[string]any{"secret": map[string]any{"secretName": "s", "token": "hunter2"}}, map[string]any{"secret": map[string]any{"secretName": "s", "token": hidden}}},
		{"secret", map[string]any{"secret": "hunter2"}, map[string]any{"secret": hidden}},
		{"what names one", map[string]any{"tokenSecretRef": "a"}, map[string]any{"tokenSecretRef": "a"}},
		{"last applied", map[string]any{"kubectl.kubernetes.io/last-applied-configuration": "hunter2"}, map[string]any{"kubectl.kubernetes.io/last-applied-configuration": hidden}},
		{"header of a probe", map[string]any{"httpHeaders": []any{map[string]any{"name": "X-Who", "value": "hunter2"}, map[string]any{"name": "Accept", "value": "*/*"}}},
			map[string]any{"httpHeaders": []any{map[string]any{"name": "X-Who", "value": hidden}, map[string]any{"name": "Accept", "value": "*/*"}}}},
		{"route", map[string]any{"tls": map[string]any{"key": "hunter2", "certificate": "c"}}, map[string]any{"tls": map[string]any{"key": hidden, "certificate": "c"}}},
		{"file", map[string]any{"files": []any{map[string]any{"path": "/a", "contents": map[string]any{"source": "hunter2"}, "append": []any{map[string]any{"source": "hunter2"}}}}},
			map[string]any{"files": []any{map[string]any{"path": "/a", "contents": map[string]any{"source": hidden}, "append": []any{map[string]any{"source": hidden}}}}}},
		{"key of a config map", map[string]any{"data": map[string]any{"tls.key": "hunter2", "tls.crt": "c", ".dockercfg": "hunter2"}}, map[string]any{"data": map[string]any{"tls.key": hidden, "tls.crt": "c", ".dockercfg": hidden}}},
		{"arguments", []any{"--token=hunter2", "--password", "hunter2", "--token-file", "/a", "-v"}, []any{"--token=" + hidden, "--password", hidden, "--token-file", "/a", "-v"}},
		{"command line", "run --password hunter2 --v 2", "run --password " + hidden + " --v 2"},
		{"JSON in a text", `{"a": 1, "token": "hunter2"}`, `{"a": 1, "token": "` + hidden + `"}`},
		{"JSON in JSON", `{"a": "{\"token\":\"hunter2\"}"}`, nil},
		{"YAML in a text", "a: 1\npassphrase: hunter2 \nb: 2\n", "a: 1\npassphrase: " + r.Hidden("hunter2 ") + "\nb: 2\n"},
		{"YAML over lines", "a: 1\npassphrase: |\n  hunter2\n", nil},
		{"properties", "a=1\ndb.password = hunter2\n", "a=1\ndb.password = " + hidden + "\n"},
		{"pull secret", `{"auths":{"quay.io":{"auth":"aHVudGVyMg=="}}}`, nil},
		{"kubeconfig", kubeconfig, nil},
		{"kubeconfig in base64", base64.StdEncoding.EncodeToString([]byte(kubeconfig)), nil},
		{"kubeconfig in gzip", zipped(kubeconfig), nil},
		{"private key", "-----BEGIN EC PRIVATE KEY-----\nhunter2\n", nil},
		{"private key in base64", base64.StdEncoding.EncodeToString([]byte(pem)), nil},
		{"data URL", "data:text/plain;base64,aHVudGVyMg==", "data:text/plain;base64," + r.Hidden("aHVudGVyMg==")},
		{"user in a URL", "https://me:hunter2@example.com", "https://" + r.Hidden("me:hunter2") + "@example.com"},
		{"query and fragment", "https://example.com/a?b=hunter2#c", "https://example.com/a?" + r.Hidden("b=hunter2") + "#" + r.Hidden("c")},
		{"URL that cannot be parsed", "https://me:hun/ter2@example.com", "https://" + r.Hidden("me:hun/ter2@example.com")},
		{"URL with a space", "https://me:hun ter2@example.com", "https://" + r.Hidden("me:hun ter2@example.com")},
		{"URL without a scheme", "me:hunter2@example.com:3128", r.Hidden("me:hunter2") + "@example.com:3128"},
		{"bearer token", "Authorization: Bearer abcdefghijklmnopqrst", nil},
		{"web token", "x eyJhbGciOiJIUzI1NiJ9.e30.abc y", "x " + r.Hidden("eyJhbGciOiJIUzI1NiJ9.e30.abc") + " y"},
		{"certificate", "-----BEGIN CERTIFICATE-----\nx\n", "-----BEGIN CERTIFICATE-----\nx\n"},
		{"image", "quay.io:5000/token-minter:v1@sha256:0123", "quay.io:5000/token-minter:v1@sha256:0123"},
		{"image with a tag", "example.com/token-minter:v1", "example.com/token-minter:v1"},
		{"script", "exec start --v=2 --port=8443 --tls-private-key-file=/a/tls.key", "exec start --v=2 --port=8443 --tls-private-key-file=/a/tls.key"},
		{"at in a path", "https://example.com/a@sha256:1", "https://example.com/a@sha256:1"},
	} {
		if tt.to == nil {
			tt.to = r.Hidden(tt.value)
			if strings.Contains(tt.name, "bearer") {
				tt.to = "Authorization: " + r.Hidden("Bearer "+r.Hidden("abcdefghijklmnopqrst"))
			}
			if tt.name == "JSON in JSON" {
				got := r.Value(tt.value).(string)
				checktest.FailIf(t, strings.Contains(got, "hunter2"), "%s: %s", tt.name, got)
				continue
			}
		}
		before, _ := json.Marshal(tt.value)
		checktest.SameIn(t, tt.name, tt.to, r.Value(tt.value))
		after, _ := json.Marshal(tt.value)
		checktest.FailIf(t, string(after) != string(before), "%s: was %s, became %s", tt.name, before, after)
	}
}

func TestObject(t *testing.T) {
	r := redact.New(key)
	hidden := r.Hidden("hunter2")
	schema := func(def any) map[string]any {
		return map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": map[string]any{"properties": map[string]any{
			"token": map[string]any{"type": "string", "description": "password: 12", "default": def}}}}
	}
	for _, tt := range []struct {
		name            string
		object, to, rec map[string]any
	}{
		{"Secret", map[string]any{"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": map[string]any{"a": "hunter2"}},
			map[string]any{"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": map[string]any{"a": hidden}}, nil},
		{"definition", schema("hunter2"), schema(hidden), nil},
		{"types", map[string]any{"apiVersion": "x/v1", "kind": "A", "spec": map[string]any{"password": map[string]any{"hash": "hunter2", "rounds": int64(3)}}},
			map[string]any{"apiVersion": "x/v1", "kind": "A", "spec": map[string]any{"password": r.Hidden(map[string]any{"hash": "hunter2", "rounds": 3})}},
			map[string]any{"apiVersion": "x/v1", "kind": "A", "spec": map[string]any{"password": map[string]any{"hash": hidden, "rounds": int64(3)}}}},
		{"links", map[string]any{"apiVersion": "x/v1", "kind": "A", "status": "see https://a/b?c=d&token=hunter2"},
			map[string]any{"apiVersion": "x/v1", "kind": "A", "status": "see https://a/b?" + r.Hidden("c=d&token=hunter2")},
			map[string]any{"apiVersion": "x/v1", "kind": "A", "status": "see https://a/b?c=d&token=" + hidden}},
	} {
		checktest.SameIn(t, tt.name, tt.to, r.Object(tt.object))
		if tt.rec == nil {
			tt.rec = tt.to
		}
		checktest.SameIn(t, fmt.Sprintf("%s, recorded", tt.name), tt.rec, r.Recorded(tt.object))
	}
}

func TestURL(t *testing.T) {
	for url, want := range map[string]string{
		"":                                 "",
		"https://a/b":                      "https://a/b",
		"https://me@a/b":                   "https://a/b",
		"https://a/b?c#d":                  "https://a/b?(redacted)#(redacted)",
		"https://me:p@a:x/b?":              "https://(redacted)",
		"https://me:p/w@a/b":               "https://(redacted)",
		"https://me:1/w@a/b":               "https://(redacted)",
		"https://me:%zz@a/b":               "https://(redacted)",
		"me:p@a:8080":                      "a:8080",
		"proxy.example.com:3128":           "proxy.example.com:3128",
		"docker://a:5000/b@sha256:0123abc": "docker://a:5000/b@sha256:0123abc",
	} {
		checktest.Equal(t, want, redact.URL(url), "%s", url)
	}
}

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"":                                      "",
		"unable to read the token: not found":   "unable to read the token: not found",
		`parse "https://me:p@a b": bad`:         `parse "https://a b": bad`,
		`Get "https://a/b?token=c": refused`:    `Get "https://a/b?(redacted)": refused`,
		"password=hunter2, user=a":              "password=(redacted) user=a",
		`answered {"access_token":"hunter2"}`:   `answered {"access_token":"(redacted)"}`,
		"Bearer sha256~abcdefghijklmnop failed": "Bearer (redacted) failed",
		"key:\n-----BEGIN PRIVATE KEY-----\nx":  "key:\n(redacted)",
		`pull secret {"auths": {"a": 1}}`:       "pull secret {(redacted)",
	} {
		checktest.Equal(t, want, redact.Text(text), "%s", text)
	}
	cause := errors.New("cause")
	if err := redact.Error(fmt.Errorf("x: %w", cause)); !errors.Is(err, cause) || errors.Unwrap(err) != cause {
		t.Error(err)
	}
	if err := redact.Error(fmt.Errorf("token=hunter2: %w", cause)); !errors.Is(err, cause) || errors.Unwrap(err) != nil || strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
}

func TestIsCredential(t *testing.T) {
	for _, name := range []string{"password", "passwordHash", "DB_PASS", "passphrase", "pwd", "DBPWD", "bearer", "sshKey", ".dockercfg", ".dockerconfigjson",
		"token", "clientSecret", "secret", "apikey", "API-Key", "tls.key", "id_rsa", "kubeconfig", "Authorization", "Cookie", "AWS_SECRET_ACCESS_KEY", "basicAuth", "REGISTRY_AUTH"} {
		checktest.FailIf(t, !redact.IsCredential(name), "%s is none", name)
	}
	for _, name := range []string{"", "key", "keys", "secretName", "secretRef", "tokenFile", "kubeconfig-path", "imagePullSecrets", "automountServiceAccountToken",
		"sshAuthorizedKeys", "monkey", "compass", "author", "oauth-server", "passive", "certificate-authority", "publicKey", "tls.crt"} {
		checktest.FailIf(t, redact.IsCredential(name), "%s is one", name)
	}
}

func TestPath(t *testing.T) {
	r := redact.New(key)
	for _, tt := range []struct {
		path, shown string
		hidden      bool
	}{
		{"spec.replicas", "", false},
		{"", "", false},
		{"spec.adminPassword", "", true},
		{"spec.secret", "", true},
		{"spec.secret.password", "", true},
		{"spec.clientSecret.name", "", false},
		{"spec.tls.key", "", true},
		{"spec.config.storage.files[0].contents.source", "", true},
		{"spec.config.storage.files[0].append[1].source", "", true},
		{"livenessProbe.httpGet.httpHeaders[0].value", "", true},
		{"spec.volumes[name=v].secret.secretName", "", false},
		{"spec.volumes[name=v].secret.optional", "", false},
		{"spec.automountServiceAccountToken", "", false},
		{"spec.secretKeyRef.key", "", false},
		{"spec.imagePullSecrets[name=x]", "", false},
		{`data["pull-secret.json"]`, "", true},
		{`data["ca.crt"]`, "", false},
		{`data["tls.key"]`, "", true},
		{"spec.containers[name=token].image", "", false},
		{"spec.env[name=TOKEN].value", "", true},
		{"spec.env[name=TOKEN]", "", false},
		{`spec.env[name="MY.TOKEN"].value`, "", true},
		{"spec.env[name=LEVEL].value", "", false},
		{"spec.containers[name=token-minter].env[name=LEVEL].value", "", false},
		{`spec.items[="a]b"].c`, "", false},
		{`spec.tokens[="hunter2"]`, `spec.tokens[="` + r.Hidden(`"hunter2"`) + `"]`, true},
		{`spec.urls[="http://a:hunter2@b"]`, `spec.urls[="` + r.Hidden(`"http://a:hunter2@b"`) + `"]`, false},
	} {
		want := tt.shown
		if want == "" {
			want = tt.path
		}
		if shown, hidden := r.Path(tt.path); shown != want || hidden != tt.hidden {
			t.Errorf("%s: %s, hidden %v", tt.path, shown, hidden)
		}
	}
}

func TestSplit(t *testing.T) {
	var names []string
	steps := redact.Split(`spec.a[k=v,l="x]y"]["b.c\"]"].d[="[\\"]`)
	for _, s := range steps {
		names = append(names, redact.Name(s))
	}
	checktest.Same(t, []string{"spec", ".a", `[k=v,l="x]y"]`, `["b.c\"]"]`, ".d", `[="[\\"]`}, steps)
	checktest.Same(t, []string{"spec", "a", "", `b.c"]`, "d", ""}, names)
}

// TestSplitLosesNothing: whatever a path is, its steps together are the path.
func TestSplitLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{".", "[", "]", `"`, `\`, "=", "a", "é", "secret"})).Draw(t, "parts"), "")
		checktest.Equal(t, path, strings.Join(redact.Split(path), ""), "%q became", path)
		redact.New(key).Path(path)
	})
}

// TestValueHidesWhatItsKeysName: no text below a credential's key is left, at
// any depth, and what has none is as it was.
func TestValueHidesWhatItsKeysName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SampledFrom([]string{"a", "items", "password", "Access_Key", "value"})
		var draw func(depth int, below bool) any
		secrets := false
		draw = func(depth int, below bool) any {
			if depth == 0 || rapid.Bool().Draw(t, "leaf") {
				if below {
					secrets = true
					return "hunter2"
				}
				return "plain"
			}
			if rapid.Bool().Draw(t, "list") {
				return []any{draw(depth-1, below)}
			}
			out := map[string]any{}
			for range rapid.IntRange(1, 3).Draw(t, "keys") {
				key := keys.Draw(t, "key")
				out[key] = draw(depth-1, below || redact.IsCredential(key))
			}
			return out
		}
		value := draw(4, false)
		out := checktest.Get(json.Marshal(redact.New(key).Value(value)))(t)
		checktest.FailIf(t, strings.Contains(string(out), "hunter2"), "%v became %s", value, out)
		diff := cmp.Diff(value, redact.New(key).Value(value))
		checktest.FailIf(t, !secrets && diff != "", "%v", diff)
	})
}

func TestMatches(t *testing.T) {
	r := redact.New([]byte("key"))
	for _, c := range []struct {
		shown, value string
		want         bool
	}{
		{"plain", "plain", false},
		{r.Hidden("hunter2"), "hunter2", true},
		{r.Hidden("hunter2"), "anything", true},
		{"https://a.example/#" + r.Hidden("x"), "https://a.example/#x", true},
		{"https://a.example/#" + r.Hidden("x"), "https://b.example/#x", false},
		{"a " + r.Hidden("x") + " b " + r.Hidden("y") + " c", "a 1 b 2 c", true},
		{"a " + r.Hidden("x") + " b " + r.Hidden("y") + " c", "a 1 c", false},
		{"(redacted) end", "any end", true},
		{"(redacted-12) end", "any end", false},
	} {
		checktest.Equal(t, c.want, redact.Matches(c.shown, c.value), "Matches(%q, %q)", c.shown, c.value)
	}
}

// TestNotCredentials: what the manifests of releases have, and nobody has to hide.
func TestNotCredentials(t *testing.T) {
	object := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"labels": map[string]any{"rbac.authorization.k8s.io/aggregate-to-view": "yes"}},
		"data": map[string]any{
			"config-file.yaml": "authorization:\n  resourceAttributes:\n    resource: namespace\n",
			"script":           "KUBECONFIG=/etc/kubernetes/kubeconfig exec server --tls-key /srv-cert/tls.key",
		},
		"args": []any{"--tls-private-key", "/var/run/secrets/serving-cert/tls.key", "--private-key=/etc/tls/tls.key"},
	}
	for name, got := range map[string]map[string]any{"Object": redact.New(nil).Object(object), "Recorded": redact.New(nil).Recorded(object)} {
		checktest.SameIn(t, name, object, got)
	}
	for _, secret := range []string{"authorization: hunter2hunter2", "authorization:\n  hunter2hunter2\n", "authorization: |\n  hunter2hunter2\n", "PASSWORD=/hunter2hunter2"} {
		shown := redact.New(nil).Recorded(map[string]any{"data": map[string]any{"x": secret}})
		text := fmt.Sprint(shown)
		checktest.FailIf(t, strings.Contains(text, "hunter2"), "%q is shown as %s", secret, text)
	}
}
