package olm

import (
	"fmt"
	"strings"
)

// warnings finds what the catalog tools accept, but a resolution may stumble
// over.
func warnings(packages []*Package) []Problem {
	var found []Problem
	for _, p := range packages {
		for _, b := range p.Bundles {
			warn := func(rule Rule, format string, args ...any) {
				w := b.pos.problem(rule, format, args...)
				w.Package, w.Bundle = p.Name, b.Name
				found = append(found, w)
			}
			if b.Err != nil {
				warn(RuleRequirement, "%v", b.Err)
			}
			for i := range b.Requires {
				for _, text := range ignoredKeys(&b.Requires[i].Constraint) {
					warn(RuleIgnoredKeys, "bundle %s: property of type %s: %s", b.Name, PropertyConstraint, text)
				}
			}
			for _, value := range b.MaxOpenShift {
				if len(value) > 0 && (value[0] == '-' || isDigit(value[0])) {
					warn(RuleNumber, "bundle %s: property of type %s: %s is a number; write %q", b.Name, PropertyMaxOpenShift, value, value)
				}
			}
		}
	}
	return found
}

// ignoredKeys describes the elements of a constraint that have several keys.
func ignoredKeys(c *Constraint) []string {
	var texts []string
	if len(c.Ignored) > 0 {
		texts = append(texts, fmt.Sprintf("beside %s, %s does not count", c.Kind, strings.Join(c.Ignored, ", ")))
	}
	for i := range c.Parts {
		texts = append(texts, ignoredKeys(&c.Parts[i])...)
	}
	return texts
}
