// Package view computes what administrators see of an update, from plain
// objects: oc adm upgrade ([Summarize]), oc adm upgrade recommend
// ([AssessRecommend]), oc adm upgrade status ([AssessStatus]), the history of a
// ClusterVersion ([AssessHistory]) and the columns of oc get
// ([ClusterVersionRows], [ClusterOperatorRows], [PoolRows]).
//
// Every view is two steps. The first takes objects and a time, and returns data
// with JSON names that stay; the second writes that data as text. Neither reads a
// cluster, a clock or a file, and neither changes what it is given.
//
//	s, err := view.Summarize(cv)
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
// conditions: [AlertPrecheck] is one, and programs add their own.
//
//	found := view.RunPrechecks(ctx, view.AlertPrecheck(fetch), myCheck)
//	r, err := view.AssessRecommend(view.RecommendInput{ClusterVersion: cv, Prechecks: found, Version: "4.14.11"})
//
// # Concurrency
//
// The types are plain data: safe to read from many goroutines at a time, not to
// change while others read.
package view
