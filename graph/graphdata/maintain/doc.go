// Package maintain is for those who maintain a tree of graph data, as package
// graphdata reads it. Nothing in it writes a file.
//
// [Lint] finds what can be read and is still not as the maintainers want it: a
// release in stable and not in fast, a risk whose files differ, an expression that
// matches nothing. Errors are what their own checks refuse, warnings what those miss. With a snapshot it also finds expressions that
// match no update, and releases that a channel can be entered with and not left.
// [Accepted] are the findings that a tree accepts, so that a check before merging
// can refuse new ones.
//
// [Diff] returns what makes one snapshot another: releases, their channels, updates
// that appear, vanish, or become conditional, and risks, as text and as data. Two
// trees are compared by building both with the same releases.
//
// [Extend] proposes the blocked edges that a new release needs, which
// [graphdata.BlockedEdge.Encode] writes. Why an update is served or is not, is
// answered by [graphdata.Snapshot.Why].
//
// The rules are those of github.com/openshift/cincinnati-graph-data (hack, and
// graph-data.rs). The types of the package are plain data, safe for concurrent use as
// long as nobody changes them. docs/limits.md lists the limits, which errors name by a
// [*graphdata.LimitError].
package maintain
