// Command gendefinitions writes the CustomResourceDefinitions that package
// memory embeds: those of github.com/openshift/api, without descriptions.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// groups are the packages of github.com/openshift/api whose definitions are
// embedded.
var groups = []string{"config/v1", "machineconfiguration/v1", "machine/v1beta1", "operator/v1", "security/v1",
	"console/v1", "helm/v1beta1", "imageregistry/v1", "network/v1", "samples/v1"}

// variants are the suffixes of a definition that is generated several times,
// the one with most fields first.
var variants = []string{"SelfManagedHA-CustomNoUpgrade", "CustomNoUpgrade", "SelfManagedHA", ""}

func main() {
	out := flag.String("out", "", "file to write (JSON, gzipped)")
	flag.Parse()
	if err := run(*out); err != nil {
		log.Fatal(err)
	}
}

func run(out string) error {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/openshift/api").Output()
	if err != nil {
		return fmt.Errorf("find github.com/openshift/api: %w", err)
	}
	var all []any
	for _, g := range groups {
		files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), g, "zz_generated.crd-manifests", "*.crd.yaml"))
		if err != nil {
			return err
		}
		for _, file := range choose(files) {
			d, err := read(file)
			if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			all = append(all, d)
		}
	}
	data, err := json.Marshal(all)
	if err != nil {
		return err
	}
	var buf bytes.Buffer
	zip, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := zip.Write(data); err != nil {
		return err
	}
	if err := zip.Close(); err != nil {
		return err
	}
	return os.WriteFile(out, buf.Bytes(), 0o644)
}

// choose leaves one variant of each definition.
func choose(files []string) []string {
	best := make(map[string]string)
	rank := make(map[string]int)
	for _, file := range files {
		name, variant, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file)[strings.LastIndex(filepath.Base(file), "_")+1:], ".crd.yaml"), "-")
		r := slices.Index(variants, variant)
		if r < 0 {
			continue
		}
		if _, seen := best[name]; !seen || r < rank[name] {
			best[name], rank[name] = file, r
		}
	}
	var out []string
	for _, file := range best {
		out = append(out, file)
	}
	slices.Sort(out)
	return out
}

func read(file string) (any, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var d map[string]any
	if err := yaml.Unmarshal(data, &d); err != nil {
		return nil, err
	}
	delete(d, "status")
	return strip(d, false), nil
}

// strip leaves out descriptions; in properties, that is the name of a field.
func strip(v any, properties bool) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if k == "description" && !properties {
				delete(v, k)
				continue
			}
			v[k] = strip(e, k == "properties" && !properties)
		}
	case []any:
		for i, e := range v {
			v[i] = strip(e, false)
		}
	}
	return v
}
