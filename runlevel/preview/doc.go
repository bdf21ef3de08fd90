// Package preview shows what an update would do to a cluster, object by object and
// field by field, without writing anything.
//
// [Run] makes a pass over the tasks of a release as an update does, by the code
// of [runlevel] and in its order, over a fork of the cluster in memory
// ([memory.Options].Base). What the pass would wait for counts as done, and a task
// that fails stops nothing. The cluster may be a live one, a recording (package
// clusterapi/dump), or one in memory.
//
// A [Preview] has a [Change] for each object. Its [Action] is one of
//
//	Create     it does not exist
//	Update     fields of it change
//	Delete     the release asks for it to be gone, and it exists
//	Fail       the API server would refuse it
//	Unknown    it was not collected: created or changed, it cannot be told which
//	Keep       nothing of it changes; of ClusterOperators, whose versions are awaited
//	Skip       it exists, and the release only creates it
//	Absent     the release asks for it to be gone, and it does not exist
//	Unmanaged  an override takes it out of the update
//	Excluded   it does not belong on this cluster
//
// Two states of an object are compared after defaults were filled in on both sides, and
// by meaning: absent, null, {} and [] are one, and so are 1000m and 1. Elements of lists
// are matched by their keys, as in spec.template.spec.containers[name=c].image. What only
// a server sets is left out, and credentials are shown as digests. With [Options].Running
// the preview distinguishes what the release changes from what somebody else had changed
// (Change.Drift) and what stays though the release gave it up (Change.Stale, Preview.Left).
//
// Whether it will go through: a change that the server would refuse holds up others
// (Change.HeldBy); Access has the rights that change, with the subjects whom a role
// reaches, and Implicit the capabilities that the update enables though nobody asks for
// them. [Options].Mode is how the update applies objects: as the operator does, Fields
// hold what a merge takes away though somebody else has added it.
//
// Assumed is what the preview takes for granted, and Unknowns what to collect for a
// better answer. [Preview.Check] reports whether the cluster is still as it was, and
// [Options].Server lets an API server answer too, admission included.
//
// All types are plain data: safe to read from many goroutines at a time, not to
// change while others read.
package preview
