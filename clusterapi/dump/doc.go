// Package dump reads a recording of a cluster as if it were the cluster: a
// must-gather, a folder of oc adm inspect, an Insights archive, what [Record] wrote,
// or any tree of manifests. A [Recording] is a [clusterapi.Reader], so checks, views
// and forks take it in place of a live cluster. docs/recordings.md describes what the
// files look like.
//
// [Open] reads a file system, and [OpenArchive] a .tar or .tar.gz stream.
// [Recording.Time] is the time at which the recording was made.
//
// # Not there, or not known
//
// A recording never has all of a cluster, so the three reasons for which an object
// can be missing matter more here than anywhere else:
//
//   - NotFound (apierrors.IsNotFound): there was no such object. It is returned
//     only for a kind that is whole: one with a list of all objects, at least of
//     the namespace that is asked for.
//   - [clusterapi.ErrNotCollected]: it is not known whether there was one. A folder
//     with some files proves nothing, since oc adm inspect collects what others
//     refer to by name.
//   - NoMatch (meta.IsNoMatchError): the cluster did not serve the kind, or not in
//     that version. Discovery or the CustomResourceDefinition says so.
//
// A list that is not complete comes with a [*PartialError], which names the
// namespaces that lack something. Callers that look at errors alone see "not known";
// those that look at the list too find what is certain.
//
// Some kinds are whole without a list: see [Options].Whole. [Recording.Coverage]
// reports which are, and why. [Recording.Problems] has what could not be used; a kind
// that lost an object that way is not whole.
//
// Of several copies of an object the one with the greatest resourceVersion counts,
// else the first by path, but never one from which a secret can be read if another
// copy has it taken out. [Redacted] reports which values were taken out.
//
// A [Recording] is immutable and safe for concurrent use. Options, coverage,
// problems and errors are plain data, safe for concurrent reads.
//
// Sources: https://github.com/openshift/must-gather,
// https://github.com/openshift/insights-operator/blob/master/docs/gathered-data.md.
package dump
