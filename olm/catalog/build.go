package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterupdate/clusterupdate/internal/imageref"
	"github.com/clusterupdate/clusterupdate/olm"
)

// builder puts the objects of a catalog together. It reports what the catalog
// tools refuse at once; validate reports what they collect.
type builder struct {
	catalog   Catalog
	packages  map[string]*packageBuilder
	problems  []Problem
	badRanges map[string]error // by text; nil for one that is good

	// where packages, channels and bundles are deprecated without a message
	unexplained map[any]position
	pos         map[any]position // of packages, channels and bundles
}

type packageBuilder struct {
	*olm.Package
	bundles  map[string]*olm.Bundle
	channels map[string]*olm.Channel
	used     map[string]bool // bundles that a channel names
}

// build makes the contents of a catalog. problems are those of reading it.
func build(objects []object, problems []Problem) *Catalog {
	b := &builder{packages: make(map[string]*packageBuilder), problems: problems, badRanges: make(map[string]error),
		unexplained: make(map[any]position), pos: make(map[any]position)}
	for i := range objects {
		if o := &objects[i]; o.pkg != nil {
			b.addPackage(o.pkg, o.pos)
		} else if o.other != nil {
			b.catalog.others = append(b.catalog.others, o.other)
		}
	}
	// Entries refer to bundles, but the tools check channels first.
	for i := range objects {
		if o := &objects[i]; o.bundle != nil {
			b.pos[o.bundle] = o.pos
			if p := b.packages[o.bundle.Package]; p != nil && p.bundles[o.bundle.Name] == nil {
				p.bundles[o.bundle.Name] = o.bundle
				p.Bundles = append(p.Bundles, o.bundle)
			}
		}
	}
	for i := range objects {
		if o := &objects[i]; o.channel != nil {
			b.addChannel(o.channel, o.pos)
		}
	}
	for i := range objects {
		if o := &objects[i]; o.bundle != nil {
			b.checkBundle(o.bundle)
		}
	}
	packages := make([]*olm.Package, 0, len(b.packages))
	for _, p := range b.packages {
		packages = append(packages, p.Package)
	}
	b.catalog.Contents = olm.NewContents(packages)
	b.checkEntries()
	deprecated := make(map[string]bool)
	number := 0
	for i := range objects {
		if o := &objects[i]; o.deprecations != nil {
			b.deprecate(o.deprecations, number, o.pos, deprecated)
			number++
		}
	}
	b.validate()
	b.catalog.problems = b.problems
	b.catalog.warnings = b.warnings()
	return &b.catalog
}

func (b *builder) report(p Problem, pkg, channel, bundle string) {
	p.Package, p.Channel, p.Bundle = pkg, channel, bundle
	b.problems = append(b.problems, p)
}

func (b *builder) addPackage(blob *PackageBlob, pos position) {
	switch {
	case blob.Name == "":
		b.report(pos.problem(rulePackageName, "config contains package with no name"), "", "", "")
		return
	case b.packages[blob.Name] != nil:
		b.report(pos.problem(rulePackageName, "duplicate package %q", blob.Name), blob.Name, "", "")
		return
	}
	if errs := validation.IsDNS1123Label(blob.Name); len(errs) > 0 {
		b.report(pos.problem(rulePackageName, "invalid package name %q: %v", blob.Name, errs), blob.Name, "", "")
	}
	p := &olm.Package{
		Name: blob.Name, DefaultChannel: blob.DefaultChannel, Icon: blob.Icon, Description: blob.Description,
		Properties: blob.Properties,
	}
	b.pos[p] = pos
	b.packages[blob.Name] = &packageBuilder{
		Package:  p,
		bundles:  make(map[string]*olm.Bundle),
		channels: make(map[string]*olm.Channel),
		used:     make(map[string]bool),
	}
}

func (b *builder) addChannel(blob *ChannelBlob, pos position) {
	p := b.packages[blob.Package]
	switch {
	case p == nil:
		b.report(pos.problem(ruleChannelName, "unknown package %q for channel %q", blob.Package, blob.Name),
			blob.Package, blob.Name, "")
		return
	case blob.Name == "":
		b.report(pos.problem(ruleChannelName, "package %q contains channel with no name", blob.Package), blob.Package, "", "")
		return
	case p.channels[blob.Name] != nil:
		b.report(pos.problem(ruleChannelName, "package %q has duplicate channel %q", blob.Package, blob.Name),
			blob.Package, blob.Name, "")
		return
	}
	ch := &olm.Channel{Name: blob.Name, Properties: blob.Properties}
	b.pos[ch] = pos
	p.channels[ch.Name] = ch
	p.Channels = append(p.Channels, ch)
	entries := make([]olm.Entry, len(blob.Entries))
	ch.Entries = make([]*olm.Entry, 0, len(entries))
	seen := make(map[string]bool, len(entries))
	for i, w := range blob.Entries {
		switch {
		case w.Name == "":
			b.report(pos.problem(ruleEntryName,
				"invalid package %q, channel %q: entry [%d]: name must be set", p.Name, ch.Name, i), p.Name, ch.Name, "")
			continue
		case seen[w.Name]:
			b.report(pos.problem(ruleEntryName, "invalid package %q, channel %q: duplicate entry %q", p.Name, ch.Name, w.Name),
				p.Name, ch.Name, w.Name)
			continue
		}
		seen[w.Name] = true
		p.used[w.Name] = true
		e := &entries[i]
		*e = olm.Entry{Name: w.Name, Bundle: p.bundles[w.Name], Replaces: w.Replaces, Skips: w.Skips, SkipRange: w.SkipRange}
		ch.Entries = append(ch.Entries, e)
	}
}

func (b *builder) checkBundle(bundle *olm.Bundle) {
	report := func(rule string, format string, args ...any) {
		b.report(b.pos[bundle].problem(rule, format, args...), bundle.Package, "", bundle.Name)
	}
	p := b.packages[bundle.Package]
	switch {
	case bundle.Package == "":
		report(ruleBundleName, "package name must be set for bundle %q", bundle.Name)
		return
	case p == nil:
		report(ruleBundleName, "unknown package %q for bundle %q", bundle.Package, bundle.Name)
		return
	case p.bundles[bundle.Name] != bundle:
		report(ruleBundleName, "package %q has duplicate bundle %q", bundle.Package, bundle.Name)
		return
	}
	ids := bundle.Identities
	switch {
	case bundle.Malformed != nil:
		report(ruleProperties, "parse properties for bundle %q: %v", bundle.Name, bundle.Malformed)
	case len(ids) != 1:
		report(ruleProperties, "package %q bundle %q must have exactly 1 %q property, found %d", p.Name, bundle.Name,
			olm.PropertyPackage, len(ids))
	case ids[0].Package != p.Name:
		report(ruleProperties, "package %q does not match %q property %q", p.Name, olm.PropertyPackage, ids[0].Package)
	}
	if bundle.Image != "" {
		if _, err := imageref.Parse(bundle.Image); err != nil {
			report(ruleImage, "package %q bundle %q image: invalid image pull spec %q: %v", p.Name, bundle.Name, bundle.Image,
				err)
		}
	}
	for i, related := range bundle.RelatedImages {
		if related.Image == "" {
			continue
		}
		if _, err := imageref.Parse(related.Image); err != nil {
			report(ruleImage, "package %q bundle %q relatedImages[%d]: invalid image pull spec %q: %v", p.Name, bundle.Name, i,
				related.Image, err)
		}
	}
	if len(ids) > 0 {
		if _, err := semver.Parse(ids[0].RawVersion); err != nil {
			report(ruleVersion, "error parsing bundle %q version %q: %v", bundle.Name, ids[0].RawVersion, err)
		}
		if err := checkRelease(ids[0].Release); err != nil {
			report(ruleVersion, "error parsing bundle %q release version %q: %v", bundle.Name, ids[0].Release, err)
		}
	}
	if !p.used[bundle.Name] {
		report(ruleUnusedBundle, "package %q, bundle %q not found in any channel entries", p.Name, bundle.Name)
	}
}

const maxRelease = 20

func checkRelease(release string) error {
	if release == "" {
		return nil
	}
	if len(release) > maxRelease {
		return fmt.Errorf("invalid release %q: exceeds maximum length of %d characters", release, maxRelease)
	}
	for part := range strings.SplitSeq(release, ".") {
		if _, err := semver.NewPRVersion(part); err != nil {
			return fmt.Errorf("invalid release %q: %w", release, err)
		}
	}
	return nil
}

// checkEntries reports entries without a bundle, per package.
func (b *builder) checkEntries() {
	for _, p := range b.catalog.Packages() {
		var missing []string
		var where *olm.Channel
		for _, ch := range p.Channels {
			for _, e := range ch.Entries {
				if e.Bundle == nil {
					missing = append(missing, e.Name)
					where = cmp.Or(where, ch)
				}
			}
		}
		if where == nil {
			continue
		}
		slices.Sort(missing)
		b.report(b.pos[where].problem(ruleMissingBundle,
			"no olm.bundle blobs found in package %q for olm.channel entries %s", p.Name, slices.Compact(missing)), p.Name, "", "")
	}
}

func (b *builder) deprecate(blob *DeprecationsBlob, number int, pos position, seen map[string]bool) {
	report := func(format string, args ...any) {
		b.report(pos.problem(ruleDeprecation, format, args...), blob.Package, "", "")
	}
	p := b.packages[blob.Package]
	switch {
	case blob.Package == "":
		report("package name must be set for deprecation item %d", number)
		return
	case p == nil:
		report("cannot apply deprecations to an unknown package %q", blob.Package)
		return
	case seen[blob.Package]:
		report("expected a maximum of one deprecation per package: %q", blob.Package)
		return
	}
	seen[blob.Package] = true
	references := make(map[Reference]bool)
	for i, e := range blob.Entries {
		ref := e.Reference
		if ref.Schema == "" {
			report("schema must be set for deprecation entry [%d] for package %q", i, p.Name)
			continue
		}
		if references[ref] {
			report("duplicate deprecation entry %s %q for package %q", ref.Schema, ref.Name, p.Name)
			continue
		}
		references[ref] = true
		var deprecated any
		switch ref.Schema {
		case schemaPackage:
			if ref.Name != "" {
				report("package name must be empty for deprecated package %q (specified %q)", p.Name, ref.Name)
				continue
			}
			p.Deprecation, deprecated = e.Message, p.Package
		case schemaChannel:
			if ch := p.channels[ref.Name]; ch == nil {
				report("cannot deprecate channel %q for package %q: channel not found", ref.Name, p.Name)
			} else {
				ch.Deprecation, deprecated = e.Message, ch
			}
		case schemaBundle:
			if bundle := p.bundles[ref.Name]; bundle == nil {
				report("cannot deprecate bundle %q for package %q: bundle not found", ref.Name, p.Name)
			} else {
				bundle.Deprecation, deprecated = e.Message, bundle
			}
		default:
			report("cannot deprecate object %s %q referenced by entry %d for package %q: object schema unknown", ref.Schema,
				ref.Name, i, p.Name)
		}
		if deprecated != nil && e.Message == "" {
			b.unexplained[deprecated] = pos
		}
	}
}
