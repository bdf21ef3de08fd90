package clusterapitest

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// sequenceKind is a kind that random sequences use, with the values that they
// give it.
type sequenceKind struct {
	name       string
	gvk        schema.GroupVersionKind
	namespaced bool
	// base is the least that an object of the kind has, besides its identity.
	base string
	// fields are what else it may have.
	fields []values
	// status is what UpdateStatus may write.
	status values
	// custom stands for a kind of the group that the sequences define.
	custom bool
}

// values are what may stand at a path: lists in YAML. Most choices are made
// from the good ones.
type values struct {
	path      string
	good, bad string
}

// choices are values, parsed.
type choices struct {
	path      []string
	good, bad []any
}

// The texts NAME, NS and RUN in values stand for the name of the object, its
// namespace, and the part that all names of one run have in common.
var sequenceKinds = sync.OnceValue(func() []sequenceKind {
	rbac := func(kind string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: kind}
	}
	rules := values{"rules", `[[{apiGroups: [""], resources: [pods], verbs: [get, list]}], [{apiGroups: [apps], resources: ["*"], verbs: ["*"]}, {apiGroups: [""], resources: [secrets], resourceNames: [x], verbs: [get]}], []]`,
		`[[{apiGroups: [""], resources: [pods]}], [{verbs: [get]}], pods, [{apiGroups: [""], resources: [pods], verbs: [get], nonResourceURLs: [/x]}]]`}
	subjects := values{"subjects", `[[{kind: User, name: u, apiGroup: rbac.authorization.k8s.io}], [{kind: ServiceAccount, name: default, namespace: NS-x}], []]`,
		`[[{kind: User}], [{kind: Robot, name: r}], [{kind: ServiceAccount, name: default, namespace: NS-x, apiGroup: rbac.authorization.k8s.io}]]`}
	return []sequenceKind{
		{
			name: "Deployment", gvk: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, namespaced: true,
			base: `{spec: {selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: one, image: registry.example/one}]}}}}`,
			fields: []values{
				{"spec.replicas", `[0, 1, 3, 1.0]`, `[-1, 1.5, two, 4294967296, null]`},
				{"spec.paused", `[true, false]`, `["yes"]`},
				{"spec.minReadySeconds", `[0, 5]`, `[-5]`},
				{"spec.revisionHistoryLimit", `[0, 10]`, `[-1]`},
				{"spec.progressDeadlineSeconds", `[600, 700]`, `[0, -1]`},
				{"spec.strategy", `[{type: Recreate}, {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: "10%"}}, {type: RollingUpdate}]`,
					`[{type: Sideways}, {type: Recreate, rollingUpdate: {maxSurge: 1}}, {type: RollingUpdate, rollingUpdate: {maxSurge: 0, maxUnavailable: 0}}]`},
				{"spec.selector", `[{matchLabels: {app: x}}]`, `[{matchLabels: {app: z}}, {}, {matchExpressions: [{key: app, operator: Near}]}]`},
				{"spec.template.metadata.labels", `[{app: x, tier: front}, {app: x}]`, `[{app: z}, {"bad key!": x, app: x}]`},
				{"spec.template.metadata.annotations", `[{note: a}, {note: b}]`, `[{note: 1}]`},
				{"spec.template.spec.containers", `[[{name: one, image: registry.example/one:2}], [{name: one, image: registry.example/one, env: [{name: A, value: "1"}, {name: B, value: "2"}]}, {name: two, image: registry.example/two, ports: [{containerPort: 80, protocol: TCP}, {containerPort: 80, protocol: UDP}]}], [{name: two, image: registry.example/two, resources: {limits: {cpu: 100m, memory: 1Gi}, requests: {cpu: "0.05"}}}]]`,
					`[[], [{name: one}], [{name: Bad_Name, image: i}], [{name: one, image: i}, {name: one, image: j}], [{name: one, image: i, bogusField: 1}], [{name: one, image: i, ports: [{containerPort: 99999}]}], [{name: one, image: i, resources: {limits: {cpu: much}}}], [{name: one, image: i, imagePullPolicy: Sometimes}]]`},
				{"spec.template.spec.tolerations", `[[{key: k, operator: Exists}], [{key: a, value: b, effect: NoSchedule}, {operator: Exists}], []]`, `[[{key: k, operator: Never}]]`},
				{"spec.template.spec.nodeSelector", `[{role: worker}, {}]`, `[{role: 1}]`},
				{"spec.template.spec.restartPolicy", `[Always]`, `[OnFailure]`},
				{"spec.template.spec.terminationGracePeriodSeconds", `[0, 30, 60]`, `[-1]`},
				{"spec.template.spec.volumes", `[[{name: v, emptyDir: {}}], [{name: v, configMap: {name: c}}, {name: w, secret: {secretName: s}}]]`, `[[{name: v, emptyDir: {}}, {name: v, emptyDir: {}}]]`},
				{"spec.bogusField", `[]`, `[x]`},
			},
			status: values{"status", `[{replicas: 1, observedGeneration: 1}, {replicas: 2, readyReplicas: 1, updatedReplicas: 2, unavailableReplicas: 1, conditions: [{type: Available, status: "True", reason: R, message: m, lastUpdateTime: "2001-01-01T00:00:00Z", lastTransitionTime: "2001-01-01T00:00:00Z"}]}, {}]`,
				`[{replicas: -1}, {replicas: many}, {readyReplicas: 3, replicas: 1}, 5]`},
		},
		{
			name: "ConfigMap", gvk: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, namespaced: true,
			base: `{data: {a: "1"}}`,
			fields: []values{
				{"data", `[{a: "2"}, {a: "1", b: "2"}, {}, {"with.dots": x}]`, `[{a: 1}, {"bad key": x}, {a: null}, text, [x]]`},
				{"data.c", `["3", ""]`, `[3, {x: y}]`},
				{"binaryData", `[{bin: aGVsbG8=}, {}]`, `[{bin: "not base64!"}, {a: aGVsbG8=}]`},
				{"immutable", `[true, false]`, `["true"]`},
				{"bogusField", `[]`, `[x]`},
			},
			status: values{"status", `[{phase: x}]`, `[]`},
		},
		{
			name: "Secret", gvk: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, namespaced: true,
			base: `{data: {a: aGVsbG8=}}`,
			fields: []values{
				{"data", `[{a: d29ybGQ=}, {a: aGVsbG8=, b: ""}, {}]`, `[{a: "not base64!"}, {"bad key": aGVsbG8=}, {a: 1}]`},
				{"stringData", `[{c: plain}, {a: other}]`, `[{c: 1}]`},
				{"type", `[Opaque, example.com/own]`, `[kubernetes.io/tls, kubernetes.io/dockerconfigjson]`},
				{"immutable", `[true, false]`, `["true"]`},
			},
			status: values{"status", `[{phase: x}]`, `[]`},
		},
		{
			name: "Service", gvk: schema.GroupVersionKind{Version: "v1", Kind: "Service"}, namespaced: true,
			base: `{spec: {selector: {app: x}, ports: [{port: 80}]}}`,
			fields: []values{
				{"spec.ports", `[[{port: 80, targetPort: 8080}], [{name: a, port: 80}, {name: b, port: 81, protocol: UDP}], [{name: web, port: 443, targetPort: https}]]`,
					`[[], [{port: 0}], [{port: 70000}], [{port: 80}, {port: 81}], [{name: a, port: 80}, {name: a, port: 81}], [{name: Bad_Name, port: 80}], [{port: 80, protocol: HTTP}], [{port: x}]]`},
				{"spec.selector", `[{app: z}, {}]`, `[{"bad key!": x}]`},
				{"spec.type", `[ClusterIP, ClusterIP, LoadBalancer]`, `[Magic]`},
				{"spec.sessionAffinity", `[None, ClientIP]`, `[Glue]`},
				{"spec.publishNotReadyAddresses", `[true, false]`, `[1]`},
				{"spec.clusterIP", `[None]`, `[nonsense]`},
				{"spec.externalIPs", `[[192.0.2.1], []]`, `[[x]]`},
			},
			status: values{"status", `[{loadBalancer: {ingress: [{hostname: lb.example.com}]}}, {conditions: [{type: Ready, status: "True", reason: R, message: "", lastTransitionTime: "2001-01-01T00:00:00Z"}]}, {loadBalancer: {}}]`,
				`[{loadBalancer: x}, {conditions: [{type: "bad type!", status: "True", reason: R, message: "", lastTransitionTime: "2001-01-01T00:00:00Z"}]}]`},
		},
		{
			name: "Namespace", gvk: namespaces,
			base: `{}`,
			fields: []values{
				{"spec.finalizers", `[[kubernetes]]`, `[["bad finalizer!"]]`},
			},
			status: values{"status", `[{phase: Active}, {phase: Active, conditions: [{type: Odd, status: "True", reason: R, message: m, lastTransitionTime: "2001-01-01T00:00:00Z"}]}]`, `[{phase: 1}]`},
		},
		{
			name: "Node", gvk: schema.GroupVersionKind{Version: "v1", Kind: "Node"},
			base: `{}`,
			fields: []values{
				{"spec.unschedulable", `[true, false]`, `["yes"]`},
				{"spec.taints", `[[{key: k, effect: NoSchedule}], [{key: k, value: v, effect: NoExecute}, {key: k, effect: NoSchedule}], []]`,
					`[[{key: k, effect: Softly}], [{key: k, effect: NoSchedule}, {key: k, effect: NoSchedule}], [{effect: NoSchedule}]]`},
				{"spec.providerID", `[example:///1]`, `[1]`},
				{"metadata.labels.role", `[worker, infra]`, `["not a label value!"]`},
			},
			status: values{"status", `[{conditions: [{type: Ready, status: "True", reason: KubeletReady, message: m, lastHeartbeatTime: "2001-01-01T00:00:00Z", lastTransitionTime: "2001-01-01T00:00:00Z"}]}, {capacity: {cpu: "4", memory: 16Gi, pods: "110"}, allocatable: {cpu: 3500m}}, {addresses: [{type: InternalIP, address: 192.0.2.1}]}]`,
				`[{conditions: x}, {capacity: {cpu: much}}]`},
		},
		{
			name: "Pod", gvk: pods, namespaced: true,
			base: `{metadata: {labels: {app: x}}, spec: {containers: [{name: one, image: registry.example/one}]}}`,
			fields: []values{
				{"metadata.labels.app", `[x, x, "y"]`, `["not a label value!"]`},
				{"spec.nodeName", `[node-1, node-1, node-2]`, `["Bad_Node!"]`},
				{"spec.terminationGracePeriodSeconds", `[0, 1, 45]`, `[-3, soon]`},
				{"spec.activeDeadlineSeconds", `[100, 50]`, `[-1]`},
				{"spec.containers", `[[{name: one, image: registry.example/one:2}], [{name: one, image: registry.example/one}, {name: two, image: registry.example/two}]]`, `[[], [{name: one}], [{name: one, image: i, command: sh}]]`},
				{"spec.tolerations", `[[{key: k, operator: Exists}]]`, `[[{key: k, operator: Never}]]`},
				{"spec.restartPolicy", `[Always, Never]`, `[Perhaps]`},
			},
			status: values{"status", `[{phase: Running, conditions: [{type: Ready, status: "True"}]}, {phase: Running, conditions: [{type: Ready, status: "True"}]}, {phase: Running, conditions: [{type: Ready, status: "False", reason: R}]}, {phase: Running}, {phase: Succeeded}, {phase: Failed, reason: Evicted, message: m}, {phase: Pending}]`,
				`[{phase: 1}, {conditions: [x]}]`},
		},
		{
			name: "PodDisruptionBudget", gvk: budgets, namespaced: true,
			base: `{spec: {minAvailable: 1, selector: {matchLabels: {app: x}}}}`,
			fields: []values{
				{"spec.minAvailable", `[0, 2, "50%"]`, `[-1, "50", "150%", 1.5]`},
				{"spec.maxUnavailable", `[]`, `[1]`},
				{"spec.selector", `[{}, {matchLabels: {app: x}}, {matchExpressions: [{key: app, operator: In, values: [x, "y"]}]}]`, `[{matchExpressions: [{key: app, operator: In}]}, x]`},
				{"spec.unhealthyPodEvictionPolicy", `[AlwaysAllow, IfHealthyBudget]`, `[Whenever]`},
			},
			status: values{"status", `[{observedGeneration: 9, disruptionsAllowed: 1, currentHealthy: 2, desiredHealthy: 1, expectedPods: 2}, {observedGeneration: 9, disruptionsAllowed: 2, currentHealthy: 3, desiredHealthy: 1, expectedPods: 3}, {observedGeneration: 9, disruptionsAllowed: 0, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1}, {observedGeneration: 9, disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 1, expectedPods: 1}, {observedGeneration: 0, disruptionsAllowed: 1, currentHealthy: 2, desiredHealthy: 1, expectedPods: 2}]`,
				`[{disruptionsAllowed: -1, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1}, {disruptionsAllowed: some}]`},
		},
		{
			name: "CustomResourceDefinition", gvk: definitions,
			base: `{spec: {group: RUN.clusterupdate.github.io, names: {plural: PLURAL, kind: KIND, singular: SINGULAR, listKind: KINDList}, scope: Namespaced, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {a: {type: string}}}}}}}]}}`,
			fields: []values{
				{"spec.scope", `[Namespaced]`, `[Sideways]`},
				{"spec.versions", `[[{name: v1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}], [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}, {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}]]`,
					`[[], [{name: v1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}], [{name: v1, served: true, storage: true}], [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {a: {type: wrong}}}}}], [{name: Bad_V, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]]`},
				{"spec.names.shortNames", `[[SINGULARx], []]`, `[["Bad Short"]]`},
				{"spec.names.plural", `[]`, `[others]`},
				{"spec.group", `[]`, `[other.clusterupdate.github.io]`},
			},
			status: values{"status", `[]`, `[]`},
		},
		{name: "Role", gvk: rbac("Role"), namespaced: true, base: `{rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]}`, fields: []values{rules}, status: values{"status", `[{a: b}]`, `[]`}},
		{name: "ClusterRole", gvk: rbac("ClusterRole"), base: `{rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]}`, fields: []values{rules,
			{"aggregationRule", `[{clusterRoleSelectors: [{matchLabels: {a: b}}]}]`, `[{clusterRoleSelectors: []}]`}}, status: values{"status", `[{a: b}]`, `[]`}},
		{name: "RoleBinding", gvk: rbac("RoleBinding"), namespaced: true,
			base:   `{roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}, subjects: [{kind: User, name: v, apiGroup: rbac.authorization.k8s.io}]}`,
			fields: []values{subjects, {"roleRef", `[{apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}]`, `[{apiGroup: rbac.authorization.k8s.io, kind: Role, name: s}, {kind: Nobody, name: r}]`}},
			status: values{"status", `[{a: b}]`, `[]`}},
		{name: "ClusterRoleBinding", gvk: rbac("ClusterRoleBinding"),
			base:   `{roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: r}, subjects: [{kind: User, name: v, apiGroup: rbac.authorization.k8s.io}]}`,
			fields: []values{subjects, {"roleRef", `[{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: r}]`, `[{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: s}, {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}]`}},
			status: values{"status", `[{a: b}]`, `[]`}},
		{
			name: "Widget", gvk: schema.GroupVersionKind{Version: "v1", Kind: "Widget"}, namespaced: true, custom: true,
			base: `{spec: {size: 1}}`,
			fields: []values{
				{"spec.size", `[0, 2, 1.0]`, `[-1, 1000, x, 1.5, null]`},
				{"spec.mode", `[Fast, Slow]`, `[Sideways, 1]`},
				{"spec.word", `[abc]`, `[ABC, toolongaword, ""]`},
				{"spec.limit", `[1, "10%"]`, `[true, 1.5]`},
				{"spec.parts", `[[{name: a, count: 1}], [{name: b, count: 2}, {name: a}], [{name: c}], []]`, `[[{count: 1}], [{name: a}, {name: a}], [{name: a, bogusField: x}], x]`},
				{"spec.tags", `[[red], [blue, red], []]`, `[[red, red], [1]]`},
				{"spec.steps", `[[one], [two, one]]`, `[[one, two, three, four]]`},
				{"spec.free", `[{any: {thing: 1}}, {any: null}, {}]`, `[x]`},
				{"spec.pairs", `[{a: "1"}, {b: "2"}]`, `[{a: 1}]`},
				{"spec.maybe", `[null, x]`, `[1]`},
				{"spec.bogusField", `[]`, `[x]`},
				{"status.phase", `[Early]`, `[]`},
			},
			status: values{"status", `[{phase: Ready}, {phase: null, updates: [a, b]}, {updates: null}, {}, {conditions: [{type: A, status: "True"}, {type: B, status: "False"}]}]`,
				`[{phase: 1}, {conditions: [{type: A, status: "True"}, {type: A, status: "True"}]}, {bogusField: x}, 7]`},
		},
		{
			name: "Gadget", gvk: schema.GroupVersionKind{Version: "v1", Kind: "Gadget"}, custom: true,
			base: `{spec: {a: x}}`,
			fields: []values{
				{"spec.a", `["y"]`, `[1]`},
				{"spec.b", `[1, 2]`, `[1.5]`},
				{"status.phase", `[Ready, Done]`, `[1]`},
			},
			status: values{"status", `[{phase: Ready}]`, `[]`},
		},
		{
			name: "Nothing", gvk: schema.GroupVersionKind{Group: "nobody.clusterupdate.github.io", Version: "v1", Kind: "Nothing"}, namespaced: true,
			base: `{spec: {a: x}}`, status: values{"status", `[{a: b}]`, `[]`},
		},
	}
})

// metadataValues are those that every kind takes.
var metadataValues = []values{
	{"metadata.labels", `[{app: x, color: red}, {app: x, color: blue, "example.com/key": v}, {color: red}]`, `[{"bad key!": x}, {app: "bad value!"}, {app: 1}]`},
	{"metadata.labels.color", `[red, blue, ""]`, `[1]`},
	{"metadata.annotations", `[{note: a}, {note: b, "example.com/note": "{}"}, {}]`, `[{"bad key!": x}, {note: 1}]`},
	{"metadata.annotations.more", `[x, "y"]`, `[true]`},
	{"metadata.finalizers", `[[example.com/hold], [example.com/hold, example.com/other], []]`, `[["bad finalizer!"], example.com/hold, [hold]]`},
	{"metadata.ownerReferences", `[[{apiVersion: v1, kind: ConfigMap, name: gone, uid: 00000000-aaaa-bbbb-cccc-000000000001}], []]`, `[[{apiVersion: v1, kind: ConfigMap, name: gone}], [{kind: ConfigMap, name: gone, uid: x}]]`},
	{"metadata.uid", `[]`, `[00000000-aaaa-bbbb-cccc-000000000000]`},
	{"metadata.generation", `[]`, `[77]`},
	{"metadata.creationTimestamp", `["2001-01-01T00:00:00Z"]`, `[yesterday]`},
	{"metadata.deletionTimestamp", `["2001-01-01T00:00:00Z"]`, `[]`},
	{"metadata.bogusField", `[]`, `[x]`},
	{"status", `[]`, `[]`}, // only ever removed
}

// definitionsOfSequences are the custom kinds; GROUP stands for their group.
const definitionsOfSequences = `
- apiVersion: apiextensions.k8s.io/v1
  kind: CustomResourceDefinition
  metadata: {name: widgets.GROUP}
  spec:
    group: GROUP
    names: {kind: Widget, listKind: WidgetList, plural: widgets, singular: widget}
    scope: Namespaced
    versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema:
          type: object
          required: [spec]
          properties:
            spec:
              type: object
              required: [size]
              properties:
                size: {type: integer, minimum: 0, maximum: 100}
                mode: {type: string, enum: [Fast, Slow], default: Fast}
                word: {type: string, pattern: '^[a-z]+$', maxLength: 5}
                limit: {x-kubernetes-int-or-string: true}
                parts:
                  type: array
                  x-kubernetes-list-type: map
                  x-kubernetes-list-map-keys: [name]
                  items:
                    type: object
                    required: [name]
                    properties: {name: {type: string}, count: {type: integer, default: 7}}
                tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}
                steps: {type: array, maxItems: 3, items: {type: string}}
                free: {type: object, x-kubernetes-preserve-unknown-fields: true}
                pairs: {type: object, additionalProperties: {type: string}}
                maybe: {type: string, nullable: true}
            status:
              type: object
              properties:
                phase: {type: string}
                updates: {type: array, nullable: true, items: {type: string}}
                conditions:
                  type: array
                  x-kubernetes-list-type: map
                  x-kubernetes-list-map-keys: [type]
                  items: {type: object, required: [type], properties: {type: {type: string}, status: {type: string}}}
- apiVersion: apiextensions.k8s.io/v1
  kind: CustomResourceDefinition
  metadata: {name: gadgets.GROUP}
  spec:
    group: GROUP
    names: {kind: Gadget, listKind: GadgetList, plural: gadgets, singular: gadget}
    scope: Cluster
    versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: {type: object, properties: {a: {type: string}, b: {type: integer}}}
            status: {type: object, properties: {phase: {type: string}}}
`

// parsed is a kind with its values.
type parsed struct {
	sequenceKind
	object map[string]any // base
	all    []choices
	states choices
}

var parsedKinds = sync.OnceValue(func() []parsed {
	var out []parsed
	for _, k := range sequenceKinds() {
		p := parsed{sequenceKind: k, states: k.status.parse()}
		p.object, _ = parse(k.base).(map[string]any)
		for _, v := range slices.Concat(k.fields, metadataValues) {
			p.all = append(p.all, v.parse())
		}
		out = append(out, p)
	}
	return out
})

func (v values) parse() choices {
	good, _ := parse(v.good).([]any)
	bad, _ := parse(v.bad).([]any)
	return choices{split(v.path), good, bad}
}

// parse reads YAML into the values of an unstructured object. It is for the
// tables of this file.
func parse(text string) any {
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		panic(err) // a fault of a table above
	}
	var v any
	if err := utiljson.Unmarshal(data, &v); err != nil {
		panic(err)
	}
	return v
}
