// Package path finds ways from one release to another.
//
// A [Network] is the union of the graphs of several channels, or one graph, with a
// verdict on each edge: recommended, not recommended, or unknown. A [Policy] reports
// which edges and versions a path may use. [Network.ShortestPath] takes the fewest
// hops, [Network.SafestPath] the fewest risks, [Network.Paths] gives alternatives,
// [Network.Latest] and [Network.Reachable] say how far a cluster can go. Of paths
// that are equally good the one with the greater versions wins, compared hop by hop.
// Each hop names the channel to be in. [Network.ControlPlaneOnly] plans the way from
// one minor with extended update support to the next, with paused worker pools.
//
// [Network.Explain] answers why a release can or cannot be updated to another;
// [Network.Picture] draws. [Mirror] plans what a mirror has to hold.
//
// A [Network] never changes and is safe for concurrent use. All other types are plain
// data, safe for concurrent use as long as nobody changes them. docs/limits.md lists the
// limits, which errors name by a [*graph.LimitError].
package path
