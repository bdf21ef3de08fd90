package apiserver_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/internal/apiserver"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// parse reads a YAML object, its numbers as int64.
func parse(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	raw := checktest.Get(yaml.YAMLToJSON([]byte(text)))(t)
	u := &unstructured.Unstructured{}
	checktest.OK(t, u.UnmarshalJSON(raw))
	return u
}

func TestFill(t *testing.T) {
	for _, tt := range objects {
		t.Run(tt.kind+" "+tt.name, func(t *testing.T) {
			whole := func(fields string) *unstructured.Unstructured {
				return parse(t, "{apiVersion: "+tt.version+", kind: "+tt.kind+", "+fields+"}")
			}
			in := whole(tt.in)
			before := in.DeepCopy()
			got := apiserver.Fill(in)
			checktest.Same(t, whole(tt.want).Object, got.Object)
			checktest.SameIn(t, "the object itself has changed", before.Object, in.Object)
		})
	}
}

// What is not of its type is left alone, and so is what is null in a list.
func TestFillOdd(t *testing.T) {
	for _, text := range []string{
		`{apiVersion: v1, kind: Service, spec: [a]}`,
		`{apiVersion: v1, kind: Service}`,
		`{apiVersion: apps/v1, kind: Deployment, spec: text}`,
		`{apiVersion: v1, kind: Namespace, metadata: 1, spec: 2}`,
		`{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, webhooks: [null, 1]}`,
		`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: true}`,
		`{apiVersion: example.io/v1, kind: Deployment, spec: {}}`,
		`{apiVersion: v1, kind: ConfigMap, data: {}}`,
	} {
		in := parse(t, text)
		checktest.SameIn(t, text, in.Object, apiserver.Fill(in).Object)
	}
}

func TestAllocated(t *testing.T) {
	service := schema.GroupKind{Kind: "Service"}
	job := schema.GroupKind{Group: "batch", Kind: "Job"}
	daemonSet := schema.GroupKind{Group: "apps", Kind: "DaemonSet"}
	for _, tt := range []struct {
		kind schema.GroupKind
		path string
		want bool
	}{
		{service, "spec.clusterIP", true},
		{service, `spec.clusterIPs[="10.0.0.1"]`, true},
		{service, "spec.clusterIPs", true},
		{service, "spec.ipFamilies[0]", true},
		{service, "spec.ipFamilyPolicy", true},
		{service, "spec.healthCheckNodePort", true},
		{service, "spec.ports[port=80,protocol=TCP].nodePort", true},
		{service, "spec.ports[port=80,protocol=TCP].port", false},
		{service, "spec.clusterIPsOfOthers", false},
		{service, "spec.type", false},
		{job, "spec.selector", true},
		{job, `spec.selector.matchLabels["batch.kubernetes.io/controller-uid"]`, true},
		{job, `metadata.labels["job-name"]`, true},
		{job, "spec.template.metadata.labels.job", true},
		{job, "spec.template.spec.restartPolicy", false},
		{job, "metadata.annotations.a", false},
		{daemonSet, `metadata.annotations["deprecated.daemonset.template.generation"]`, true},
		{daemonSet, "metadata.annotations.a", false},
		{schema.GroupKind{Group: "example.io", Kind: "Service"}, "spec.clusterIP", false},
	} {
		checktest.Equal(t, tt.want, apiserver.Allocated(tt.kind, tt.path), "%s %s", tt.kind, tt.path)
	}
}

func TestDefaultsFill(t *testing.T) {
	for _, tt := range []struct{ name, schema, in, want string }{
		{"absent field", `{properties: {a: {default: 1}, b: {type: string}}}`, `{}`, `{a: 1}`},
		{"field that is set", `{properties: {a: {default: 1}}}`, `{a: 2}`, `{a: 2}`},
		{"empty and zero are set", `{properties: {a: {default: x}, b: {default: 1}, c: {default: true}}}`, `{a: "", b: 0, c: false}`, `{a: "", b: 0, c: false}`},
		{"null", `{properties: {a: {default: 1}}}`, `{a: null}`, `{a: 1}`},
		{"null that is allowed", `{properties: {a: {default: 1, nullable: true}}}`, `{a: null}`, `{a: null}`},
		{"null without a default", `{properties: {a: {type: string}}}`, `{a: null}`, `{a: null}`},
		{"below a default", `{properties: {a: {default: {}, properties: {b: {default: 1}}}}}`, `{}`, `{a: {b: 1}}`},
		{"below what is absent", `{properties: {a: {properties: {b: {default: 1}}}}}`, `{}`, `{}`},
		{"elements", `{properties: {l: {items: {properties: {a: {default: x}}}}}}`, `{l: [{}, {a: y}, 1]}`, `{l: [{a: x}, {a: y}, 1]}`},
		{"other keys", `{properties: {m: {properties: {a: {}}, additionalProperties: {properties: {b: {default: 1}}}}}}`, `{m: {a: {}, c: {}}}`, `{m: {a: {}, c: {b: 1}}}`},
		{"any other keys", `{additionalProperties: true}`, `{a: {}}`, `{a: {}}`},
		{"a value of another type", `{properties: {a: {properties: {b: {default: 1}}}}}`, `{a: [x]}`, `{a: [x]}`},
		{"default null", `{properties: {a: {default: null, nullable: true}}}`, `{}`, `{}`},
	} {
		s := parse(t, `{apiVersion: v1, kind: S, s: `+tt.schema+`}`).Object["s"].(map[string]any)
		v := func(text string) any { return parse(t, `{apiVersion: v1, kind: S, v: `+text+`}`).Object["v"] }
		in := v(tt.in)
		checktest.SameIn(t, tt.name, v(tt.want), apiserver.ReadDefaults(s).Fill(in))
		checktest.SameIn(t, fmt.Sprintf("%s: the value itself has changed", tt.name), v(tt.in), in)
	}
	checktest.Same(t, any(map[string]any{"a": nil}), apiserver.ReadDefaults(nil).Fill(map[string]any{"a": nil}))
}
