package olm

import (
	"context"
	"slices"
	"strings"
)

// Catalog is a source of operators. Implementations must return contents that
// do not change any more, and may return the same value each time. They must be
// safe for concurrent use.
type Catalog interface {
	// Contents returns the whole catalog, indexed. Faults of single channels and
	// bundles are part of the contents; an error means
	// that the catalog could not be read.
	Contents(ctx context.Context) (*Contents, error)
}

// Contents are the packages of one catalog, ordered and indexed. They are
// immutable and safe for concurrent use.
type Contents struct {
	packages []*Package // by name
	byName   map[string]*Package
	channels []*Channel // in search order
	index    index
	bad      index // of the entries in channels that cannot be ordered
}

// Packages returns all packages by name. The caller must not change the slice.
func (c *Contents) Packages() []*Package { return c.packages }

// Package returns the package of a name, nil if absent.
func (c *Contents) Package(name string) *Package { return c.byName[name] }

// Contents returns c, and no error: contents are a [Catalog] that does not change.
func (c *Contents) Contents(context.Context) (*Contents, error) { return c, nil }

// Package is a package of a catalog. Its JSON is what a resolution looks at: see
// [Generation.MarshalJSON].
type Package struct {
	Name           string     `json:"name"`
	DefaultChannel string     `json:"defaultChannel,omitempty"` // name; may be empty or name a channel that does not exist in a catalog with problems
	Deprecation    string     `json:"deprecation,omitempty"`    // message of its deprecation, empty if absent
	Channels       []*Channel `json:"channels,omitempty"`       // by name
	Bundles        []*Bundle  `json:"bundles,omitempty"`        // by name, those in no channel too
	Description    string     `json:"-"`
	Icon           *Icon      `json:"-"` // nil if absent
	Properties     []Property `json:"-"` // as found
}

// Bundle returns the bundle of a name, nil if absent.
func (p *Package) Bundle(name string) *Bundle {
	i, ok := slices.BinarySearchFunc(p.Bundles, name, func(b *Bundle, name string) int { return strings.Compare(b.Name, name) })
	if !ok {
		return nil
	}
	return p.Bundles[i]
}

// Channel returns the channel of a name, nil if absent.
func (p *Package) Channel(name string) *Channel {
	for _, ch := range p.Channels {
		if ch.Name == name {
			return ch
		}
	}
	return nil
}

// Icon is the picture of a package.
type Icon struct {
	Data      []byte `json:"base64data"`
	MediaType string `json:"mediatype"`
}

// Channel is a channel of a package.
type Channel struct {
	Name        string     `json:"name"`
	Package     *Package   `json:"-"`
	Default     bool       `json:"-"`                     // it is its package's default channel
	Deprecation string     `json:"deprecation,omitempty"` // message of its deprecation, empty if absent
	Entries     []*Entry   `json:"entries,omitempty"`     // in the order of the catalog, each name once
	Heads       []*Entry   `json:"-"`                     // those that nothing in the channel replaces or skips, by name
	Ordered     []*Entry   `json:"-"`                     // from the head down, skipped ones left out; empty with Err
	Err         error      `json:"-"`                     // why the channel has no order: a *ChannelError, nil if it has one
	Properties  []Property `json:"-"`                     // as found
}

// Entry returns the entry of a name, nil if absent. Skipped, stranded and
// disordered ones are found too.
func (ch *Channel) Entry(name string) *Entry {
	for _, e := range ch.Entries {
		if e.Name == name {
			return e
		}
	}
	return nil
}
