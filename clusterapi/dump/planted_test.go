package dump_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi/dump"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/redact/redacttest"
)

// Credentials of a cluster are in none of the files of a recording.
func TestRecordPlantedCredentials(t *testing.T) {
	const secret = "Cl0uster/Secret+1"
	objects := redacttest.Objects(t, secret, 1)
	objects = append(objects, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", "metadata": map[string]any{"name": "version"},
		"spec": map[string]any{"upstream": "https://me:" + secret + "@a/graph?token=" + secret, "signatureStores": []any{
			map[string]any{"url": "https://a/store?sig=" + secret}, map[string]any{"url": "https://" + "Cl0uster%2FSecret%2B1" + "@a/store#" + secret}}},
	}})
	var kinds []schema.GroupVersionKind
	for _, u := range objects {
		kinds = append(kinds, u.GroupVersionKind())
	}
	c := memory.New(memory.Options{Lenient: true})
	checktest.OK(t, c.Load(objects...))
	for _, contents := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "d")
		checktest.OK(t, dump.Record(t.Context(), c, dir, dump.RecordOptions{Kinds: kinds, FileContents: contents}))
		files := 0
		err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			files++
			if contents && filepath.Base(filepath.Dir(name)) == "machineconfigs" {
				return nil // which keeps its files
			}
			raw, err := os.ReadFile(name)
			checktest.Equal(t, "", redacttest.Find(string(raw), secret), "%s", name)
			return err
		})
		checktest.FailIf(t, err != nil || files < len(objects), "%d files, %v", files, err)
	}
}
