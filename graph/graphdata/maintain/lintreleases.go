package maintain

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/graph/graphdata/internal/inside"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
)

// releaseMissing looks at channels and at the targets of drops, as the
// maintainers' check does: risks may be about releases to come.
func (l *linter) releaseMissing() {
	if l.opts.Releases == nil {
		return
	}
	there := map[string]bool{}
	for _, r := range l.opts.Releases {
		there[inside.WithoutBuild(r.Version)] = true
		if r.Arch != "" {
			there[inside.WithoutBuild(r.Version)+"+"+r.Arch] = true
		} else {
			there[r.Version] = true
		}
	}
	for _, c := range l.channels {
		for i, e := range c.Versions {
			if !there[e.Version] {
				l.report(c.File, e.Line, element("versions", i), "there is no release %s", e.Version)
			}
		}
	}
	for _, d := range l.tree.Drops {
		if !there[d.To] {
			l.edge(d, "to", "there is no release %s", d.To)
		}
	}
}

// releaseUnsigned looks at the releases of channels and of the targets of drops.
func (l *linter) releaseUnsigned() {
	if l.opts.Signed == nil {
		return
	}
	named := map[string]bool{}
	for _, c := range l.channels {
		for _, e := range c.Versions {
			named[e.Version] = true
		}
	}
	for _, d := range l.tree.Drops {
		named[inside.DropTarget(d.To)] = true
	}
	for _, r := range l.opts.Releases {
		base, build, _ := strings.Cut(r.Version, "+")
		build = cmp.Or(r.Arch, build)
		if (named[base] || named[base+"+"+build]) && !l.opts.Signed(r) {
			l.report(r.Source, 0, "", "%s has no signature", strings.TrimSuffix(base+"+"+build, "+"))
		}
	}
}

var advisory = regexp.MustCompile(`https://access.redhat.com/errata/RH[BSE]{1}A-[0-9]{4}:[0-9]{3}`)

func (l *linter) releaseURL() {
	for _, r := range l.opts.Releases {
		v, err := graph.ParseVersion(r.Version)
		if err != nil || v.Prerelease() != "" {
			continue
		}
		switch url := r.Metadata[graph.MetadataURL]; {
		case url == "":
			l.report(r.Source, 0, "", "Missing url key in %s", r.Version)
		case !advisory.MatchString(url):
			l.report(r.Source, 0, "", "Invalid errata link in %s: %s", r.Version, short(url))
		}
	}
}

func (l *linter) suggestionDiffers() {
	known := map[string][]string{} // by architecture
	for _, r := range l.opts.Releases {
		known[r.Arch] = append(known[r.Arch], inside.WithoutBuild(r.Version))
	}
	for _, r := range l.opts.Releases {
		v, err := graph.ParseVersion(r.Version)
		if err != nil || !slices.ContainsFunc(l.tree.Suggestions, func(s graphdata.Suggestion) bool { return s.Minor == openshift.MinorOf(v).String() }) {
			continue
		}
		suggested := l.tree.Suggested(r.Version, r.Arch, known[r.Arch])
		var named []string
		for _, p := range r.Previous {
			p = inside.WithoutBuild(p)
			if slices.Contains(known[r.Arch], p) {
				named = append(named, p)
			}
		}
		slices.SortFunc(named, func(a, b string) int { return cmp.Or(graph.CompareVersions(a, b), cmp.Compare(a, b)) })
		named = slices.Compact(named)
		for _, d := range []struct {
			list, other []string
			what        string
		}{{suggested, named, "lacks predecessors that are suggested"}, {named, suggested, "names predecessors that are not suggested"}} {
			if extra := without(d.list, d.other); len(extra) > 0 {
				l.report(r.Source, 0, "", "%s %s: %s", r.Version, d.what, bounded.Join(extra, ", ", 1024))
			}
		}
	}
}

// without returns what is in a and not in b.
func without(a, b []string) (rest []string) {
	for _, x := range a {
		if !slices.Contains(b, x) {
			rest = append(rest, x)
		}
	}
	return rest
}
