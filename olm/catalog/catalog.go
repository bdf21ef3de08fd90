package catalog

import "github.com/clusterupdate/clusterupdate/olm"

// Catalog is a file-based catalog as it was read: its contents, and what is
// wrong with it. It is immutable and safe for concurrent use.
type Catalog struct {
	*olm.Contents
	others   []*Meta
	problems []Problem
	warnings []Problem
}

// Others returns the objects of other schemas, in the order of the files. The
// caller must not change them.
func (c *Catalog) Others() []*Meta { return c.others }

// Problems returns the faults of the catalog: first what could not be read, in
// the order of the files; then what the catalog tools refuse at once, by
// packages, channels, bundles, deprecations, each in the order of the files;
// then what they collect, by the names of package, channel and bundle. The
// caller must not change the slice.
func (c *Catalog) Problems() []Problem { return c.problems }

// Warnings returns what the catalog tools accept but a resolution may stumble
// over, by package and bundle. The caller must not change the slice.
func (c *Catalog) Warnings() []Problem { return c.warnings }
