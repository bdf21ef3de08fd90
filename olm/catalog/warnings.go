package catalog

import (
	"fmt"
	"strings"

	"github.com/clusterupdate/clusterupdate/olm"
)

// warnings finds what the catalog tools accept, but a resolution may stumble
// over.
func (b *builder) warnings() []Problem {
	var found []Problem
	for _, p := range b.catalog.Packages() {
		for _, bundle := range p.Bundles {
			warn := func(rule string, format string, args ...any) {
				w := b.pos[bundle].problem(rule, format, args...)
				w.Package, w.Bundle = p.Name, bundle.Name
				found = append(found, w)
			}
			if bundle.Err != nil {
				warn(ruleRequirement, "%v", bundle.Err)
			}
			for i := range bundle.Requires {
				for _, text := range ignoredKeys(&bundle.Requires[i].Constraint) {
					warn(ruleIgnoredKeys, "bundle %s: property of type %s: %s", bundle.Name, olm.PropertyConstraint, text)
				}
			}
			for _, value := range bundle.MaxOpenShift {
				if len(value) > 0 && strings.ContainsRune("-0123456789", rune(value[0])) {
					warn(ruleNumber, "bundle %s: property of type %s: %s is a number; write %q", bundle.Name,
						olm.PropertyMaxOpenShift, value, value)
				}
			}
		}
	}
	return found
}

// ignoredKeys describes the elements of a constraint that have several keys.
func ignoredKeys(c *olm.Constraint) []string {
	var texts []string
	if len(c.Ignored) > 0 {
		texts = append(texts, fmt.Sprintf("beside %s, %s does not count", c.Kind, strings.Join(c.Ignored, ", ")))
	}
	for i := range c.Parts {
		texts = append(texts, ignoredKeys(&c.Parts[i])...)
	}
	return texts
}
