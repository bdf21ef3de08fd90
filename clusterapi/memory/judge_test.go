package memory_test

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

const container = `containers: [{name: c, image: i}]`

func deployment(spec string) string {
	return `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns}, spec: {` + spec + `}}`
}

const matching2 = `selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {` + container + `}}`

func configMap(metadata, rest string) string {
	return `{apiVersion: v1, kind: ConfigMap, metadata: {` + metadata + `}` + rest + `}`
}

// What a new object may not be. An empty want is an object that is taken.
func TestRefusedObjects(t *testing.T) {
	const binding = `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: "system:x", namespace: ns}, `
	const service = `{apiVersion: v1, kind: Service, metadata: {name: s, namespace: ns}, spec: {`
	const pod = `{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: ns}, spec: {`
	job := func(spec string) string {
		return `{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: ns}, spec: {` + spec + `}}`
	}
	for _, tc := range []struct{ name, text, want string }{
		{"upper case in a name", configMap("name: Config, namespace: ns", ""), `metadata.name: Invalid value: "Config": a lowercase RFC 1123 subdomain`},
		{"a dot in a namespace's name", `{apiVersion: v1, kind: Namespace, metadata: {name: a.b}}`, `metadata.name: Invalid value: "a.b"`},
		{"a colon in a role's name", `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "system:x"}}`, ""},
		{"a slash in a role's name", `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a/b}}`, `may not contain '/'`},
		{"no namespace", configMap("name: c", ""), "an empty namespace may not be set during creation"},
		{"a bad label", configMap("name: c, namespace: ns, labels: {a: b c}", ""), `metadata.labels: Invalid value: "b c"`},
		{"a bad annotation", configMap("name: c, namespace: ns, annotations: {a b: c}", ""), `metadata.annotations: Invalid value: "a b"`},
		{"an owner without UID", configMap("name: c, namespace: ns, ownerReferences: [{apiVersion: v1, kind: Pod, name: p}]", ""), `metadata.ownerReferences.uid: Invalid value`},
		{"a key of a ConfigMap", configMap("name: c, namespace: ns", ", data: {a b: c}"), `data[a b]: Invalid value: "a b"`},
		{"a key twice", configMap("name: c, namespace: ns", ", data: {a: c}, binaryData: {a: YQ==}"), "duplicate of key present in binaryData"},
		{"not base64", `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: ns}, data: {a: "%"}}`, "illegal base64 data"},
		{"a Secret of a type without its keys", `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: ns}, type: kubernetes.io/tls}`, "data[tls.crt]: Required value"},
		{"fractional replicas", deployment("replicas: 1.5, " + matching2), "json: cannot unmarshal number 1.5 into Go struct field spec.replicas of type int32"},
		{"replicas out of range", deployment("replicas: 3000000000, " + matching2), "cannot unmarshal number 3000000000"},
		{"text for a number", deployment("replicas: x, " + matching2), "spec.replicas"},
		{"negative replicas", deployment("replicas: -1, " + matching2), "spec.replicas: Invalid value: -1: must be greater than or equal to 0"},
		{"a date that is none", configMap("name: c, namespace: ns, deletionTimestamp: yesterday", ""), "metadata.deletionTimestamp"},
		{"a quantity that is none", pod + `containers: [{name: c, image: i, resources: {requests: {cpu: much}}}]}}`, "quantities must match"},
		{"no selector", deployment(`template: {metadata: {labels: {a: b}}, spec: {` + container + `}}`), "spec.selector: Required value"},
		{"labels that do not match", deployment(`selector: {matchLabels: {a: c}}, template: {metadata: {labels: {a: b}}, spec: {` + container + `}}`),
			"spec.template.metadata.labels: Invalid value: {\"a\":\"b\"}: `selector` does not match template `labels`"},
		{"no container", deployment(`selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}}`), "spec.template.spec.containers: Required value"},
		{"a strategy that is none", deployment(`strategy: {type: Slowly}, ` + matching2), `spec.strategy.type: Unsupported value: "Slowly": supported values: "Recreate", "RollingUpdate"`},
		{"no replica may be missing or more", deployment(`strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 0}}, ` + matching2), "may not be 0 when `maxSurge` is 0"},
		{"a whole Deployment", benchDeployment, ""},
		{"no image", pod + `containers: [{name: c}]}}`, "spec.containers[0].image: Required value"},
		{"a mount of nothing", pod + `containers: [{name: c, image: i, volumeMounts: [{name: v, mountPath: /v}]}]}}`, `spec.containers[0].volumeMounts[0].name: Not found: "v"`},
		{"a container twice", pod + `containers: [{name: c, image: i}, {name: c, image: i}]}}`, "uplicate"},
		{"a port out of range", pod + `containers: [{name: c, image: i, ports: [{containerPort: 70000}]}]}}`, "must be between 1 and 65535"},
		{"more asked than allowed", pod + `containers: [{name: c, image: i, resources: {requests: {cpu: 2}, limits: {cpu: 1}}}]}}`, "must be less than or equal to cpu limit of 1"},
		{"a probe of nothing", pod + `containers: [{name: c, image: i, livenessProbe: {}}]}}`, "must specify a handler type"},
		{"a Job that always restarts", job(`template: {spec: {` + container + `}}`), "spec.template.spec.restartPolicy: Required value"},
		{"a Job", job(`template: {spec: {restartPolicy: Never, ` + container + `}}`), ""},
		{"a schedule", `{apiVersion: batch/v1, kind: CronJob, metadata: {name: j, namespace: ns}, spec: {schedule: daily, jobTemplate: {spec: {template: {spec: {restartPolicy: Never, ` + container + `}}}}}}`, "spec.schedule: Invalid value"},
		{"both ways of a budget", `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b, namespace: ns}, spec: {minAvailable: 1, maxUnavailable: 1}}`, "minAvailable and maxUnavailable cannot be both set"},
		{"more than all of a budget", `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b, namespace: ns}, spec: {minAvailable: 101%}}`, "must not be greater than 100%"},
		{"a rule without verbs", `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: r, namespace: ns}, rules: [{apiGroups: [""], resources: [pods]}]}`, "rules[0].verbs: Required value: verbs must contain at least one value"},
		{"a binding of nothing", binding + `roleRef: {kind: Rule, name: x}}`, `roleRef.kind: Unsupported value: "Rule": supported values: "Role", "ClusterRole"`},
		{"a subject of an odd kind", binding + `roleRef: {kind: Role, name: x}, subjects: [{kind: Robot, name: r}]}`, `subjects[0].kind: Unsupported value`},
		{"a binding", binding + `roleRef: {kind: Role, name: x}, subjects: [{kind: ServiceAccount, name: r, namespace: ns}]}`, ""},
		{"a Service without ports", service + `}}`, "spec.ports: Required value"},
		{"a headless Service", service + `clusterIP: None}}`, ""},
		{"two ports without names", service + `ports: [{port: 1}, {port: 2}]}}`, "spec.ports[0].name: Required value"},
		{"a type of Service", service + `type: Magic, ports: [{port: 1}]}}`, `spec.type: Unsupported value: "Magic"`},
		{"a priority out of range", `{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: p}, value: 2000000000}`, "maximum allowed value of a user defined priority is 1000000000"},
		{"a webhook without effects", `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: w}, webhooks: [{name: a.b.c, clientConfig: {url: "https://x"}, admissionReviewVersions: [v1]}]}`, "webhooks[0].sideEffects: Required value"},
		{"a definition of another name", strings.Replace(benchDefinition, "name: widgets.example.com", "name: gadgets.example.com", 1), `must be spec.names.plural+"."+spec.group`},
		{"a definition of no scope", strings.Replace(benchDefinition, "scope: Namespaced", "scope: Local", 1), `spec.scope: Unsupported value: "Local": supported values: "Cluster", "Namespaced"`},
		{"a field without a type", strings.Replace(benchDefinition, "mode: {type: string}", "mode: {}", 1), "must not be empty for specified object fields"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for verb, write := range map[string]func(*memory.Cluster) error{
				"Create": func(c *memory.Cluster) error {
					_, err := c.Create(t.Context(), object(t, tc.text), clusterapi.CreateOptions{})
					return err
				},
				"Apply": func(c *memory.Cluster) error {
					_, err := c.Apply(t.Context(), object(t, tc.text), manager)
					return err
				},
			} {
				err := write(memory.New(memory.Options{}))
				if tc.want == "" {
					checktest.FailIf(t, err != nil, "%s: %v", verb, err)
					continue
				}
				if err == nil || !strings.Contains(err.Error(), tc.want) || !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
					t.Errorf("%s: got %v, want %s", verb, err, tc.want)
				}
			}
			if tc.want != "" && !strings.Contains(tc.want, "base64") && tc.name != "text for a number" && tc.name != "a container twice" {
				if _, err := memory.New(memory.Options{Lenient: true}).Create(t.Context(), object(t, tc.text), clusterapi.CreateOptions{}); err != nil && !strings.Contains(err.Error(), "metadata.name") {
					t.Errorf("a lenient cluster: %v", err)
				}
			}
		})
	}
}

// What an update may not change. From is created, or loaded where it is
// invalid itself.
func TestRefusedChanges(t *testing.T) {
	secret := func(rest string) string {
		return `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: ns}, ` + rest + `}`
	}
	job := func(image string) string {
		return `{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: ns}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: ` + image + `}]}}}}`
	}
	binding := func(role string) string {
		return `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: b}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ` + role + `}}`
	}
	service := func(ip string) string {
		return `{apiVersion: v1, kind: Service, metadata: {name: s, namespace: ns}, spec: {clusterIP: ` + ip + `, ports: [{port: 1}]}}`
	}
	class := func(provisioner string) string {
		return `{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: c}, provisioner: ` + provisioner + `}`
	}
	for _, tc := range []struct {
		name, from, to, want string
		load                 bool
	}{
		{"a Deployment's selector", deployment(matching2), deployment(strings.ReplaceAll(matching2, "a: b", "a: c")), "spec.selector: Invalid value: {\"matchLabels\":{\"a\":\"c\"}}: field is immutable", false},
		{"a Job's template", job("i"), job("k"), "spec.template: Invalid value", false},
		{"a Job's template with defaults written out", job("i"), job("i, imagePullPolicy: Always, resources: {}"), "", false},
		{"a roleRef", binding("x"), binding("z"), "cannot change roleRef", false},
		{"an immutable ConfigMap", configMap("name: c, namespace: ns", ", immutable: true, data: {a: b}"), configMap("name: c, namespace: ns", ", immutable: true, data: {a: c}"), "data: Forbidden: field is immutable when `immutable` is set", false},
		{"immutability itself", configMap("name: c, namespace: ns", ", immutable: true"), configMap("name: c, namespace: ns", ""), "immutable: Forbidden", false},
		{"a Secret's type", secret("type: a/b"), secret("type: a/c"), "type: Invalid value: \"a/c\": field is immutable", false},
		{"a clusterIP", service("10.0.0.1"), service("10.0.0.2"), "may not change once set", false},
		{"a provisioner", class("a"), class("b"), "provisioner: Invalid value: \"b\": field is immutable", false},
		{"what Load brought in stays", deployment("replicas: -1"), deployment("replicas: -1, paused: true"), "", true},
		{"what changes is judged", deployment("replicas: -1"), deployment("replicas: -2"), "spec.replicas: Invalid value: -2", true},
		{"a wrong type stays", configMap("name: c, namespace: ns", ", data: {a: 1}"), configMap("name: c, namespace: ns", ", data: {a: 1, b: x}"), "", true},
		{"a wrong type comes", configMap("name: c, namespace: ns", ", data: {a: 1}"), configMap("name: c, namespace: ns", ", data: {a: 2}"), "data.a of type string", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := memory.New(memory.Options{})
			if tc.load {
				mustLoad(t, c, tc.from)
			} else if _, err := c.Create(t.Context(), object(t, tc.from), clusterapi.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			to := object(t, tc.to)
			stored := mustGet(t, c, to.GroupVersionKind(), to.GetNamespace(), to.GetName())
			to.SetResourceVersion(stored.GetResourceVersion())
			_, err := c.Update(t.Context(), to, clusterapi.UpdateOptions{})
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// A typed server stores what its types write.
func TestCanonicalForm(t *testing.T) {
	c := memory.New(memory.Options{})
	p, err := c.Create(t.Context(), object(t, `{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: ns, labels: {}}, spec: {hostNetwork: false, containers: [{name: c, image: i, resources: {requests: {cpu: 1000m, memory: 1024}}}]}}`), clusterapi.CreateOptions{})
	checktest.OK(t, err)
	checktest.FailIf(t, at(p, "metadata", "labels") != nil || at(p, "spec", "hostNetwork") != nil,
		"empty fields are stored: %v", p.Object)
	requests := at(p, "spec", "containers").([]any)[0].(map[string]any)["resources"].(map[string]any)["requests"].(map[string]any)
	checktest.FailIf(t, requests["cpu"] != "1" || requests["memory"] != "1024", "requests %v", requests)
	s, err := c.Create(t.Context(), object(t, `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: ns}, data: {a: YQ==}, stringData: {b: b}}`), clusterapi.CreateOptions{})
	if err != nil || at(s, "data", "b") != "Yg==" || at(s, "data", "a") != "YQ==" || at(s, "stringData") != nil {
		t.Errorf("%v, %v", s, err)
	}
}

const gadgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec:
  group: example.com
  names: {kind: Gadget, plural: gadgets}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: integer, minimum: 1, maximum: 9}
              mode: {type: string, enum: [fast, slow], default: slow}
              code: {type: string, pattern: "^[a-z]+$", maxLength: 3}
              since: {type: string, format: date-time}
              port: {x-kubernetes-int-or-string: true}
              tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}
              parts:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items: {type: object, required: [name], properties: {name: {type: string}, count: {type: integer, default: 1}}}
`

func gadget(spec string) string {
	return `{apiVersion: example.com/v1, kind: Gadget, metadata: {name: g, namespace: ns}, spec: {` + spec + `}}`
}

func TestCustomRules(t *testing.T) {
	for _, tc := range []struct{ name, spec, want string }{
		{"fine", "size: 1, port: http, tags: [a, b], parts: [{name: a}, {name: b}]", ""},
		{"required", "mode: fast", "spec.size: Required value"},
		{"type", "size: x", "spec.size: Invalid value: \"string\": spec.size in body must be of type integer: \"string\""},
		{"minimum", "size: 0", "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"},
		{"maximum", "size: 10", "spec.size: Invalid value: 10: spec.size in body should be less than or equal to 9"},
		{"enum", "size: 1, mode: odd", `spec.mode: Unsupported value: "odd": supported values: "fast", "slow"`},
		{"pattern", "size: 1, code: A", "spec.code in body should match '^[a-z]+$'"},
		{"length", "size: 1, code: abcd", "spec.code: Too long: may not be more than 3 bytes"},
		{"format", "size: 1, since: today", "spec.since in body must be of type date-time"},
		{"set", "size: 1, tags: [a, a]", `spec.tags[1]: Duplicate value: "a"`},
		{"map", "size: 1, parts: [{name: a}, {name: a}]", `spec.parts[1]: Duplicate value`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := memory.New(memory.Options{})
			mustApply(t, c, gadgets)
			_, err := c.Create(t.Context(), object(t, gadget(tc.spec)), clusterapi.CreateOptions{})
			if tc.want == "" && err != nil || tc.want != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if tc.want == "" {
				return
			}
			mustLoad(t, c, gadget(tc.spec))
			u := mustGet(t, c, object(t, gadget("")).GroupVersionKind(), "ns", "g")
			u.SetLabels(map[string]string{"a": "b"})
			checktest.Good(t, checktest.Err(c.Update(t.Context(), u, clusterapi.UpdateOptions{})))
		})
	}
}

func TestDefaults(t *testing.T) {
	c := memory.New(memory.Options{})
	mustApply(t, c, gadgets)
	u := mustApply(t, c, gadget("size: 1, parts: [{name: a}]"))
	count := func() any { return at(u, "spec", "parts").([]any)[0].(map[string]any)["count"] }
	if at(u, "spec", "mode") != "slow" || count() != int64(1) {
		t.Errorf("written: %v", u.Object["spec"])
	}
	again := mustApply(t, c, gadget("size: 1, parts: [{name: a}]"))
	checktest.FailIf(t, again.GetResourceVersion() != u.GetResourceVersion(), "the same Apply again is a change")
	mustApply(t, c, strings.Replace(gadgets, `maxLength: 3}`, `maxLength: 3, default: abc}`, 1))
	read := mustGet(t, c, u.GroupVersionKind(), "ns", "g")
	checktest.FailIf(t, at(read, "spec", "code") != "abc" || read.GetResourceVersion() != u.GetResourceVersion(),
		"read after the definition got another default: %v", read.Object)
	u, err := c.Create(t.Context(), object(t, strings.Replace(gadget("size: 1, extra: x"), "name: g", "name: h", 1)), clusterapi.CreateOptions{})
	checktest.FailIf(t, err != nil || at(u, "spec", "extra") != nil, "an unknown field is not pruned: %v, %v", u, err)
}
