package dump_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	configv1 "github.com/openshift/api/config/v1"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/dump"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// insightsFiles are what each Insights archive has.
const insightsFiles = `
-- config/version.json --
{"metadata": {"name": "version"}, "spec": {"clusterID": "c"}}
-- insights-operator/gathers.json --
{"status_reports": [{"name": "clusterconfig/operators", "records_count": 2, "errors": null, "panic": null},
  {"name": "clusterconfig/machine_config_pools", "records_count": 1, "errors": null, "panic": null}]}
`

// TestInsights opens small archives of Insights.
func TestInsights(t *testing.T) {
	const operators = `
-- config/clusteroperator/dns.json --
{"metadata": {"name": "dns"}}
-- config/clusteroperator/operator.openshift.io/dns/default.json --
{"apiVersion": "operator.openshift.io/v1", "kind": "DNS", "name": "default", "spec": {}}
`
	for _, tt := range []struct {
		name, tree, answers, problems string
	}{
		{name: "single objects and kinds of which nothing is there", tree: insightsFiles, answers: `
			get config.openshift.io/v1 ClusterVersion version: found
			list config.openshift.io/v1 ClusterVersion: version missing[]...
			get config.openshift.io/v1 Proxy cluster: NotCollected
			list v1 Node: empty missing[]...
			grade machineconfiguration.openshift.io/v1 MachineConfigPool: none`},
		{name: "a gatherer that takes all of a kind", tree: insightsFiles + operators + `
-- config/machineconfigpools/worker.json --
{"metadata": {"name": "worker"}}
`, answers: `
			get config.openshift.io/v1 ClusterOperator etcd: NotFound
			list config.openshift.io/v1 ClusterOperator: dns
			list machineconfiguration.openshift.io/v1 MachineConfigPool: worker
			get operator.openshift.io/v1 DNS default: NotCollected
			list operator.openshift.io/v1 DNS: empty missing[]...`},
		{name: "what a gatherer has written is lost", tree: insightsFiles + "-- config/clusteroperator/dns.json --\n" + `{"metadata": {"name": "dns"}}`, answers: `
			list config.openshift.io/v1 ClusterOperator: dns missing[]...`},
		{name: "a gatherer failed", tree: strings.ReplaceAll(insightsFiles, `"errors": null`, `"errors": ["timeout"]`) + operators, answers: `
			list config.openshift.io/v1 ClusterOperator: dns missing[]...`},
		{name: "a gatherer panicked", tree: strings.ReplaceAll(insightsFiles, `"panic": null`, `"panic": "nil map"`) + operators, answers: `
			list config.openshift.io/v1 ClusterOperator: dns missing[]...`},
		{name: "a broken report", tree: strings.ReplaceAll(insightsFiles, `[{`, `{`) + operators, answers: `
			list config.openshift.io/v1 ClusterOperator: dns missing[]...`,
			problems: "insights-operator/gathers.json: invalid character '{' looking for beginning of object key string"},
		{name: "an object of another name", tree: insightsFiles + operators + `
-- config/machineconfigpools/master.json --
{"metadata": {"name": "worker"}}
-- config/clusterrolebinding/system_a.json --
{"metadata": {"name": "system:a"}}
`, answers: `
			list machineconfiguration.openshift.io/v1 MachineConfigPool: worker missing[]...
			get machineconfiguration.openshift.io/v1 MachineConfigPool master: NotCollected
			get rbac.authorization.k8s.io/v1 ClusterRoleBinding system:a: found`,
			problems: `config/machineconfigpools/master.json, document 1: it holds MachineConfigPool worker, and by its name should hold "master"`},
		{name: "namespaced and conditional", tree: insightsFiles + `
-- config/pdbs/a/p.json --
{"apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudget", "metadata": {"name": "p", "namespace": "a"}}
-- config/pod/a/p.json --
{"metadata": {"name": "p", "namespace": "a"}}
-- config/pod/a/logs/p/errors.log --
x
-- conditional/namespaces/b/pods/q/q.json --
{"metadata": {"name": "q", "namespace": "b"}}
-- conditional/namespaces/b/imagestreams/i.json --
{"metadata": {"name": "i", "namespace": "b"}}
-- conditional/namespaces/b/pods/q/containers/c/logs/last-1-lines.json --
x
-- conditional/alerts/A/api_request_counts.json --
[{"resource": "x"}]
-- machinesets/c/m.json --
{"metadata": {"name": "m", "namespace": "c"}}
-- config/node/logs/n.log --
x
-- events/a.json --
{"items": []}
-- config/olm_operators.json --
[{"name": "x"}]
`, answers: `
			list v1 Pod: a/p b/q missing[a b c]...
			get policy/v1beta1 PodDisruptionBudget a/p: found
			get policy/v1 PodDisruptionBudget a/p: NotCollected
			get image.openshift.io/v1 ImageStream b/i: found
			get machine.openshift.io/v1beta1 MachineSet c/m: found`},
		{name: "paths of old versions", tree: insightsFiles + `
-- config/clusteroperator/etcd-cluster.json --
{"apiVersion": "operator.openshift.io/v1", "kind": "Etcd", "name": "cluster", "spec": {}}
-- config/imagepruner.json --
{"metadata": {"name": "cluster"}}
-- config/imageregistry.json --
{"metadata": {"name": "cluster"}}
`, answers: `
			get imageregistry.operator.openshift.io/v1 Config cluster: found
			get imageregistry.operator.openshift.io/v1 ImagePruner cluster: found
			get operator.openshift.io/v1 Etcd cluster: NotCollected
			list config.openshift.io/v1 ClusterOperator: empty missing[]...`},
		{name: "in a folder, next to what is not of it", answers: "get v1 Node n1: found\nget v1 Node n2: NotCollected",
			tree: strings.ReplaceAll(insightsFiles, "-- ", "-- a/b/") + "-- a/b/config/node/n1.json --\n{\"metadata\": {\"name\": \"n1\"}}\n-- a/n2.json --\n" + nodeNamed("n2")},
		{name: "not one: a heap with such folders", answers: "get v1 Node n1: found\nget v1 Node n2: found",
			tree: "-- config/n1.json --\n" + nodeNamed("n1") + "-- conditional/x/n2.json --\n" + nodeNamed("n2")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tree := files(tt.tree)
			r := mustOpen(t, tree, dump.Options{})
			check(t, r, tt.answers)
			checkProblems(t, r, tt.problems)
			same(t, tree, dump.Options{}, r, tt.answers)
		})
	}
}

// TestRealInsights opens the archive of a real cluster, as a folder and as the file
// that the operator uploads.
func TestRealInsights(t *testing.T) {
	tree := fstest.MapFS{}
	checktest.OK(t, fsCopy(tree, os.DirFS(dataFolder(t, "insights-4.7"))))
	folder := mustOpen(t, tree, dump.Options{})
	const answers = `
		get config.openshift.io/v1 ClusterVersion version: found
		get config.openshift.io/v1 ClusterOperator nobody: NotFound
		grade machineconfiguration.openshift.io/v1 MachineConfigPool: some
		list v1 Node: master-0.cluster.example.com worker-0.cluster.example.com missing[]...
		get policy/v1beta1 PodDisruptionBudget openshift-machine-config-operator/etcd-quorum-guard: found
		get operator.openshift.io/v1 CloudCredential cluster: NotCollected
		get imageregistry.operator.openshift.io/v1 Config cluster: found`
	check(t, folder, answers)
	same(t, tree, dump.Options{}, folder, answers)
	operators := checktest.Get(clusterapi.List[configv1.ClusterOperator](t.Context(), folder, clusterapi.ListOptions{}))(t)
	checktest.Equal(t, 31, len(operators), "ClusterOperators")
	alerts := checktest.Get(folder.Firing(t.Context()))(t)
	checktest.Equal(t, 9, len(alerts), "alerts")
	checktest.Equal(t, "firing", alerts[0].State, "state")
	// An archive in a folder is opened as if it were the folder.
	alone := fstest.MapFS{"a/insights-2026-01-02.tar.gz": {Data: pack(t, tree, true, false)}, "a/README": {Data: []byte("x")}}
	check(t, mustOpen(t, alone, dump.Options{}), answers)
	// Values of nodes are anonymised, those of ClusterOperators are not.
	for kind, want := range map[string]bool{
		"v1 Node":                                true,
		"config.openshift.io/v1 ClusterOperator": false,
		"machineconfiguration.openshift.io/v1 MachineConfig": true,
	} {
		list, _ := folder.List(t.Context(), gvk(kind), clusterapi.ListOptions{})
		checktest.Equal(t, want, dump.Redacted(&list.Items[0]), "%s is redacted", kind)
	}
}

// TestInsightsCut: whatever is missing of an archive, no object that it had is denied.
func TestInsightsCut(t *testing.T) {
	whole := fstest.MapFS{}
	checktest.OK(t, fsCopy(whole, os.DirFS(dataFolder(t, "insights-4.7"))))
	before := mustOpen(t, whole, dump.Options{})
	kinds := []string{"config.openshift.io/v1 ClusterOperator", "v1 Node", "machineconfiguration.openshift.io/v1 MachineConfigPool",
		"machineconfiguration.openshift.io/v1 MachineConfig", "machine.openshift.io/v1beta1 Machine"}
	rapid.Check(t, func(rt *rapid.T) {
		tree := fstest.MapFS{}
		for name, f := range whole {
			switch rapid.IntRange(0, 9).Draw(rt, "fate") {
			case 0: // it is missing
			case 1:
				tree[name] = &fstest.MapFile{Data: f.Data[:rapid.IntRange(0, len(f.Data)).Draw(rt, "length")], Mode: f.Mode}
			default:
				tree[name] = f
			}
		}
		tree["config/version.json"], tree["insights-operator/gathers.json"] = whole["config/version.json"], whole["insights-operator/gathers.json"]
		r := checktest.Must(dump.OpenArchive(rt.Context(), bytes.NewReader(pack(t, tree, true, rapid.Bool().Draw(rt, "backwards"))), dump.Options{}))
		for _, kind := range kinds {
			list, _ := before.List(rt.Context(), gvk(kind), clusterapi.ListOptions{})
			for i := range list.Items {
				key := clusterapi.KeyOf(&list.Items[i])
				question := "get " + kind + " " + strings.TrimPrefix(key.String(), "/")
				got := answer(rt.Context(), r, question)
				checktest.FailIf(rt, got != "found" && got != "NotCollected", "%s: %s", question, got)
			}
		}
	})
}

// TestInsightsRedacted: values that were replaced by x.
func TestInsightsRedacted(t *testing.T) {
	for value, want := range map[string]bool{
		`"xxxxxxxxxxxxxxxx-xxxxx"`: true, `["a", {"b": "xxxx"}]`: true, `"xxx"`: false, `"x.x.x.x"`: true, `"xxxx-a"`: false, `7`: false,
	} {
		u := object(t, `{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"a": `+value+`}}`)
		checktest.Equal(t, want, dump.Redacted(u), "%s", value)
	}
}

// TestInsightsOfSeveralClusters: the archives of several clusters, and of one cluster
// with a must-gather.
func TestInsightsOfSeveralClusters(t *testing.T) {
	at := func(root, cluster string) string {
		text := strings.ReplaceAll(insightsFiles, "-- ", "-- "+root+"/")
		return strings.ReplaceAll(text, `"clusterID": "c"`, `"clusterID": "`+cluster+`"`)
	}
	tree := files(at("x/one", "1") + at("x/two", "2"))
	var several *dump.ClustersError
	_, err := dump.Open(t.Context(), tree, dump.Options{})
	checktest.FatalIf(t, !errors.As(err, &several), "%v", err)
	checktest.Same(t, map[string][]string{"1": {"x/one"}, "2": {"x/two"}}, several.Roots)
	const found = "get config.openshift.io/v1 ClusterVersion version: found"
	check(t, mustOpen(t, tree, dump.Options{Root: "x/two"}), found)

	both := files(at("insights", "1") + "-- mg/cluster-scoped-resources/core/nodes/n1.yaml --\n" + nodeNamed("n1"))
	r := mustOpen(t, both, dump.Options{})
	const answers = found + "\nget v1 Node n1: found\nget v1 Node n2: NotCollected"
	check(t, r, answers)
	same(t, both, dump.Options{}, r, answers)
}
