package preview_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/fieldchange"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/runlevel"
	"github.com/clusterupdate/clusterupdate/runlevel/preview"
)

// update previews a release over another one.
func update(tb testing.TB, r clusterapi.Reader, running, target string) *preview.Preview {
	tb.Helper()
	from, to := payload(tb, "4.18.1", running), payload(tb, "4.19.0", target)
	p := checktest.Get(preview.Run(tb.Context(), to.Tasks(), preview.Options{Reader: r, Running: from, Payload: to}))(tb)
	return p
}

const service = `
apiVersion: v1
kind: Service
metadata: {name: s, namespace: ns, annotations: {note: x}, labels: {LABELS}}
spec: {selector: {SELECTOR}, ports: [PORTS]}`

func serviceOf(labels, selector, ports string) string {
	return strings.NewReplacer("LABELS", labels, "SELECTOR", selector, "PORTS", ports).Replace(service)
}

// A field that the running release names and the target does not stays, where the
// object is not ours; where an apply of ours has set it, it goes.
func TestStale(t *testing.T) {
	running := serviceOf("a: x, b: x", "app: one, tier: two", "{name: p, port: 1}, {name: q, port: 2, protocol: TCP}")
	target := serviceOf("a: x", "app: one", "{name: p, port: 1}")
	c := cluster(t, running) // as the version operator has written it
	p := update(t, c, running, target)
	got := changeOf(t, p, "Service ns/s")
	want := []preview.StaleField{
		{Path: "metadata.labels.b", Value: "x"},
		{Path: "spec.ports[port=2,protocol=TCP]", Value: map[string]any{"name": "q", "port": int64(2), "protocol": "TCP", "targetPort": int64(2)}},
	}
	checktest.Same(t, want, got.Stale)
	// A merge removes ports of others, and never a label.
	checktest.Same(t, []string{"spec.ports[port=2,protocol=TCP]"}, got.OperatorRemoves)
	var text strings.Builder
	checktest.OK(t, p.Text(&text, preview.TextOptions{}))
	for _, line := range []string{`= metadata.labels.b: "x" stays: not ours to remove; the version operator would not` + "\n", "stays: not ours to remove; the version operator would\n"} {
		if !strings.Contains(text.String(), line) {
			t.Errorf("%s is not in\n%s", line, &text)
		}
	}
	// A selector is one value: it is replaced.
	checktest.Same(t, []string{"spec.selector"}, paths(got))
	if !strings.Contains(strings.Join(p.Assumed, "\n"), "Removals are not predicted for 1 object") {
		t.Errorf("assumed %q", p.Assumed)
	}

	c = cluster(t, "")
	checktest.Get(runlevel.Run(t.Context(), manifest.NewTasks(manifestsOf(t, running)), runlevel.Options{API: c}))(t)
	p = update(t, c, running, target)
	if got := changeOf(t, p, "Service ns/s"); len(got.Stale) > 0 || len(got.Fields) != 3 {
		t.Errorf("stale %v, fields %v", got.Stale, got.Fields)
	}
	if strings.Contains(strings.Join(p.Assumed, "\n"), "Removals") {
		t.Errorf("assumed %q", p.Assumed)
	}
}

// A field that the target leaves to its default stays as the running release has it.
func TestStaleDefault(t *testing.T) {
	deployment := func(spec, container string) string {
		return fmt.Sprintf("{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns, annotations: {note: x}}, spec: {%s selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i %s}]}}}}", spec, container)
	}
	for _, tt := range []struct {
		name, cluster, running, target string
		stale, removed                 []string
	}{
		{"given up", deployment("replicas: 3, strategy: {type: Recreate},", ", imagePullPolicy: Never"), deployment("replicas: 3, strategy: {type: Recreate},", ", imagePullPolicy: Never"), deployment("", ""),
			[]string{"spec.replicas", "spec.strategy.type", "spec.template.spec.containers[name=c].imagePullPolicy"}, []string{"spec.replicas", "spec.strategy.type"}},
		{"the default was named", deployment("replicas: 1,", ""), deployment("replicas: 1,", ""), deployment("", ""), nil, nil},
		{"somebody else has set it", deployment("replicas: 3,", ""), deployment("", ""), deployment("", ""), nil, nil},
		{"the target names it", deployment("replicas: 3,", ""), deployment("replicas: 3,", ""), deployment("replicas: 1,", ""), nil, nil},
		{"somebody else has set it otherwise", deployment("replicas: 5,", ""), deployment("replicas: 3,", ""), deployment("", ""), []string{"spec.replicas"}, []string{"spec.replicas"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := changeOf(t, update(t, cluster(t, tt.cluster), tt.running, tt.target), "Deployment ns/d")
			var stale []string
			for _, s := range got.Stale {
				stale = append(stale, s.Path)
			}
			checktest.Same(t, [][]string{tt.stale, tt.removed}, [][]string{stale, got.OperatorRemoves})
		})
	}
}

// What somebody else has changed is told apart from what the release changes.
func TestDrift(t *testing.T) {
	running := serviceOf("a: one", "app: one", "{name: p, port: 1, targetPort: 10}")
	target := serviceOf("a: two", "app: one", "{name: p, port: 1, targetPort: 10}")
	c := cluster(t, "")
	checktest.Get(runlevel.Run(t.Context(), manifest.NewTasks(manifestsOf(t, running)), runlevel.Options{API: c}))(t)
	live := checktest.Get(c.Get(t.Context(), decoded(t, running)[0].GroupVersionKind(), clusterapi.Key("ns", "s")))(t)
	_ = unstructured.SetNestedField(live.Object, "somebody", "metadata", "annotations", "note")
	ports, _, _ := unstructured.NestedSlice(live.Object, "spec", "ports")
	ports[0].(map[string]any)["targetPort"] = int64(99)
	_ = unstructured.SetNestedSlice(live.Object, ports, "spec", "ports")
	checktest.Get(c.Update(t.Context(), live, clusterapi.UpdateOptions{FieldManager: "kubectl-edit"}))(t)
	got := changeOf(t, update(t, c, running, target), "Service ns/s")
	checktest.Same(t, []string{"metadata.annotations.note", "metadata.labels.a", "spec.ports[port=1,protocol=TCP].targetPort"}, paths(got))
	var texts []string
	for _, d := range got.Drift {
		texts = append(texts, fmt.Sprint(d.Path, " ", d.Found, " ", d.Wanted, " ", d.Owners[0].Manager))
	}
	want := []string{"metadata.annotations.note somebody x kubectl-edit", "spec.ports[port=1,protocol=TCP].targetPort 99 10 kubectl-edit"}
	checktest.Same(t, want, texts)
}

const workload = `
apiVersion: apps/v1
kind: %s
metadata: {name: d, namespace: ns, annotations: {note: x}}
spec:
  selector: {matchLabels: {app: d}}
  %s
  template:
    metadata: {labels: {app: d}}
    spec: {containers: [{name: c, image: %s}]}`

// A change of the pod template names the pods that go, and their nodes.
func TestRolls(t *testing.T) {
	pods := `
{apiVersion: v1, kind: Pod, metadata: {name: d-2, namespace: ns, labels: {app: d}}, spec: {nodeName: two, containers: [{name: c, image: a}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: d-1, namespace: ns, labels: {app: d}}, spec: {nodeName: one, containers: [{name: c, image: a}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: d-3, namespace: ns, labels: {app: d}}, spec: {containers: [{name: c, image: a}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: other, namespace: ns, labels: {app: e}}, spec: {nodeName: one, containers: [{name: c, image: a}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: elsewhere, namespace: other, labels: {app: d}}, spec: {nodeName: one, containers: [{name: c, image: a}]}}
---
`
	all := &preview.Rolls{Pods: []preview.Pod{{Name: "d-1", Node: "one"}, {Name: "d-2", Node: "two"}, {Name: "d-3"}}}
	for _, tt := range []struct {
		name, kind, spec, before, after, specAfter string
		want                                       *preview.Rolls
	}{
		{"image", "Deployment", "replicas: 1", "a", "b", "replicas: 1", all},
		{"replicas alone", "Deployment", "replicas: 1", "a", "a", "replicas: 2", nil},
		{"nothing", "Deployment", "replicas: 1", "a", "a", "replicas: 1", nil},
		{"daemon set", "DaemonSet", "minReadySeconds: 0", "a", "b", "minReadySeconds: 0", all},
		{"on delete", "DaemonSet", "updateStrategy: {type: OnDelete}", "a", "b", "updateStrategy: {type: OnDelete}", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := cluster(t, pods+fmt.Sprintf(workload, tt.kind, tt.spec, tt.before))
			target := fmt.Sprintf(workload, tt.kind, tt.specAfter, tt.after)
			p := run(t, c, target)
			checktest.Same(t, tt.want, p.Changes[0].Rolls)
			if tt.want != nil {
				checktest.Same(t, []string{"one", "two"}, p.Changes[0].Rolls.Nodes())
				p = run(t, reader{c, map[string]error{"Pod": clusterapi.ErrNotCollected}, nil}, target)
				if got := p.Changes[0]; got.Action != preview.Update || got.Rolls.Unknown == "" || len(p.Unknowns) != 1 || p.Unknowns[0] != "pods -n ns" {
					t.Errorf("without pods: %+v, %q", got.Rolls, p.Unknowns)
				}
			}
		})
	}
}

const role = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: r, annotations: {note: x}}
rules: [%s]`

const binding = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: b, annotations: {note: x}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: r}
subjects: [%s]`

// Rights are told in words: what wildcards covered before is not gained.
func TestAccess(t *testing.T) {
	for _, tt := range []struct {
		name, before, after string
		gained, lost        []string
	}{
		{"verbs", "{apiGroups: [''], resources: [pods], verbs: [get]}", "{apiGroups: [''], resources: [pods], verbs: [watch, list, get]}", []string{"list, watch of pods"}, nil},
		{"lost", "{apiGroups: [apps], resources: [deployments, deployments/scale], verbs: [get]}", "{apiGroups: [apps], resources: [deployments], verbs: [get]}", nil, []string{"get of deployments.apps/scale"}},
		{"covered by wildcards", "{apiGroups: ['*'], resources: ['*'], verbs: ['*']}", "{apiGroups: ['*'], resources: ['*'], verbs: ['*']}, {apiGroups: [apps], resources: [deployments], verbs: [get]}", nil, nil},
		{"wildcards", "", "{apiGroups: ['*'], resources: ['*'], verbs: ['*']}", []string{"everything of all resources"}, nil},
		{"subresources", "{apiGroups: [''], resources: ['*/status'], verbs: [get]}", "{apiGroups: [''], resources: [pods/status, pods], verbs: [get]}", []string{"get of pods"}, []string{"get of */status but for get of pods/status"}},
		{"names", "{apiGroups: [''], resources: [secrets], resourceNames: [a], verbs: [get]}", "{apiGroups: [''], resources: [secrets], resourceNames: [a, b], verbs: [get]}", []string{`get of secrets "b"`}, nil},
		{"all names", "{apiGroups: [''], resources: [secrets], resourceNames: [a], verbs: [get]}", "{apiGroups: [''], resources: [secrets], verbs: [get]}", []string{`get of secrets but for get of secrets "a"`}, nil},
		{"narrowed verbs", "{apiGroups: [''], resources: [pods], verbs: ['*']}", "{apiGroups: [''], resources: [pods], verbs: [list, get]}", nil, []string{"everything of pods but for get, list"}},
		{"wider verbs", "{apiGroups: [''], resources: [pods], verbs: [get]}", "{apiGroups: [''], resources: [pods], verbs: ['*']}", []string{"everything of pods but for get"}, nil},
		{"narrowed resources", "{apiGroups: [apps], resources: ['*'], verbs: [get, watch]}", "{apiGroups: [apps], resources: [deployments], verbs: [get]}", nil, []string{`get, watch of all resources of the group "apps" but for get of deployments.apps`}},
		{"overlap", "{apiGroups: [''], resources: ['*'], verbs: [get]}", "{apiGroups: [''], resources: [pods], verbs: ['*']}", []string{"everything of pods but for get"}, []string{`get of all resources of the group "" but for get of pods`}},
		{"narrowed URLs", "{nonResourceURLs: ['/metrics/*'], verbs: [get]}", "{nonResourceURLs: [/metrics/a, /healthz], verbs: [get]}", []string{"get of the URL /healthz"}, []string{"get of the URL /metrics/* but for get of the URL /metrics/a"}},
		{"another name", "{apiGroups: [''], resources: [secrets], resourceNames: [a], verbs: [get]}", "{apiGroups: [''], resources: [secrets], resourceNames: [b], verbs: [get]}", []string{`get of secrets "b"`}, []string{`get of secrets "a"`}},
		{"URLs", "{nonResourceURLs: ['/metrics/*'], verbs: [get]}", "{nonResourceURLs: ['/metrics/*', '/metrics/a', /healthz], verbs: [get]}", []string{"get of the URL /healthz"}, nil},
		{"split rules", "{apiGroups: [''], resources: [pods, nodes], verbs: [get]}", "{apiGroups: [''], resources: [pods], verbs: [get]}, {apiGroups: [''], resources: [nodes], verbs: [get]}", nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bound := fmt.Sprintf(binding, "{kind: ServiceAccount, name: s, namespace: ns}")
			c := cluster(t, fmt.Sprintf(role, tt.before)+"\n---\n"+bound)
			p := run(t, c, fmt.Sprintf(role, tt.after)+"\n---\n"+bound)
			var gained, lost []string
			for _, a := range p.Access {
				gained, lost = append(gained, a.Gained...), append(lost, a.Lost...)
				if diff := cmp.Diff([]string{"ServiceAccount ns/s"}, a.Subjects); diff != "" || a.Object.String() != "ClusterRole r" {
					t.Error(a.Object, diff)
				}
			}
			checktest.Same(t, [][]string{tt.gained, tt.lost}, [][]string{gained, lost})
		})
	}
	c := cluster(t, fmt.Sprintf(binding, "{kind: ServiceAccount, name: s, namespace: ns}, {kind: Group, apiGroup: rbac.authorization.k8s.io, name: g}"))
	p := run(t, c, fmt.Sprintf(binding, "{kind: User, apiGroup: rbac.authorization.k8s.io, name: u}, {kind: Group, apiGroup: rbac.authorization.k8s.io, name: g}"))
	const all = "what ClusterRole r allows, in all namespaces"
	b := changeOf(t, p, "ClusterRoleBinding b").Object
	want := []preview.AccessChange{{Object: b, Subjects: []string{"User u"}, Gained: []string{all}}, {Object: b, Subjects: []string{"ServiceAccount ns/s"}, Lost: []string{all}}}
	checktest.Same(t, want, p.Access)
}

// The rights of a role reach whom a role is bound to that aggregates it, by its selector or,
// if the roles are not known, by the name in the label.
func TestAccessAggregated(t *testing.T) {
	part := func(verbs string) string {
		return strings.Replace(fmt.Sprintf(role, "{apiGroups: [''], resources: [pods], verbs: ["+verbs+"]}"), "name: r,",
			"name: r, labels: {rbac.authorization.k8s.io/aggregate-to-inner: 'true'},", 1)
	}
	aggregated := func(name, labels, of string) string {
		return fmt.Sprintf(`
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: %s, labels: {%s}}, rules: [],
 aggregationRule: {clusterRoleSelectors: [{matchLabels: {%s: 'true'}}]}}`, name, labels, of)
	}
	bound := func(to, user string) string {
		named := strings.NewReplacer("name: b,", "name: "+user+",", "name: r}", "name: "+to+"}").Replace(binding)
		return fmt.Sprintf(named, "{kind: User, apiGroup: rbac.authorization.k8s.io, name: "+user+"}")
	}
	c := cluster(t, strings.Join([]string{
		part("get"), aggregated("inner", "to-outer: 'true'", "rbac.authorization.k8s.io/aggregate-to-inner"), aggregated("outer", "", "to-outer"),
		aggregated("other", "", "to-other"), bound("r", "a"), bound("inner", "b"), bound("outer", "c"), bound("other", "d"),
	}, "\n---\n"))
	for _, tt := range []struct {
		name   string
		reader clusterapi.Reader
		want   []string
	}{
		{"roles known", c, []string{"User a", "User b", "User c"}},
		{"roles not known", reader{Reader: c, errs: map[string]error{"ClusterRole": clusterapi.ErrNotCollected}, some: map[string]bool{"ClusterRole": true}}, []string{"User a", "User b"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			access := run(t, tt.reader, part("get, list")).Access
			if len(access) != 1 {
				t.Fatalf("%v", access)
			}
			checktest.Same(t, tt.want, access[0].Subjects)
		})
	}
}

// Pods of a Deployment that is paused are not replaced, and neither are those that another
// controller has made.
func TestRollsOwners(t *testing.T) {
	pod := func(name, kind, controller string) string {
		return fmt.Sprintf(`
{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: ns, labels: {app: d}, ownerReferences: [{apiVersion: apps/v1, kind: %s, name: %s, uid: u, controller: true}]}, spec: {nodeName: w, containers: [{name: c, image: a}]}}`, name, kind, controller)
	}
	pods := strings.Join([]string{
		pod("own", "ReplicaSet", "d-5f6c"), pod("other", "ReplicaSet", "d-e-5f6c"), pod("set", "DaemonSet", "d"), pod("job", "Job", "d-5f6c"),
	}, "\n---\n")
	target := strings.Replace(fmtWorkload, "c:1", "c:2", 1)
	for name, tt := range map[string]struct {
		spec string
		want *preview.Rolls
	}{
		"runs":   {"replicas: 2", &preview.Rolls{Pods: []preview.Pod{{Name: "own", Node: "w"}}}},
		"paused": {"paused: true", nil},
	} {
		t.Run(name, func(t *testing.T) {
			as := strings.NewReplacer("replicas: 2", tt.spec)
			p := run(t, cluster(t, as.Replace(fmtWorkload)+"\n---\n"+pods), as.Replace(target))
			checktest.Same(t, tt.want, changeOf(t, p, "Deployment ns/d").Rolls)
		})
	}
}

// What goes with an object that is deleted is counted, and finalizers are named.
func TestDependents(t *testing.T) {
	objects := thingDefinition + `
---
{apiVersion: example.com/v1, kind: Thing, metadata: {name: one, namespace: gone}, spec: {size: 1}}
---
{apiVersion: example.com/v1, kind: Thing, metadata: {name: two, namespace: ns}, spec: {size: 1}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: gone}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: gone}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: gone}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: held, namespace: ns, finalizers: [example.com/wait]}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns, uid: deployment}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}
---
{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: r, namespace: ns, uid: set, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: d, uid: deployment}]}, spec: {selector: {matchLabels: {a: b}}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: ns, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: r, uid: set}]}, spec: {containers: [{name: c, image: i}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: q, namespace: ns}, spec: {containers: [{name: c, image: i}]}}`
	deletion := "{apiVersion: %s, kind: %s, metadata: {name: %s, namespace: %q, annotations: {release.openshift.io/delete: 'true'}}}"
	for _, tt := range []struct {
		version, kind, name, namespace string
		want                           []preview.Dependents
	}{
		{"v1", "Namespace", "gone", "", []preview.Dependents{{APIVersion: "v1", Kind: "ConfigMap", Count: 2}, {APIVersion: "example.com/v1", Kind: "Thing", Count: 1}}},
		{"apiextensions.k8s.io/v1", "CustomResourceDefinition", "things.example.com", "", []preview.Dependents{{APIVersion: "example.com/v1", Kind: "Thing", Count: 2}}},
		{"apps/v1", "Deployment", "d", "ns", []preview.Dependents{{APIVersion: "apps/v1", Kind: "ReplicaSet", Count: 1}, {APIVersion: "v1", Kind: "Pod", Count: 1}}},
		{"v1", "ConfigMap", "held", "ns", nil},
	} {
		t.Run(tt.kind, func(t *testing.T) {
			p := run(t, cluster(t, objects), fmt.Sprintf(deletion, tt.version, tt.kind, tt.name, tt.namespace))
			got := p.Changes[0]
			if diff := cmp.Diff(tt.want, got.Dependents); diff != "" || got.Action != preview.Delete {
				t.Error(got.Action, got.Reason, diff)
			}
			held := tt.name == "held"
			if (len(got.Finalizers) > 0) != held || held && !strings.Contains(got.Reason, "example.com/wait") {
				t.Errorf("finalizers %v, %s", got.Finalizers, got.Reason)
			}
		})
	}
	// A namespace has no finalizers in its metadata: what is in it holds it.
	inHeld := strings.Replace(objects, "{name: b, namespace: gone}", "{name: b, namespace: gone, finalizers: [example.com/wait]}", 1)
	if got := run(t, cluster(t, inHeld), fmt.Sprintf(deletion, "v1", "Namespace", "gone", "")).Changes[0]; got.Action != preview.Delete || got.Reason != "it stays until what it holds is gone" || len(got.Dependents) != 2 {
		t.Errorf("%s: %q, %v", got.Action, got.Reason, got.Dependents)
	}
	p := run(t, reader{cluster(t, objects), map[string]error{"Thing": clusterapi.ErrNotCollected}, nil}, fmt.Sprintf(deletion, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "things.example.com", ""))
	if got := p.Changes[0].Dependents; len(got) != 1 || !got[0].Unknown {
		t.Errorf("not collected: %v", got)
	}
}

// Versions that go are told where objects may be stored in them, and where
// clients ask for them.
func TestDefinitions(t *testing.T) {
	old := strings.Replace(thingDefinition, "  versions:\n", `  versions:
  - {name: v1alpha1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}
`, 1) + "\nstatus: {storedVersions: [v1alpha1, v1]}\n"
	next := strings.NewReplacer("how large", "how big", "[Auto, Manual]", "[Auto, Manual, Never]").Replace(thingDefinition)
	next = strings.Replace(next, "  versions:\n", `  versions:
  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}
`, 1)
	counts := `
---
{apiVersion: apiserver.openshift.io/v1, kind: APIRequestCount, metadata: {name: things.v1alpha1.example.com}, status: {requestCount: 3}}
---
{apiVersion: apiserver.openshift.io/v1, kind: APIRequestCount, metadata: {name: things.v1.example.com}, status: {requestCount: 3}}
---
{apiVersion: apiserver.openshift.io/v1, kind: APIRequestCount, metadata: {name: flowschemas.v1beta3.flowcontrol.apiserver.k8s.io}, status: {requestCount: 9, removedInRelease: "1.32"}}
---
{apiVersion: apiserver.openshift.io/v1, kind: APIRequestCount, metadata: {name: later.v1.example.org}, status: {requestCount: 9, removedInRelease: "1.33"}}
---
{apiVersion: apiserver.openshift.io/v1, kind: APIRequestCount, metadata: {name: before.v1.example.org}, status: {requestCount: 9, removedInRelease: "1.31"}}
---
{apiVersion: apiserver.openshift.io/v1, kind: APIRequestCount, metadata: {name: unused.v1.example.org}, status: {requestCount: 0, removedInRelease: "1.32"}}`
	c := cluster(t, "")
	counter := schema.GroupVersionKind{Group: "apiserver.openshift.io", Version: "v1", Kind: "APIRequestCount"}
	checktest.OK(t, c.Load(append(decoded(t, old+counts), memory.Definition(counter, "Cluster"))...))
	p := update(t, c, thingDefinition, next) // to Kubernetes 1.32
	got := changeOf(t, p, "CustomResourceDefinition things.example.com")
	// An API server refuses to drop a version that stands in storedVersions.
	if got.Action != preview.Fail || !strings.Contains(got.Reason, "status.storedVersions") {
		t.Errorf("%s: %s", got.Action, got.Reason)
	}
	if diff := cmp.Diff([]string{"v1alpha1"}, got.Dropped); diff != "" {
		t.Errorf("dropped %s: %s %s", diff, got.Action, got.Reason)
	}
	want := []preview.RemovedAPI{
		{Resource: "flowschemas.v1beta3.flowcontrol.apiserver.k8s.io", Release: "1.32", Requests: 9},
		{Resource: "things.v1alpha1.example.com", Requests: 3},
	}
	checktest.Same(t, want, p.RemovedAPIs)
}

// Of a schema, descriptions are counted, and the other fields shown.
func TestSchemas(t *testing.T) {
	next := strings.NewReplacer("how large", "how big", "[Auto, Manual]", "[Auto, Manual, Never]").Replace(thingDefinition)
	got := run(t, cluster(t, thingDefinition), next).Changes[0]
	want := []fieldchange.SchemaChange{{Version: "v1", Served: true, Descriptions: 1, Fields: []clusterapi.FieldChange{
		{Path: `properties.spec.properties.mode.enum[="Never"]`, New: "Never"},
	}}}
	if diff := cmp.Diff(want, got.Schemas); diff != "" || got.Action != preview.Update || len(got.Fields) > 0 {
		t.Error(got.Action, got.Fields, diff)
	}
}
