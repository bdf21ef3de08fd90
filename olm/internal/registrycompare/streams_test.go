package registrycompare

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/olm/catalog"
)

// TestYAML compares the two on the objects of some real packages as a stream
// of YAML documents.
func TestYAML(t *testing.T) {
	f, err := os.Open(filepath.Join(testdata.Dir(t), "catalogs", "community.jsonl"))
	checktest.OK(t, err)
	defer f.Close()
	var stream strings.Builder
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for n := 0; n < 500 && lines.Scan(); n++ {
		document := checktest.Get(yaml.JSONToYAML(lines.Bytes()))(t)
		stream.WriteString("---\n")
		stream.Write(document)
	}
	config := checktest.Get(declcfg.LoadReader(strings.NewReader(stream.String())))(t)
	contents := checktest.Get(catalog.Read(t.Context(), strings.NewReader(stream.String()), "stream", catalog.Options{}))(t)
	if len(config.Bundles) == 0 {
		t.Fatal("no bundles")
	}
	compareContents(t, config, contents.Contents)
}
