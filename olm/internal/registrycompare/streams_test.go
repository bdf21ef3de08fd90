package registrycompare

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/olm/catalog"
	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"sigs.k8s.io/yaml"
)

// TestYAML compares the two on the objects of some real packages as a stream
// of YAML documents.
func TestYAML(t *testing.T) {
	f, err := os.Open(filepath.Join(testdata.Dir(t), "catalogs", "community.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var stream strings.Builder
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for n := 0; n < 500 && lines.Scan(); n++ {
		document, err := yaml.JSONToYAML(lines.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		stream.WriteString("---\n")
		stream.Write(document)
	}
	config, err := declcfg.LoadReader(strings.NewReader(stream.String()))
	if err != nil {
		t.Fatal(err)
	}
	contents, err := catalog.Read(t.Context(), strings.NewReader(stream.String()), "stream", catalog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(config.Bundles) == 0 {
		t.Fatal("no bundles")
	}
	compareContents(t, config, contents.Contents)
}
