package redact_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"testing"

	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/redact"
	"github.com/clusterupdate/clusterupdate/internal/redact/redacttest"
)

// Whatever is planted in objects comes out of none of the forms in which they are
// shown, as a whole and field by field.
func TestPlantedCredentials(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		secret := redacttest.Secrets.Draw(rt, "secret")
		r := redact.New(nil)
		look := func(what string, v any) {
			raw := checktest.Get(json.Marshal(v))(rt)
			checktest.Equal(rt, "", redacttest.Find(string(raw), secret), "%s", what)
		}
		for _, u := range redacttest.Objects(t, secret, 1) {
			gvk := u.GroupVersionKind()
			look(gvk.Kind, r.Object(u.Object))
			look(gvk.Kind+", recorded", r.Recorded(u.Object))
			var walk func(path string, v any)
			walk = func(path string, v any) {
				if path != "" {
					shown, value := r.Field(gvk.Group, gvk.Kind, path, v)
					look(gvk.Kind+" "+path, []any{shown, value})
				}
				if redact.Together(v) {
					return
				}
				switch v := v.(type) {
				case map[string]any:
					for key, e := range v {
						name, _ := json.Marshal(key)
						walk(fmt.Sprintf("%s[%s]", path, name), e)
					}
				case []any:
					for i, e := range v {
						if m, ok := e.(map[string]any); ok && m["name"] != nil {
							walk(fmt.Sprintf("%s[name=%s]", path, m["name"]), e)
						} else {
							walk(fmt.Sprintf("%s[%d]", path, i), e)
						}
					}
				}
			}
			for key, e := range u.Object {
				walk(key, e)
			}
		}
		for _, text := range []string{
			"dial https://me:%s@a/b failed", "see https://a/b?c=%s", "see https://a/b#%s", "token=%s", `{"password":"%s"}`, "-----BEGIN PRIVATE KEY-----\n%s\n-----END PRIVATE KEY-----",
			`bad pull secret {"auths":{"a":{"auth":"%s"}}}`, "data:text/plain,%s is not a file", "with Bearer %[1]s%[1]s",
		} {
			look(text, redact.Text(fmt.Sprintf(text, secret)))
		}
		for _, address := range []string{"https://me:%s@a", "https://a?%s", "https://a#%s", "me:%s@a", "https://me:%%zz%s@a", "http://me:%s@a b"} {
			look(address, redact.URL(fmt.Sprintf(address, secret)))
		}
		// Without a password, or within a text, a / would end the user.
		escaped := url.QueryEscape(secret)
		look("user", redact.URL("https://"+escaped+"@a"))
		look("proxy", redact.Text("proxy me:"+escaped+"@a:80 failed"))
	})
}
