package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/internal/program"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// shown returns an error that lists what there is if no manifest of the releases, whether
// a cluster applies it or not, is of the component and the kind to show.
func (o *options) shown(releases ...*manifest.Payload) error {
	components, kinds := map[string]bool{}, map[string]bool{} // kinds of the component
	for _, p := range releases {
		for _, m := range p.Inclusion(manifest.Filter{}).Manifests {
			_, component, _ := manifest.ParseName(m.File)
			if component != "" {
				components[component] = true
			}
			if o.component == "" || component == o.component {
				kinds[m.Identity.Kind] = true
			}
		}
	}
	list := func(of map[string]bool) string { return strings.Join(slices.Sorted(maps.Keys(of)), ", ") }
	switch {
	case o.component != "" && !components[o.component]:
		return program.Usagef("-component %s: there are only %s", o.component, list(components))
	case o.kind == "" || kinds[o.kind]:
		return nil
	case o.component != "":
		return program.Usagef("-kind %s: the component %s has only %s", o.kind, o.component, list(kinds))
	}
	return program.Usagef("-kind %s: there are only %s", o.kind, list(kinds))
}
