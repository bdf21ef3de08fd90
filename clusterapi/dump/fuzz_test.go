package dump_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"testing/fstest"

	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/dump"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// small keeps the cost of an input low.
var small = dump.Options{MaxFileBytes: 1 << 20, MaxBytes: 8 << 20, MaxObjects: 10_000, MaxFiles: 1000, MaxProblems: 100, Workers: 1}

// FuzzStream reads any bytes as a stream of documents. Nothing panics, and a single
// object comes out as sigs.k8s.io/yaml reads it.
func FuzzStream(f *testing.F) {
	for _, seed := range []string{
		node, "---\n" + node + "---\n" + node, "%YAML 1.1\n---\n" + node + "...\n", "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"a\"}}{}",
		"apiVersion: v1\nkind: List\nitems:\n- " + node, "apiVersion: v1\nkind: NodeList\nmetadata: {continue: x}\nitems:\n- metadata: {name: a}\n- 7\n",
		"a: &a [1]\nb: *a\n", "\ufeff" + node, "apiVersion: v1\r\nkind: Secret\r\nmetadata:\r\n  name: s\r\ndata: {a: \"12 bytes long\"}\r\n",
		"apiVersion: config.openshift.io/v1\nkind: Proxy\nmetadata: {name: cluster}\nspec: {httpProxy: \"http://a:b@c\"}\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		tree := fstest.MapFS{"a.yaml": &fstest.MapFile{Data: data}}
		r, err := dump.Open(t.Context(), tree, small)
		if err != nil {
			return
		}
		tree = fstest.MapFS{"namespaces/a/core/pods.yaml": &fstest.MapFile{Data: data}, "cluster-scoped-resources/core/nodes/a.yaml": &fstest.MapFile{Data: data}}
		checktest.Good(t, checktest.Err(dump.Open(t.Context(), tree, small)))
		var want struct {
			APIVersion, Kind string
			Metadata         struct{ Name, Namespace string }
		}
		if bytes.Contains(data, []byte("---")) || bytes.Contains(data, []byte("...")) || json.Valid(data) || yaml.Unmarshal(data, &want) != nil || len(r.Problems()) > 0 {
			return
		}
		if want.APIVersion == "" || want.Kind == "" || want.Metadata.Name == "" {
			return // a list; or keys in other letters, which encoding/json takes
		}
		kind := gvk(want.APIVersion + " " + want.Kind)
		u, err := r.Get(t.Context(), kind, clusterapi.Key(want.Metadata.Namespace, want.Metadata.Name))
		if errors.Is(err, clusterapi.ErrNotCollected) {
			return // an Event
		}
		checktest.FatalIf(t, err != nil, "%v of %s", err, data)
		var content map[string]any
		checktest.OK(t, yaml.Unmarshal(data, &content))
		checktest.Equal(t, asJSON(content), asJSON(u.Object), "asJSON(u.Object)")
	})
}

// FuzzArchive reads any bytes as an archive, and asks of what is in it.
func FuzzArchive(f *testing.F) {
	tree := files(`
-- must-gather.local.1/timestamp --
2026-01-02 03:04:05 +0000 UTC
-- must-gather.local.1/x/aggregated-discovery-api.yaml --
` + discovery("", "v1", "nodes Node cluster") + `
-- must-gather.local.1/x/cluster-scoped-resources/core/nodes/n1.yaml --
` + node + `
-- must-gather.local.1/x/namespaces/a/core/pods.yaml --
{apiVersion: v1, kind: PodList, items: []}
`)
	f.Add(pack(f, tree, false, false))
	f.Add(pack(f, tree, true, true))
	f.Add(pack(f, files(insightsFiles+"-- config/node/n1.json --\n{\"metadata\": {\"name\": \"n1\"}}\n-- config/alerts.json --\n[{}]"), true, false))
	f.Add(packed(f, file("a.yaml", node), file("../b.yaml", node), file("/c.yaml", node)))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := dump.OpenArchive(t.Context(), bytes.NewReader(data), small)
		if err != nil {
			return
		}
		for _, question := range []string{"get v1 Node n1", "list v1 Node", "list v1 Pod", "grade v1 Pod a"} {
			answer(t.Context(), r, question)
		}
		for _, p := range r.Problems() {
			_ = p.String()
		}
	})
}
