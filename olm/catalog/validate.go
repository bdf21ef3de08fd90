package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/clusterupdate/clusterupdate/olm"
)

// validate reports what the catalog tools collect into one message.
func (b *builder) validate() {
	for _, p := range b.catalog.Packages() {
		b.validatePackage(p)
	}
}

func (b *builder) validatePackage(p *olm.Package) {
	report := func(rule string, channel, format string, args ...any) {
		b.report(b.pos[p].problem(rule, format, args...), p.Name, channel, "")
	}
	missing := p.DefaultChannel != "" && p.Channel(p.DefaultChannel) == nil
	if p.DefaultChannel == "" {
		report(ruleDefaultChannel, "", "default channel must be set")
	}
	if len(p.Channels) == 0 && !missing {
		report(ruleNoChannel, "", "package must contain at least one channel")
	}
	// The tools add the missing default channel, an empty one.
	absent := func() { report(ruleDefaultChannel, p.DefaultChannel, "channel must contain at least one bundle") }
	for _, ch := range p.Channels {
		if missing && p.DefaultChannel < ch.Name {
			absent()
			missing = false
		}
		b.validateChannel(ch)
	}
	if missing {
		absent()
	}
	if same := sameVersions(p); len(same) > 0 {
		report(ruleSameVersion, "", "duplicate versions found in bundles: %v", same)
	}
	b.validateDeprecation(p, p.Name, "", "")
}

func (b *builder) validateDeprecation(deprecated any, pkg, channel, bundle string) {
	if pos, ok := b.unexplained[deprecated]; ok {
		b.report(pos.problem(ruleDeprecationMessage, "invalid deprecation: message must be set"), pkg, channel, bundle)
	}
}

func (b *builder) validateChannel(ch *olm.Channel) {
	if rule, message := channelFault(ch); message != "" {
		b.report(b.pos[ch].problem(rule, "%s", message), ch.Package.Name, ch.Name, "")
	}
	sorted := slices.SortedFunc(slices.Values(ch.Entries), func(a, b *olm.Entry) int { return strings.Compare(a.Name, b.Name) })
	for _, e := range sorted {
		b.validateEntry(e)
	}
	b.validateDeprecation(ch, ch.Package.Name, ch.Name, "")
}

// channelFault checks the channel's graph of replacements. Unlike the resolver, which
// walks through skipped entries, the check stops at them.
func channelFault(ch *olm.Channel) (rule, text string) {
	switch {
	case len(ch.Entries) == 0:
		return ruleNoEntry, "channel must contain at least one bundle"
	case len(ch.Heads) == 0:
		return ruleHeads, "no channel head found in graph"
	case len(ch.Heads) > 1:
		names := make([]string, len(ch.Heads))
		for i, e := range ch.Heads {
			names[i] = e.Name
		}
		return ruleHeads, "multiple channel heads found in graph: " + strings.Join(names, ", ")
	}
	byName := make(map[string]*olm.Entry, len(ch.Entries))
	skipped := make(map[string]bool)
	for _, e := range ch.Entries {
		byName[e.Name] = e
		for _, s := range e.Skips {
			skipped[s] = true
		}
	}
	var chain []string
	reached := make(map[string]bool)
	for e := ch.Heads[0]; e != nil; e = byName[e.Replaces] {
		chain = append(chain, e.Name)
		reached[e.Name] = true
		if reached[e.Replaces] {
			cycle := append(chain[slices.Index(chain, e.Replaces):], e.Replaces)
			return ruleCycle, "detected cycle in replaces chain of upgrade graph: " + strings.Join(cycle, " -> ")
		}
		if skipped[e.Replaces] {
			break
		}
	}
	var stranded []string
	for _, e := range ch.Entries {
		if !reached[e.Name] && !skipped[e.Name] {
			stranded = append(stranded, e.Name)
		}
	}
	if len(stranded) == 0 {
		return "", ""
	}
	slices.Sort(stranded)
	return ruleStranded, "channel contains one or more stranded bundles: " + strings.Join(stranded, ", ")
}

// validateEntry checks a bundle as it appears in a channel.
func (b *builder) validateEntry(e *olm.Entry) {
	report := func(pos position, rule string, format string, args ...any) {
		b.report(pos.problem(rule, format, args...), e.Package.Name, e.Channel.Name, e.Name)
	}
	for i, s := range e.Skips {
		if s == "" {
			report(b.pos[e.Channel], ruleSkips, "skip[%d] is empty", i)
		}
	}
	if err := b.rangeFault(e.SkipRange); err != nil {
		report(b.pos[e.Channel], ruleSkipRange, "invalid skipRange %q: %v", e.SkipRange, err)
	}
	bundle := e.Bundle
	if bundle == nil {
		return
	}
	if bundle.Image == "" && !slices.ContainsFunc(bundle.Properties, isObject) {
		report(b.pos[bundle], ruleNoImage, "bundle image must be set")
	}
	if bundle.Release != "" && len(bundle.Identities) > 0 {
		if v := bundle.Identities[0].Version; v != nil {
			if want := fmt.Sprintf("%s-v%s-%s", bundle.Package, v, bundle.Release); bundle.Name != want {
				report(b.pos[bundle], ruleRelease, "name %q does not match normalized name %q", bundle.Name, want)
			}
			if len(v.Build) > 0 {
				report(b.pos[bundle], ruleRelease, "cannot use build metadata in version with a release version")
			}
		}
	}
	b.validateDeprecation(bundle, e.Package.Name, e.Channel.Name, e.Name)
}

// rangeFault is why a text is not a range of versions.
func (b *builder) rangeFault(text string) error {
	err, known := b.badRanges[text]
	if !known && text != "" {
		_, err = olm.ParseRange(text)
		b.badRanges[text] = err
	}
	return err
}

func isObject(p olm.Property) bool { return p.Type == olm.PropertyBundleObject }

// sameVersion is a version, release and build metadata included, that several
// bundles have.
type sameVersion struct {
	version *semver.Version
	release string
	bundles []string
}

func (s sameVersion) String() string {
	version := s.version.String()
	if s.release != "" {
		version += "-" + s.release
	}
	return fmt.Sprintf("{%s: [%s]}", version, strings.Join(s.bundles, ", "))
}

// sameVersions finds the versions that several bundles in the channels of a
// package have, in order.
func sameVersions(p *olm.Package) []sameVersion {
	inChannel := make(map[string]bool)
	for _, ch := range p.Channels {
		for _, e := range ch.Entries {
			inChannel[e.Name] = true
		}
	}
	type key struct {
		major, minor, patch uint64
		rest, release       string
	}
	first := make(map[key]*olm.Bundle, len(p.Bundles))
	found := make(map[key]*sameVersion)
	for _, b := range p.Bundles {
		if !inChannel[b.Name] || len(b.Identities) == 0 || b.Identities[0].Version == nil {
			continue
		}
		v, release := b.Identities[0].Version, b.Identities[0].Release
		k := key{major: v.Major, minor: v.Minor, patch: v.Patch, release: release}
		if len(v.Pre) > 0 || len(v.Build) > 0 {
			k.rest = v.String()
		}
		switch {
		case first[k] == nil:
			first[k] = b
			continue
		case found[k] == nil:
			found[k] = &sameVersion{version: v, release: release, bundles: []string{first[k].Name}}
		}
		found[k].bundles = append(found[k].bundles, b.Name)
	}
	same := make([]sameVersion, 0, len(found))
	for _, s := range found {
		same = append(same, *s)
	}
	slices.SortFunc(same, func(a, b sameVersion) int {
		if c := a.version.Compare(*b.version); c != 0 {
			return c
		}
		return strings.Compare(a.String(), b.String())
	})
	return same
}
