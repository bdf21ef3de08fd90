package merge_test

import (
	"fmt"
	"testing"
)

// Labels, annotations and owners are added or overwritten by every rule but the
// generic one, and never removed.
func TestMetadata(t *testing.T) {
	kinds := map[string]string{
		"Namespace": "v1", "ConfigMap": "v1", "ServiceAccount": "v1", "Service": "v1",
		"Role": "rbac.authorization.k8s.io/v1", "RoleBinding": "rbac.authorization.k8s.io/v1",
		"ClusterRole": "rbac.authorization.k8s.io/v1", "ClusterRoleBinding": "rbac.authorization.k8s.io/v1",
		"Deployment": "apps/v1", "DaemonSet": "apps/v1", "Job": "batch/v1", "CronJob": "batch/v1",
		"CustomResourceDefinition": "apiextensions.k8s.io/v1", "ValidatingWebhookConfiguration": "admissionregistration.k8s.io/v1",
		"SecurityContextConstraints": "security.openshift.io/v1", "ImageStream": "image.openshift.io/v1",
		"OperatorGroup": "operators.coreos.com/v1", "ClusterOperator": "config.openshift.io/v1",
	}
	const owner = `{apiVersion: v1, kind: K, name: %s, uid: "%s"}`
	for kind, version := range kinds {
		t.Run(kind, func(t *testing.T) {
			checkClauses(t, func(meta string) string {
				return fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: o, namespace: ns, %s}}", version, kind, meta)
			}, []clause{
				{name: "label added", existing: "labels: {a: x}", required: "labels: {b: z}", want: map[string]string{"metadata.labels": `{"a":"x","b":"z"}`}},
				{name: "label overwritten", existing: "labels: {a: x}", required: "labels: {a: z}", want: map[string]string{"metadata.labels": `{"a":"z"}`}},
				{name: "labels of others stay", existing: "labels: {a: x}"},
				{name: "annotation added", existing: "annotations: {a: x}", required: "annotations: {b: z}", want: map[string]string{"metadata.annotations": `{"a":"x","b":"z"}`}},
				{name: "annotations of others stay", existing: "annotations: {a: x}", required: "annotations: {}"},
				{
					name: "owner added", existing: "ownerReferences: [" + fmt.Sprintf(owner, "o", "1") + "]",
					required: "ownerReferences: [" + fmt.Sprintf(owner, "p", "2") + "]",
					want:     map[string]string{"metadata.ownerReferences[0].name": `"o"`, "metadata.ownerReferences[1].name": `"p"`},
				},
				{
					name: "owner replaced by its UID", existing: "ownerReferences: [" + fmt.Sprintf(owner, "o", "1") + "]",
					required: "ownerReferences: [" + fmt.Sprintf(owner, "p", "1") + "]",
					want:     map[string]string{"metadata.ownerReferences[0].name": `"p"`, "metadata.ownerReferences[1]": ""},
				},
				{name: "owners of others stay", existing: "ownerReferences: [" + fmt.Sprintf(owner, "o", "1") + "]"},
				{name: "namespace of a kind without", existing: "namespace: ", required: "namespace: other"},
			})
		})
	}
}

// Of a Namespace and a ClusterOperator nothing else is looked at.
func TestMetadataAlone(t *testing.T) {
	checkClauses(t, of("v1", "Namespace"), []clause{{name: "namespace", existing: "spec: {finalizers: [kubernetes]}", required: "spec: {finalizers: [x]}"}})
	checkClauses(t, of("config.openshift.io/v1", "ClusterOperator"), []clause{{
		name: "operator", existing: "status: {versions: [{name: operator, version: a}]}", required: "status: {versions: [{name: operator, version: b}]}",
	}})
}

// What the server alone writes stays as it was.
func TestServerFieldsStay(t *testing.T) {
	existing := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: o, uid: u, resourceVersion: "7", generation: 3, creationTimestamp: "2026-01-02T03:04:05Z", finalizers: [f],
		managedFields: [{manager: m, operation: Update, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:data": {}}}]}, status: {odd: 1}, unknown: x}`)
	merged := mergeOnce(t, existing, object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: o}, data: {a: b}}`), true)
	for path, want := range map[string]string{
		"metadata.uid": `"u"`, "metadata.generation": "3", "metadata.creationTimestamp": `"2026-01-02T03:04:05Z"`, "metadata.finalizers": `["f"]`,
		"metadata.managedFields[0].fieldsV1": `{"f:data":{}}`, "status": `{"odd":1}`, "data": `{"a":"b"}`,
		"unknown": "", // the Go type does not know it
	} {
		if got := at(t, merged.Object, path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
