package redact_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/internal/redact"
)

func TestDigest(t *testing.T) {
	for _, tt := range []struct {
		value any
		want  string
	}{
		// As by printf %s TEXT | sha256sum.
		{"hunter2", "(sha256:f52fbd32b2b3)"},
		{`{"a":1}`, "(sha256:015abd7f5cc5)"},
		{map[string]any{"a": 1}, "(sha256:015abd7f5cc5)"},
	} {
		if got := redact.Digest(tt.value); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.value, got, tt.want)
		}
	}
	if got := redact.Digest(func() {}); !strings.HasPrefix(got, "(sha256:") {
		t.Errorf("what JSON cannot hold: %s", got)
	}
}

func TestValue(t *testing.T) {
	hidden := redact.Digest("hunter2")
	for _, tt := range []struct {
		name      string
		value, to any
	}{
		{"plain", map[string]any{"a": []any{int64(1), "b", nil, true}}, map[string]any{"a": []any{int64(1), "b", nil, true}}},
		{"key", map[string]any{"adminPassword": "hunter2"}, map[string]any{"adminPassword": hidden}},
		{"key with separators", map[string]any{"api-key": "hunter2"}, map[string]any{"api-key": hidden}},
		{"whole object", map[string]any{"credentials": map[string]any{"user": "a"}}, map[string]any{"credentials": redact.Digest(map[string]any{"user": "a"})}},
		{"variable", []any{map[string]any{"name": "DB_PASSWD", "value": "hunter2"}}, []any{map[string]any{"name": "DB_PASSWD", "value": hidden}}},
		{"other variable", []any{map[string]any{"name": "LEVEL", "value": "2"}}, []any{map[string]any{"name": "LEVEL", "value": "2"}}},
		{"volume", map[string]any{"secret": map[string]any{"secretName": "s", "token": "hunter2"}}, map[string]any{"secret": map[string]any{"secretName": "s", "token": hidden}}},
		{"secret", map[string]any{"secret": "hunter2"}, map[string]any{"secret": hidden}},
		{"what names one", map[string]any{"tokenSecretRef": "a"}, map[string]any{"tokenSecretRef": "a"}},
		{"user in a URL", "https://me:hunter2@example.com", redact.Digest("https://me:hunter2@example.com")},
		{"private key", "-----BEGIN EC PRIVATE KEY-----\nhunter2\n", redact.Digest("-----BEGIN EC PRIVATE KEY-----\nhunter2\n")},
		{"certificate", "-----BEGIN CERTIFICATE-----\nx\n", "-----BEGIN CERTIFICATE-----\nx\n"},
		{"at in a path", "https://example.com/a@sha256:1", "https://example.com/a@sha256:1"},
		{"last applied", map[string]any{"kubectl.kubernetes.io/last-applied-configuration": "hunter2"}, map[string]any{"kubectl.kubernetes.io/last-applied-configuration": hidden}},
	} {
		before, _ := json.Marshal(tt.value)
		if diff := cmp.Diff(tt.to, redact.Value(tt.value)); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
		if after, _ := json.Marshal(tt.value); string(after) != string(before) {
			t.Errorf("%s: was %s, became %s", tt.name, before, after)
		}
	}
}

func TestPath(t *testing.T) {
	for _, tt := range []struct {
		path, shown string
		hidden      bool
	}{
		{"spec.replicas", "", false},
		{"", "", false},
		{"spec.adminPassword", "", true},
		{"spec.secret", "", true},
		{"spec.secret.password", "", true},
		{"spec.volumes[name=v].secret.secretName", "", false},
		{"spec.volumes[name=v].secret.optional", "", false},
		{"spec.automountServiceAccountToken", "", false},
		{"spec.secretKeyRef.key", "", false},
		{"spec.imagePullSecrets[name=x]", "", false},
		{`data["pull-secret.json"]`, "", true},
		{`data["ca.crt"]`, "", false},
		{"spec.containers[name=token].image", "", false},
		{"spec.env[name=TOKEN].value", "", true},
		{"spec.env[name=TOKEN]", "", false},
		{`spec.env[name="MY.TOKEN"].value`, "", true},
		{"spec.env[name=LEVEL].value", "", false},
		{"spec.containers[name=token-minter].env[name=LEVEL].value", "", false},
		{`spec.items[="a]b"].c`, "", false},
		{`spec.tokens[="hunter2"]`, `spec.tokens[="` + redact.Digest(`"hunter2"`) + `"]`, true},
		{`spec.urls[="http://a:hunter2@b"]`, `spec.urls[="` + redact.Digest(`"http://a:hunter2@b"`) + `"]`, false},
	} {
		want := tt.shown
		if want == "" {
			want = tt.path
		}
		if shown, hidden := redact.Path(tt.path); shown != want || hidden != tt.hidden {
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
	if diff := cmp.Diff([]string{"spec", ".a", `[k=v,l="x]y"]`, `["b.c\"]"]`, ".d", `[="[\\"]`}, steps); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"spec", "a", "", `b.c"]`, "d", ""}, names); diff != "" {
		t.Error(diff)
	}
}

// TestSplitLosesNothing: whatever a path is, its steps together are the path.
func TestSplitLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{".", "[", "]", `"`, `\`, "=", "a", "é", "secret"})).Draw(t, "parts"), "")
		if got := strings.Join(redact.Split(path), ""); got != path {
			t.Errorf("%q became %q", path, got)
		}
		redact.Path(path)
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
		out, err := json.Marshal(redact.Value(value))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(out), "hunter2") {
			t.Errorf("%v became %s", value, out)
		}
		if diff := cmp.Diff(value, redact.Value(value)); !secrets && diff != "" {
			t.Error(diff)
		}
	})
}
