package preview_test

import (
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/runlevel/preview"
)

// Each action, with its reason and fields.
func TestActions(t *testing.T) {
	const configMap = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns, annotations: {note: x}}, data: {a: %}}"
	cm := func(value string) string { return strings.Replace(configMap, "%", value, 1) }
	const deletion = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns, annotations: {release.openshift.io/delete: 'true'}}}"
	const operator = `
apiVersion: config.openshift.io/v1
kind: ClusterOperator
metadata: {name: c, annotations: {note: x}}
spec: {}
status: {versions: [{name: operator, version: "2"}, {name: c, version: "1.2"}]}`
	for _, tt := range []struct {
		name, cluster, manifests string
		filter                   manifest.Filter
		action                   preview.Action
		paths                    []string
		reason                   string // contained
	}{
		{"create", "", cm("x"), manifest.Filter{}, preview.Create, nil, ""},
		{"update", cm("x"), cm("yy"), manifest.Filter{}, preview.Update, []string{"data.a"}, ""},
		{"keep", cm("x"), cm("x"), manifest.Filter{}, "Keep", nil, ""},
		{"delete", cm("x"), deletion, manifest.Filter{}, preview.Delete, nil, ""},
		{"absent", "", deletion, manifest.Filter{}, "Absent", nil, ""},
		{"deleted before it is created again", cm("x"), deletion + "\n---\n" + cm("yy"), manifest.Filter{}, preview.Update, []string{"data.a"}, ""},
		{"a deletion whose value is no boolean", cm("x"), strings.Replace(deletion, "'true'", "'yes'", 1), manifest.Filter{}, preview.Fail, nil, `invalid delete annotation`},
		{"skip, and what it lacks", cm("x"), strings.Replace(cm("yy"), "note: x", "release.openshift.io/create-only: 'TRUE'", 1), manifest.Filter{}, "Skip",
			[]string{"data.a", `metadata.annotations["release.openshift.io/create-only"]`}, "only creates it"},
		{"skip, with what the manifest leaves to defaults", "{apiVersion: v1, kind: Service, metadata: {name: s, namespace: ns}, spec: {type: NodePort, ports: [{name: a, port: 1}]}}",
			"{apiVersion: v1, kind: Service, metadata: {name: s, namespace: ns, annotations: {release.openshift.io/create-only: 'true'}}, spec: {ports: [{name: a, port: 1}]}}", manifest.Filter{}, "Skip",
			[]string{"metadata.annotations"}, "only creates it"},
		{"create-only, and not there", "", strings.Replace(cm("yy"), "note: x", "release.openshift.io/create-only: 'true'", 1), manifest.Filter{}, preview.Create, nil, ""},
		{"unmanaged", cm("x"), cm("yy"), manifest.Filter{Overrides: []configv1.ComponentOverride{{Kind: "ConfigMap", Namespace: "ns", Name: "c", Unmanaged: true}}},
			"Unmanaged", nil, "override"},
		{"excluded", cm("x"), strings.Replace(cm("yy"), "note: x", "capability.openshift.io/name: Nope", 1), manifest.Filter{Capabilities: &manifest.Capabilities{Known: sets.New("Nope")}},
			"Excluded", nil, "Capability: disabled capabilities: Nope"},
		{"operator that is there", operator, operator, manifest.Filter{}, "Keep", nil, "awaited: operator 2, c 1.2"},
		{"operator that is not there", "", operator, manifest.Filter{}, preview.Create, nil, ""},
		{"two manifests of one object", cm("x"), cm("x") + "\n---\n" + strings.Replace(cm("x"), "a: x", "b: x", 1), manifest.Filter{}, preview.Update, []string{"data.b"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := cluster(t, tt.cluster)
			tasks := manifest.NewTasks(manifestsOf(t, tt.manifests))
			p := checktest.Get(preview.Run(t.Context(), tasks, preview.Options{Reader: c, Filter: tt.filter}))(t)
			if len(p.Changes) != 1 {
				t.Fatalf("%d changes", len(p.Changes))
			}
			got := p.Changes[0]
			if got.Action != tt.action || !strings.Contains(got.Reason, tt.reason) || tt.reason == "" && got.Reason != "" {
				t.Errorf("%s: %q", got.Action, got.Reason)
			}
			checktest.Same(t, tt.paths, paths(got))
			if len(got.Tasks) != len(tasks) {
				t.Errorf("tasks %v", got.Tasks)
			}
			if n := p.Count(tt.action); n != 1 || p.Summary()[tt.action][got.Object.Kind] != 1 {
				t.Errorf("counts %d, %v", n, p.Summary())
			}
			if got.Object.Kind == "ClusterOperator" {
				want := []configv1.OperandVersion{{Name: "operator", Version: "2"}, {Name: "c", Version: "1.2"}}
				checktest.Same(t, want, got.Awaited)
			}
		})
	}
}

// Payload.Excluded, which tasks do not hold, comes last; an object that another
// manifest states is not excluded.
func TestExcludedOnLoading(t *testing.T) {
	p := payload(t, "2", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns}}")
	for i, m := range manifestsOf(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: ns}}`) {
		v := manifest.Verdict{Rule: "Profile", Reason: []string{"one", "two"}[i]}
		p.Excluded = append(p.Excluded, manifest.Exclusion{Manifest: m, Verdict: v})
	}
	got := checktest.Get(preview.Run(t.Context(), p.Tasks(), preview.Options{Reader: cluster(t, ""), Payload: p}))(t)
	if len(got.Changes) != 2 || got.Changes[0].Action != preview.Create || got.Changes[1].Action != "Excluded" || got.Changes[1].Reason != "Profile: two" {
		t.Errorf("%+v", got.Changes)
	}
	if got.Release != (preview.Release{Version: "2", Hash: "hash-2"}) {
		t.Errorf("release %+v", got.Release)
	}
}

// Defaults of built-in kinds and of definitions are no change, and neither are
// other words for the same value.
func TestSameMeaning(t *testing.T) {
	for _, tt := range []struct{ name, cluster, manifest string }{
		{"default of a kind", `
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, namespace: ns, annotations: {note: x}}
spec:
  replicas: 1
  revisionHistoryLimit: 10
  progressDeadlineSeconds: 600
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 25%}}
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}, creationTimestamp: null}
    spec:
      restartPolicy: Always
      dnsPolicy: ClusterFirst
      schedulerName: default-scheduler
      securityContext: {}
      terminationGracePeriodSeconds: 30
      containers:
      - name: c
        image: example.com/c@sha256:1
        imagePullPolicy: IfNotPresent
        terminationMessagePath: /dev/termination-log
        terminationMessagePolicy: File
        resources: {requests: {cpu: 1, memory: 1Gi}}
        ports: [{containerPort: 80, protocol: TCP}]`, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, namespace: ns, annotations: {note: x}, labels: {}}
spec:
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec:
      volumes: []
      containers:
      - name: c
        image: example.com/c@sha256:1
        resources: {requests: {cpu: 1000m, memory: 1024Mi}}
        ports: [{containerPort: 80}]`},
		{"group of a role", `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: b, namespace: ns, annotations: {note: x}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}
subjects: [{kind: ServiceAccount, name: s, namespace: ns}, {kind: Group, apiGroup: rbac.authorization.k8s.io, name: g}]`, `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: b, namespace: ns, annotations: {note: x}}
roleRef: {kind: Role, name: r, apiGroup: rbac.authorization.k8s.io}
subjects: [{kind: ServiceAccount, name: s, namespace: ns, apiGroup: ""}, {kind: Group, name: g, apiGroup: rbac.authorization.k8s.io}]`},
		{"default of a definition", strings.Replace(thing, "SPEC", "{size: 3, mode: Auto}", 1), strings.Replace(thing, "SPEC", "{size: 3}", 1)},
		{"set in another order", strings.Replace(thing, "SPEC", "{size: 3, tags: [a, b]}", 1), strings.Replace(thing, "SPEC", "{size: 3, tags: [b, a]}", 1)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := cluster(t, thingDefinition+"\n---\n"+tt.cluster)
			p := run(t, c, tt.manifest)
			if got := p.Changes[0]; got.Action != "Keep" {
				t.Errorf("%s: %s %v", got.Action, got.Reason, got.Fields)
			}
		})
	}
}

const thing = "{apiVersion: example.com/v1, kind: Thing, metadata: {name: t, namespace: ns, annotations: {note: x}}, spec: SPEC}"

const thingDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com, annotations: {note: x}}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Thing, plural: things, singular: thing, listKind: ThingList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: integer, description: how large}
              mode: {type: string, enum: [Auto, Manual], default: Auto}
              host: {type: string, pattern: "^[a-z]+$"}
              tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}
              parts:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items: {type: object, required: [name], properties: {name: {type: string}, count: {type: integer}}}`

// Every kind of refusal is found, and stops nothing, within its node too.
func TestFail(t *testing.T) {
	deployment := `
apiVersion: apps/v1
kind: KIND
metadata: {name: d, namespace: ns, annotations: {note: x}}
spec: {selector: {matchLabels: {a: LABEL}}, template: {metadata: {labels: {a: LABEL}}, spec: {containers: [{name: c, image: i}]}}}`
	job := "{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: ns, annotations: {note: x}}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: IMAGE}]}}}}"
	binding := "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: b, annotations: {note: x}}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ROLE}}"
	class := "{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: s, annotations: {note: x}}, provisioner: P}"
	service := "{apiVersion: v1, kind: Service, metadata: {name: s, namespace: ns, annotations: {note: x}}, spec: {clusterIP: IP, ports: [{port: 1}]}}"
	frozen := "{apiVersion: v1, kind: ConfigMap, metadata: {name: f, namespace: ns, annotations: {note: x}}, immutable: true, data: {a: A}}"
	old, next := func(s, from string) string { return strings.ReplaceAll(s, from, "a1") }, func(s, from string) string { return strings.ReplaceAll(s, from, "b2") }
	for _, tt := range []struct{ name, cluster, manifest, reason string }{
		{"selector of a Deployment", old(strings.Replace(deployment, "KIND", "Deployment", 1), "LABEL"), next(strings.Replace(deployment, "KIND", "Deployment", 1), "LABEL"), "spec.selector"},
		{"selector of a DaemonSet", old(strings.Replace(deployment, "KIND", "DaemonSet", 1), "LABEL"), next(strings.Replace(deployment, "KIND", "DaemonSet", 1), "LABEL"), "spec.selector"},
		{"template of a Job", old(job, "IMAGE"), next(job, "IMAGE"), "spec.template"},
		{"roleRef", old(binding, "ROLE"), next(binding, "ROLE"), "roleRef"},
		{"StorageClass", old(class, "P"), next(class, "P"), "provisioner"},
		{"clusterIP", strings.Replace(service, "IP,", "10.0.0.1,", 1), strings.Replace(service, "IP,", "10.0.0.2,", 1), "clusterIP"},
		{"immutable ConfigMap", old(frozen, " A"), next(frozen, " A"), "immutable"},
		{"type", "", strings.Replace(thing, "SPEC", "{size: x}", 1), "spec.size"},
		{"required", "", strings.Replace(thing, "SPEC", "{}", 1), "spec.size"},
		{"enum", "", strings.Replace(thing, "SPEC", "{size: 1, mode: Nope}", 1), "spec.mode"},
		{"pattern", "", strings.Replace(thing, "SPEC", "{size: 1, host: '1'}", 1), "spec.host"},
		{"namespace that is not there", "", "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: nowhere, annotations: {note: x}}}", `namespaces "nowhere" not found`},
		{"kind that is not there", "", "{apiVersion: example.com/v1, kind: Nothing, metadata: {name: c, namespace: ns, annotations: {note: x}}}", "no matches for kind"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := cluster(t, thingDefinition+"\n---\n"+tt.cluster)
			p := run(t, c, tt.manifest+"\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: next, namespace: ns}}")
			if got := p.Changes[0]; got.Action != preview.Fail || !strings.Contains(got.Reason, tt.reason) {
				t.Errorf("%s: %s", got.Action, got.Reason)
			}
			if got := p.Changes[1]; got.Action != preview.Create {
				t.Errorf("the next one: %s %s", got.Action, got.Reason)
			}
		})
	}
}
