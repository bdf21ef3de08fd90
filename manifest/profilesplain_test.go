package manifest_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/clusterupdate/clusterupdate/manifest"
)

// place is where an object is in a payload. No two files of the payloads that are read
// have the same name.
type place struct {
	file     string
	document int
}

func placeOf(m *manifest.Manifest) place { return place{m.Filename, m.Document} }

// document is an object as a plain reading of its YAML finds it. Annotations are
// nil where there are none.
type document struct {
	identity    manifest.Identity
	annotations map[string]string
}

// excludedAtLoad is the rule that leaves an object out of a payload, by the
// documentation.
func (d document) excludedAtLoad(exclude, profile, set string) manifest.Rule {
	sets, some := d.annotations["release.openshift.io/feature-set"]
	switch {
	case d.annotations == nil:
		return "Annotations"
	case exclude != "" && d.annotations["exclude.release.openshift.io/"+exclude] == "true":
		return "ExcludeIdentifier"
	case some && set != unset && !strings.Contains(","+sets+",", ","+set+","):
		return "FeatureSet"
	case profile != unset && d.annotations["include.release.openshift.io/"+profile] != "true":
		return "Profile"
	}
	return ""
}

// excludedByCapability is the rule that lets a pass skip an object. A nil set means
// that nobody chose.
func (d document) excludedByCapability(enabled map[string]bool) manifest.Rule {
	for name := range strings.SplitSeq(d.annotations["capability.openshift.io/name"], "+") {
		if name != "" && enabled != nil && !enabled[name] {
			return "Capability"
		}
	}
	return ""
}

// plainCapabilities are those of a baseline, by the documentation, and some more.
// Those of vCurrent that are not in v4.18 hang on feature gates, which are off.
func plainCapabilities(baseline string, additional []string) map[string]bool {
	if baseline == unset {
		return nil
	}
	enabled := map[string]bool{}
	for _, since := range []struct{ version, names string }{
		{"None", ""},
		{"v4.11", "baremetal marketplace openshift-samples MachineAPI"},
		{"v4.12", "Console Insights Storage CSISnapshot"},
		{"v4.13", "NodeTuning"},
		{"v4.14", "Build DeploymentConfig ImageRegistry"},
		{"v4.15", "OperatorLifecycleManager CloudCredential"},
		{"v4.16", "Ingress CloudControllerManager"},
		{"v4.17", ""},
		{"v4.18", "OperatorLifecycleManagerV1"},
		{"vCurrent", ""},
	} {
		for _, name := range strings.Fields(since.names) {
			enabled[name] = true
		}
		if since.version == baseline {
			break
		}
	}
	for _, name := range additional {
		enabled[name] = true
	}
	return enabled
}

var templated = regexp.MustCompile(`\{\{[^}]*\}\}`)

// readPlainly reads the objects of a payload, and makes sure that the choices of
// this test are those that its annotations know, and no rule is missing.
func readPlainly(t *testing.T, dir string) map[place]document {
	t.Helper()
	var paths []string
	for _, pattern := range []string{"*manifests/*.yaml", "*manifests/*.yml", "*manifests/*.json"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, found...)
	}
	documents := map[place]document{}
	seen := map[string]bool{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(filepath.Dir(path)) == "manifests" {
			data = templated.ReplaceAll(data, []byte("x"))
		}
		decoder := yaml.NewDecoder(bytes.NewReader(data))
		for n := 1; ; {
			var node yaml.Node
			if err := decoder.Decode(&node); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			object := fields(&node)
			if len(object) == 0 {
				continue // an empty document
			}
			metadata := fields(object["metadata"])
			text := func(of map[string]*yaml.Node, name string) string {
				if n := of[name]; n != nil {
					return n.Value
				}
				return ""
			}
			group, _, ok := strings.Cut(text(object, "apiVersion"), "/")
			if !ok {
				group = ""
			}
			var annotations map[string]string
			for name, value := range fields(metadata["annotations"]) {
				if annotations == nil {
					annotations = map[string]string{}
				}
				if annotations[name] = value.Value; value.Tag != "!!str" {
					t.Errorf("%s: annotation %s is a %s", path, name, value.Tag)
				}
			}
			at := place{filepath.Base(path), n}
			if _, twice := documents[at]; twice {
				t.Errorf("two files are called %s", at.file)
			}
			documents[at] = document{manifest.Identity{Group: group, Kind: text(object, "kind"), Namespace: text(metadata, "namespace"), Name: text(metadata, "name")}, annotations}
			n++
			for name, value := range annotations {
				prefix, rest, _ := strings.Cut(name, "/")
				switch prefix {
				case "include.release.openshift.io", "exclude.release.openshift.io":
					seen[prefix+"/"+rest] = true
				case "capability.openshift.io":
					for c := range strings.SplitSeq(value, "+") {
						seen["capability "+c] = true
					}
				case "release.openshift.io":
					switch rest {
					case "feature-set":
						for s := range strings.SplitSeq(value, ",") {
							seen["feature set "+s] = true
						}
					case "feature-gate", "major-version":
						seen[rest] = true
					}
				}
			}
		}
	}
	want := map[string]bool{"exclude.release.openshift.io/internal-openshift-hosted": true}
	for _, profile := range profileChoices[1:5] {
		want["include.release.openshift.io/"+profile] = true
	}
	for _, set := range featureSetChoices[1:5] {
		want["feature set "+set] = true
	}
	current := plainCapabilities("vCurrent", nil)
	for name := range seen {
		if c, ok := strings.CutPrefix(name, "capability "); ok && current[c] {
			delete(seen, name)
		}
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("%s has other annotations than this test is about: %s", dir, diff)
	}
	return documents
}

// fields are those of a mapping. Where one has the same key twice, as some manifests
// do, the last one counts.
func fields(n *yaml.Node) map[string]*yaml.Node {
	if n != nil && n.Kind == yaml.DocumentNode {
		n = n.Content[0]
	}
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	out := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		out[n.Content[i].Value] = n.Content[i+1]
	}
	return out
}
