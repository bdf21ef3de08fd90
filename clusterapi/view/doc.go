// Package view computes what administrators see of an update, from plain
// objects: oc adm upgrade ([Summarize]), oc adm upgrade recommend
// ([AssessRecommend]), oc adm upgrade status ([AssessStatus]), the history of a
// ClusterVersion ([AssessHistory]) and the columns of oc get ([WriteColumns]).
//
// Every view but the columns is two steps. The first takes objects and a time, and
// returns data with JSON names that stay; the second writes that data as text. Neither
// reads a cluster, a clock or a file, and neither changes what it is given.
// [ReadSummary], [ReadRecommend] and [ReadStatus] read the objects and alerts from a
// cluster, live or recorded, and [Follow] observes how the status changes.
//
//	s, err := view.ReadSummary(ctx, cluster)
//	if err != nil {
//		return err
//	}
//	return s.WriteText(os.Stdout, os.Stderr, view.SummaryText{IncludeNotRecommended: true})
//
// Texts are those of the command line tool; docs/recordings.md says where they differ. As
// there, what a view shows and what it warns of are two streams, and an error ends the
// view: programs print it behind "error: ".
//
// [Recommend] has in its Groups all releases that the cluster can update to, each with
// its known issue, and in its Issues what speaks against an update right now. With a
// Version in [RecommendInput], [Recommend.Err] is nil only if that release is there and
// every issue is accepted by name. Prechecks are functions that return conditions:
// [ReadRecommend] checks the alerts, and programs add their own ([RecommendOptions]).
//
// [AssessStatus] needs a ClusterVersion and ClusterOperators; pools, nodes and their
// configs, alerts and the deployment of the machine-config operator make it complete. A
// [Status] has a part for each section of the text: the control plane, pools, nodes,
// insights. Its estimate extrapolates from how many operators are updated and when the
// last of them made progress, by a curve that was fitted to recorded updates; nodes do
// not enter it. Status.Unknown lists what could not be read, why, and what is not known
// without it. Status.Waits, which the command line tool does not have, is what the
// update waits on: a [Chain] from a runlevel, by way of the operator, to the pool and
// node, the workload that is not ready, or the pods that a budget keeps.
//
// The types are plain data: safe to read from many goroutines at a time, not to
// change while others read.
package view
