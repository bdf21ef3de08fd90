package runlevel

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// things is a definition of Things, whose spec has these fields in v1.
func things(properties string) string {
	return `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things.example.io, annotations: {}}, spec: {group: example.io, scope: Namespaced,
  names: {plural: things, singular: thing, kind: Thing, listKind: ThingList}, versions: [
    {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: ` + properties + `}}}}},
    {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {a: {type: string}, second: {type: string}}}}}}}]}}`
}

const (
	oneField  = `{a: {type: string}}`
	twoFields = `{a: {type: string}, b: {type: string}}`
	thingOf   = `{apiVersion: example.io/v1, kind: Thing, metadata: {name: t, namespace: ns}, spec: {a: x, b: x}}`
)

func (c *calledCluster) spec(text string) any {
	c.t.Helper()
	return c.get(text).Object["spec"]
}

// A field that the definition of the payload lacks is not applied, which one warning
// tells; one that only the cluster's older definition lacks is.
func TestDefinedByPayload(t *testing.T) {
	for _, mode := range []Mode{ApplyServerSide, ApplyMerge} {
		c := newCalled(t)
		c.run(Options{Mode: mode}, things(oneField), thingOf)
		want := []string{`Filename: "0000_10_a_1.yaml" Group: "example.io" Kind: "Thing" Namespace: "ns" Name: "t": not applied, since the schema lacks them: spec.b`}
		checktest.Same(t, want, c.warnings)
		checktest.Same(t, any(map[string]any{"a": "x"}), c.spec(thingOf))
		c.run(Options{Mode: mode}, things(twoFields), thingOf) // an update brings the field
		if diff := cmp.Diff(any(map[string]any{"a": "x", "b": "x"}), c.spec(thingOf)); diff != "" || len(c.warnings) > 0 {
			t.Error(diff, c.warnings)
		}
		second := strings.NewReplacer("/v1", "/v2", "name: t,", "name: second,", "b: x", "second: x").Replace(thingOf)
		c.run(Options{Mode: mode}, things(oneField), second) // of a version with a schema of its own
		if diff := cmp.Diff(any(map[string]any{"a": "x", "second": "x"}), c.spec(second)); diff != "" || len(c.warnings) > 0 {
			t.Error(diff, c.warnings)
		}
	}
}

// A definition that the payload does not apply is that of the cluster, whatever its
// name; it counts as it is at each pass.
func TestDefinedByCluster(t *testing.T) {
	const only = `metadata: {name: things.example.io, annotations: {release.openshift.io/create-only: "true"}}`
	unusual := strings.NewReplacer("things.example.io", "thingies.example.io", "plural: things", "plural: thingies")
	for _, tt := range []struct {
		name    string
		cluster string
		payload []string
		reads   []string
	}{
		{"not in the payload", things(oneField), nil, []string{"Get CustomResourceDefinition things.example.io"}},
		{"of another plural", unusual.Replace(things(oneField)), nil, []string{"Get CustomResourceDefinition things.example.io", "List CustomResourceDefinition "}},
		{"only created", things(oneField), []string{strings.Replace(things(twoFields), `metadata: {name: things.example.io, annotations: {}}`, only, 1)}, []string{"Get CustomResourceDefinition things.example.io"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCalled(t, tt.cluster)
			texts := append(tt.payload, thingOf)
			calls := c.run(Options{}, texts...)
			if len(c.warnings) != 1 || !strings.HasSuffix(c.warnings[0], "the schema lacks them: spec.b") {
				t.Errorf("%q", c.warnings)
			}
			checktest.Same(t, any(map[string]any{"a": "x"}), c.spec(thingOf))
			of := func(calls []string) (out []string) {
				for _, call := range calls {
					if !strings.HasPrefix(call, "Create") {
						out = append(out, call)
					}
				}
				return out
			}
			checktest.Same(t, append(append([]string{"Apply Thing ns/t"}, tt.reads...), "Apply Thing ns/t"), of(calls))
			if diff := cmp.Diff(append(tt.reads[:len(tt.reads):len(tt.reads)], "Apply Thing ns/t"), of(c.run(Options{}, texts...))); diff != "" || len(c.warnings) > 0 {
				t.Error(diff, c.warnings)
			}
			// somebody updates the definition
			u := c.get(tt.cluster)
			u.Object["spec"] = object(t, strings.Replace(tt.cluster, oneField, twoFields, 1)).Object["spec"]
			checktest.Get(c.Cluster.Update(t.Context(), u, clusterapi.UpdateOptions{}))(t)
			c.run(Options{}, texts...)
			checktest.Same(t, any(map[string]any{"a": "x", "b": "x"}), c.spec(thingOf))
		})
	}
}

// While the cluster still has an older definition, what the payload's has is not left
// out: the task is tried again.
func TestDefinitionIsLate(t *testing.T) {
	c := newCalled(t, things(oneField))
	texts := []string{thingOf, things(twoFields)}
	o := Options{API: c, Backoff: &Backoff{Steps: 1}, Workers: 1}
	if _, err := Run(t.Context(), tasksOf(t, texts...), o); err == nil || !strings.Contains(causeOf(err), "spec.b") {
		t.Errorf("%v", causeOf(err))
	}
	if _, err := c.Get(t.Context(), object(t, thingOf).GroupVersionKind(), clusterapi.Key("ns", "t")); err == nil {
		t.Error("it was applied without the field")
	}
}

// What is refused for another reason stays refused, and what several manifests of a
// definition make together counts.
func TestDefinedOddly(t *testing.T) {
	c := newCalled(t, things(oneField))
	wrong := `{apiVersion: example.io/v1, kind: Thing, metadata: {name: t, namespace: ns}, spec: {a: 7}}`
	_, err := Run(t.Context(), tasksOf(t, wrong), Options{API: c, Backoff: &Backoff{Steps: 1}})
	if err == nil || !strings.Contains(causeOf(err), "spec.a") {
		t.Errorf("%v", causeOf(err))
	}
	c = newCalled(t)
	annotated := strings.Replace(things(oneField), "annotations: {}", "annotations: {more: x}", 1)
	c.run(Options{}, things(oneField), annotated, thingOf)
	if len(c.warnings) == 0 || !strings.HasSuffix(c.warnings[len(c.warnings)-1], "the schema lacks them: spec.b") {
		t.Errorf("%q", c.warnings)
	}
	if _, ok, _ := unstructured.NestedString(c.get(thingOf).Object, "spec", "b"); ok {
		t.Error("the field is there")
	}
}
