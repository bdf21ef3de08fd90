package program

import (
	"flag"
	"maps"
	"slices"
	"strings"
)

// check reports flags that are missing, or that do not go together.
func (c Command) check(flags *flag.FlagSet) error {
	set := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { set[f.Name] = true })
	holds := func(condition string) bool {
		name, values, _ := strings.Cut(condition, " ")
		if values == "" {
			return set[name]
		}
		return slices.Contains(strings.Split(values, "|"), flags.Lookup(name).Value.String())
	}
	for _, group := range c.Required {
		if !slices.ContainsFunc(group, holds) {
			return Usagef("%s is missing", either(group))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(c.Excludes)) {
		if i := slices.IndexFunc(c.Excludes[key], holds); i >= 0 && holds(key) {
			return Usagef("-%s does not go with -%s", key, c.Excludes[key][i])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(c.Needs)) {
		if holds(key) && !slices.ContainsFunc(c.Needs[key], holds) {
			return Usagef("-%s needs %s", key, either(c.Needs[key]))
		}
	}
	return nil
}

// either names flags of which one is meant.
func either(conditions []string) string { return "-" + strings.Join(conditions, " or -") }
