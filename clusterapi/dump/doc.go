// Package dump reads a recording of a cluster as if it were the cluster: a
// must-gather, a folder of oc adm inspect, an Insights archive, what [Record] wrote,
// or any heap of manifests. A [Recording] is a [clusterapi.Reader], so checks, views and forks
// take it in place of a live cluster.
//
// # What a must-gather looks like
//
// oc adm must-gather runs images in the cluster, which call oc adm inspect
// (https://docs.redhat.com/en/documentation/openshift_container_platform/latest/html/support/gathering-cluster-data).
// Each image has its own folder:
//
//	must-gather.local.123/
//	  timestamp, must-gather.logs, event-filter.html
//	  quay-io-openshift-…-sha256-…/
//	    timestamp                                  when oc adm inspect began and ended
//	    aggregated-discovery-apis.yaml             which kinds of named groups are served
//	    aggregated-discovery-api.yaml              which of the core group
//	    cluster-scoped-resources/
//	      config.openshift.io/clusteroperators.yaml       all of a resource: a list
//	      core/nodes/master-0.yaml                        one object
//	    namespaces/
//	      openshift-etcd/openshift-etcd.yaml              the Namespace
//	      openshift-etcd/core/pods.yaml                   all of a resource in it: a list
//	      openshift-etcd/route.openshift.io/routes/a.yaml one object
//	      openshift-etcd/pods/etcd-0/etcd-0.yaml          a pod again, beside its logs
//	    monitoring/prometheus/rules.json           see [Recording.Firing]
//	    requests/apirequestscounts.json            all APIRequestCounts
//
// The group without a name is "core" there. A recording is the outermost folder
// that has a folder cluster-scoped-resources or namespaces; all recordings of a
// tree are merged. Those of several clusters are a [*ClustersError]: see
// [Options].Root. Logs and all else are not read. With --node-selector there is a
// folder for each node in between, and oc adm inspect alone writes inspect.local.123
// in the form of an image's folder.
//
// A tree without such folders is a heap: each *.yaml, *.yml and *.json file is
// read, also with .gz behind it, as a stream of documents. A document is an object,
// a v1 List, or a typed list such as PodList.
//
// # What an Insights archive looks like
//
// The Insights operator uploads one every two hours
// (https://github.com/openshift/insights-operator/blob/master/docs/gathered-data.md).
// It has config/version.json and insights-operator/gathers.json. Its objects are JSON
// and often do not say their kind: then it follows from the path, such as
// config/node/master-0.json. A kind is whole if a gatherer takes all of it
// (ClusterOperators, MachineConfigPools, StorageClasses), ran without an error, and
// all that it wrote is there; of all other kinds there may be more. Of the resources
// of operators, such as CloudCredential, the archive has the spec alone: they count
// as not collected. See [Redacted] for values that were anonymised.
//
// # Archives
//
// [OpenArchive] reads a .tar or .tar.gz stream. [Open] does, too, where an archive is
// all that a tree has. Other formats are refused.
//
// # Copies
//
// The kind of an object is what the object says, never its path, unless it says none.
// Of several copies the one with the greatest resourceVersion counts, else the first by
// path; but none from which a secret can be read where another copy has it taken out.
// See [Redacted] for what oc adm inspect takes out.
//
// # Not there, or not known
//
// A recording never has all of a cluster. So the three reasons for which an object
// can be missing matter more here than anywhere else:
//
//   - NotFound (apierrors.IsNotFound): there was no such object. It is returned
//     only for a kind that is whole: one with a list of all objects, at least of
//     the namespace that is asked for.
//   - [clusterapi.ErrNotCollected]: whether there was one is not known. A folder
//     with some files proves nothing, since oc adm inspect collects what others
//     refer to by name.
//   - NoMatch (meta.IsNoMatchError): the cluster did not serve the kind, or not in
//     that version. Discovery or the CustomResourceDefinition says so.
//
// A list that is not complete comes with a [*PartialError], which names the
// namespaces that lack something. Callers that look at errors alone see "not known";
// those that look at the list too find what is certain.
//
// A kind of which every cluster has some, such as nodes, machine config pools,
// CustomResourceDefinitions and APIRequestCounts, is never whole when it is empty,
// unless what [Record] wrote says so. A must-gather whose file timestamp has an odd
// number of lines was cut off: nothing of it is whole without a list.
//
// Two things count as whole without a list. Of the resources that [MustGather]
// names, must-gather collects every object into its own file: that is assumed where
// its scripts ran to their end, and [Recording.Coverage] reports that it is. In a
// heap, cluster-scoped kinds that it has at all are whole, and namespaced ones are
// not: the output of oc get pods -n a must not answer for other namespaces.
// [Options].Whole replaces the first and adds to the second. What [Record] wrote
// says itself what is whole, in kinds.json.
//
// What could not be used is among [Recording.Problems], and whatever lost an object
// that way is not whole.
//
// # Time
//
// [Recording.Time] is the now of a recording. Ages are reckoned from it:
// [Recording.Age].
//
// docs/limits.md lists the limits of this package.
//
// A [Recording] is immutable and safe for concurrent use. Options, coverage,
// problems and errors are plain data: safe to read from many goroutines at a time,
// not to change while others read.
package dump
