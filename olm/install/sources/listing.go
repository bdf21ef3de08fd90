package sources

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/operator-framework/operator-registry/pkg/api"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/limit"
	"github.com/clusterupdate/clusterupdate/olm"
	"github.com/clusterupdate/clusterupdate/olm/catalog"
)

// listing is what a registry answers, as the objects of a file-based catalog. The answer
// has each bundle once for each channel.
type listing struct {
	channels     map[[2]string]*catalog.ChannelBlob // by package and name
	seen         map[[2]string]bool                 // bundles by package and name
	packages     []catalog.PackageBlob
	bundles      []catalog.BundleBlob
	deprecations map[string][]catalog.DeprecationEntry // by package
}

func newListing() *listing {
	return &listing{
		channels: map[[2]string]*catalog.ChannelBlob{}, seen: map[[2]string]bool{},
		deprecations: map[string][]catalog.DeprecationEntry{},
	}
}

// blobs returns all objects.
func (l *listing) blobs() catalog.Blobs {
	out := catalog.Blobs{Packages: l.packages, Bundles: l.bundles}
	byName := func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }
	for _, key := range slices.SortedFunc(maps.Keys(l.channels), byName) {
		out.Channels = append(out.Channels, *l.channels[key])
	}
	for _, name := range slices.Sorted(maps.Keys(l.deprecations)) {
		out.Deprecations = append(out.Deprecations, catalog.DeprecationsBlob{Package: name, Entries: l.deprecations[name]})
	}
	return out
}

func (l *listing) packageNames() []string {
	names := map[string]bool{}
	for key := range l.channels {
		names[key[0]] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// addBundle adds a bundle in a channel. A bundle whose properties cannot be read is left
// out, as in OLM, so that its entry has none. The error is about a limit.
func (l *listing) addBundle(b *api.Bundle) error {
	channel := [2]string{b.GetPackageName(), b.GetChannelName()}
	if l.channels[channel] == nil {
		l.channels[channel] = &catalog.ChannelBlob{Package: channel[0], Name: channel[1]}
	}
	l.channels[channel].Entries = append(l.channels[channel].Entries, catalog.ChannelEntry{
		Name: b.GetCsvName(), Replaces: b.GetReplaces(), Skips: b.GetSkips(), SkipRange: b.GetSkipRange(),
	})
	key := [2]string{b.GetPackageName(), b.GetCsvName()}
	if l.seen[key] {
		return nil
	}
	l.seen[key] = true
	l.deprecate(b.GetPackageName(), "olm.bundle", b.GetCsvName(), b.GetDeprecation())
	properties, err := bundleProperties(b)
	if past := (*limit.LimitError)(nil); errors.As(err, &past) {
		return fmt.Errorf("bundle %s: %w", bounded.Quote(b.GetCsvName()), err)
	}
	if err != nil {
		return nil
	}
	l.bundles = append(l.bundles, catalog.BundleBlob{
		Package: b.GetPackageName(), Name: b.GetCsvName(), Image: b.GetBundlePath(),
		Properties: append(properties, further(b, properties)...),
	})
	return nil
}

// further returns the properties that a file-based catalog has and a registry may lack: the
// package, and the objects of a bundle without an image.
func further(b *api.Bundle, properties []olm.Property) []olm.Property {
	var out []olm.Property
	if !slices.ContainsFunc(properties, func(p olm.Property) bool { return p.Type == olm.PropertyPackage }) {
		out = append(out, property(olm.PropertyPackage, map[string]any{
			"packageName": b.GetPackageName(), "version": b.GetVersion(),
		}))
	}
	if b.GetBundlePath() != "" {
		return out
	}
	objects := b.GetObject()
	if len(objects) == 0 && b.GetCsvJson() != "" {
		objects = []string{b.GetCsvJson()}
	}
	for _, object := range objects {
		out = append(out, property(olm.PropertyBundleObject, map[string]any{"data": []byte(object)}))
	}
	return out
}

// addPackage adds what a registry says of a package of a name.
func (l *listing) addPackage(name string, p *api.Package) {
	l.packages = append(l.packages, catalog.PackageBlob{Name: name, DefaultChannel: p.GetDefaultChannelName()})
	l.deprecate(name, "olm.package", "", p.GetDeprecation())
	for _, ch := range p.GetChannels() {
		if l.channels[[2]string{name, ch.GetName()}] != nil {
			l.deprecate(name, "olm.channel", ch.GetName(), ch.GetDeprecation())
		}
	}
}

func (l *listing) deprecate(pkg, kind, name string, d *api.Deprecation) {
	if d == nil {
		return
	}
	l.deprecations[pkg] = append(l.deprecations[pkg], catalog.DeprecationEntry{
		Reference: catalog.Reference{Schema: kind, Name: name}, Message: d.GetMessage(),
	})
}
