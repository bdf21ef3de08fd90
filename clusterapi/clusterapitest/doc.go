// Package clusterapitest proves that an implementation of
// [clusterapi.ClusterAPI] keeps the contract that the interfaces state. It is
// for authors of backends; testing/fstest is the model.
//
//	func TestConformance(t *testing.T) {
//		clusterapitest.Conformance(t, func(t *testing.T) (clusterapi.ClusterAPI, clusterapitest.Capabilities) {
//			return mybackend.New(...), clusterapitest.Capabilities{Watch: true}
//		})
//	}
//
// The backend may be a bare kube-apiserver: no controller need run, and other
// objects may be there. The suite makes its own namespaces and
// CustomResourceDefinition under names that nothing else has, writes the
// status of its PodDisruptionBudgets itself, and asks that they all be deleted
// at the end. Where a garbage collector does run, it must not matter:
// propagation of deletions is asserted by finalizers and deletionTimestamp.
//
// Each rule is a separate sub-test, so that -run selects one:
//
//	go test -run 'TestConformance/Apply/KeyedList'
//
// [Conformance] proves a backend that only reads, too: Capabilities.ReadOnly.
//
// Options are plain data: safe to read from many goroutines at a time. The tests
// call a backend from several.
//
// Package differential beside this one compares two backends by random sequences
// of verbs.
package clusterapitest
