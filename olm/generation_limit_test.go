package olm_test

import (
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	budget "github.com/clusterupdate/clusterupdate/internal/limit"
	"github.com/clusterupdate/clusterupdate/olm"
)

func TestReadGenerationIsBounded(t *testing.T) {
	for _, text := range []string{
		`{"namespace":"a","installed":[` + strings.Repeat("{},", 1<<19) + `{}]}`,
		`{"namespace":"a","subscriptions":[` + strings.Repeat("{},", 1<<19) + `{}]}`,
		`{"namespace":"a","catalogs":[{"packages":[{"Bundles":[` + strings.Repeat("{},", 1<<19) + `{}]}]}]}`,
		`{"namespace":"a","catalogs":[{"packages":[{"Bundles":[{"Properties":[` + strings.Repeat("{},", 1<<19) + `{}]}]}]}]}`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := olm.ReadGeneration(t.Context(), []byte(text), nil)
		runtime.ReadMemStats(&after)
		if !errors.As(err, new(*budget.LimitError)) {
			t.Errorf("%.60s: %v", text, err)
		}
		if made := after.TotalAlloc - before.TotalAlloc; made > budget.Heap {
			t.Errorf("%.60s: %d bytes allocated", text, made)
		}
	}
}

func TestReadGenerationIsStrict(t *testing.T) {
	for text, want := range map[string]string{
		`{"Namespace":"a"}`:                   `unknown field "Namespace"`,
		`{"namespace":"a","namespace":"b"}`:   `duplicate field "namespace"`,
		`{"namespace":"a","other":1}`:         `unknown field "other"`,
		`{"namespace":"a","options":{"x":1}}`: `unknown field "options.x"`,
	} {
		if _, err := olm.ReadGeneration(t.Context(), []byte(text), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	var keys strings.Builder
	for i := range 20_000 {
		keys.WriteString(`,"k` + strings.Repeat("x", i%50) + `":0`)
	}
	for _, text := range []string{`{"namespace":"a"` + keys.String() + `}`, `{"namespace":"a","generation":"` + strings.Repeat("x", 1<<20) + `"}`} {
		if _, err := olm.ReadGeneration(t.Context(), []byte(text), nil); err == nil || len(err.Error()) > bounded.MaxErrors+1000 {
			t.Errorf("an error of %d bytes", len(err.Error()))
		}
	}
}

// TestReadGenerationOfAnOlderVersion: what an older version wrote is read, by the one
// engine.
func TestReadGenerationOfAnOlderVersion(t *testing.T) {
	g := checktest.Get(olm.Resolve(t.Context(), olm.Snapshot{Namespace: "a"}, olm.Options{}))(t)
	text := checktest.Get(json.Marshal(g))(t)
	old := strings.Replace(string(text), `"options":{`, `"options":{"greedy":true`, 1)
	if read, err := olm.ReadGeneration(t.Context(), []byte(old), nil); err != nil || read.String() != g.String() {
		t.Errorf("%s: %v", old, err)
	}
}
