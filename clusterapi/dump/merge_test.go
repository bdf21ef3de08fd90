package dump_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/dump"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// TestCopies: which copy of an object counts. data.from tells it.
func TestCopies(t *testing.T) {
	const cm = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: a, META}, data: {from: FROM}}"
	copyOf := func(from, meta string) string {
		return strings.NewReplacer("META", meta, "FROM", from).Replace(cm)
	}
	for _, tc := range []struct {
		name, tree, want, problems string
	}{
		{"the greater resourceVersion", "-- a.yaml --\n" + copyOf("old", `resourceVersion: "9"`) + "\n-- b.yaml --\n" + copyOf("new", `resourceVersion: "10"`), "new", ""},
		{"as a number of any length", "-- a.yaml --\n" + copyOf("new", `resourceVersion: "100000000000000000000001"`) + "\n-- b.yaml --\n" + copyOf("old", `resourceVersion: "99999999999999999999999"`), "new", ""},
		{"leading zeros", "-- a.yaml --\n" + copyOf("old", `resourceVersion: "0009"`) + "\n-- b.yaml --\n" + copyOf("new", `resourceVersion: "10"`), "new", ""},
		{"a number before what is none", "-- a.yaml --\n" + copyOf("old", `resourceVersion: "zz"`) + "\n-- b.yaml --\n" + copyOf("new", `resourceVersion: "1"`), "new", ""},
		{"else the first path", "-- b.yaml --\n" + copyOf("second", "uid: x") + "\n-- a/z.yaml --\n" + copyOf("first", "uid: x"), "first", ""},
		{"in byte order of the whole path", "-- a/b.yaml --\n" + copyOf("second", "uid: x") + "\n-- a.yaml --\n" + copyOf("first", "uid: x"), "first", ""},
		{"in a file the first", "-- a.yaml --\n" + copyOf("first", "uid: x") + "\n---\n" + copyOf("second", "uid: x"), "first", ""},
		{
			"differing UIDs", "-- a.yaml --\n" + copyOf("one", "uid: x") + "\n-- b.yaml --\n" + copyOf("two", "uid: z"), "one",
			"b.yaml, document 1: ConfigMap a/c has another UID than in a.yaml, which is used",
		},
		{"of several recordings", "-- must-gather.local.2/x/namespaces/a/core/configmaps/c.yaml --\n" + copyOf("old", `resourceVersion: "9"`) +
			"\n-- must-gather.local.3/x/namespaces/a/core/configmaps.yaml --\n{apiVersion: v1, kind: ConfigMapList, items: [" + copyOf("new", `resourceVersion: "11"`) + "]}", "new", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := mustOpen(t, files(tc.tree), dump.Options{})
			u := checktest.Must(r.Get(t.Context(), gvk("v1 ConfigMap"), clusterapi.Key("a", "c")))
			if from, _, _ := unstructured.NestedString(u.Object, "data", "from"); from != tc.want {
				t.Errorf("it is %q, want %q", from, tc.want)
			}
			checkProblems(t, r, tc.problems)
		})
	}
}

// TestRedactedCopies: a copy in the clear never comes out where there is one that
// is redacted, whichever comes first and is newer.
func TestRedactedCopies(t *testing.T) {
	const (
		proxy  = `{apiVersion: config.openshift.io/v1, kind: Proxy, metadata: {name: cluster, resourceVersion: "RV"}, spec: {httpProxy: "http://user:PW@proxy:3128"}}`
		secret = `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: a, resourceVersion: "RV"}, data: {tls.crt: Y2VydA==, tls.key: "PW"}}`
		route  = `{apiVersion: route.openshift.io/v1, kind: Route, metadata: {name: r, namespace: a, resourceVersion: "RV"}, spec: {tls: {key: "PW"}}}`
		noted  = `{apiVersion: v1, kind: Secret, metadata: {name: t, namespace: a, resourceVersion: "RV", annotations: {openshift.io/token-secret.value: "PW"}}}`
	)
	for _, tc := range []struct{ name, text, kind, key, clear, hidden string }{
		{"proxy", proxy, "config.openshift.io/v1 Proxy", "cluster", "topsecret", "****"},
		{"secret", secret, "v1 Secret", "a/s", "dG9wc2VjcmV0", "MTIgYnl0ZXMgbG9uZw=="},
		{"secret in plain text", secret, "v1 Secret", "a/s", "dG9wc2VjcmV0", "12 bytes long"},
		{"route", route, "route.openshift.io/v1 Route", "a/r", "topsecret", ""},
		{"annotation", noted, "v1 Secret", "a/t", "topsecret", ""},
	} {
		for _, versions := range [][2]string{{"1", "1"}, {"2", "1"}, {"1", "2"}} {
			for _, order := range [][2]string{{"a.yaml", "b.yaml"}, {"b.yaml", "a.yaml"}} {
				text := func(pw, rv string) string {
					return strings.NewReplacer("PW", pw, "RV", rv).Replace(tc.text)
				}
				tree := files("-- " + order[0] + " --\n" + text(tc.clear, versions[0]) + "\n-- " + order[1] + " --\n" + text(tc.hidden, versions[1]))
				r := mustOpen(t, tree, dump.Options{})
				ns, name, ok := strings.Cut(tc.key, "/")
				if !ok {
					ns, name = "", ns
				}
				u := checktest.Must(r.Get(t.Context(), gvk(tc.kind), clusterapi.Key(ns, name)))
				checktest.FailIf(t, u.GetResourceVersion() != versions[1] && versions[0] != versions[1],
					"%s, versions %v: the copy in the clear is used", tc.name, versions)
				data, _ := u.MarshalJSON()
				checktest.FailIf(t, strings.Contains(string(data), tc.clear), "%s: %s", tc.name, data)
			}
		}
	}
}

// What is neither redacted nor in the clear is no worse than what is redacted.
func TestNewerCopyWithoutSecrets(t *testing.T) {
	r := mustOpen(t, files(`
-- a.yaml --
{apiVersion: config.openshift.io/v1, kind: Proxy, metadata: {name: cluster, resourceVersion: "1"}, spec: {httpProxy: "http://user:****@proxy:3128"}}
-- b.yaml --
{apiVersion: config.openshift.io/v1, kind: Proxy, metadata: {name: cluster, resourceVersion: "2"}, spec: {httpProxy: "http://proxy:3128"}}
-- c.yaml --
{apiVersion: config.openshift.io/v1, kind: Proxy, metadata: {name: cluster, resourceVersion: "3"}, spec: {httpProxy: "http://user:pw@proxy:3128"}}
`), dump.Options{})
	u := checktest.Get(r.Get(t.Context(), gvk("config.openshift.io/v1 Proxy"), clusterapi.Key("", "cluster")))(t)
	checktest.Equal(t, "2", u.GetResourceVersion(), "u.GetResourceVersion() of %v", u)
}

func TestRedacted(t *testing.T) {
	for _, tc := range []struct {
		text string
		want bool
	}{
		{`{apiVersion: v1, kind: Secret, data: {a: "12 bytes long"}}`, true},
		{`{apiVersion: v1, kind: Secret, data: {a: "MTIgYnl0ZXMgbG9uZw=="}}`, true},
		{`{apiVersion: v1, kind: Secret, data: {tls.crt: Y2VydA==, a: "MCBieXRlcyBsb25n"}}`, true},
		{`{apiVersion: v1, kind: Secret, data: {a: "bm90aGluZw=="}}`, false},
		{`{apiVersion: v1, kind: Secret, data: {a: "12 bytes longer"}}`, false},
		{`{apiVersion: v1, kind: Secret, data: [a]}`, false},
		{`{apiVersion: v1, kind: Secret}`, false},
		{`{apiVersion: v1, kind: ConfigMap, data: {a: "12 bytes long"}}`, false},
	} {
		checktest.Equal(t, tc.want, dump.Redacted(object(t, tc.text)), "%s", tc.text)
	}
	checktest.FailIf(t, dump.Redacted(nil), "nil is redacted")
}

func TestTime(t *testing.T) {
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	const objects = `
-- must-gather.local.1/x/cluster-scoped-resources/config.openshift.io/clusterversions.yaml --
{apiVersion: config.openshift.io/v1, kind: ClusterVersionList, items: [{metadata: {name: version, creationTimestamp: "2026-01-01T00:00:00Z"},
  status: {conditions: [{type: Available, lastTransitionTime: "2026-01-02T00:00:00Z"}]}}]}
-- must-gather.local.1/x/cluster-scoped-resources/config.openshift.io/clusteroperators/dns.yaml --
{apiVersion: config.openshift.io/v1, kind: ClusterOperator, metadata: {name: dns, managedFields: [{time: "2026-01-02T00:59:00Z"}]},
  status: {conditions: [{type: Available, lastTransitionTime: "2026-01-02T00:30:00Z"}]}}
`
	const node = `
-- must-gather.local.1/x/cluster-scoped-resources/core/nodes/n1.yaml --
{apiVersion: v1, kind: Node, metadata: {name: n1, creationTimestamp: "2026-01-01T00:00:00Z"},
  status: {conditions: [{type: Ready, lastHeartbeatTime: "2026-01-02T02:00:00Z", lastTransitionTime: "2026-01-01T00:00:00Z"}]}}
`
	for _, tc := range []struct {
		name, tree string
		o          dump.Options
		want       string
		problems   string
	}{
		{name: "Options.Now", tree: objects, o: dump.Options{Now: now}, want: "2026-05-01T00:00:00Z"},
		{
			name: "timestamps", tree: objects + `
-- must-gather.local.1/timestamp --
2026-02-01 03:04:05.999999999 +0200 CEST m=+0.1
2026-02-01 03:14:05 +0200 CEST m=+600.2
a bad line
2026-02-01
-- must-gather.local.1/x/timestamp --
2026-02-01 02:20:05.5 +0000 UTC m=+1
2026-02-01 02:10:05.5 +0000 UTC
-- must-gather.local.1/y/timestamp --
2026-02-01 02:00:00 -0100 -01 m=+1
2026-02-01 02:00:00 -0030 CEST
`, want: "2026-02-01T03:00:00Z",
		},
		{name: "transitions", tree: objects, want: "2026-01-02T00:30:00Z"},
		{
			name: "transitions, and later Nodes", tree: objects + node, want: "2026-01-02T00:30:00Z",
			problems: "must-gather.local.1/x/cluster-scoped-resources/core/nodes/n1.yaml, document 1: Node n1 has a time, 2026-01-02T02:00:00Z, more than an hour later than that of the recording, 2026-01-02T00:30:00Z",
		},
		{
			name: "what the operators themselves wrote later is not another kind's", tree: strings.Replace(objects, "2026-01-02T00:59:00Z", "2026-01-09T00:00:00Z", 1),
			want: "2026-01-02T00:30:00Z",
		},
		{
			name: "of Options.Now, any kind is another", tree: objects, o: dump.Options{Now: time.Date(2026, 1, 1, 23, 55, 0, 0, time.UTC)}, want: "2026-01-01T23:55:00Z",
			problems: "must-gather.local.1/x/cluster-scoped-resources/config.openshift.io/clusteroperators/dns.yaml, document 1: ClusterOperator dns has a time, 2026-01-02T00:59:00Z, more than an hour later than that of the recording, 2026-01-01T23:55:00Z",
		},
		{name: "any time", tree: node, want: "2026-01-02T02:00:00Z"},
		{
			name: "managedFields", tree: `
-- a.yaml --
{apiVersion: v1, kind: Node, metadata: {name: n1, managedFields: [{time: "2026-01-03T02:00:00Z"}, {time: 5}], creationTimestamp: "2026-01-01T00:00:00Z"}}
`, want: "2026-01-03T02:00:00Z",
		},
		{name: "none", tree: "-- a.yaml --\n{apiVersion: v1, kind: Node, metadata: {name: n1}}", want: "0001-01-01T00:00:00Z"},
		{
			name: "a heap's timestamp of one line says nothing about gathering", tree: "-- a.yaml --\n{apiVersion: v1, kind: Node, metadata: {name: n1}}\n-- timestamp --\n2026-02-01 02:00:00 +0000 UTC",
			want: "2026-02-01T02:00:00Z",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := mustOpen(t, files(tc.tree), tc.o)
			checktest.Equal(t, tc.want, r.Time().UTC().Format(time.RFC3339Nano), "time")
			checkProblems(t, r, tc.problems)
			same(t, files(tc.tree), tc.o, r, "")
		})
	}
	r := mustOpen(t, files(objects), dump.Options{Now: now})
	checktest.Equal(t, time.Minute, r.Age(now.Add(-time.Minute)), "age")
	checktest.Equal(t, 0, r.Age(now.Add(time.Minute)), "age")
}

func TestAlerts(t *testing.T) {
	const node = "-- x/cluster-scoped-resources/core/nodes/n1.yaml --\n{apiVersion: v1, kind: Node, metadata: {name: n1}}\n"
	const heap = "-- node.yaml --\n{apiVersion: v1, kind: Node, metadata: {name: n1}}\n"
	alert := func(name string) string { return `{"labels": {"alertname": "` + name + `"}}` }
	rule := func(name string) string {
		return `{"data": {"groups": [{"rules": [{"alerts": [` + alert(name) + `]}]}]}}`
	}
	alerts := func(name string) string { return `{"data": {"alerts": [` + alert(name) + `]}}` }
	for _, tc := range []struct{ name, tree, want, problems string }{
		{"none", node, "alerts: not collected in this recording", ""},
		{"rules first", node + "-- x/monitoring/prometheus/rules.json --\n" + rule("R") + "\n-- x/monitoring/prometheus/alerts.json --\n{}\n-- x/monitoring/alerts.json --\n{}", "R", ""},
		{"alerts", node + "-- x/monitoring/prometheus/alerts.json --\n" + alerts("A"), "A", ""},
		{"alerts of old", node + "-- x/monitoring/alerts.json --\n" + alerts("B"), "B", ""},
		{"no alert", node + "-- x/monitoring/alerts.json --\n{\"data\": {\"alerts\": []}}", "", ""},
		{"a failure", node + "-- x/monitoring/alerts.json --\n{\"status\": \"error\", \"error\": \"not ready\"}",
			"alerts: not collected in this recording", "x/monitoring/alerts.json: decoding alerts: the answer has the status \"error\": \"not ready\""},
		{"broken rules", node + "-- x/monitoring/prometheus/rules.json --\n{\"rul\n-- x/monitoring/alerts.json --\n" + alerts("B"), "B",
			"x/monitoring/prometheus/rules.json: decoding alerts: invalid character '\\n' in string literal"},
		{"of another folder", node + "-- monitoring/alerts.json --\n" + alerts("B"), "alerts: not collected in this recording", ""},
		{"of a heap", heap + "-- monitoring/alerts.json --\n" + alerts("B"), "B", ""},
		{"of a heap in a folder", heap + "-- y/monitoring/prometheus/rules.json --\n" + rule("R"), "R", ""},
		{"of an archive of Insights", insightsFiles + "-- config/alerts.json --\n[" + alert("I") + "]", "I", ""},
	} {
		r := mustOpen(t, files(tc.tree), dump.Options{})
		check := func(r *dump.Recording) {
			firing, err := r.Firing(t.Context())
			got := ""
			if err != nil {
				checktest.ErrorIs(t, clusterapi.ErrNotCollected, err)
				got = err.Error()
			}
			for _, a := range firing {
				got += a.Labels["alertname"]
			}
			checktest.Equal(t, tc.want, got, "%s", tc.name)
		}
		check(r)
		checkProblems(t, r, tc.problems)
		same(t, files(tc.tree), dump.Options{}, r, "")
		check(checktest.Must(dump.OpenArchive(t.Context(), bytes.NewReader(pack(t, files(tc.tree), true, false)), dump.Options{})))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	checktest.ErrorIs(t, context.Canceled, checktest.Err(mustOpen(t, files(node), dump.Options{}).Firing(ctx)))
}

// Recordings of several clusters in one tree are an error that names them, and
// each can be opened.
func TestSeveralClusters(t *testing.T) {
	version := func(id string) string {
		return "{apiVersion: config.openshift.io/v1, kind: ClusterVersion, metadata: {name: version}, spec: {clusterID: " + id + "}}\n"
	}
	at := func(root, kind, text string) string {
		return "-- " + root + "/cluster-scoped-resources/" + kind + " --\n" + text
	}
	const (
		cv    = "config.openshift.io/clusterversions/version.yaml"
		nodes = "core/nodes/"
	)
	two := at("a/must-gather.local.1/x-sha256-1", cv, version("one")) + at("a/must-gather.local.1/x-sha256-1", nodes+"n1.yaml", nodeNamed("n1")) +
		at("a/must-gather.local.1/y-sha256-2", cv, version("one")) + at("b/must-gather.local.2/x-sha256-1", cv, version("two")) +
		at("b/must-gather.local.2/x-sha256-1", nodes+"n2.yaml", nodeNamed("n2")) +
		"-- b/must-gather.local.2/x-sha256-1/namespaces/other/core/configmaps.yaml --\n{apiVersion: v1, kind: ConfigMapList, items: []}\n" +
		"-- b/must-gather.local.2/timestamp --\n2026-01-02 03:04:05 +0000 UTC m=+0.1\n"
	uid := func(root, uid string) string {
		return "-- " + root + "/namespaces/kube-system/kube-system.yaml --\n{apiVersion: v1, kind: Namespace, metadata: {name: kube-system, uid: " + uid + "}}\n"
	}
	for _, tc := range []struct {
		name, tree, want string
	}{
		{"one", at("a", cv, version("one")) + at("b", cv, version("one")), ""},
		{"one, and one that does not say", at("a", cv, version("one")) + at("b", nodes+"n1.yaml", nodeNamed("n1")), ""},
		{"two", two, `opening a recording: recordings of 2 clusters (open the folder of one, or set Options.Root): cluster "one" in a/must-gather.local.1/x-sha256-1, a/must-gather.local.1/y-sha256-2; cluster "two" in b/must-gather.local.2/x-sha256-1`},
		{"by namespace", uid("a", "u1") + uid("b", "u2"), `opening a recording: recordings of 2 clusters (open the folder of one, or set Options.Root): cluster "u1" in a; cluster "u2" in b`},
		{"heaps", "-- a/cv.yaml --\n" + version("one") + "-- b/cv.yaml --\n" + version("two"), `opening a recording: recordings of 2 clusters (open the folder of one, or set Options.Root): cluster "one" in a; cluster "two" in b`},
	} {
		_, err := dump.Open(t.Context(), files(tc.tree), dump.Options{})
		_, archived := dump.OpenArchive(t.Context(), bytes.NewReader(pack(t, files(tc.tree), true, true)), dump.Options{})
		for _, err := range []error{err, archived} {
			got := ""
			if err != nil {
				got = err.Error()
			}
			checktest.Equal(t, tc.want, got, "%s", tc.name)
		}
	}
	for root, want := range map[string]string{
		"a":                                "list v1 Node: n1\nget v1 ConfigMap other/x: NotCollected\nlist v1 ConfigMap: empty missing[]...",
		"a/must-gather.local.1/x-sha256-1": "list v1 Node: n1\nlist v1 ConfigMap: empty missing[]...",
		"b/":                               "list v1 Node: n2 missing[]...\nget v1 ConfigMap other/x: NotFound", // it was cut off
	} {
		o := dump.Options{Root: root}
		r := mustOpen(t, files(two), o)
		check(t, r, want)
		same(t, files(two), o, r, want)
	}
	checktest.ErrorHas(t, `no recording at "c"`, checktest.Err(
		dump.Open(t.Context(), files(two), dump.Options{Root: "c"})))
}
