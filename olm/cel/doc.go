// Package cel evaluates the cel constraints of operator bundles: boolean
// expressions in the Common Expression Language that a bundle writes into a
// property olm.constraint to say what it needs of another.
//
//	type: olm.constraint
//	value:
//	  failureMessage: require a certified operator
//	  cel:
//	    rule: properties.exists(p, p.type == "certified" && p.value == true)
//
// An expression sees one variable and, beside the standard functions and
// macros of the language, one function:
//
//   - properties: a list of maps with the keys "type", a text, and "value", the
//     JSON value of the property. Numbers are doubles, as everywhere in JSON.
//   - semver_compare(a, b): -1, 0 or 1. Both values are printed and then read as
//     versions tolerantly: "v1.2" is 1.2.0, and so is the number 1.2.
//
// An expression that does not compile, or whose type is not bool, is an error. One
// that fails while it runs (a key that is missing, a text that is not a version)
// does not match. Evaluation is bounded; see [Options].
//
// The package is a module of its own, so that only those who need cel
// constraints depend on the evaluator. Hand an [Evaluator] to the resolver as
// its CELEvaluator.
//
// The meaning is as in OLM's resolver
// (https://olm.operatorframework.io/docs/concepts/olm-architecture/dependency-resolution/).
package cel
