package preview_test

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/runlevel/preview"
)

// decoded decodes YAML documents.
func decoded(tb testing.TB, text string) []*unstructured.Unstructured {
	tb.Helper()
	var out []*unstructured.Unstructured
	for doc := range strings.SplitSeq(text, "\n---\n") {
		if strings.TrimSpace(doc) == "" {
			continue
		}
		raw := checktest.Get(yaml.YAMLToJSON([]byte(doc)))(tb)
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(raw); err != nil {
			tb.Fatalf("%v in\n%s", err, doc)
		}
		out = append(out, u)
	}
	return out
}

// cluster is one in memory with objects, which need not be valid.
func cluster(tb testing.TB, text string) *memory.Cluster {
	tb.Helper()
	c := memory.NewOpenShift(memory.Options{})
	checktest.OK(tb, c.Load(decoded(tb, "{apiVersion: v1, kind: Namespace, metadata: {name: ns}}\n---\n"+text)...))
	return c
}

// manifestsOf makes manifests of YAML documents, all in one component; a comment
// "# file" before a document names its file.
func manifestsOf(tb testing.TB, text string) []*manifest.Manifest {
	tb.Helper()
	var out []*manifest.Manifest
	for i, obj := range decoded(tb, text) {
		doc := strings.Split(text, "\n---\n")[i]
		file := "0000_10_a_x.yaml"
		if name, ok := strings.CutPrefix(strings.TrimSpace(doc), "# "); ok {
			file, _, _ = strings.Cut(name, "\n")
		}
		if obj.GetAnnotations() == nil {
			obj.SetAnnotations(map[string]string{"note": "x"}) // without any it is excluded
		}
		m := checktest.Get(manifest.New(file, obj))(tb)
		out = append(out, m)
	}
	return out
}

func payload(tb testing.TB, version, text string) *manifest.Payload {
	p := &manifest.Payload{Manifests: manifestsOf(tb, text), Hash: "hash-" + version}
	p.Release.Version = version
	return p
}

// run previews manifests over a cluster.
func run(tb testing.TB, r clusterapi.Reader, text string) *preview.Preview {
	tb.Helper()
	p := checktest.Get(preview.Run(tb.Context(), manifest.NewTasks(manifestsOf(tb, text)), preview.Options{Reader: r}))(tb)
	return p
}

// changeOf finds the change of an object.
func changeOf(tb testing.TB, p *preview.Preview, object string) preview.Change {
	tb.Helper()
	for _, c := range p.Changes {
		if c.Object.String() == object {
			return c
		}
	}
	tb.Fatalf("no change of %s", object)
	return preview.Change{}
}

// paths are the paths of a change's fields.
func paths(c preview.Change) []string {
	var out []string
	for _, f := range c.Fields {
		out = append(out, f.Path)
	}
	return out
}

// reader answers for another one, but for the errors that it is given by kind.
type reader struct {
	clusterapi.Reader
	errs map[string]error
	// some of a kind are known all the same
	some map[string]bool
}

func (r reader) Get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	u, err := r.Reader.Get(ctx, gvk, key)
	if fault := r.errs[gvk.Kind]; fault != nil && (err != nil || !r.some[gvk.Kind]) {
		return nil, fault
	}
	return u, err
}

func (r reader) List(ctx context.Context, gvk schema.GroupVersionKind, o clusterapi.ListOptions) (*unstructured.UnstructuredList, error) {
	if fault := r.errs[gvk.Kind]; fault != nil {
		if !r.some[gvk.Kind] {
			return nil, fault
		}
		list, _ := r.Reader.List(ctx, gvk, o)
		return list, fault
	}
	return r.Reader.List(ctx, gvk, o)
}
