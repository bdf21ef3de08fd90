package memory_test

import (
	"strings"
	"testing"
	"testing/fstest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
)

func TestLoadFS(t *testing.T) {
	text := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	api := memory.New(memory.Options{})
	err := api.LoadFS(fstest.MapFS{
		"a/list.yaml":  text("apiVersion: v1\nkind: ConfigMapList\nitems:\n- metadata: {name: a, namespace: x}\n- metadata: {name: b, namespace: x}\n---\nnote: not an object\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: x}\n"),
		"b.json":       text(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"d","namespace":"x"}}`),
		"c.yml":        text("apiVersion: v1\nkind: Secret\nmetadata: {name: e, namespace: x}\n"),
		"notes.txt":    text("{"),
		"a/empty.json": text("{}"),
	}, func(u *unstructured.Unstructured) bool { return u.GetKind() == "ConfigMap" && u.GetName() != "b" })
	if err != nil {
		t.Fatal(err)
	}
	maps, err := clusterapi.List[corev1.ConfigMap](t.Context(), api, clusterapi.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range maps {
		names = append(names, m.Name)
	}
	if got := strings.Join(names, " "); got != "a c d" {
		t.Error(got)
	}
	if secrets, err := clusterapi.List[corev1.Secret](t.Context(), api, clusterapi.ListOptions{}); err != nil || len(secrets) != 0 {
		t.Errorf("%v %v", secrets, err)
	}
	if err := api.LoadFS(fstest.MapFS{"dir/bad.yaml": text("a: [\n")}, nil); err == nil || !strings.HasPrefix(err.Error(), "dir/bad.yaml: ") {
		t.Error(err)
	}
}
