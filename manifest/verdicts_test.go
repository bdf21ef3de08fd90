package manifest_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
)

var update = flag.Bool("update", false, "write the wanted results in testdata")

// TestLoadVerdicts loads the payloads of testdata/load. Each is a txtar archive:
// a text that says what it shows, lines "option = value" among it, the files of
// the payload, and last the file "verdicts", which go test -update writes. What
// a payload needs besides its manifests is there by itself.
func TestLoadVerdicts(t *testing.T) {
	paths, err := filepath.Glob("testdata/load/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			data := checktest.Get(os.ReadFile(path))(t)
			text, want, _ := strings.Cut(string(data), "-- verdicts --\n")
			got := verdicts(t, text)
			if *update {
				checktest.OK(t, os.WriteFile(path, []byte(text+"-- verdicts --\n"+got), 0o644))
				return
			}
			checktest.Same(t, want, got)
		})
	}
}

// verdicts loads the payload of an archive and writes what came of it.
func verdicts(t *testing.T, archive string) string {
	comment, files := unpack(archive)
	o := manifest.LoadOptions{Image: "example.com/release@sha256:abc", Filter: manifest.DefaultFilter()}
	var pass manifest.Filter
	raw := false
	for line := range strings.Lines(comment) {
		option, value, ok := strings.Cut(strings.TrimSpace(line), " = ")
		if !ok {
			continue
		}
		switch option {
		case "feature set":
			o.Filter.FeatureSet = &value
		case "gates":
			o.Filter.Gates = sets.New(strings.Fields(value)...)
		case "exclude identifier":
			o.Filter.ExcludeIdentifier = value
		case "capabilities":
			pass.Capabilities = &manifest.Capabilities{Known: sets.New("Console", "Storage", "Insights"), Enabled: sets.New(strings.Fields(value)...)}
		case "unmanaged":
			pass.Overrides = append(pass.Overrides, configv1.ComponentOverride{Group: "example.com", Kind: "K", Name: value, Unmanaged: true})
		case "show":
			raw = value == "raw"
		default:
			t.Fatalf("unknown option %q", option)
		}
	}
	var out strings.Builder
	p, err := manifest.Load(t.Context(), payload(files), o)
	if fault, ok := errors.AsType[*manifest.Error](err); ok {
		fmt.Fprintf(&out, "error     %s\n", fault.Reason)
		for _, f := range fault.Faults {
			fmt.Fprintf(&out, "fault     %s\n          %s\n", f.Position(), f)
		}
		return out.String()
	}
	if err != nil {
		return fmt.Sprintf("error     %s\n", err)
	}
	included, excluded := p.Included(pass)
	for _, m := range included {
		fmt.Fprintf(&out, "included  %s, document %d: %s\n", m.Filename, m.Document, m.Identity().Name)
		if raw {
			fmt.Fprintf(&out, "          %s\n", m.Raw)
		}
	}
	for _, e := range append(p.Excluded, excluded...) {
		fmt.Fprintf(&out, "excluded  %s, document %d: %s\n          %s\n", e.Manifest.Filename, e.Manifest.Document, e.Manifest.Identity().Name, e.Verdict)
	}
	for _, w := range p.Warnings {
		fmt.Fprintf(&out, "warning   %s\n", w)
	}
	fmt.Fprintf(&out, "hash      %s\n", p.Hash)
	return out.String()
}

// unpack reads an archive in the format of golang.org/x/tools/txtar.
func unpack(archive string) (comment string, files map[string]string) {
	files = make(map[string]string)
	name := ""
	for line := range strings.Lines(archive) {
		if n, ok := strings.CutPrefix(line, "-- "); ok && strings.HasSuffix(n, " --\n") {
			name = strings.TrimSuffix(n, " --\n")
			files[name] = ""
		} else if name == "" {
			comment += line
		} else {
			files[name] += line
		}
	}
	return comment, files
}
