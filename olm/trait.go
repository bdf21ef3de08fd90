package olm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// trait is what operators have in common, and may clash by.
type trait struct {
	kind traitKind
	api  schema.GroupVersionKind
	name string
}

type traitKind int

// The kinds of traits, in the order in which clashes are looked at.
const (
	traitAPI traitKind = iota
	traitPackage
	traitName
)

func compareTraits(a, b trait) int {
	return cmp.Or(
		cmp.Compare(a.kind, b.kind),
		strings.Compare(a.api.Group, b.api.Group),
		strings.Compare(a.api.Version, b.api.Version),
		strings.Compare(a.api.Kind, b.api.Kind),
		strings.Compare(a.name, b.name),
	)
}

// traits returns what a bundle has.
func (b *Bundle) traits() []trait {
	packages := b.packages()
	out := make([]trait, 0, len(b.Provides)+len(packages)+1)
	for _, gvk := range b.Provides {
		out = append(out, trait{kind: traitAPI, api: gvk})
	}
	for _, pkg := range packages {
		out = append(out, trait{kind: traitPackage, name: pkg})
	}
	return append(out, trait{kind: traitName, name: b.Name})
}

// shared describes what operators do that have one trait: "provide KIND
// (GROUP/VERSION)".
func (t trait) shared() string {
	switch t.kind {
	case traitAPI:
		return "provide " + apiText(t.api)
	case traitPackage:
		return "originate from package " + t.name
	}
	return "have the name " + t.name
}

// clash returns the message that the named operators cannot share the trait.
func (t trait) clash(names []string) string {
	what := "operator from package " + t.name
	switch t.kind {
	case traitAPI:
		what = "provider of " + apiText(t.api)
	case traitName:
		return "there can be only one operator named " + t.name
	}
	return fmt.Sprintf("there can be only one %s: %s exclude each other", what, joinLast(names, " and "))
}

// packages returns the packages that a bundle belongs to.
func (b *Bundle) packages() []string {
	var out []string
	if b.Package != "" {
		out = append(out, b.Package)
	}
	for _, id := range b.Identities {
		if id.Package != "" && !slices.Contains(out, id.Package) {
			out = append(out, id.Package)
		}
	}
	return out
}
