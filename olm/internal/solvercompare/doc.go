// Package solvercompare compares the solver of package olm with
// github.com/go-air/gini, which OLM uses: that they agree, in tests, and how
// long they take, in benchmarks. It has no code to be used.
package solvercompare
