// Package sourcestest has operators for tests, as bundle images and as a catalog, and a
// life of them that any cluster and any source of catalogs and bundles has to bring to the
// same end: see [Life].
package sourcestest
