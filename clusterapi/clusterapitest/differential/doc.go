// Package differential compares two implementations of [clusterapi.ClusterAPI]
// by random sequences of verbs, and prints the shortest sequence by which they
// differ. It is for tests of backends, beside those of package clusterapitest:
//
//	differential.Run(t, theirs, ours, differential.Options{
//		Seed: 1, Sequences: 300,
//		Meant: []differential.Difference{
//			{Reason: "ours has no admission", Kind: "Node", Field: "spec.taints*", B: "absent"},
//		},
//	})
//
// Options are plain data: safe to read from many goroutines at a time.
package differential
