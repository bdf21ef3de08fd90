package kubernetes_test

import (
	"flag"
	"slices"
	"testing"

	"github.com/clusterupdate/clusterupdate/clusterapi/clusterapitest/differential"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes/internal/testserver"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
)

var (
	sequences = flag.Int("sequences", 300, "how many sequences TestDifferential runs")
	seed      = flag.Uint64("seed", 1, "what they are drawn from")
	needed    = flag.Bool("needed", false, "fail also where a difference that is meant does not occur")
	failures  = flag.Int("failures", 3, "after how many that fail it stops")
)

// TestDifferential compares the cluster in memory with a real API server.
func TestDifferential(t *testing.T) {
	t.Parallel()
	s := testserver.Start(t)
	server := newAPI(t, s, kubernetes.Options{})
	o := differential.Options{Seed: *seed, Sequences: *sequences, Failures: *failures, Meant: meant()}
	if !*needed {
		o.Kinds = differential.Kinds() // other sequences need not meet every difference that is meant
	}
	differential.Run(t, memory.New(memory.Options{CheckNamespaces: true, GracefulPods: true}), server, o)
}

// differences are some of memory (A) and the API server (B), at fields of a
// kind, that are meant for one reason.
type differences struct {
	reason     string
	kind, verb string
	a, b       string
	fields     []string
}

// meant are the differences that are not faults.
func meant() []differential.Difference {
	var out []differential.Difference
	for _, d := range slices.Concat(meantDefaults(), meantOthers, known) {
		for _, f := range d.fields {
			out = append(out, differential.Difference{Reason: d.reason, Kind: d.kind, Verb: d.verb, A: d.a, B: d.b, Field: f})
		}
	}
	return out
}

const absent = "absent"

const (
	noDefaults  = "memory fills in no defaults of built-in kinds: what it stores is what was written"
	noAdmission = "memory has no admission plugins"
	zeroValues  = "a server writes out the zero values of the Go type that it stores"
)

// meantDefaults are fields that a server fills in, and the owners of them
// where it does so before it looks who owns what.
func meantDefaults() []differences {
	var out []differences
	add := func(reason, kind, value string, fields ...string) {
		out = append(out, differences{reason: reason, kind: kind, a: absent, b: value, fields: fields})
	}
	pods := func(kind, spec string) {
		add(noDefaults, kind, "30", spec+".terminationGracePeriodSeconds")
		add(noDefaults, kind, `"default-scheduler"`, spec+".schedulerName")
		add(noDefaults, kind, `"Always"`, spec+".restartPolicy")
		add(noDefaults, kind, `"ClusterFirst"`, spec+".dnsPolicy")
		add(noDefaults, kind, `{}`, spec+".securityContext")
		add(noDefaults, kind, `"File"`, spec+".containers[*].terminationMessagePolicy")
		add(noDefaults, kind, `"/dev/termination-log"`, spec+".containers[*].terminationMessagePath")
		add(noDefaults, kind, `{}`, spec+".containers[*].resources")
		add(noDefaults, kind, `"Always"`, spec+".containers[*].imagePullPolicy")
		add(noDefaults, kind, `"IfNotPresent"`, spec+".containers[*].imagePullPolicy")
	}
	pods("Deployment", "spec.template.spec")
	add(noDefaults, "Deployment", "", "spec.strategy.*", "spec.revisionHistoryLimit", "spec.replicas", "spec.progressDeadlineSeconds",
		"spec.template.spec.containers[*].ports[*].protocol", "spec.template.spec.volumes[*].*.defaultMode")
	pods("Pod", "spec")
	add(noDefaults, "Pod", "true", "spec.enableServiceLinks")
	add(noAdmission, "Pod", "", "spec.tolerations[*", "spec.priority", "spec.preemptionPolicy")
	add("memory counts no requests of resources", "Pod", `"BestEffort"`, "status.qosClass")
	add(noDefaults, "Secret", `"Opaque"`, "type")
	add(noDefaults, "Service", "", "spec.type", "spec.sessionAffinity*", "spec.ports[*].targetPort", "spec.ports[*].protocol", "spec.internalTrafficPolicy",
		"spec.externalTrafficPolicy", "spec.allocateLoadBalancerNodePorts")
	add("memory has no networks, and so allocates no addresses and ports", "Service", "", "spec.clusterIP*", "spec.ipFamil*", "spec.ports[*].nodePort")
	add(zeroValues, "Service", "{}", "status.loadBalancer")
	add(zeroValues, "Deployment", "{}", "status", "spec.strategy")
	add(zeroValues, "PodDisruptionBudget", "0", "status.expectedPods", "status.disruptionsAllowed", "status.desiredHealthy", "status.currentHealthy")
	add(zeroValues, "Node", `""`, "status.nodeInfo.*")
	add(zeroValues, "Node", "0", "status.daemonEndpoints.kubeletEndpoint.Port")
	add(zeroValues, "PodDisruptionBudget", "{}", "spec")
	for _, kind := range []string{"Role", "ClusterRole"} {
		out = append(out, differences{reason: zeroValues, kind: kind, b: "null", fields: []string{"rules"}})
	}
	add(noAdmission, "Node", "", "spec.taints[*")
	add(noDefaults, "CustomResourceDefinition", `"None"`, "spec.conversion.strategy")
	add(noDefaults, "Namespace", "", `metadata.labels["kubernetes.io/metadata.name"]`, "spec.finalizers[*]")
	for _, kind := range []string{"Deployment", "Pod", "Service", "Secret", "PodDisruptionBudget", "Node", "CustomResourceDefinition", "Namespace"} {
		// An Update owns the defaults, too. Of what is not empty for that reason
		// nobody owns the place itself.
		out = append(out,
			differences{reason: noDefaults, kind: kind, a: absent, b: "owned", fields: []string{"metadata.managedFields[*/Update]*"}},
			differences{reason: noDefaults, kind: kind, a: "owned", b: absent, fields: []string{`metadata.managedFields[*]*["."]`, "metadata.managedFields[*].f:spec", "metadata.managedFields[*].f:metadata.f:ownerReferences", "metadata.managedFields[*].f:status*"}},
			differences{reason: noDefaults, kind: kind, b: absent, fields: []string{"metadata.managedFields[*/Update*"}},
			differences{reason: noDefaults, kind: kind, a: "{}", b: absent, fields: []string{"spec", "status"}},
			// Writing a default changes nothing on a server.
			differences{reason: noDefaults, kind: kind, fields: []string{"metadata.generation"}},
			differences{reason: noDefaults, kind: kind, fields: []string{"metadata.resourceVersion"}},
		)
	}
	return out
}

// meantOthers are requests that one of them refuses, or refuses otherwise, and
// what follows from what each is.
var meantOthers = []differences{
	{"a server gives some refusals no class", "", "", "BadRequest", "other", []string{"error"}},
	{"a server takes a propagation that does not exist for one of its own fields", "", "Delete", "BadRequest", "Invalid", []string{"error"}},
	{"memory looks for the object before it judges the request", "", "Create", "AlreadyExists", "BadRequest", []string{"error"}},
	{"memory looks for the object before it judges the request", "", "Create", "AlreadyExists", "Invalid", []string{"error"}},
	{"memory looks at the UID before it judges the request", "", "Apply", "Conflict", "other", []string{"error"}},
	{"to memory a UID is a condition of an Apply; to a server it is a field that must not change", "", "Apply", "Conflict", "Invalid: *metadata.uid*", []string{"error"}},
	{"an Update that leaves defaults out changes them on a server", "Pod", "Update", "none", "Invalid: *pod updates may not change fields*", []string{"error"}},
	{"what else of a request is wrong because of a first fault is not named by memory in the same way", "", "", "", "", []string{"error.causes"}},
	{"memory ignores what an Update cannot set", "", "Update", "none", "Invalid: *metadata.deletionTimestamp*", []string{"error"}},
	{"a server keeps the generation that a new object brings along, where it does not count it", "", "", absent, "7*", []string{"metadata.generation"}},
	{"what is replaced is named by its UID, which some servers look at first", "", "Update", "NotFound", "Conflict", []string{"error"}},
	{"memory judges the object before it looks for the namespace", "", "", "Invalid", "NotFound: namespaces*", []string{"error"}},
	{"memory judges every name", "PodDisruptionBudget", "", "Invalid: *metadata.name*", "none", []string{"error"}},
	{"what is left alone after a difference still has a UID, by which the next ones are numbered", "", "", "", "", []string{"metadata.uid"}},
	{"memory keeps quantities as they were written", "", "", "", "", []string{"*.resources.*"}},
	{"memory looks for the object before it judges the request", "", "Update", "Conflict", "BadRequest", []string{"error"}},
	{"memory looks for the object before it judges the request", "", "Update", "NotFound", "BadRequest", []string{"error"}},
	{"memory looks for the subresource before the name", "", "UpdateStatus", "NotFound", "BadRequest", []string{"error"}},
	{"memory judges values by their schema when it merges them", "", "UpdateStatus", "BadRequest", "Invalid", []string{"error"}},
	{"a status is sent to a server without all else, which memory judges", "", "UpdateStatus", "BadRequest", "none", []string{"error"}},
	{"an Update that sets what cannot be set owns it on a server", "", "", absent, "", []string{"metadata.managedFields[*/Update].f:metadata.f:deletionTimestamp", "metadata.managedFields[*/Update].f:metadata", "metadata.managedFields[*/Update]"}},
	{"the controllers of definitions write their metadata, too", "CustomResourceDefinition", "", absent, "owned", []string{"metadata.managedFields[*].f:metadata.f:finalizers*"}},
	{"memory deletes dependents itself, and at once", "", "Event", absent, `"foregroundDeletion"`, []string{"metadata.finalizers[*]"}},
	{noDefaults, "Deployment", "Event", "", "", []string{"events"}},
	{noDefaults, "Pod", "Event", "", "", []string{"events"}},
	{noDefaults, "Service", "Event", "", "", []string{"events"}},
	{noDefaults, "Secret", "Event", "", "", []string{"events"}},
	{"what an Apply cannot set is not sent to a server; memory lets the manager own it without effect", "", "", "owned", absent,
		[]string{"metadata.managedFields[*/Apply].f:metadata.f:deletionTimestamp", "metadata.managedFields[*/Apply].f:metadata.f:generation"}},
}

// known are faults of memory. A row goes when its fault does.
var known = []differences{
	{"memory does not know what a load balancer is", "Service", "UpdateStatus", "none", "Invalid: *loadBalancer.ingress*", []string{"error"}},
	{"memory does not judge the finalizers of a namespace's spec", "Namespace", "", "none", "Invalid: *spec.finalizers*", []string{"error"}},
	{"memory does not judge short names", "CustomResourceDefinition", "", "none", "Invalid: *spec.names.shortNames*", []string{"error"}},
	{"memory keeps metadata of a definition that it does not know", "CustomResourceDefinition", "", "", absent, []string{"metadata.bogusField", "metadata.managedFields[*].f:metadata.f:bogusField"}},
	{"memory's event of an object that leaves a selection, or goes, shows the state after, not the one before", "", "Event", "", "", []string{"metadata.*"}},
	{"memory sets no condition DisruptionTarget when it evicts", "Pod", "", absent, "", []string{"status.conditions[*"}},
	{"memory shows a grace period of definitions that wait for their objects", "CustomResourceDefinition", "", "0", absent, []string{"metadata.deletionGracePeriodSeconds"}},
	{"memory keeps empty lists of a definition", "CustomResourceDefinition", "", "[]", absent, []string{"spec.names.shortNames"}},
	{"memory takes metadata of a definition that it does not know", "CustomResourceDefinition", "Apply", "none", "other", []string{"error"}},
	{"memory merges the owners of a definition as one value", "CustomResourceDefinition", "", absent, "owned", []string{"metadata.managedFields[*].f:metadata.f:ownerReferences*"}},
	{"memory does not judge external addresses", "Service", "", "none", "Invalid: *spec.externalIPs*", []string{"error"}},
	{"memory drops a null in place of a custom resource's spec", "Gadget", "", "none", "Invalid: *of type object: \"null\"*", []string{"error"}},
	{"memory keeps empty lists of a definition", "CustomResourceDefinition", "", "[]", absent, []string{"status.acceptedNames.shortNames"}},
	{"memory does not judge the numbers of a Deployment's status", "Deployment", "UpdateStatus", "none", "Invalid: *status.*", []string{"error"}},
	{"a server sets a negative grace period to 1", "", "", "Invalid: *terminationGracePeriodSeconds*", "none", []string{"error"}},
	{"memory judges a strategy without the defaults that a server adds to it", "Deployment", "", "none", "Invalid: *spec.strategy.rollingUpdate*", []string{"error"}},
	{"memory and a server differ in which write of a custom resource changes nothing", "Widget", "", "", "", []string{"metadata.resourceVersion"}},
	{"memory and a server differ in which write of a custom resource changes nothing", "Gadget", "", "", "", []string{"metadata.resourceVersion"}},
	{"memory keeps empty lists of a definition", "CustomResourceDefinition", "", "owned", absent, []string{"metadata.managedFields[*].f:metadata.f:finalizers", "metadata.managedFields[*].f:spec.f:names.f:shortNames"}},
	{"memory judges a definition before it looks what else is wrong", "CustomResourceDefinition", "Apply", "Invalid", "", []string{"error"}},
	{"memory judges the name before it decodes the object", "", "Create", "Invalid: *metadata.name*", "BadRequest", []string{"error"}},
	{"memory allocates no addresses, so it does not know whether one changes", "Service", "", "none", "Invalid: *spec.clusterIP*", []string{"error"}},
	{"memory allocates no addresses, so it does not know whether one changes", "Service", "", "Invalid: *spec.clusterIP*", "none", []string{"error"}},
	{"memory leaves out a null in a map of texts, which a server takes for an empty text", "ConfigMap", "", absent, "", []string{"data.*", "metadata.managedFields[*].f:data*"}},
	{"memory does not know that finalizers of built-in kinds are qualified", "", "", "none", "Invalid: *metadata.finalizers*", []string{"error"}},
	{"a server drops a time of creation that it cannot read from an applied custom resource", "", "Apply", "BadRequest: *creationTimestamp*", "", []string{"error"}},
	{"memory takes no rules for the same as null rules, which a server tells apart", "Role", "", "", "", []string{"metadata.managedFields[*/Update].f:rules"}},
	{"memory takes no rules for the same as null rules, which a server tells apart", "ClusterRole", "", "", "", []string{"metadata.managedFields[*/Update].f:rules"}},
	{"memory and a server differ in which rules change nothing", "Role", "", "", "", []string{"metadata.resourceVersion"}},
	{"memory and a server differ in which rules change nothing", "ClusterRole", "", "", "", []string{"metadata.resourceVersion"}},
	{"memory writes no zero values, and so has no owner of them", "Pod", "", absent, "owned", []string{"metadata.managedFields[*/Update/status].f:status.f:conditions*"}},
	{"memory writes no zero values, and so has no owner of them", "PodDisruptionBudget", "", absent, "", []string{"metadata.managedFields[*/Update/status]*"}},
	{"memory lets an Update change the finalizers of a namespace's spec", "Namespace", "", "", "", []string{"spec.finalizers[*]"}},
	{"memory lets an Update change the finalizers of a namespace's spec", "Namespace", "Event", "", "", []string{"events"}},
	{"a server writes the default phase of a namespace", "Namespace", "", absent, `"Active"`, []string{"status.phase"}},
	{"a server writes out the zero values of the Go type that it stores", "Node", "", absent, "{}", []string{"spec"}},
	{"memory decodes an Apply before it judges it; a server merges it first", "", "Apply", "BadRequest", "Invalid", []string{"error"}},
	{"memory deletes dependents itself; a server notes in the object how, also when it is being deleted already", "ConfigMap", "Event", "", "", []string{"events"}},
}
