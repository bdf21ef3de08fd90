// Package contracts holds the tests of the tree as a whole: which package may
// import which, what is exported and why, what the documentation of every name
// says, and that the programs in README.md and docs run.
package contracts
