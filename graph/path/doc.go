// Package path finds ways from one release to another.
//
// A [Network] is the union of the graphs of several channels, or one graph, with a
// judgement on each edge: recommended, not recommended, or unknown. A [Policy] reports
// which edges and versions a path may use. [Network.ShortestPath] takes the fewest
// hops, [Network.SafestPath] the fewest risks, [Network.Paths] gives alternatives,
// [Network.Latest] and [Network.Reachable] say how far a cluster can go. Where paths
// are equally good the greater versions win, compared hop by hop. Each hop names the
// channel to be in. [Network.ControlPlaneOnly] plans the way from one even minor to
// the next with paused worker pools.
//
// [Network.Explain] answers why a release can or cannot be updated to another;
// [Network.Picture] draws. [Mirror] plans what a mirror has to hold.
//
// A [Network] never changes and is safe for concurrent use. All other types are
// plain data: safe to read from many goroutines at a time, not to change while
// others read.
//
// # Limits
//
// The error is a [*graph.LimitError], which names the limit.
//
// docs/limits.md lists the limits of this package.
package path
