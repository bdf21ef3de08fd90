// Package view computes what administrators see of an update, from plain
// objects: oc adm upgrade ([Summarize]), oc adm upgrade recommend
// ([AssessRecommend]), oc adm upgrade status ([AssessStatus]), the history of a
// ClusterVersion and the columns of oc get.
//
// Every view is two steps. The first takes objects and a time, and returns data
// with JSON names that stay; the second writes that data as text. Neither reads a
// cluster, a clock or a file.
//
// All types are plain data: safe for concurrent use as long as nobody changes
// them. Functions only read what they are given.
package view
