package memory

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/gob"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
)

//go:generate go generate -C internal/genschema

// builtinFile describes the kinds of k8s.io/api; internal/genschema writes it.
//
//go:embed builtin.gob.gz
var builtinFile []byte

// builtinKind is one kind in the file.
type builtinKind struct {
	Group, Version, Kind string
	Type                 string // name of its schema in Types
	Cluster              bool   // cluster-scoped
	Status               bool   // has a status subresource
}

type builtinData struct {
	Kinds []builtinKind
	Types []smd.TypeDef
}

// builtins are the kinds of k8s.io/api.
type builtins struct {
	schema *smd.Schema
	kinds  map[schema.GroupVersionKind]builtinKind
	known  map[schema.GroupKind]bool // in any version

	mu       sync.Mutex
	prepared map[schema.GroupVersionKind]*kind
}

var builtin = sync.OnceValue(func() *builtins {
	data, err := readBuiltin(builtinFile)
	if err != nil {
		panic(err) // the embedded file is a part of the program
	}
	b := &builtins{
		schema:   &smd.Schema{Types: data.Types},
		kinds:    make(map[schema.GroupVersionKind]builtinKind),
		known:    make(map[schema.GroupKind]bool),
		prepared: make(map[schema.GroupVersionKind]*kind),
	}
	for _, k := range data.Kinds {
		b.kinds[schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind}] = k
		b.known[schema.GroupKind{Group: k.Group, Kind: k.Kind}] = true
	}
	return b
})

func readBuiltin(file []byte) (*builtinData, error) {
	zip, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		return nil, fmt.Errorf("embedded schema: %w", err)
	}
	var data builtinData
	if err := gob.NewDecoder(zip).Decode(&data); err != nil {
		return nil, fmt.Errorf("embedded schema: %w", err)
	}
	return &data, nil
}

// kind prepares a built-in kind at its first use; nil when there is none of
// that name.
func (b *builtins) kind(gvk schema.GroupVersionKind) *kind {
	known, ok := b.kinds[gvk]
	if !ok {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if k := b.prepared[gvk]; k != nil {
		return k
	}
	k := &kind{
		gvk:     gvk,
		scope:   scopeNamespaced,
		status:  known.Status,
		counts:  countsGeneration(gvk.GroupKind()),
		builtin: true,
		types:   schemaType(b.schema, known.Type),
	}
	if known.Cluster {
		k.scope = scopeCluster
	}
	k.prepare()
	b.prepared[gvk] = k
	return k
}

// versions are those of a built-in kind, in order.
func (b *builtins) versions(gk schema.GroupKind) []string {
	if !b.known[gk] {
		return nil
	}
	var out []string
	for gvk := range b.kinds {
		if gvk.GroupKind() == gk {
			out = append(out, gvk.Version)
		}
	}
	slices.Sort(out)
	return out
}

// countsGeneration reports whether an API server counts the generation of a
// built-in kind: those whose changes a controller follows.
func countsGeneration(gk schema.GroupKind) bool {
	switch gk.Group {
	case "":
		return gk.Kind == "Pod" || gk.Kind == "ReplicationController"
	case "apps", "batch", "policy", "networking.k8s.io", "admissionregistration.k8s.io",
		"flowcontrol.apiserver.k8s.io", "resource.k8s.io", "extensions":
		return true
	}
	return false
}
