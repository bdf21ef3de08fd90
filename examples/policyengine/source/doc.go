// Package source makes the graphs that the example policyengine serves: of a tree of
// cincinnati-graph-data and of releases from several places, or of a small sample
// that is built in.
package source
