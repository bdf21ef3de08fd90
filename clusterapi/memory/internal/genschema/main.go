// Command genschema writes what package memory embeds about the kinds of
// k8s.io/api: their structured-merge-diff schema, scope and subresources. It also
// writes the list-map keys that package clusterapi needs of k8s.io/api and
// github.com/openshift/api. It is a separate module, since it needs client-go's
// list of kinds and the OpenAPI generator, which the library does not.
//
// Run it by go generate in the parent package; see generate.go here.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/gob"
	"flag"
	"fmt"
	"log"
	"os"
	"reflect"
	"sort"

	_ "github.com/openshift/api" // its sources are read for list-map keys
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/schemaconv"
	"k8s.io/kube-openapi/pkg/validation/spec"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi/memory/internal/genschema/definitions"
)

// kind and file mirror the types that package memory decodes.
type kind struct {
	Group, Version, Kind string
	Type                 string // name in Types
	Cluster              bool   // cluster-scoped
	Status               bool   // has a status subresource
}

type file struct {
	Kinds []kind
	Types []smd.TypeDef
}

func main() {
	schemaOut := flag.String("schema", "", "file for the schema (gob, gzipped)")
	keysOut := flag.String("listkeys", "", "file for the list-map keys (text)")
	flag.Parse()
	if err := run(*schemaOut, *keysOut); err != nil {
		log.Fatal(err)
	}
}

func run(schemaOut, keysOut string) error {
	src, err := readSources("k8s.io/api/...", "github.com/openshift/api/...", "k8s.io/apimachinery/pkg/apis/meta/v1")
	if err != nil {
		return err
	}
	types, err := schemaTypes()
	if err != nil {
		return err
	}
	f := file{Types: types, Kinds: builtinKinds(types, src)}
	data, err := encode(f)
	if err != nil {
		return err
	}
	if err := os.WriteFile(schemaOut, data, 0o644); err != nil {
		return err
	}
	return os.WriteFile(keysOut, src.listKeys(), 0o644)
}

// schemaTypes converts the generated OpenAPI definitions.
func schemaTypes() ([]smd.TypeDef, error) {
	models := make(map[string]*spec.Schema)
	ref := func(name string) spec.Ref { return spec.MustCreateRef("#/definitions/" + name) }
	for name, def := range definitions.GetOpenAPIDefinitions(common.ReferenceCallback(ref)) {
		models[name] = &def.Schema
	}
	s, err := schemaconv.ToSchemaFromOpenAPI(models, false)
	if err != nil {
		return nil, err
	}
	sort.Slice(s.Types, func(i, j int) bool { return s.Types[i].Name < s.Types[j].Name })
	for _, t := range s.Types {
		tidy(t.Atom)
	}
	return s.Types, nil
}

// tidy sorts fields, so that the result is the same at every run, and drops
// defaults other than scalars: only keys of lists use them.
func tidy(a smd.Atom) {
	if a.List != nil {
		tidy(a.List.ElementType.Inlined)
	}
	if a.Map == nil {
		return
	}
	tidy(a.Map.ElementType.Inlined)
	sort.Slice(a.Map.Fields, func(i, j int) bool { return a.Map.Fields[i].Name < a.Map.Fields[j].Name })
	for i := range a.Map.Fields {
		field := &a.Map.Fields[i]
		tidy(field.Type.Inlined)
		switch field.Default.(type) {
		case string, bool, float64, nil:
		default:
			field.Default = nil
		}
	}
}

// builtinKinds lists the kinds of client-go's scheme that are objects.
func builtinKinds(types []smd.TypeDef, src *sources) []kind {
	known := make(map[string]bool)
	for _, t := range types {
		known[t.Name] = true
	}
	var kinds []kind
	for gvk, t := range scheme.Scheme.AllKnownTypes() {
		model, ok := reflect.New(t).Interface().(interface{ OpenAPIModelName() string })
		if !ok || !known[model.OpenAPIModelName()] {
			continue
		}
		if _, ok := t.FieldByName("ObjectMeta"); !ok {
			continue
		}
		_, status := t.FieldByName("Status")
		tags := src.types[t.PkgPath()+"."+t.Name()]
		kinds = append(kinds, kind{
			Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind,
			Type:    model.OpenAPIModelName(),
			Cluster: tags.has("genclient:nonNamespaced"),
			Status:  status && !tags.has("genclient:noStatus"),
		})
	}
	sort.Slice(kinds, func(i, j int) bool {
		return fmt.Sprint(kinds[i]) < fmt.Sprint(kinds[j])
	})
	return kinds
}

func encode(f file) ([]byte, error) {
	var buf bytes.Buffer
	zip, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if err := gob.NewEncoder(zip).Encode(f); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}
