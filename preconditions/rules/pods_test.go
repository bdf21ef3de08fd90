package rules_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/preconditions/rules"
)

// slim is what checks look at of a pod.
func slim(p *corev1.Pod) *corev1.Pod {
	out := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: p.Name, Namespace: p.Namespace, UID: p.UID, Labels: p.Labels, Annotations: p.Annotations, DeletionTimestamp: p.DeletionTimestamp, Finalizers: p.Finalizers,
	}}
	for _, r := range p.OwnerReferences {
		r.BlockOwnerDeletion = nil
		out.OwnerReferences = append(out.OwnerReferences, r)
	}
	s := p.Spec
	out.Spec = corev1.PodSpec{NodeName: s.NodeName, NodeSelector: s.NodeSelector, Affinity: s.Affinity, Overhead: s.Overhead, TerminationGracePeriodSeconds: s.TerminationGracePeriodSeconds}
	for _, t := range s.Tolerations {
		t.TolerationSeconds = nil
		out.Spec.Tolerations = append(out.Spec.Tolerations, t)
	}
	for _, v := range s.Volumes {
		if v.EmptyDir != nil {
			out.Spec.Volumes = append(out.Spec.Volumes, corev1.Volume{Name: v.Name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		}
	}
	containers := func(all []corev1.Container) (out []corev1.Container) {
		for _, c := range all {
			out = append(out, corev1.Container{RestartPolicy: c.RestartPolicy, Resources: corev1.ResourceRequirements{Requests: c.Resources.Requests}})
		}
		return out
	}
	out.Spec.InitContainers, out.Spec.Containers = containers(s.InitContainers), containers(s.Containers)
	if s.Resources != nil {
		out.Spec.Resources = &corev1.ResourceRequirements{Requests: s.Resources.Requests}
	}
	out.Status.Phase = p.Status.Phase
	for _, c := range p.Status.Conditions {
		out.Status.Conditions = append(out.Status.Conditions, corev1.PodCondition{Type: c.Type, Status: c.Status})
	}
	return out
}

// Pods are decoded as the API machinery decodes them, as far as anybody looks; those
// that it cannot decode neither are.
func TestDecodePods(t *testing.T) {
	odd := []any{nil, "x", "2Gi", int64(3), true, "2026-01-02T03:04:05Z", map[string]any{}, []any{}, 1.5}
	good := map[string][]any{
		"labels": {map[string]any{"a": "b"}, map[string]any{}}, "annotations": {map[string]any{"a": "b"}}, "nodeSelector": {map[string]any{"a": "b"}},
		"deletionTimestamp": {"2026-01-02T03:04:05Z"}, "finalizers": {[]any{"a", "b"}, []any{}}, "controller": {true, false},
		"overhead": {map[string]any{"cpu": "250m"}}, "terminationGracePeriodSeconds": {int64(30)}, "emptyDir": {map[string]any{}, map[string]any{"medium": "Memory"}},
		"resources": {map[string]any{"requests": map[string]any{"cpu": "1", "memory": "1Gi"}}, map[string]any{}}, "cpu": {"100m", "1", int64(2), 1.5, "1e3"}, "memory": {"2Gi", int64(5)},
		"nodeAffinity": {map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": map[string]any{"nodeSelectorTerms": []any{}}}}, "podAffinity": {map[string]any{}},
	}
	strange := false // whether this pod may have what cannot be decoded
	value := func(t *rapid.T, name, key string) any {
		if strange && rapid.IntRange(0, 80).Draw(t, name+"."+key+" is odd") == 0 {
			return rapid.SampledFrom(odd).Draw(t, name+"."+key)
		}
		if len(good[key]) > 0 {
			return rapid.SampledFrom(good[key]).Draw(t, name+"."+key)
		}
		return rapid.SampledFrom([]any{"", "x", "Always", "True"}).Draw(t, name+"."+key)
	}
	object := func(t *rapid.T, name string, keys ...string) map[string]any {
		out := map[string]any{}
		for _, key := range keys {
			if rapid.Bool().Draw(t, name+" has "+key) {
				out[key] = value(t, name, key)
			}
		}
		return out
	}
	list := func(t *rapid.T, name string, keys ...string) any {
		var out []any
		for i := range rapid.IntRange(0, 2).Draw(t, name) {
			out = append(out, object(t, fmt.Sprint(name, i), keys...))
		}
		if strange && rapid.IntRange(0, 80).Draw(t, name+" is odd") == 0 {
			return rapid.SampledFrom(odd).Draw(t, name+" as")
		}
		return out
	}
	pods, decoded := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		pods++
		strange = rapid.Bool().Draw(t, "strange")
		meta := object(t, "metadata", "uid", "labels", "annotations", "deletionTimestamp", "finalizers")
		meta["name"], meta["namespace"] = "p", "ns"
		meta["ownerReferences"] = list(t, "ownerReferences", "apiVersion", "kind", "name", "uid", "controller")
		spec := object(t, "spec", "nodeName", "nodeSelector", "overhead", "terminationGracePeriodSeconds", "resources")
		spec["tolerations"] = list(t, "tolerations", "key", "operator", "value", "effect")
		spec["volumes"] = list(t, "volumes", "name", "emptyDir")
		spec["containers"] = []any{map[string]any{"name": "c", "resources": map[string]any{"requests": object(t, "requests", "cpu", "memory")}}}
		if rapid.Bool().Draw(t, "with init containers") {
			spec["initContainers"] = list(t, "initContainers", "restartPolicy", "resources")
		}
		if rapid.IntRange(0, 4).Draw(t, "affinity") == 0 {
			spec["affinity"] = object(t, "affinity", "nodeAffinity", "podAffinity")
		}
		status := object(t, "status", "phase")
		status["conditions"] = list(t, "conditions", "type", "status")
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": status}}
		want, wantErr := clusterapi.FromUnstructured[corev1.Pod](u.DeepCopy())
		got, err := rules.DecodePods([]*clusterapi.Object{clusterapi.NewObject(u)})
		checktest.FatalIf(t, (err != nil) != (wantErr != nil), "error %v, want %v", err, wantErr)
		if err != nil {
			return
		}
		decoded++
		checktest.Same(t, slim(want), slim(got[0]), cmpopts.EquateEmpty())
	})
	checktest.FailIf(t, decoded*5 < pods, "only %d of %d random pods could be decoded", decoded, pods)
}
