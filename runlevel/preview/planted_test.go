package preview_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/redact/redacttest"
	"github.com/clusterupdate/clusterupdate/runlevel/preview"
)

// Credentials that stand in a cluster, in the running release or in the target come
// out of none of the forms of a preview: its changes, its drifts and what is
// stale.
func TestPlantedCredentials(t *testing.T) {
	secrets := []string{"Cl0uster/Secret+1", "Runn1ng/Secret+2", "Targ3t/Secret+3"}
	release := func(version, secret string, number int) string {
		text := ""
		for _, u := range redacttest.Objects(t, secret, number) {
			raw := checktest.Get(yaml.Marshal(u.Object))(t)
			text += "---\n" + string(raw)
		}
		return text
	}
	c := memory.New(memory.Options{Lenient: true})
	ns := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "ns"}}}
	checktest.OK(t, errors.Join(c.Load(ns), c.Load(redacttest.Objects(t, secrets[0], 1)...)))
	for _, target := range []string{secrets[2], secrets[1]} { // the second: all that differs is drift
		running, to := payload(t, "4.18.1", release("4.18.1", secrets[1], 1)), payload(t, "4.19.0", release("4.19.0", target, 2))
		p := checktest.Get(preview.Run(t.Context(), to.Tasks(), preview.Options{Reader: c, Running: running, Payload: to}))(t)
		var text, diff strings.Builder
		checktest.OK(t, errors.Join(p.Text(&text, preview.TextOptions{Unchanged: true}), p.Diff(&diff, preview.TextOptions{})))
		raw := checktest.Get(json.Marshal(p))(t)
		drifts := 0
		for _, c := range p.Changes {
			drifts += len(c.Drift)
		}
		if changed := strings.Count(text.String(), "(redacted-"); changed < 20 || target == secrets[1] && drifts == 0 {
			t.Errorf("%d hidden values, %d drifts:\n%s", changed, drifts, text.String())
		}
		for name, s := range map[string]string{"text": text.String(), "diff": diff.String(), "JSON": string(raw)} {
			for _, secret := range secrets {
				if at := redacttest.Find(s, secret); at != "" {
					t.Errorf("%s: %s", name, at)
				}
			}
		}
	}
}
