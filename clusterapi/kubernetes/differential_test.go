package kubernetes_test

import (
	"flag"
	"slices"
	"testing"

	"github.com/clusterupdate/clusterupdate/clusterapi/clusterapitest"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes/internal/testserver"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
)

const (
	usualSequences = 300
	usualSeed      = 1
)

var (
	sequences = flag.Int("sequences", usualSequences, "how many sequences TestDifferential runs")
	seed      = flag.Uint64("seed", usualSeed, "what they are drawn from")
	failures  = flag.Int("failures", 3, "after how many that fail it stops")
)

// TestDifferential compares the cluster in memory with a real API server.
func TestDifferential(t *testing.T) {
	t.Parallel()
	s := testserver.Start(t)
	server := newAPI(t, s, kubernetes.Options{})
	o := clusterapitest.DifferentialOptions{Seed: *seed, Sequences: *sequences, Failures: *failures, Meant: meant()}
	if *sequences != usualSequences || *seed != usualSeed {
		o.Kinds = clusterapitest.DifferentialKinds() // others need not meet every difference that is meant
	}
	clusterapitest.Differential(t, memory.New(memory.Options{CheckNamespaces: true, GracefulPods: true}), server, o)
}

// differences are some of memory (A) and the API server (B), at fields of a
// kind, that are meant for one reason.
type differences struct {
	reason     string
	kind, verb string
	a, b       string
	fields     []string
}

// meant are the differences that are no faults.
func meant() []clusterapitest.Difference {
	var out []clusterapitest.Difference
	for _, d := range slices.Concat(meantDefaults(), meantErrors) {
		for _, f := range d.fields {
			out = append(out, clusterapitest.Difference{Reason: d.reason, Kind: d.kind, Verb: d.verb, A: d.a, B: d.b, Field: f})
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
	pods("Pod", "spec")
	add(noDefaults, "Deployment", `"RollingUpdate"`, "spec.strategy.type")
	add(noDefaults, "Deployment", `"25%"`, "spec.strategy.rollingUpdate.maxUnavailable", "spec.strategy.rollingUpdate.maxSurge")
	add(noDefaults, "Deployment", "10", "spec.revisionHistoryLimit")
	add(noDefaults, "Deployment", "1", "spec.replicas")
	add(noDefaults, "Deployment", "600", "spec.progressDeadlineSeconds")
	add(noDefaults, "Secret", `"Opaque"`, "type")
	return out
}

// meantErrors are requests that one of them refuses, or refuses otherwise.
var meantErrors = []differences{}
