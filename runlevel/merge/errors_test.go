package merge_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/runlevel/merge"
)

func mergeError(t *testing.T, existing, required string) string {
	t.Helper()
	merged, changed, err := merge.Merge(object(t, existing), object(t, required))
	if err == nil || merged != nil || changed {
		t.Fatalf("%v %t %v for %s", merged, changed, err, required)
	}
	return err.Error()
}

// A field of the wrong type is an error that names it, in either object.
func TestWrongTypes(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{deploymentOf("replicas: x"), "Deployment ns/o: spec.replicas: "},
		{deploymentOf("replicas: 99999999999"), "Deployment ns/o: "},
		{containerOf("ports: {}"), "Deployment ns/o: spec.template.spec.containers[0].ports: "},
		{podsOf("containers: x"), "Deployment ns/o: spec.template.spec.containers: "},
		{containerOf("resources: {requests: {cpu: much}}"), "Deployment ns/o: spec.template.spec.containers[0].resources.requests.cpu: "},
		{of("v1", "ConfigMap")("data: {a: 1}"), "ConfigMap ns/o: data.a: "},
		{of("v1", "ConfigMap")("binaryData: {a: '%'}"), "ConfigMap ns/o: binaryData.a: "},
		{of("v1", "Service")("spec: []"), "Service ns/o: spec: "},
		{of("operators.coreos.com/v1", "OperatorGroup")("spec: {targetNamespaces: a}"), "OperatorGroup ns/o: spec.targetNamespaces: "},
		{"{apiVersion: example.io/v1, kind: Widget, metadata: {name: o, labels: {a: 1}}}", "Widget o: metadata.labels.a: "},
		{"{apiVersion: example.io/v1, kind: Widget, metadata: {name: o, ownerReferences: {}}}", "Widget o: metadata.ownerReferences: "},
	} {
		good := object(t, tc.text)
		good = &unstructured.Unstructured{Object: map[string]any{"apiVersion": good.GetAPIVersion(), "kind": good.GetKind(), "metadata": map[string]any{"name": "o"}}}
		raw := checktest.Get(good.MarshalJSON())(t)
		if got := mergeError(t, tc.text, string(raw)); !strings.Contains(got, "the object in the cluster: "+tc.want) {
			t.Errorf("%s, want %s", got, tc.want)
		}
		if got := mergeError(t, string(raw), tc.text); !strings.Contains(got, "the manifest: "+tc.want) {
			t.Errorf("%s, want %s", got, tc.want)
		}
		if got := mergeError(t, tc.text, tc.text); strings.Count(got, tc.want) != 2 {
			t.Errorf("%s: both are faulty", got)
		}
	}
}

func TestErrors(t *testing.T) {
	job := of("batch/v1", "Job")
	if got := mergeError(t, job("spec: {template: {}}"), job("spec: {template: {}, selector: {}}")); !strings.Contains(got, "the manifest: Job ns/o: spec.selector: ") {
		t.Error(got)
	}
	cron := of("batch/v1", "CronJob")
	if got := mergeError(t, cron("spec: {}"), cron("spec: {jobTemplate: {spec: {selector: {}}}}")); !strings.Contains(got, "the manifest: CronJob ns/o: spec.jobTemplate.spec.selector: ") {
		t.Error(got)
	}
	if got := mergeError(t, of("v1", "Pod")(""), of("v1", "Secret")("")); !strings.Contains(got, "Kind=Secret") || !strings.Contains(got, "Kind=Pod") {
		t.Error(got)
	}
	if _, _, err := merge.Merge(nil, object(t, job(""))); err == nil {
		t.Error("nil is merged")
	}
	if _, _, err := merge.Merge(object(t, job("")), nil); err == nil {
		t.Error("nil is merged")
	}
	empty := &unstructured.Unstructured{}
	if _, changed, err := merge.Merge(empty, empty); err != nil || changed {
		t.Error(changed, err)
	}
}
