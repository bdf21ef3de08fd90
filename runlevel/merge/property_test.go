package merge_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/runlevel/merge"
)

// choices are values of fields by path, with nothing as a choice of each.
type choices map[string][]string

var (
	podChoices = choices{
		"dnsPolicy": {"Default", "ClusterFirst"}, "hostNetwork": {"true", "false"}, "restartPolicy": {"Always"}, "serviceAccountName": {"a", "b"},
		"nodeSelector": {"{a: x}", "{a: v, b: x}", "{}"}, "affinity": {"{}", "{nodeAffinity: {}}"}, "priority": {"0", "1"}, "terminationGracePeriodSeconds": {"30", "0"},
		"tolerations":     {"[]", "[{key: a}]", "[{key: b}, {key: a}]", "[{key: b}, {key: b}]"},
		"securityContext": {"{}", "{runAsUser: 1}", "{supplementalGroups: [1, 1]}", "{supplementalGroups: [2], sysctls: [{name: a, value: x}]}", "{sysctls: [{name: a, value: w}, {name: a, value: x}]}"},
		"volumes":         {"[]", "[{name: a}]", "[{name: a, emptyDir: {}}, {name: b, configMap: {name: x}}]", "[{name: b, configMap: {name: x, defaultMode: 420}}, {name: a, hostPath: {path: p}}]"},
		"hostPID":         {"true"},
	}
	containerChoices = choices{
		"image": {"i", "j"}, "command": {"[]", "[a]", "[b]"}, "env": {"[{name: A}]", "[{name: A, value: x}, {name: A}]"},
		"ports":           {"[]", "[{name: a, containerPort: 1}]", "[{containerPort: 1}, {containerPort: 2}]", "[{containerPort: 2}, {name: a, containerPort: 1, hostPort: 1}]"},
		"resources":       {"{}", "{requests: {cpu: 1000m}}", "{requests: {cpu: '1'}}", "{limits: {memory: 1Gi}}"},
		"livenessProbe":   {"{httpGet: {port: 1}}", "{exec: {command: [a]}, periodSeconds: 3}", "{}"},
		"securityContext": {"{}", "{capabilities: {}}", "{capabilities: {add: [A, A]}}", "{privileged: true, capabilities: {add: [B], drop: [A]}}"},
		"volumeMounts":    {"[{name: a, mountPath: /a}]", "[{name: b, mountPath: /b}, {name: a, mountPath: /a}]"},
		"imagePullPolicy": {"Always"},
	}
	metaChoices = choices{
		"labels": {"{}", "{a: x}", "{a: v, b: x}"}, "annotations": {"{a: x}", "{service.beta.openshift.io/inject-cabundle: 'true'}"},
		"ownerReferences": {"[]", "[{apiVersion: v1, kind: K, name: o, uid: u}]", "[{apiVersion: v1, kind: K, name: p, uid: u}, {apiVersion: v1, kind: K, name: q, uid: u}]"},
	}
	kindChoices = map[string]choices{
		"v1 Service": {"type": {"NodePort", "ClusterIP"}, "selector": {"{a: x}", "{}"}, "sessionAffinity": {"None"},
			"ports": {"[]", "[{port: 1}]", "[{port: 2}, {port: 1}]", "[{name: a, port: 1, nodePort: 3}]", "[{name: b, port: 1}, {name: a, port: 1}]"}},
		"apiextensions.k8s.io/v1 CustomResourceDefinition": {"names": {"{kind: K}", "{kind: K, listKind: L}"}, "group": {"a", "b"},
			"versions":   {"[{name: v1, schema: {openAPIV3Schema: {default: {}}}}]", "[{name: v1, schema: {openAPIV3Schema: {nullable: false}}}]", "[{name: v1}]"},
			"conversion": {"{strategy: None}", "{strategy: Webhook, webhook: {clientConfig: {caBundle: eA==, service: {name: s}}}}", "{strategy: Webhook, webhook: {clientConfig: {service: {name: s}}}}"}},
		"image.openshift.io/v1 ImageStream": {"lookupPolicy": {"{local: true}", "{local: false}"},
			"tags": {"[{name: a}]", "[{name: b, importPolicy: {scheduled: true}}, {name: a, from: {kind: DockerImage, name: x}}]"}},
		"operators.coreos.com/v1 OperatorGroup":               {"selector": {"{}", "{matchLabels: {a: b}}"}, "targetNamespaces": {"[]", "[a]"}, "serviceAccountName": {"a", "b"}, "upgradeStrategy": {"Default", "TechPreviewUnsafeFailForward"}},
		"batch/v1 Job":                                        {"parallelism": {"1", "2"}, "suspend": {"true", "false"}, "backoffLimit": {"6", "1"}},
		"batch/v1 CronJob":                                    {"suspend": {"true", "false"}, "schedule": {"a", "b"}, "failedJobsHistoryLimit": {"1", "2"}, "jobTemplate": {"{}", "{metadata: {labels: {a: x}}, spec: {backoffLimit: 3}}"}},
		"example.io/v1 Widget":                                {"a": {"{}", "{b: 1}"}, "c": {"[]", "[1]", "[1.0]", "null"}},
		"networking.k8s.io/v1 NetworkPolicy":                  {"podSelector": {"{}", "{matchLabels: {}}"}, "ingress": {"[]", "[{}]", "[{from: []}]"}},
		"security.openshift.io/v1 SecurityContextConstraints": {},
		"apps/v1 Deployment":                                  {"replicas": {"1", "2"}, "paused": {"true", "false"}, "strategy": {"{}", "{type: Recreate}", "{rollingUpdate: {maxSurge: 1}}", "{type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 25%}}"}, "progressDeadlineSeconds": {"5", "600"}},
		"apps/v1 DaemonSet":                                   {"updateStrategy": {"{type: OnDelete}"}, "minReadySeconds": {"5"}},
	}
)

// draw returns a map with some of the choices.
func (c choices) draw(t *rapid.T, tb testing.TB) map[string]any {
	out := make(map[string]any)
	for _, path := range sortedKeys(c) {
		if i := rapid.IntRange(-1, len(c[path])-1).Draw(t, path); i >= 0 {
			maps.Copy(out, object(tb, "{apiVersion: x, kind: x, "+path+": "+c[path][i]+"}").Object)
		}
	}
	delete(out, "apiVersion")
	delete(out, "kind")
	return out
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}

func drawObject(t *rapid.T, tb testing.TB, kind string) *unstructured.Unstructured {
	version, name, _ := strings.Cut(kind, " ")
	spec := kindChoices[kind].draw(t, tb)
	pods := func() map[string]any {
		var containers []any
		for _, name := range []string{"a", "b"} {
			if rapid.Bool().Draw(t, "container "+name) {
				c := containerChoices.draw(t, tb)
				c["name"] = name
				containers = append(containers, c)
			}
		}
		if len(containers) == 2 && rapid.Bool().Draw(t, "swap") {
			containers[0], containers[1] = containers[1], containers[0]
		}
		out := podChoices.draw(t, tb)
		out["containers"] = containers
		return map[string]any{"metadata": metaChoices.draw(t, tb), "spec": out}
	}
	switch name {
	case "Deployment", "DaemonSet", "Job":
		spec["template"] = pods()
	}
	meta := metaChoices.draw(t, tb)
	meta["name"], meta["resourceVersion"] = "o", "7"
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": name, "metadata": meta, "spec": spec}}
}

// Whatever is there and whatever is wanted: what is merged is not changed by merging
// again, and neither input is written to.
func TestMergeRapid(t *testing.T) {
	kinds := sortedKeys(kindChoices)
	rapid.Check(t, func(rt *rapid.T) {
		kind := rapid.SampledFrom(kinds).Draw(rt, "kind")
		existing, required := drawObject(rt, t, kind), drawObject(rt, t, kind)
		beforeE, beforeR := existing.DeepCopy(), required.DeepCopy()
		merged, changed, err := merge.Merge(existing, required)
		checktest.OK(rt, err)
		again, twice, err := merge.Merge(merged, required)
		if err != nil || twice {
			rt.Fatalf("merged again: %v %s", err, cmp.Diff(merged.Object, again.Object))
		}
		if diff := cmp.Diff([]any{beforeE.Object, beforeR.Object}, []any{existing.Object, required.Object}); diff != "" {
			rt.Fatalf("an input was written to: %s", diff)
		}
		if changed {
			scribble(merged.Object)
			if diff := cmp.Diff([]any{beforeE.Object, beforeR.Object}, []any{existing.Object, required.Object}); diff != "" {
				rt.Fatalf("shared with an input: %s", diff)
			}
		}
	})
}

// scribble writes to every map and list.
func scribble(v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			scribble(e)
		}
		v["scribbled"] = true
	case []any:
		for i, e := range v {
			scribble(e)
			v[i] = "scribbled"
		}
	}
}

// FuzzMerge: no input makes it panic, and what it returns is merged once and for
// all, but for what a generic object has beside the manifest's keys.
func FuzzMerge(f *testing.F) {
	for _, kind := range sortedKeys(kindChoices) {
		version, name, _ := strings.Cut(kind, " ")
		f.Add(version, name, `{"metadata":{"name":"o","labels":{"a":"b"}},"spec":{"replicas":1,"template":{"spec":{"containers":[{"name":"a"}]}}}}`, `{"metadata":{"name":"o"},"spec":{"ports":[{"port":1}],"tags":[{"name":"a"}]}}`)
	}
	f.Fuzz(func(t *testing.T, version, kind, a, b string) {
		var objs [2]*unstructured.Unstructured
		for i, text := range []string{a, b} {
			var content map[string]any
			if json.Unmarshal([]byte(text), &content) != nil || content == nil {
				return
			}
			content["apiVersion"], content["kind"] = version, kind
			objs[i] = &unstructured.Unstructured{Object: content}
		}
		existing, required := objs[0], objs[1]
		beforeE, beforeR := existing.DeepCopy(), required.DeepCopy()
		merged, changed, err := merge.Merge(existing, required)
		if diff := cmp.Diff([]any{beforeE.Object, beforeR.Object}, []any{existing.Object, required.Object}); diff != "" {
			t.Fatalf("an input was written to: %s", diff)
		}
		if err != nil || !changed {
			return
		}
		for key := range merged.Object {
			if _, ok := required.Object[key]; !ok && key != "status" {
				return // of others: written for ever, if the kind is a generic one
			}
		}
		again, twice, err := merge.Merge(merged, required)
		if err != nil || twice {
			t.Fatalf("merged again: %v %s", err, cmp.Diff(merged.Object, again.Object))
		}
	})
}
