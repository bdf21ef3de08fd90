// Package preview shows what an update would do to a cluster, object by object and
// field by field, without writing anything.
//
// [Run] makes a pass over the tasks of a release as an update does, by the code
// of [runlevel] and in its order, over a fork of the cluster in memory
// ([memory.Options].Base). What the pass would wait for counts as done, and a task
// that fails stops nothing: everything is seen. The cluster may be a live one, a
// recording (package clusterapi/dump), or one in memory.
//
//	p, err := preview.Run(ctx, payload.Tasks(), preview.Options{
//		Reader: cluster, Payload: payload, Running: running, Filter: filter,
//	})
//	fmt.Println(p.Count(preview.Update), "objects change")
//	err = p.Text(os.Stdout, preview.TextOptions{})
//
// # Actions
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
// # Fields
//
// Two states of an object are compared after defaults were filled in on both
// sides, and by meaning: absent, null, {} and [] are one, and so are 1000m and 1.
// Elements of lists with keys are matched by these:
//
//	spec.template.spec.containers[name=c].image
//	metadata.annotations["a.b/c"]
//
// Of custom resources the definition reports which lists have keys; where it was
// not collected, a list is one value, and [Preview].Assumed names the kinds.
//
// status, managedFields and what else only a server sets is left out. Changes of a
// definition's schemas are counted by version. Credentials are shown as
// digests.
//
// With [Options].Running the preview distinguishes what the release changes from
// what somebody else had changed ([Change].Drift), which fields stay though the
// release gave them up ([Change].Stale), and which objects ([Preview].Left).
//
// # Will it go through
//
// A change that the API server would refuse ([Fail]) stops those behind it in the order
// of an update: [Change].HeldBy names, for each of them, what it stands behind.
// [Preview].Access compares rights by what they cover, so that * narrowed to get loses
// "everything but for get", and names the subjects that a role reaches, also through
// roles that aggregate it. [Preview].Implicit are the capabilities that the update
// enables though nobody asks for them.
//
// # What the modes change
//
// [Options].Mode reports how the update applies objects. A preview of what the
// cluster-version operator would do needs [runlevel.ApplyMerge]: Fields then hold
// what a merge takes away though somebody else has added it, which is Drift too, and
// nothing is assumed of removals. Stale are fields that a merge never removes. What a
// merge would write again and again without any effect is kept. The server is asked
// for creations and updates, not for applies.
//
// # What it cannot know
//
// [Preview].Assumed reports what it takes for granted, and [Preview].Unknowns what to
// collect for a better answer. [Preview.Check] reports whether the cluster is still as
// it was. [Options].Server lets an API server answer too, admission included.
//
// All types are plain data: safe to read from many goroutines at a time, not to
// change while others read.
package preview
