package dump_test

import (
	"testing"

	"github.com/clusterupdate/clusterupdate/clusterapi/dump"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestRules opens small trees and asks. Each case is one rule.
func TestRules(t *testing.T) {
	for _, tc := range []struct {
		name     string
		tree     string
		o        dump.Options
		want     string
		problems string
	}{
		{
			name: "a single file does not mean that all were collected",
			tree: `
-- inspect.local.1/cluster-scoped-resources/rbac.authorization.k8s.io/clusterroles/a.yaml --
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: a}
-- inspect.local.1/namespaces/ns/route.openshift.io/routes/r.yaml --
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: r, namespace: ns}
`,
			want: `
get rbac.authorization.k8s.io/v1 ClusterRole a: found
get rbac.authorization.k8s.io/v1 ClusterRole b: NotCollected
list rbac.authorization.k8s.io/v1 ClusterRole: a missing[]...
get route.openshift.io/v1 Route ns/r: found
get route.openshift.io/v1 Route ns/s: NotCollected
list route.openshift.io/v1 Route ns: ns/r missing[ns].
list route.openshift.io/v1 Route: ns/r missing[ns]...
grade rbac.authorization.k8s.io/v1 ClusterRole: some
grade route.openshift.io/v1 Route ns: some
grade route.openshift.io/v1 Route other: none
grade v1 Node: none
get v1 Node n1: NotCollected
list v1 Node: empty missing[]...
`,
		},
		{
			name: "a typed list of the config groups is whole, also an empty one, also of a namespaced kind",
			tree: `
-- cluster-scoped-resources/config.openshift.io/clusteroperators.yaml --
---
apiVersion: config.openshift.io/v1
kind: ClusterOperatorList
items:
- metadata: {name: dns}
- apiVersion: config.openshift.io/v1
  kind: ClusterOperator
  metadata: {name: etcd}
-- cluster-scoped-resources/config.openshift.io/imagepolicies.yaml --
---
apiVersion: config.openshift.io/v1
items:
- metadata: {name: p, namespace: b}
kind: ImagePolicyList
-- cluster-scoped-resources/config.openshift.io/builds.yaml --
---
apiVersion: config.openshift.io/v1
items: []
kind: BuildList
-- cluster-scoped-resources/config.openshift.io/things.yaml --
---
apiVersion: more.config.openshift.io/v1
items: null
kind: ThingList
`,
			want: `
get config.openshift.io/v1 ClusterOperator dns: found
get config.openshift.io/v1 ClusterOperator x: NotFound
list config.openshift.io/v1 ClusterOperator: dns etcd
get config.openshift.io/v1 ImagePolicy b/p: found
get config.openshift.io/v1 ImagePolicy a/p: NotFound
list config.openshift.io/v1 ImagePolicy: b/p
list config.openshift.io/v1 ImagePolicy a: empty
list config.openshift.io/v1 Build: empty
get config.openshift.io/v1 Build cluster: NotFound
list more.config.openshift.io/v1 Thing: empty
grade config.openshift.io/v1 ClusterOperator: whole
`,
		},
		{
			name: "a list of a namespace is whole there and nowhere else",
			tree: `
-- namespaces/a/a.yaml --
---
apiVersion: v1
kind: Namespace
metadata: {name: a}
-- namespaces/b/b.yaml --
---
apiVersion: v1
kind: Namespace
metadata: {name: b}
-- namespaces/a/core/pods.yaml --
---
apiVersion: v1
kind: PodList
items:
- metadata: {name: p, namespace: a}
-- namespaces/a/policy/poddisruptionbudgets.yaml --
---
apiVersion: policy/v1
kind: PodDisruptionBudgetList
items: []
`,
			want: `
get v1 Pod a/p: found
get v1 Pod a/q: NotFound
get v1 Pod b/q: NotCollected
list v1 Pod a: a/p
list v1 Pod b: empty missing[b].
list v1 Pod: a/p missing[b]...
list policy/v1 PodDisruptionBudget a: empty
list policy/v1 PodDisruptionBudget: empty missing[b]...
get v1 Namespace a: found
get v1 Namespace c: NotCollected
list v1 Namespace: a b missing[]...
grade v1 Pod: some
grade v1 Pod a: whole
grade v1 Pod b: none
`,
		},
		{
			name: "where the namespaces are known and each has it, all is whole",
			tree: `
-- cluster-scoped-resources/core/namespaces.yaml --
---
apiVersion: v1
kind: NamespaceList
items:
- metadata: {name: a}
- metadata: {name: b}
-- namespaces/a/core/pods.yaml --
---
apiVersion: v1
kind: PodList
items:
- metadata: {name: p, namespace: a}
-- namespaces/b/core/pods.yaml --
---
apiVersion: v1
kind: PodList
items: []
-- namespaces/a/core/secrets.yaml --
---
apiVersion: v1
kind: SecretList
items:
- metadata: {name: s, namespace: a}
`,
			want: `
list v1 Pod: a/p
get v1 Pod c/p: NotFound
list v1 Secret: a/s missing[b].
get v1 Secret b/s: NotCollected
get v1 Namespace c: NotFound
list v1 Namespace: a b
`,
		},
		{
			name: "a namespace of Options.Whole is as good as a list of namespaces",
			tree: `
-- namespaces/a/a.yaml --
{apiVersion: v1, kind: Namespace, metadata: {name: a}}
-- namespaces/a/core/pods.yaml --
{apiVersion: v1, kind: PodList, items: []}
`,
			o: dump.Options{Whole: resources("namespaces")},
			want: `
list v1 Pod: empty
list v1 Secret: empty missing[a].
grade v1 Namespace: whole assumed
grade v1 Pod: whole
`,
		},
		{
			name: "a page of a list is not the list",
			tree: `
-- cluster-scoped-resources/config.openshift.io/clusteroperators.yaml --
{apiVersion: config.openshift.io/v1, kind: ClusterOperatorList, metadata: {continue: abc}, items: [{metadata: {name: a}}]}
-- namespaces/a/core/pods.yaml --
{apiVersion: v1, kind: PodList, metadata: {continue: abc}, items: [{metadata: {name: p, namespace: a}}]}
-- namespaces/a/core/secrets.yaml --
{apiVersion: v1, kind: SecretList, metadata: {continue: ""}, items: []}
`,
			want: `
get config.openshift.io/v1 ClusterOperator b: NotCollected
list config.openshift.io/v1 ClusterOperator: a missing[]...
get v1 Pod a/q: NotCollected
list v1 Pod a: a/p missing[a].
get v1 Secret a/s: NotFound
grade v1 Pod a: some
`,
		},
		{
			name: "the next page alone is not the list either",
			tree: `
-- cluster-scoped-resources/config.openshift.io/clusteroperators.yaml --
{apiVersion: config.openshift.io/v1, kind: ClusterOperatorList, metadata: {continue: abc}, items: [{metadata: {name: a}}]}
---
{apiVersion: config.openshift.io/v1, kind: ClusterOperatorList, items: [{metadata: {name: c}}]}
`,
			want: `list config.openshift.io/v1 ClusterOperator: a c missing[]...`,
		},
		{
			name: "pods stand twice, logs are not read, a folder may be empty",
			tree: `
-- cluster-scoped-resources/operator.openshift.io/ --
-- namespaces/a/core/pods.yaml --
{apiVersion: v1, kind: PodList, items: [{metadata: {name: p, namespace: a, resourceVersion: "5", uid: u}, spec: {unknown: 1}}]}
-- namespaces/a/pods/p/p.yaml --
---
{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: a, resourceVersion: "5", uid: u}}
-- namespaces/a/pods/p/other.yaml --
not: read
-- namespaces/a/pods/p/c/c/logs/current.yaml --
not: read
-- namespaces/b/pods/q/q.yaml --
{apiVersion: v1, kind: Pod, metadata: {name: q, namespace: b}}
-- host_service_logs/a.yaml --
not: read
-- namespaces/a/other.yaml --
not: read
-- cluster-scoped-resources/core/nodes/a.json --
not: read
`,
			want: `
list v1 Pod a: a/p
list v1 Pod b: b/q missing[b].
get operator.openshift.io/v1 DNS default: NotCollected
list operator.openshift.io/v1 DNS: empty missing[a b]...
`,
		},
		{
			name: "the kind is what the object says",
			tree: `
-- namespaces/a/core/pods/p.yaml --
{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: a}}
-- namespaces/a/core/configmaps.yaml --
{apiVersion: v1, kind: SecretList, items: [{metadata: {name: t, namespace: b}}]}
-- cluster-scoped-resources/core/nodes/n.yaml --
{apiVersion: v1, kind: Node, metadata: {name: m}}
`,
			want: `
get v1 Secret a/s: found
get v1 Pod a/s: NotCollected
get v1 Secret b/t: found
get v1 Secret a/u: NotFound
get v1 ConfigMap a/c: NotCollected
get v1 Node m: found
`,
			problems: `namespaces/a/core/configmaps.yaml, document 1: Secret b/t stands in the folder of namespace a`,
		},
		{
			name: "an empty v1 List is of the kind of its path: from discovery, definitions, other objects, k8s.io/api",
			tree: `
-- aggregated-discovery-apis.yaml --
apiVersion: apidiscovery.k8s.io/v2
kind: APIGroupDiscoveryList
items:
- metadata: {name: one.io}
  versions:
  - version: v1
    freshness: Current
    resources:
    - {resource: foos, scope: Namespaced, responseKind: {group: one.io, version: v1, kind: Fooey}}
    - {resource: bares, scope: Namespaced}
-- cluster-scoped-resources/apiextensions.k8s.io/customresourcedefinitions/bars.two.io.yaml --
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: bars.two.io}
spec:
  group: two.io
  scope: Namespaced
  names: {kind: Barrister, plural: bars}
  versions: [{name: v1, served: true}, {name: v1alpha1, served: false}]
-- namespaces/a/one.io/foos.yaml --
{apiVersion: v1, kind: List, items: []}
-- namespaces/a/two.io/bars.yaml --
{apiVersion: v1, kind: List, items: []}
-- namespaces/b/three.io/bazes.yaml --
{apiVersion: v1, kind: List, items: [{apiVersion: three.io/v1, kind: Bazooka, metadata: {name: z, namespace: b}}]}
-- namespaces/a/three.io/bazes.yaml --
{apiVersion: v1, kind: List, items: []}
-- namespaces/a/apps/deployments.yaml --
{apiVersion: v1, kind: List, items: null}
-- namespaces/a/four.io/unknowns.yaml --
{apiVersion: v1, kind: List, items: []}
`,
			want: `
list one.io/v1 Fooey a: empty
list two.io/v1 Barrister a: empty
list three.io/v1 Bazooka a: empty
list three.io/v1 Bazooka b: b/z
list apps/v1 Deployment a: empty
list four.io/v1 Unknown a: NoMatch
`,
			problems: `namespaces/a/four.io/unknowns.yaml, document 1, line 1: an empty list of which nothing says the kind`,
		},
		{
			name: "lists in lists, items without kinds, and names that YAML makes booleans or numbers",
			tree: `
-- cluster-scoped-resources/config.openshift.io/a.yaml --
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: List, items: []}
- {apiVersion: config.openshift.io/v1, kind: ClusterOperatorList, items: []}
- {metadata: {name: x}}
- 17
- {apiVersion: config.openshift.io/v1, kind: ClusterOperator, metadata: {name: dns}}
-- namespaces/n/core/configmaps/a.yaml --
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  namespace: n
-- namespaces/n/core/configmaps/b.yaml --
apiVersion: v1
kind: ConfigMap
metadata:
  name: 12
  namespace: "n"
-- namespaces/n/core/configmaps/c.yaml --
apiVersion: v1
kind: true
metadata: {name: c, namespace: "n"}
-- namespaces/n/core/configmaps/d.yaml --
apiVersion: a/b/c
kind: ConfigMap
metadata: {name: d, namespace: "n"}
-- namespaces/n/core/configmaps/e.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {namespace: "n"}
-- namespaces/n/core/configmaps/f.yaml --
- 1
-- namespaces/n/core/configmaps/g.yaml --
apiVersion: v1
items: {a: b}
kind: ConfigMapList
-- namespaces/n/core/configmaps/h.yaml --
apiVersion: v1
kind: List
-- namespaces/n/core/configmaps/i.yaml --
{apiVersion: "", kind: FooList, items: []}
-- namespaces/n/core/configmaps/j.yaml --
# nothing
-- namespaces/n/core/configmaps/k.yaml --
{apiVersion: v1, kind: ConfigMap, metadata: 12}
`,
			want: `
get config.openshift.io/v1 ClusterOperator dns: found
get config.openshift.io/v1 ClusterOperator x: NotCollected
get v1 ConfigMap n/a: NotCollected
get v1 ConfigMap n/12: NotCollected
`,
			problems: `
cluster-scoped-resources/config.openshift.io/a.yaml, document 1, line 1: items[0]: it is a list itself
cluster-scoped-resources/config.openshift.io/a.yaml, document 1, line 1: items[1]: it is a list itself
cluster-scoped-resources/config.openshift.io/a.yaml, document 1, line 1: items[2]: apiVersion is missing
cluster-scoped-resources/config.openshift.io/a.yaml, document 1, line 1: items[3]: it is not an object
namespaces/n/core/configmaps/a.yaml, document 1, line 1: ConfigMap: metadata.namespace is false, not a string: it must be quoted in YAML
namespaces/n/core/configmaps/b.yaml, document 1, line 1: ConfigMap: metadata.name is 12, not a string: it must be quoted in YAML
namespaces/n/core/configmaps/c.yaml, document 1, line 1: kind is true, not a string: it must be quoted in YAML
namespaces/n/core/configmaps/d.yaml, document 1, line 1: apiVersion: unexpected GroupVersion string: a/b/c
namespaces/n/core/configmaps/e.yaml, document 1, line 1: ConfigMap: metadata.name is missing
namespaces/n/core/configmaps/f.yaml, document 1, line 1: it is not an object
namespaces/n/core/configmaps/g.yaml, document 1, line 1: it is a list without items
namespaces/n/core/configmaps/h.yaml, document 1, line 1: it is a list without items
namespaces/n/core/configmaps/i.yaml, document 1, line 1: "FooList": apiVersion "" does not say which
namespaces/n/core/configmaps/j.yaml: it has no document
namespaces/n/core/configmaps/k.yaml, document 1, line 1: ConfigMap: metadata.name is missing
`,
		},
		{
			name: "a kind may end in List and be an object",
			tree: `
-- allow.yaml --
{apiVersion: a.io/v1, kind: AllowList, metadata: {name: x}}
`,
			want: `
get a.io/v1 AllowList x: found
`,
		},
		{
			name: "what discovery covers and does not name is not served",
			tree: `
-- aggregated-discovery-apis.yaml --
---
apiVersion: apidiscovery.k8s.io/v2
kind: APIGroupDiscoveryList
items:
- metadata: {name: apps}
  versions:
  - version: v1
    freshness: Current
    resources:
    - {resource: deployments, scope: Namespaced, responseKind: {group: apps, version: v1, kind: Deployment}}
  - version: v1beta1
    freshness: Current
    resources:
    - {resource: deployments, scope: Namespaced, responseKind: {group: apps, version: v1beta1, kind: Deployment}}
- metadata: {name: stale.io}
  versions:
  - version: v1
    freshness: Stale
    resources:
    - {resource: olds, scope: Cluster, responseKind: {group: stale.io, version: v1, kind: Old}}
- metadata: {name: empty.io}
  versions: [{version: v1, freshness: Current}]
- metadata: {name: none.io}
- metadata: {name: sloppy.io}
  versions:
  - version: v1
    freshness: Current
    resources:
    - {resource: secrets, scope: Cluster}
    - {resource: goods, scope: Cluster, responseKind: {group: sloppy.io, version: v1, kind: Good}}
- metadata: {name: shown.io}
  versions:
  - version: v1
    freshness: Current
    resources:
    - {resource: others, scope: Cluster, responseKind: {group: shown.io, version: v1, kind: Other}}
-- namespaces/a/apps/deployments.yaml --
{apiVersion: apps/v1, kind: DeploymentList, items: [{metadata: {name: d, namespace: a}}]}
-- cluster-scoped-resources/shown.io/things/x.yaml --
{apiVersion: shown.io/v2, kind: Thing, metadata: {name: x}}
-- cluster-scoped-resources/config.openshift.io/seens.yaml --
{apiVersion: shown.io/v3, kind: SeenList, items: []}
`,
			want: `
get apps/v1 Deployment a/d: found
get apps/v1beta1 Deployment a/d: found
list apps/v1beta1 Deployment a: a/d
get apps/v7 Deployment a/d: NoMatch
list apps/v7 Deployment: NoMatch
get apps/v1 Replica a/d: NoMatch
get gone.io/v1 Thing x: NoMatch
get stale.io/v1 Old x: NotCollected
get stale.io/v1 New x: NotCollected
get stale.io/v2 Old x: NotCollected
get empty.io/v1 Thing x: NotCollected
get none.io/v1 Thing x: NotCollected
get sloppy.io/v1 Secret x: NotCollected
get shown.io/v2 Thing x: found
get shown.io/v1 Thing x: NoMatch
get shown.io/v3 Seen x: NotFound
get shown.io/v1 Other x: NotCollected
get shown.io/v1 Nothing x: NoMatch
get v1 Pod a/x: NotCollected
get v7 Pod a/x: NotCollected
get v1 Nothing a/x: NotCollected
`,
		},
		{
			name: "the discovery of the core group stands alone",
			tree: `
-- aggregated-discovery-api.yaml --
apiVersion: apidiscovery.k8s.io/v2
kind: APIGroupDiscoveryList
items:
- metadata: {}
  versions:
  - version: v1
    freshness: Current
    resources:
    - {resource: pods, scope: Namespaced, responseKind: {group: "", version: v1, kind: Pod}}
-- cluster-scoped-resources/core/nodes/n.yaml --
{apiVersion: v1, kind: Node, metadata: {name: n1}}
`,
			want: `
get v1 Pod a/x: NotCollected
get v2 Pod a/x: NoMatch
get v1 Nothing x: NoMatch
get v1 Node n1: found
get v1 Node m: NotCollected
get gone.io/v1 Thing x: NotCollected
`,
		},
		{
			name: "a broken discovery denies nothing",
			tree: `
-- aggregated-discovery-api.yaml --
apiVersion: apidiscovery.k8s.io/v2
kind: APIGroupDiscoveryList
items: [
-- aggregated-discovery-apis.yaml --
apiVersion: v1
kind: List
items: []
-- cluster-scoped-resources/core/nodes/n.yaml --
{apiVersion: v1, kind: Node, metadata: {name: n1}}
`,
			want: `
get v1 Nothing x: NotCollected
get a.io/v1 Nothing x: NotCollected
`,
			problems: `
aggregated-discovery-api.yaml, document 1, line 3: yaml: did not find expected node content
aggregated-discovery-apis.yaml, document 1, line 1: List of v1, not an APIGroupDiscoveryList of apidiscovery.k8s.io/v2
`,
		},
		{
			name: "the discovery of several recordings is united",
			tree: `
-- must-gather.local.1/one/aggregated-discovery-apis.yaml --
{apiVersion: apidiscovery.k8s.io/v2, kind: APIGroupDiscoveryList, items: [
 {metadata: {name: a.io}, versions: [{version: v1, freshness: Current, resources: [{resource: xs, scope: Cluster, responseKind: {group: a.io, version: v1, kind: X}}]}]},
 {metadata: {name: c.io}, versions: [{version: v1, freshness: Stale}]}]}
-- must-gather.local.1/one/cluster-scoped-resources/core/nodes/a.yaml --
{apiVersion: v1, kind: Node, metadata: {name: a}}
-- must-gather.local.1/two/aggregated-discovery-apis.yaml --
{apiVersion: apidiscovery.k8s.io/v2, kind: APIGroupDiscoveryList, items: [
 {metadata: {name: b.io}, versions: [{version: v1, freshness: Current, resources: [{resource: ys, scope: Cluster, responseKind: {group: b.io, version: v1, kind: Yy}}]}]},
 {metadata: {name: c.io}, versions: [{version: v1, freshness: Current, resources: [{resource: zs, scope: Cluster, responseKind: {group: c.io, version: v1, kind: Zz}}]}]}]}
-- must-gather.local.1/two/cluster-scoped-resources/core/nodes/b.yaml --
{apiVersion: v1, kind: Node, metadata: {name: b}}
`,
			want: `
get v1 Node a: found
get v1 Node b: found
get a.io/v1 X x: NotCollected
get b.io/v1 Yy x: NotCollected
get a.io/v1 Z x: NoMatch
get d.io/v1 Z x: NoMatch
get c.io/v1 W x: NotCollected
`,
		},
		{
			name: "definitions say which versions are served",
			tree: `
-- crds.yaml --
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: bars.two.io}
spec:
  group: two.io
  scope: Namespaced
  names: {kind: Bar, plural: bars}
  versions: [{name: v1, served: true}, {name: v1beta1, served: true}, {name: v1alpha1, served: false}]
---
apiVersion: two.io/v1
kind: Bar
metadata: {name: x}
`,
			want: `
get two.io/v1 Bar x: found
get two.io/v1beta1 Bar x: found
get two.io/v1alpha1 Bar x: NoMatch
get two.io/v1 Bar a/y: NotCollected
get two.io/v1 Baz y: NotCollected
`,
		},
		{
			name: "in a heap cluster-scoped kinds are whole, namespaced ones are not",
			tree: `
-- a/b/nodes.yml --
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: n1}}
-- co.json --
{"apiVersion": "config.openshift.io/v1", "kind": "ClusterOperatorList", "items": [{"metadata": {"name": "dns"}}]}
-- pods.yaml --
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: a}
---
apiVersion: v1
kind: PodList
items: []
---
apiVersion: v1
kind: ConfigMap
metadata: {name: no-namespace}
-- mcps.yaml --
{apiVersion: machineconfiguration.openshift.io/v1, kind: MachineConfigPoolList, items: []}
-- text.txt --
kind: Nothing
`,
			want: `
get v1 Node n1: found
get v1 Node m: NotFound
list v1 Node: n1
list v1 Node a: empty
list config.openshift.io/v1 ClusterOperator: dns
get config.openshift.io/v1 ClusterVersion version: NotCollected
get v1 Pod a/q: NotCollected
list v1 Pod a: a/p missing[a].
list v1 Pod: a/p missing[a]...
get v1 ConfigMap no-namespace: found
get v1 ConfigMap other: NotCollected
get v1 Secret a/s: NotCollected
list machineconfiguration.openshift.io/v1 MachineConfigPool: empty missing[a]...
grade v1 Node: whole
grade v1 Pod a: some
`,
		},
		{
			name: "a page of a list is not whole in a heap either",
			tree: `
-- nodes.yaml --
{apiVersion: v1, kind: NodeList, metadata: {continue: more}, items: [{metadata: {name: n1}}]}
-- mixed.yaml --
{apiVersion: v1, kind: List, metadata: {continue: more}, items: [
  {apiVersion: v1, kind: PersistentVolume, metadata: {name: v}}, {apiVersion: storage.k8s.io/v1, kind: CSINode, metadata: {name: c}}]}
-- other.yaml --
{apiVersion: v1, kind: List, items: [
  {apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: v}}, {apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: c}}]}
`,
			want: `
list v1 Node: n1 missing[]...
list v1 PersistentVolume: v missing[]...
list storage.k8s.io/v1 CSINode: c missing[]...
list storage.k8s.io/v1 CSIDriver: v
list storage.k8s.io/v1 StorageClass: c
`,
		},
		{
			name: "of a heap the caller may say that a kind is whole",
			tree: `
-- pdb.yaml --
{apiVersion: v1, kind: List, items: [{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: p, namespace: a}}]}
`,
			o: dump.Options{Whole: resources("poddisruptionbudgets.policy", "pods")},
			want: `
list policy/v1 PodDisruptionBudget: a/p
get policy/v1 PodDisruptionBudget b/p: NotFound
list v1 Pod: empty
get v1 Secret b/p: NotCollected
grade policy/v1 PodDisruptionBudget: whole assumed
`,
		},
		{
			name: "events and skipped kinds are not kept, and not collected",
			tree: `
-- namespaces/a/core/events.yaml --
{apiVersion: v1, kind: EventList, items: [{metadata: {name: e, namespace: a}}]}
-- namespaces/a/events.k8s.io/events.yaml --
{apiVersion: events.k8s.io/v1, kind: EventList, items: [{metadata: {name: e, namespace: a}}]}
-- namespaces/a/core/pods.yaml --
{apiVersion: v1, kind: PodList, items: [{metadata: {name: p, namespace: a}}]}
-- namespaces/a/core/secrets.yaml --
{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Secret, metadata: {name: p, namespace: a}}]}
-- namespaces/a/core/configmaps.yaml --
{apiVersion: v1, kind: ConfigMapList, items: []}
`,
			o: dump.Options{Skip: []schema.GroupKind{{Kind: "Pod"}, {Kind: "Secret"}, {Kind: "Node"}}, Whole: resources("events", "nodes")},
			want: `
get v1 Event a/e: NotCollected
get v1 Event a/f: NotCollected
get events.k8s.io/v1 Event a/e: NotCollected
get v1 Pod a/p: NotCollected
list v1 Pod a: empty missing[a].
list v1 Secret a: empty missing[a].
get v1 Node n1: NotCollected
list v1 ConfigMap a: empty
`,
		},
		{
			name: "must-gather: what is taken whole is assumed",
			tree: `
-- must-gather.local.1/must-gather.logs --
-- must-gather.local.1/quay-io-x/cluster-scoped-resources/core/nodes/n.yaml --
{apiVersion: v1, kind: Node, metadata: {name: n1}}
-- must-gather.local.1/quay-io-x/cluster-scoped-resources/core/persistentvolumes/n.yaml --
{apiVersion: v1, kind: PersistentVolume, metadata: {name: n1}}
-- must-gather.local.1/quay-io-x/cluster-scoped-resources/rbac.authorization.k8s.io/clusterroles/a.yaml --
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}}
-- must-gather.local.1/quay-io-x/cluster-scoped-resources/config.openshift.io/clusteroperators.yaml --
{apiVersion: config.openshift.io/v1, kind: ClusterOperatorList, items: [{metadata: {name: dns}}]}
`,
			want: `
get v1 Node m: NotFound
get v1 PersistentVolume m: NotFound
list certificates.k8s.io/v1 CertificateSigningRequest: empty
get machineconfiguration.openshift.io/v1 MachineConfigPool m: NotCollected
get rbac.authorization.k8s.io/v1 ClusterRole m: NotCollected
grade v1 Node: whole assumed
grade rbac.authorization.k8s.io/v1 ClusterRole: some
grade config.openshift.io/v1 ClusterOperator: whole
grade certificates.k8s.io/v1 CertificateSigningRequest: whole assumed
`,
		},
		{
			name: "a must-gather by another image has no word on what it has no files of",
			tree: `
-- must-gather.local.1/quay-io-x/cluster-scoped-resources/core/nodes/n.yaml --
{apiVersion: v1, kind: Node, metadata: {name: n1}}
`,
			want: `
get v1 Node m: NotFound
get v1 PersistentVolume m: NotCollected
`,
		},
		{
			name: "nothing is assumed of a must-gather that was cut off",
			tree: `
-- must-gather.local.1/timestamp --
2026-01-02 03:04:05.999999999 +0000 UTC m=+0.1
-- must-gather.local.1/quay-io-x/cluster-scoped-resources/core/nodes/n.yaml --
{apiVersion: v1, kind: Node, metadata: {name: n1}}
`,
			want:     `get v1 Node m: NotCollected`,
			problems: `must-gather.local.1/timestamp, line 1: a single line: gathering was cut off`,
		},
		{
			name: "nor of one whose third run did not end, but for what has a list",
			tree: `
-- must-gather.local.1/timestamp --
2026-01-02 03:04:05.999999999 +0000 UTC m=+0.1
2026-01-02 03:05:05.999999999 +0000 UTC m=+60.1
2026-01-02 03:06:05.999999999 +0000 UTC m=+0.1
-- must-gather.local.1/quay-io-x/cluster-scoped-resources/core/nodes/n.yaml --
{apiVersion: v1, kind: Node, metadata: {name: n1}}
-- must-gather.local.1/quay-io-x/cluster-scoped-resources/config.openshift.io/clusteroperators.yaml --
{apiVersion: config.openshift.io/v1, kind: ClusterOperatorList, items: [{metadata: {name: dns}}]}
`,
			want: `
get v1 Node m: NotCollected
get v1 PersistentVolume m: NotCollected
get config.openshift.io/v1 ClusterOperator etcd: NotFound
`,
			problems: `must-gather.local.1/timestamp: 3 lines, an odd number: gathering was cut off`,
		},
		{
			name: "of what every cluster has, nothing is known where there is nothing",
			tree: `
-- must-gather.local.1/x-sha256-0/cluster-scoped-resources/config.openshift.io/clusteroperators.yaml --
{apiVersion: config.openshift.io/v1, kind: ClusterOperatorList, items: [{metadata: {name: dns}}]}
-- must-gather.local.1/x-sha256-0/cluster-scoped-resources/config.openshift.io/infrastructures.yaml --
{apiVersion: config.openshift.io/v1, kind: InfrastructureList, items: []}
-- must-gather.local.1/x-sha256-0/requests/apirequestscounts.json --
{"apiVersion": "v1", "kind": "List", "items": []}
`,
			want: `
list v1 Node: empty missing[]...
get v1 Node n: NotCollected
list machineconfiguration.openshift.io/v1 MachineConfigPool: empty missing[]...
list machineconfiguration.openshift.io/v1 MachineConfig: empty missing[]...
list apiserver.openshift.io/v1 APIRequestCount: empty missing[]...
list apiextensions.k8s.io/v1 CustomResourceDefinition: empty missing[]...
get config.openshift.io/v1 FeatureGate cluster: NotCollected
get config.openshift.io/v1 Infrastructure cluster: NotCollected
list v1 PersistentVolume: empty
grade v1 Node: none
grade config.openshift.io/v1 Infrastructure: none
`,
		},
		{
			name: "in a heap and on the word of the caller, too",
			tree: `
-- nodes.yaml --
{apiVersion: v1, kind: NodeList, items: []}
-- pv.yaml --
{apiVersion: v1, kind: PersistentVolumeList, items: []}
-- cm.yaml --
{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: a}}
`,
			o: dump.Options{Whole: resources("machineconfigpools.machineconfiguration.openshift.io")},
			want: `
list v1 Node: empty missing[]...
list v1 PersistentVolume: empty
list machineconfiguration.openshift.io/v1 MachineConfigPool: empty missing[a]...
`,
		},
		{
			name: "nor of what oc adm inspect wrote, in its place or as the fallback",
			tree: `
-- must-gather.local.1/inspect.local.2/cluster-scoped-resources/core/nodes/n.yaml --
{apiVersion: v1, kind: Node, metadata: {name: n1}}
`,
			want: `get v1 Node m: NotCollected`,
		},
		{
			name: "nor where the caller says that nothing is",
			tree: `
-- must-gather.local.1/x/cluster-scoped-resources/core/nodes/n.yaml --
{apiVersion: v1, kind: Node, metadata: {name: n1}}
`,
			o:    dump.Options{Whole: resources()},
			want: `get v1 Node m: NotCollected`,
		},
		{
			name: "nor where an object is lost",
			tree: `
-- must-gather.local.1/x/cluster-scoped-resources/core/nodes/n.yaml --
{apiVersion: v1, kind: Node, metadata: {name: n1}}
-- must-gather.local.1/x/cluster-scoped-resources/core/nodes/m.yaml --
{apiVersion: v1, kind: Node, metadata: {na
-- must-gather.local.1/x/cluster-scoped-resources/storage.k8s.io/csinodes/m.yaml --
{apiVersion: storage.k8s.io/v1, kind: CSINode, metadata: {name: m}}
`,
			want: `
get v1 Node m: NotCollected
get v1 Node other: NotCollected
get storage.k8s.io/v1 CSINode x: NotFound
`,
			problems: `must-gather.local.1/x/cluster-scoped-resources/core/nodes/m.yaml, document 1, line 1: yaml: did not find expected ',' or '}'`,
		},
		{
			name: "the image's folder alone is a must-gather by what else is in it",
			tree: `
-- cluster-scoped-resources/core/nodes/n.yaml --
{apiVersion: v1, kind: Node, metadata: {name: n1}}
-- host_service_logs/x.log --
`,
			want: `get v1 Node m: NotFound`,
		},
		{
			name: "or by its name",
			tree: `
-- quay-io-openshift-release-dev-ocp-v4-0-art-dev-sha256-0123/cluster-scoped-resources/core/nodes/n1.yaml --
{apiVersion: v1, kind: Node, metadata: {name: n1}}
`,
			want: `get v1 Node m: NotFound`,
		},
		{
			name: "oc adm inspect of one object is not a must-gather",
			tree: `
-- timestamp --
2026-01-02 03:04:05 +0000 UTC m=+0.1
2026-01-02 03:04:06 +0000 UTC m=+1.1
-- event-filter.html --
-- cluster-scoped-resources/core/nodes/n1.yaml --
{apiVersion: v1, kind: Node, metadata: {name: n1}}
`,
			want: `get v1 Node m: NotCollected`,
		},
		{
			name: "a folder of another name than the kind in it does not name the kind",
			tree: `
-- namespaces/a/core/configmaps/s.yaml --
{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: a}}
`,
			o: dump.Options{Whole: resources("configmaps")},
			want: `
get v1 Secret a/t: NotCollected
get v1 ConfigMap a/t: NotFound
`,
		},
		{
			name: "node folders below an image are recordings, and no recording is looked for in one",
			tree: `
-- must-gather.local.1/image/node-a/cluster-scoped-resources/core/nodes/a.yaml --
{apiVersion: v1, kind: Node, metadata: {name: a}}
-- must-gather.local.1/image/node-b/namespaces/x/core/configmaps.yaml --
{apiVersion: v1, kind: ConfigMapList, items: []}
-- must-gather.local.1/image/node-b/inner/cluster-scoped-resources/core/nodes/b.yaml --
{apiVersion: v1, kind: Node, metadata: {name: b}}
-- must-gather.local.1/image/node-a/cluster-scoped-resources/core/namespaces/c.yaml --
{apiVersion: v1, kind: Namespace, metadata: {name: c}}
-- must-gather.local.1/image/other.yaml --
not: read
`,
			want: `
get v1 Node a: found
list v1 ConfigMap x: empty
list v1 Node: a
get v1 Namespace c: found
`,
		},
		{
			name: "a list that lost an item is not whole",
			tree: `
-- namespaces/a/core/pods.yaml --
{apiVersion: v1, kind: PodList, items: [{metadata: {name: p, namespace: a}}, {metadata: {name: 7, namespace: a}}]}
`,
			want:     `list v1 Pod a: a/p missing[a].`,
			problems: `namespaces/a/core/pods.yaml, document 1, line 1: items[1]: Pod: metadata.name is 7, not a string: it must be quoted in YAML`,
		},
		{
			name: "in a heap a broken file does not prove that what it speaks of was absent",
			tree: `
-- nodes.yaml --
{apiVersion: v1, kind: Node, metadata: {name: n1}}
-- more.yaml --
apiVersion: v1
items:
- apiVersion: v1
  kind: Node
  metadata:
    name: m
  stat
-- co.yaml --
{apiVersion: config.openshift.io/v1, kind: ClusterOperator, metadata: {name: dns}}
-- values.yaml --
replicas: 3
`,
			want: `
get v1 Node n1: found
get v1 Node m: NotCollected
list v1 Node: n1 missing[]...
list config.openshift.io/v1 ClusterOperator: dns
`,
			problems: `
more.yaml, document 1, line 7: yaml: could not find expected ':'
values.yaml, document 1, line 1: apiVersion is missing
`,
		},
		{
			name: "in a heap a broken file that does not speak of a kind may have been any",
			tree: `
-- nodes.yaml --
{apiVersion: v1, kind: Node, metadata: {name: n1}}
-- more.yaml --
]]]
`,
			want:     `get v1 Node m: NotCollected`,
			problems: `more.yaml, document 1, line 1: yaml: did not find expected node content`,
		},
		{
			name: "the list of APIRequestCounts",
			tree: `
-- requests/apirequestscounts.json --
{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "apiserver.openshift.io/v1", "kind": "APIRequestCount", "metadata": {"name": "pods.v1"}}]}
-- namespaces/a/a.yaml --
{apiVersion: v1, kind: Namespace, metadata: {name: a}}
`,
			want: `
get apiserver.openshift.io/v1 APIRequestCount pods.v1: found
get apiserver.openshift.io/v1 APIRequestCount x: NotFound
`,
		},
		{
			name: "kinds.json says what is whole, and lists do not",
			tree: `
-- kinds.json --
{"formatVersion":1,"kinds":[
 {"group":"","version":"v1","kind":"Pod","resource":"pods","namespaced":true,"whole":false,"namespaces":["a"]},
 {"group":"","version":"v1","kind":"Secret","resource":"secrets","namespaced":true,"whole":true},
 {"group":"","version":"v1","kind":"Node","resource":"nodes","namespaced":false,"whole":true},
 {"group":"a.io","version":"v1","kind":"Thing","resource":"things","namespaced":false,"whole":true},
 {"group":"a.io","version":"v1","kind":"Part","resource":"parts","namespaced":false,"whole":false}]}
-- aggregated-discovery-apis.yaml --
{apiVersion: apidiscovery.k8s.io/v2, kind: APIGroupDiscoveryList, items: [
 {metadata: {name: a.io}, versions: [{version: v1, freshness: Current, resources: [{resource: things, scope: Cluster, responseKind: {group: a.io, version: v1, kind: Thing}}]}]}]}
-- namespaces/a/core/pods.yaml --
{apiVersion: v1, kind: PodList, items: [{metadata: {name: p, namespace: a}}]}
-- namespaces/b/core/pods.yaml --
{apiVersion: v1, kind: PodList, items: [{metadata: {name: p, namespace: b}}]}
-- namespaces/b/core/secrets.yaml --
{apiVersion: v1, kind: SecretList, items: [{metadata: {name: s, namespace: b}}]}
`,
			want: `
list v1 Pod a: a/p
get v1 Pod a/q: NotFound
list v1 Pod b: b/p missing[b].
list v1 Pod: a/p b/p missing[b]...
list v1 Secret: b/s
get v1 Secret c/s: NotFound
list v1 Node: empty
list a.io/v1 Thing: empty
list a.io/v1 Part: empty missing[]...
get a.io/v1 Other x: NotCollected
get b.io/v1 Other x: NotCollected
grade v1 Node: whole
`,
		},
		{
			name: "kinds.json of a later version is refused",
			tree: `
-- kinds.json --
{"formatVersion":2,"kinds":[{"group":"","version":"v1","kind":"Pod","resource":"pods","namespaced":true,"whole":true}]}
-- namespaces/a/core/pods.yaml --
{apiVersion: v1, kind: PodList, items: [{metadata: {name: p, namespace: a}}]}
`,
			want: `
get v1 Pod a/p: found
list v1 Pod a: a/p missing[a].
`,
			problems: `kinds.json: formatVersion 2 is not known, only 1: no kind counts as whole`,
		},
		{
			name: "kinds.json does not vouch for files that are broken",
			tree: `
-- kinds.json --
{"formatVersion":1,"kinds":[
 {"group":"","version":"v1","kind":"Pod","resource":"pods","namespaced":true,"whole":true},
 {"group":"","version":"v1","kind":"Node","resource":"nodes","namespaced":false,"whole":true}]}
-- namespaces/a/core/pods.yaml --
{apiVersion: v1, kind: PodList, items: [{metada
-- namespaces/b/core/pods.yaml --
{apiVersion: v1, kind: PodList, items: [{metadata: {name: p, namespace: b}}]}
-- cluster-scoped-resources/core/nodes/x.yaml --
{apiVersion: v1, kind: No
`,
			want: `
list v1 Pod a: empty missing[a].
list v1 Pod b: b/p
list v1 Pod: b/p missing[a]...
get v1 Node y: NotCollected
`,
			problems: `
cluster-scoped-resources/core/nodes/x.yaml, document 1, line 1: yaml: did not find expected ',' or '}'
namespaces/a/core/pods.yaml, document 1, line 1: yaml: did not find expected ',' or '}'
`,
		},
		{
			name: "links stay in the tree",
			tree: `
-- data/n.yaml --
{apiVersion: v1, kind: Node, metadata: {name: n1}}
-- a/deep/link.yaml -> ../../data/n.yaml --
-- a/loop -> ../a --
-- self.yaml -> self.yaml --
-- up.yaml -> ../../etc/passwd --
-- root.yaml -> /etc/passwd --
-- gone.yaml -> missing.yaml --
-- again -> data --
`,
			want: `list v1 Node: n1 missing[]...`,
			problems: `
a/loop: a link to a folder that it is in
gone.yaml: a link to what cannot be read: lstat missing.yaml: file does not exist
root.yaml: a link out of the tree
self.yaml: a link that leads in a circle
up.yaml: a link out of the tree
`,
		},
		{
			name: "a folder of a recording may be a link",
			tree: `
-- store/core/nodes/n.yaml --
{apiVersion: v1, kind: Node, metadata: {name: n1}}
-- rec/cluster-scoped-resources -> ../store --
`,
			want: `list v1 Node: n1 missing[]...`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := mustOpen(t, files(tc.tree), tc.o)
			check(t, r, tc.want)
			checkProblems(t, r, tc.problems)
			same(t, files(tc.tree), tc.o, r, tc.want)
		})
	}
}
