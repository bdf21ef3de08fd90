package graphdata

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"go.yaml.in/yaml/v3"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
)

// defaultArch is the suggestion for architectures that a file does not name.
const defaultArch = "default"

// Suggested returns the predecessors that a build of a release would name, out of
// the known versions, ascending: those of the previous minor and those below it of
// its own within the limits of build-suggestions, for the architecture or by
// default. Versions of equal precedence count once; those that are not SemVer are
// left out. It is nil where the tree has no suggestion.
func (t *Tree) Suggested(version, arch string, known []string) []string {
	v, err := graph.ParseVersion(version)
	if err != nil {
		return nil
	}
	s := t.suggestion(openshift.MinorOf(v).String(), arch)
	if s == nil {
		return nil
	}
	previous := newRange(s.MinorMin, s.MinorMax, s.MinorBlockList)
	own := newRange(s.ZMin, s.ZMax, s.ZBlockList)
	var found []*semver.Version
	for _, text := range known {
		of, ok := leadingMinor(text)
		sameMinor := of == openshift.MinorOf(v)
		if !ok || !sameMinor && !previous.reaches(of) {
			continue // most are: reading them as a whole costs more
		}
		k, err := graph.ParseVersion(text)
		if err != nil {
			continue
		}
		if sameMinor && own.contains(k) && k.LessThan(v) || !sameMinor && previous.contains(k) {
			found = append(found, k)
		}
	}
	slices.SortStableFunc(found, (*semver.Version).Compare)
	found = slices.CompactFunc(found, (*semver.Version).Equal)
	var texts []string
	for _, v := range found {
		texts = append(texts, v.Original())
	}
	return texts
}

func (t *Tree) suggestion(minorVersion, arch string) *Suggestion {
	var fallback *Suggestion
	for i := range t.Suggestions {
		s := &t.Suggestions[i]
		if s.Minor != minorVersion {
			continue
		}
		if s.Arch == arch {
			return s
		}
		if s.Arch == defaultArch {
			fallback = s
		}
	}
	return fallback
}

// versionRange is what a suggestion takes of a minor.
type versionRange struct {
	from, to *semver.Version // nil: nothing is taken
	blocked  []*semver.Version
}

func newRange(from, to string, blocked []string) versionRange {
	r := versionRange{}
	r.from, _ = graph.ParseVersion(from)
	r.to, _ = graph.ParseVersion(to)
	for _, text := range blocked {
		if v, err := graph.ParseVersion(text); err == nil {
			r.blocked = append(r.blocked, v)
		}
	}
	return r
}

func (r versionRange) contains(v *semver.Version) bool {
	return r.from != nil && r.to != nil && v.Compare(r.from) >= 0 && v.Compare(r.to) <= 0 &&
		!slices.ContainsFunc(r.blocked, v.Equal)
}

// reaches reports whether versions of a minor may be in the range.
func (r versionRange) reaches(m openshift.Minor) bool {
	return r.from != nil && r.to != nil && !openshift.MinorOf(r.from).Above(m) && !m.Above(openshift.MinorOf(r.to))
}

// leadingMinor reads the minor that a version starts with.
func leadingMinor(version string) (m openshift.Minor, ok bool) {
	major, rest, _ := strings.Cut(version, ".")
	of, _, _ := strings.Cut(rest, ".")
	x, okMajor := openshift.Number(major)
	y, okMinor := openshift.Number(of)
	return openshift.Minor{Major: x, Minor: y}, okMajor && okMinor
}

// loadSuggestions reads a file of build-suggestions. No update service looks at
// it, so that its faults are warnings under Compat.
func (l *loader) loadSuggestions(name string) error {
	outer := &file{loader: l, name: name}
	f, root, err := outer.beside().loader.open(name)
	if err != nil {
		return err
	}
	var suggestions []Suggestion
	if root != nil {
		suggestions = f.suggestions(root)
	}
	outer.adopt(f)
	if !f.bad {
		l.tree.Suggestions = append(l.tree.Suggestions, suggestions...)
	}
	return nil
}

func (f *file) suggestions(root *yaml.Node) []Suggestion {
	name := strings.TrimSuffix(path.Base(f.name), ".yaml")
	if _, err := openshift.ParseMinor(name); err != nil {
		f.failed(root, "", ruleSuggestionName, "the name of the file is not that of a minor, as 4.20.yaml is")
		return nil
	}
	m := f.mapping(root, "", defaultArch)
	if m == nil {
		return nil
	}
	m.required(defaultArch)
	var list []Suggestion
	for i := 0; i+1 < len(m.node.Content); i += 2 {
		key := resolved(m.node.Content[i])
		s := Suggestion{File: f.name, Line: key.Line, Minor: name, Arch: key.Value}
		f.suggestion(m.node.Content[i+1], bounded.Text(key.Value, bounded.MaxQuoted)+".", &s)
		list = append(list, s)
	}
	slices.SortStableFunc(list, func(a, b Suggestion) int {
		if (a.Arch == defaultArch) != (b.Arch == defaultArch) {
			if a.Arch == defaultArch {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Arch, b.Arch)
	})
	return list
}

// suggestion reads the six keys of an architecture, all of which must be there.
func (f *file) suggestion(n *yaml.Node, where string, s *Suggestion) {
	m := f.mapping(n, where, "minor_min", "minor_max", "minor_block_list", "z_min", "z_max", "z_block_list")
	if m == nil {
		return
	}
	m.reportUnknown(f.stricter)
	version := func(key string) string {
		n := m.required(key)
		if n == nil {
			return ""
		}
		v, _ := f.version(n, where+key)
		return v
	}
	versions := func(key string) (list []string) {
		n := m.required(key)
		if n == nil {
			return nil
		}
		items, _ := f.items(n, where+key)
		for i, n := range items {
			if v, ok := f.version(resolved(n), element(where+key, i)); ok {
				list = append(list, v)
			}
		}
		return list
	}
	s.MinorMin, s.MinorMax, s.MinorBlockList = version("minor_min"), version("minor_max"), versions("minor_block_list")
	s.ZMin, s.ZMax, s.ZBlockList = version("z_min"), version("z_max"), versions("z_block_list")
}
