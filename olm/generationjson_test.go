package olm_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/olm"
)

// TestGenerationJSON: what is read from the JSON of a generation is that
// generation, explains itself with the same words, and is written as the same
// JSON again.
func TestGenerationJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, worldOptions{disorder: true, deprecated: true, starting: true, labels: true, channels: rapid.Bool().Draw(t, "channels")})
		g, err := olm.Resolve(context.Background(), w.snapshot(), olm.Options{})
		if err != nil {
			return
		}
		text := checktest.Get(json.Marshal(g))(t)
		var read olm.Generation
		if err := json.Unmarshal(text, &read); err != nil {
			t.Fatalf("%v\n%s", err, &w)
		}
		again := checktest.Get(json.Marshal(&read))(t)
		if diff := cmp.Diff(string(text), string(again)); diff != "" {
			t.Fatalf("JSON (-first +again):\n%s\n%s", diff, &w)
		}
		for _, s := range w.subs {
			want, wantErr := g.Explain(context.Background(), s.Name)
			got, err := read.Explain(context.Background(), s.Name)
			if wantErr != nil || err != nil {
				t.Fatalf("%s: %v, %v", s.Name, wantErr, err)
			}
			if diff := cmp.Diff(want.String(), got.String()); diff != "" {
				t.Fatalf("explanation of %s (-first +read):\n%s\n%s", s.Name, diff, &w)
			}
		}
	})
}

// TestReadGenerationRefuses: JSON of another form, and a generation that is not
// what the resolution comes to.
func TestReadGenerationRefuses(t *testing.T) {
	g := resolve(t, snapshot(contents("a.v1", "a.v2 >a.v1"), installed("a.v1"), sub("a", "a.v1")), olm.Options{})
	text := checktest.Get(json.Marshal(g))(t)
	var fields map[string]any
	checktest.OK(t, json.Unmarshal(text, &fields))
	fields["generation"] = "something else"
	changed := checktest.Get(json.Marshal(fields))(t)
	for _, bad := range []string{"", "[]", "{}", string(changed)} {
		if g, err := olm.ReadGeneration(t.Context(), []byte(bad), nil); err == nil || g != nil {
			t.Errorf("%q: %v", bad, g)
		}
	}
	if _, err := json.Marshal(&olm.Generation{}); err == nil {
		t.Error("a generation that was not resolved has JSON")
	}
}
