// Package fieldchange shows changes of fields, as Compare of package clusterapi finds them, to
// people: without credentials ([Hider]), of CustomResourceDefinitions by version
// ([Hider.Definitions]), and in lines of text ([Lines]).
//
// All functions are pure and safe for concurrent use.
package fieldchange
