// Package limit bounds what input from outside may hold and may cost.
//
// A [Budget] is the most bytes, values, entries, levels and aliases of an input.
// A [Meter] counts towards one: the total of an archive or a catalog.
//
// [JSON] refuses a document before it is decoded, if that would make more than
// [Heap] bytes: a few bytes of JSON can stand for a large struct or map. Package
// yamljson does the same for YAML.
//
// A passed limit is a [LimitError], which public packages alias.
package limit
