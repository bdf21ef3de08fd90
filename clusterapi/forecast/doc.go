// Package forecast predicts what an update does to a cluster, how it ends and how
// long it takes.
//
// [Rehearse] plays the whole update of a cluster in virtual time. It starts from a
// recording of the cluster (package dump) or a live one, which it only reads. The
// version operator of package clusterupdate and the machine-config controller of
// package rollout run on it unchanged; package simulation plays the operators, nodes
// and workloads. The rehearsal ends as Completed, Stuck or Refused and lists its
// causes and everything that it had to assume.
//
// [Timing] reports how long each kind of work takes. [DefaultTiming] follows the
// documentation's figures, [ObservedTiming] what the cluster shows of its own past.
//
// [Update] brings all that is known about an update into one report: path, checks,
// changes, credentials, a rehearsal, and a [Verdict]. [Fleet] does so for many clusters.
//
// Functions are safe for concurrent use. Options and results are plain data.
package forecast
