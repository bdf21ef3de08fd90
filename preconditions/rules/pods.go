package rules

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/internal/facts"
)

// listPods reads all pods, with the fields that drains and capacity depend on:
// clusters have so many that decoding all of each would take most of a run. Results
// and errors are those of list.
func listPods(ctx context.Context, in *preconditions.Input) ([]*corev1.Pod, error) {
	objects, err := clusterapi.ListShared(ctx, in.Reader, gvkOf[corev1.Pod](), clusterapi.ListOptions{})
	if err != nil && !errors.Is(err, clusterapi.ErrNotCollected) {
		return nil, err
	}
	decode := func() ([]*corev1.Pod, error) { return decodePods(objects) }
	if run, ok := in.Reader.(podSharer); ok {
		decode = run.SharePods(decode)
	}
	pods, malformed := decode()
	return pods, facts.JoinErrors(err, malformed)
}

// podSharer is the reader of a run, which keeps the pods that the first check decodes
// for all checks.
type podSharer interface {
	SharePods(decode func() ([]*corev1.Pod, error)) func() ([]*corev1.Pod, error)
}

func decodePods(objects []*clusterapi.Object) ([]*corev1.Pod, error) {
	d := podDecoder{quantities: map[string]resource.Quantity{}}
	return facts.DecodeAll(objects, func(o *clusterapi.Object) (*corev1.Pod, error) {
		d.odd = false
		if p := d.pod(o.Unstructured()); !d.odd {
			return p, nil
		}
		return clusterapi.As[corev1.Pod](o) // what is wrong with it, or else what it is after all
	})
}

// podDecoder reads pods by hand.
type podDecoder struct {
	odd        bool // something is not what it should be
	quantities map[string]resource.Quantity
}

func (d *podDecoder) pod(u *unstructured.Unstructured) *corev1.Pod {
	meta, spec, status := field[map[string]any](d, u.Object, "metadata"), field[map[string]any](d, u.Object, "spec"), field[map[string]any](d, u.Object, "status")
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: field[string](d, meta, "name"), Namespace: field[string](d, meta, "namespace"), UID: types.UID(field[string](d, meta, "uid")),
			Labels: d.texts(meta, "labels"), Annotations: d.texts(meta, "annotations"), DeletionTimestamp: d.time(meta, "deletionTimestamp"),
		},
		Spec: corev1.PodSpec{
			NodeName: field[string](d, spec, "nodeName"), NodeSelector: d.texts(spec, "nodeSelector"),
			InitContainers: d.containers(spec, "initContainers"), Containers: d.containers(spec, "containers"), Overhead: d.resources(spec, "overhead"),
		},
		Status: corev1.PodStatus{Phase: corev1.PodPhase(field[string](d, status, "phase"))},
	}
	for _, name := range field[[]any](d, meta, "finalizers") {
		p.Finalizers = append(p.Finalizers, is[string](d, name))
	}
	for _, item := range field[[]any](d, meta, "ownerReferences") {
		m := is[map[string]any](d, item)
		r := metav1.OwnerReference{APIVersion: field[string](d, m, "apiVersion"), Kind: field[string](d, m, "kind"), Name: field[string](d, m, "name"), UID: types.UID(field[string](d, m, "uid"))}
		if controller := field[bool](d, m, "controller"); m["controller"] != nil {
			r.Controller = &controller
		}
		p.OwnerReferences = append(p.OwnerReferences, r)
	}
	for _, item := range field[[]any](d, spec, "tolerations") {
		m := is[map[string]any](d, item)
		p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: field[string](d, m, "key"), Operator: corev1.TolerationOperator(field[string](d, m, "operator")),
			Value: field[string](d, m, "value"), Effect: corev1.TaintEffect(field[string](d, m, "effect"))})
	}
	for _, item := range field[[]any](d, spec, "volumes") {
		m := is[map[string]any](d, item)
		if name := field[string](d, m, "name"); field[map[string]any](d, m, "emptyDir") != nil {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		}
	}
	if seconds := field[int64](d, spec, "terminationGracePeriodSeconds"); spec["terminationGracePeriodSeconds"] != nil {
		p.Spec.TerminationGracePeriodSeconds = &seconds
	}
	if m := field[map[string]any](d, spec, "affinity"); m != nil {
		p.Spec.Affinity = &corev1.Affinity{}
		d.odd = d.odd || runtime.DefaultUnstructuredConverter.FromUnstructured(m, p.Spec.Affinity) != nil
	}
	if m := field[map[string]any](d, spec, "resources"); m != nil {
		p.Spec.Resources = &corev1.ResourceRequirements{Requests: d.resources(m, "requests")}
	}
	for _, item := range field[[]any](d, status, "conditions") {
		m := is[map[string]any](d, item)
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodConditionType(field[string](d, m, "type")), Status: corev1.ConditionStatus(field[string](d, m, "status"))})
	}
	return p
}

func (d *podDecoder) containers(in map[string]any, key string) []corev1.Container {
	var out []corev1.Container
	for _, item := range field[[]any](d, in, key) {
		m := is[map[string]any](d, item)
		c := corev1.Container{Resources: corev1.ResourceRequirements{Requests: d.resources(field[map[string]any](d, m, "resources"), "requests")}}
		if policy := field[string](d, m, "restartPolicy"); m["restartPolicy"] != nil {
			c.RestartPolicy = (*corev1.ContainerRestartPolicy)(&policy)
		}
		out = append(out, c)
	}
	return out
}

func (d *podDecoder) resources(in map[string]any, key string) corev1.ResourceList {
	m := field[map[string]any](d, in, key)
	if m == nil {
		return nil
	}
	out := make(corev1.ResourceList, len(m))
	for name, v := range m {
		text, ok := v.(string)
		if !ok {
			text = fmt.Sprint(v) // a number
		}
		q, known := d.quantities[text]
		if !known {
			parsed, err := resource.ParseQuantity(text)
			if err != nil {
				d.odd = true
				return nil
			}
			q = parsed
			d.quantities[text] = q
		}
		out[corev1.ResourceName(name)] = q
	}
	return out
}

// is asserts the type of a value.
func is[T any](d *podDecoder, v any) T {
	out, ok := v.(T)
	d.odd = d.odd || !ok
	return out
}

// field is a field of an object; without it, or if it is null, it is empty.
func field[T any](d *podDecoder, in map[string]any, key string) (out T) {
	if v := in[key]; v != nil {
		out = is[T](d, v)
	}
	return out
}

func (d *podDecoder) texts(in map[string]any, key string) map[string]string {
	m := field[map[string]any](d, in, key)
	if m == nil {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[k] = is[string](d, v)
	}
	return out
}

func (d *podDecoder) time(in map[string]any, key string) *metav1.Time {
	text := field[string](d, in, key)
	if text == "" {
		return nil
	}
	t, err := time.Parse(time.RFC3339, text)
	d.odd = d.odd || err != nil
	return &metav1.Time{Time: t.Local()}
}
