// Package view computes what administrators see of an update, from plain
// objects: oc adm upgrade ([Summarize]), oc adm upgrade recommend
// ([AssessRecommend]), oc adm upgrade status ([AssessStatus]), the history of a
// ClusterVersion ([AssessHistory]) and the columns of oc get ([WriteColumns]).
//
// It has many types, since the data of each of these views is public; the functions
// above are where to start. Every view but the columns is two steps. The first takes
// objects and a time, and returns data with JSON names that stay; the second writes
// that data as text. Neither reads a cluster, a clock or a file, and neither changes
// what it is given. [ReadSummary], [ReadRecommend] and [ReadStatus] read the objects
// and alerts from a cluster, live or recorded, and [Follow] observes how the status
// changes.
//
//	s, err := view.ReadSummary(ctx, cluster)
//	if err != nil {
//		return err
//	}
//	return s.WriteText(os.Stdout, os.Stderr, view.SummaryText{IncludeNotRecommended: true})
//
// Texts are those of the command line tool. As there, what a view shows and what it
// warns of are two streams, and an error ends the view: programs print it behind
// "error: ".
//
// # Recommendations
//
// [Recommend] says two things. Its Groups are all releases that the cluster can
// update to, each with its known issue; the text shows the newest two of each
// minor version. Its Issues are what speaks against an update right now. With a
// Version in [RecommendInput], [Recommend.Err] is nil only if that release is
// there and every issue is accepted by name.
//
// What else speaks against an update is found by prechecks, functions that return
// conditions: [ReadRecommend] checks the alerts, and programs add their own checks.
//
//	o := view.RecommendOptions{Prechecks: []view.PrecheckFunc{myCheck}, Version: "4.14.11"}
//	r, err := view.ReadRecommend(ctx, cluster, o)
//
// # Status
//
// [AssessStatus] needs a ClusterVersion and ClusterOperators; pools, nodes and their
// configs tell about machines, alerts and the deployment of the machine-config
// operator make it complete. Its text has a section for each part:
//
//   - Control plane: operators of the release that report the version wanted are
//     updated, others that say Progressing=True are updating, those that say
//     Progressing=False are waiting. One that says neither counts as none of these.
//     Operator Health counts them again by Available and Degraded.
//   - Pools: COMPLETION is nodes updated of all. STATUS counts those that are
//     available, on their way, being drained, in a paused pool (Excluded), degraded.
//   - Nodes: ASSESSMENT reports how a node does, PHASE how far it is, VERSION what its
//     config is from. EST is a constant for each phase, from when the node's turn
//     comes. Ten nodes of a pool are listed, and all that are in trouble.
//   - Update Health: SINCE is how long ago it began, "-" if that is unknown; LEVEL
//     how much it matters; IMPACT what suffers.
//
// The estimate extrapolates from how many operators are updated and when the last of
// them made progress, by a curve that was fitted to recorded updates. Nodes do not
// enter it.
//
// Status.Unknown lists what could not be read, why, and what is not known without
// it. Objects.Missing reports which that is: a kind that is listed there and has no
// objects is unknown, one that is not listed has none.
//
// Status.Waits, which the command line tool does not have, is what the update waits
// on: a [Chain] from a runlevel, where Objects.Components tells those, by way of
// the operator to the pool and node, or to the workload that is not ready; with
// [StatusOptions].Drains on to the pods of a node that a budget keeps there.
//
// Texts are those of oc adm upgrade status byte by byte, but for these:
//
//   - Durations below a second are "now", not minutes.
//   - A tab in a text is a space, not the border of a column.
//   - Of several custom pools that select a node, the first by name has it, and
//     insights of one age and level keep their order: neither is random.
//   - How long a node has not been ready goes by the time of the status, and not
//     by the clock of the machine.
//   - Without a master or worker pool, or with a completed update that lacks its
//     time, there is a status.
//   - An update that is done without a history is so now, and not in the year 1;
//     without any operator of the release there is an error.
//   - What is unknown is said: where operators, pools or nodes could not all be read
//     in a line of its own, else as a warning.
//
// # Concurrency
//
// The types are plain data: safe to read from many goroutines at a time, not to
// change while others read.
package view
