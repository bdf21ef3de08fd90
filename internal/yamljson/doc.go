// Package yamljson reads the YAML that Kubernetes objects are written in, fast,
// as exactly what sigs.k8s.io/yaml and apimachinery make of it: [Decoder] turns
// a document into its JSON text, [Object] that text into the generic object.
// The two steps are apart so that a program that needs only a few of a
// document's fields, which [Decoder.Root] has, does not pay for the object.
//
// [Measure] returns what the conversion of a document makes, and its aliases, before
// anything expands them. [Decoder.DecodeJSON] reads JSON in the same way.
//
// [Decoder] knows the part of YAML 1.1 that generators and people use for
// Kubernetes objects: block mappings and sequences, plain, quoted and block
// scalars, flow collections, comments. It refuses what it does not know, what is
// unusual and what looks wrong: anchors, aliases, tags, merge keys, directives,
// complex keys, tabs between tokens, keys that are not strings, carriage
// returns, errors. The caller then takes the slow way, which also words the error. So the only duty
// here is never to accept something with another result than the slow way has;
// a fuzz test compares the two.
//
// The rules are those of libyaml's scanner, as go.yaml.in/yaml/v2 has it: where
// the comments say "column" or "indent", it is that scanner's.
package yamljson
