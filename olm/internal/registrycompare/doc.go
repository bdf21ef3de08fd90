// Package registrycompare has no code of its own. Its tests load the same
// catalogs with package olm and with the catalog tools of the operator
// framework (github.com/operator-framework/operator-registry), and compare
// what the two find and say. It is a module of its own, since the tools bring
// a large tree of dependencies.
//
// The two differ in these points, each with a test:
//
//   - Several problems. The tools stop at the first of some kinds; package olm
//     reports all, and its first is the tools' only one. Where several objects
//     are at fault, the tools take them in the random order of a map.
//   - Comments. A YAML document that consists of comments alone is an object
//     without a schema for the tools; package olm passes over it.
//   - Broken JSON. The tools end at the first object that cannot be read;
//     package olm continues with the next one.
//   - The chain of replacements. The tools, in this version, walk through
//     skipped entries like the resolver; package olm stops at them, as later
//     versions do, and so reports more stranded entries.
//   - Skip ranges, image references, releases. This version does not check
//     them, later ones do, and so does package olm.
//   - Patterns with "**" in .indexignore. The library of the tools does not try
//     all places for what follows it. Nor does it know "[!a]", only "[^a]".
//   - Entries without a bundle. The tools look at the last channel of a
//     package; package olm looks at all.
package registrycompare
