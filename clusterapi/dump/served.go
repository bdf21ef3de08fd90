package dump

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// served is what is known about which kinds the cluster serves.
type served struct {
	// groups says of each group in the discovery whether all its kinds are known.
	groups map[string]bool
	// named and core say that the discovery of named groups, and of the core
	// group, was recorded: what is not in it is not served.
	named, core bool
	// brokenNamed and brokenCore say that some of it cannot be read: then what
	// the rest lacks may be served.
	brokenNamed, brokenCore bool
}

// denies reports whether discovery shows that a kind that nothing else shows to
// be served is not.
func (s *served) denies(group string) bool {
	if group == "" && s.brokenCore || group != "" && s.brokenNamed {
		return false
	}
	if known, told := s.groups[group]; told {
		return known
	}
	if group == "" {
		return s.core
	}
	return s.named
}

// broken notes that a discovery file cannot be read.
func (s *served) broken(core bool) {
	s.brokenCore = s.brokenCore || core
	s.brokenNamed = s.brokenNamed || !core
}

// found is a kind that discovery names.
type found struct {
	kind       schema.GroupVersionKind
	resource   string
	namespaced bool
}

// read reads a discovery file. partial reports that it does not tell all, so that
// what it lacks may be served.
func (s *served) read(text string, core, partial bool) ([]found, error) {
	var list apidiscovery.APIGroupDiscoveryList
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, err
	}
	if list.Kind != "APIGroupDiscoveryList" || !strings.HasPrefix(list.APIVersion, "apidiscovery.k8s.io/v2") {
		return nil, fmt.Errorf("%s of %s, not an APIGroupDiscoveryList of apidiscovery.k8s.io/v2", list.Kind, list.APIVersion)
	}
	if len(list.Items) == 0 {
		return nil, errors.New("discovery without groups")
	}
	s.core = s.core || core && !partial
	s.named = s.named || !core && !partial
	var all []found
	for _, group := range list.Items {
		known := len(group.Versions) > 0
		for _, version := range group.Versions {
			known = known && version.Freshness != apidiscovery.DiscoveryFreshnessStale && len(version.Resources) > 0
			gv := schema.GroupVersion{Group: group.Name, Version: version.Version}
			for _, r := range version.Resources {
				if r.ResponseKind == nil || r.ResponseKind.Kind == "" {
					known = false
					continue
				}
				all = append(all, found{gv.WithKind(r.ResponseKind.Kind), r.Resource, r.Scope == apidiscovery.ScopeNamespace})
			}
		}
		if before, told := s.groups[group.Name]; !partial {
			s.groups[group.Name] = known && (before || !told)
		}
	}
	return all, nil
}
