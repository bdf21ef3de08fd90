package mcp

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/BurntSushi/toml"

	"github.com/clusterupdate/clusterupdate/mcp/internal/ignition"
)

// registriesPath is the file that tells a container runtime where images are
// mirrored. See https://github.com/containers/image/blob/main/docs/containers-registries.conf.5.md.
const registriesPath = "/etc/containers/registries.conf"

// registriesConf is that file.
type registriesConf struct {
	Search     []string
	Registries []registry
	Others     map[string]any // all other settings, by name
}

type registry struct {
	Prefix             string           `toml:"prefix"`
	Location           string           `toml:"location"`
	Blocked            bool             `toml:"blocked"`
	Insecure           bool             `toml:"insecure"`
	MirrorByDigestOnly bool             `toml:"mirror-by-digest-only"`
	Mirrors            []registryMirror `toml:"mirror"`
}

type registryMirror struct {
	Location       string `toml:"location"`
	Insecure       bool   `toml:"insecure"`
	PullFromMirror string `toml:"pull-from-mirror"`
}

func (m registryMirror) digestOnly() bool { return m.PullFromMirror == "digest-only" }

// scope is what the entry is for.
func (r registry) scope() string {
	if r.Prefix != "" {
		return r.Prefix
	}
	return r.Location
}

func parseRegistries(data []byte) (*registriesConf, error) {
	c := &registriesConf{}
	if err := toml.Unmarshal(data, &c.Others); err != nil {
		return nil, err
	}
	var known struct {
		Search     []string   `toml:"unqualified-search-registries"`
		Registries []registry `toml:"registry"`
	}
	if err := toml.Unmarshal(data, &known); err != nil {
		return nil, err
	}
	c.Search, c.Registries = known.Search, known.Registries
	delete(c.Others, "unqualified-search-registries")
	delete(c.Others, "registry")
	return c, nil
}

// registriesUnsafe says why pods must leave before the file changes: an image that a
// running pod's replacement needs might come from elsewhere. Empty: they need not.
func (d *configDiff) registriesUnsafe() (string, error) {
	read := func(c *ignition.Config, which string) (*registriesConf, error) {
		data, err := c.Contents(registriesPath)
		if err != nil {
			return nil, fmt.Errorf("%s config: %w", which, err)
		}
		conf, err := parseRegistries(data)
		if err != nil {
			return nil, fmt.Errorf("%s config: %s: %w", which, registriesPath, err)
		}
		return conf, nil
	}
	a, err := read(d.oldIgn, "old")
	if err != nil {
		return "", err
	}
	b, err := read(d.newIgn, "new")
	if err != nil {
		return "", err
	}
	return unsafeRegistries(a, b), nil
}

func unsafeRegistries(a, b *registriesConf) string {
	if len(a.Others) != len(b.Others) || len(a.Others) > 0 && !reflect.DeepEqual(a.Others, b.Others) {
		return "settings other than those of registries change"
	}
	if len(b.Search) < len(a.Search) || !slices.Equal(a.Search, b.Search[:len(a.Search)]) {
		return "unqualified-search-registries are not only appended to"
	}
	old, oldTwice := byScope(a.Registries)
	new, newTwice := byScope(b.Registries)
	if twice := oldTwice + newTwice; twice != "" && !reflect.DeepEqual(a.Registries, b.Registries) {
		return fmt.Sprintf("registry %s is there twice", twice)
	}
	for _, r := range a.Registries {
		if _, ok := new[r.scope()]; !ok {
			return fmt.Sprintf("registry %s is removed", r.scope())
		}
	}
	for _, r := range b.Registries {
		was, ok := old[r.scope()]
		why := ""
		if ok {
			why = unsafeChange(was, r)
		} else {
			why = unsafeAddition(r)
		}
		if why != "" {
			return fmt.Sprintf("registry %s: %s", r.scope(), why)
		}
	}
	return ""
}

// byScope returns entries by what they are for, and one that is there twice.
func byScope(all []registry) (by map[string]registry, twice string) {
	by = make(map[string]registry, len(all))
	for _, r := range all {
		if _, ok := by[r.scope()]; ok {
			twice = r.scope()
		}
		by[r.scope()] = r
	}
	return by, twice
}

func unsafeAddition(r registry) string {
	if len(r.Mirrors) == 0 {
		if !r.MirrorByDigestOnly {
			return "it is added, not for digests only"
		}
		return ""
	}
	for _, m := range r.Mirrors {
		if !m.digestOnly() {
			return fmt.Sprintf("it is added with mirror %s, not for digests only", m.Location)
		}
	}
	return ""
}

func unsafeChange(a, b registry) string {
	switch {
	case a.Prefix != b.Prefix:
		return "its prefix changes"
	case a.Location != b.Location:
		return "its location changes"
	case a.Blocked != b.Blocked:
		return "blocked changes"
	case a.Insecure != b.Insecure:
		return "insecure changes"
	}
	left := slices.Clone(a.Mirrors)
	for _, m := range b.Mirrors {
		at := slices.IndexFunc(left, func(o registryMirror) bool { return o.Location == m.Location })
		if at < 0 {
			if !m.digestOnly() && !b.MirrorByDigestOnly {
				return fmt.Sprintf("mirror %s is added, not for digests only", m.Location)
			}
			continue
		}
		was := left[at]
		left = slices.Delete(left, at, at+1)
		if was.Insecure != m.Insecure {
			return fmt.Sprintf("insecure of mirror %s changes", m.Location)
		}
		if was.PullFromMirror != m.PullFromMirror && !m.digestOnly() {
			return fmt.Sprintf("pull-from-mirror of mirror %s changes", m.Location)
		}
	}
	if len(left) > 0 {
		return fmt.Sprintf("mirror %s is removed", left[0].Location)
	}
	return ""
}
