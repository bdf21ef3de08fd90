package preconditions

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// listPods reads all pods, with the fields that drains and capacity hang on: clusters
// have so many that decoding all of each would take most of a run. Results and errors
// are those of list.
func listPods(ctx context.Context, in *Input) ([]*corev1.Pod, error) {
	objects, err := clusterapi.ListShared(ctx, in.Reader, gvkOf[corev1.Pod](), clusterapi.ListOptions{})
	if err != nil && !errors.Is(err, clusterapi.ErrNotCollected) {
		return nil, err
	}
	decode := func() ([]*corev1.Pod, error) { return decodePods(objects) }
	if m, ok := in.Reader.(*memoReader); ok {
		decode = m.pods(objects)
	}
	pods, malformed := decode()
	return pods, joinErrors(err, malformed)
}

// pods decodes the pods of a run, which all are from one list, once.
func (m *memoReader) pods(objects []*clusterapi.Object) func() ([]*corev1.Pod, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.decodedPods == nil {
		m.decodedPods = sync.OnceValues(func() ([]*corev1.Pod, error) { return decodePods(objects) })
	}
	return m.decodedPods
}

func decodePods(objects []*clusterapi.Object) ([]*corev1.Pod, error) {
	pods := make([]*corev1.Pod, 0, len(objects))
	d := podDecoder{quantities: map[string]resource.Quantity{}}
	var first error
	malformed := 0
	for _, o := range objects {
		d.odd = false
		p := d.pod(o.Unstructured())
		if d.odd { // what is wrong with it, or else what it is after all
			var err error
			if p, err = clusterapi.As[corev1.Pod](o); err != nil {
				if malformed++; first == nil {
					first = err
				}
				continue
			}
		}
		pods = append(pods, p)
	}
	if malformed > 1 {
		first = fmt.Errorf("%d objects of kind Pod are malformed, the first: %w", malformed, first)
	}
	return pods, first
}

// podDecoder reads pods by hand.
type podDecoder struct {
	odd        bool // something is not what it should be
	quantities map[string]resource.Quantity
}

func (d *podDecoder) pod(u *unstructured.Unstructured) *corev1.Pod {
	meta, spec, status := d.object(u.Object, "metadata"), d.object(u.Object, "spec"), d.object(u.Object, "status")
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: d.text(meta, "name"), Namespace: d.text(meta, "namespace"), UID: types.UID(d.text(meta, "uid")),
			Labels: d.texts(meta, "labels"), Annotations: d.texts(meta, "annotations"), DeletionTimestamp: d.time(meta, "deletionTimestamp"),
		},
		Spec: corev1.PodSpec{
			NodeName: d.text(spec, "nodeName"), NodeSelector: d.texts(spec, "nodeSelector"),
			InitContainers: d.containers(spec, "initContainers"), Containers: d.containers(spec, "containers"), Overhead: d.resources(spec, "overhead"),
		},
		Status: corev1.PodStatus{Phase: corev1.PodPhase(d.text(status, "phase"))},
	}
	for _, name := range d.list(meta, "finalizers") {
		text, ok := name.(string)
		d.odd = d.odd || !ok
		p.Finalizers = append(p.Finalizers, text)
	}
	for _, item := range d.list(meta, "ownerReferences") {
		m := d.item(item)
		r := metav1.OwnerReference{APIVersion: d.text(m, "apiVersion"), Kind: d.text(m, "kind"), Name: d.text(m, "name"), UID: types.UID(d.text(m, "uid"))}
		if v, ok := m["controller"]; ok && v != nil {
			controller, ok := v.(bool)
			d.odd = d.odd || !ok
			r.Controller = &controller
		}
		p.OwnerReferences = append(p.OwnerReferences, r)
	}
	for _, item := range d.list(spec, "tolerations") {
		m := d.item(item)
		p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: d.text(m, "key"), Operator: corev1.TolerationOperator(d.text(m, "operator")),
			Value: d.text(m, "value"), Effect: corev1.TaintEffect(d.text(m, "effect"))})
	}
	for _, item := range d.list(spec, "volumes") {
		m := d.item(item)
		if name := d.text(m, "name"); d.object(m, "emptyDir") != nil {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		}
	}
	if v, ok := spec["terminationGracePeriodSeconds"]; ok && v != nil {
		seconds, ok := v.(int64)
		d.odd = d.odd || !ok
		p.Spec.TerminationGracePeriodSeconds = &seconds
	}
	if m := d.object(spec, "affinity"); m != nil {
		p.Spec.Affinity = &corev1.Affinity{}
		d.odd = d.odd || runtime.DefaultUnstructuredConverter.FromUnstructured(m, p.Spec.Affinity) != nil
	}
	if m := d.object(spec, "resources"); m != nil {
		p.Spec.Resources = &corev1.ResourceRequirements{Requests: d.resources(m, "requests")}
	}
	for _, item := range d.list(status, "conditions") {
		m := d.item(item)
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodConditionType(d.text(m, "type")), Status: corev1.ConditionStatus(d.text(m, "status"))})
	}
	return p
}

func (d *podDecoder) containers(in map[string]any, key string) []corev1.Container {
	var out []corev1.Container
	for _, item := range d.list(in, key) {
		m := d.item(item)
		c := corev1.Container{Resources: corev1.ResourceRequirements{Requests: d.resources(d.object(m, "resources"), "requests")}}
		if policy := d.text(m, "restartPolicy"); m["restartPolicy"] != nil {
			c.RestartPolicy = (*corev1.ContainerRestartPolicy)(&policy)
		}
		out = append(out, c)
	}
	return out
}

func (d *podDecoder) resources(in map[string]any, key string) corev1.ResourceList {
	m := d.object(in, key)
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
			var err error
			if q, err = resource.ParseQuantity(text); err != nil {
				d.odd = true
				return nil
			}
			d.quantities[text] = q
		}
		out[corev1.ResourceName(name)] = q
	}
	return out
}

func (d *podDecoder) object(in map[string]any, key string) map[string]any {
	v, ok := in[key]
	if !ok || v == nil {
		return nil
	}
	return d.item(v)
}

func (d *podDecoder) item(v any) map[string]any {
	m, ok := v.(map[string]any)
	d.odd = d.odd || !ok
	return m
}

func (d *podDecoder) list(in map[string]any, key string) []any {
	v, ok := in[key]
	if !ok || v == nil {
		return nil
	}
	l, ok := v.([]any)
	d.odd = d.odd || !ok
	return l
}

func (d *podDecoder) text(in map[string]any, key string) string {
	v, ok := in[key]
	if !ok || v == nil {
		return ""
	}
	s, ok := v.(string)
	d.odd = d.odd || !ok
	return s
}

func (d *podDecoder) texts(in map[string]any, key string) map[string]string {
	m := d.object(in, key)
	if m == nil {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		s, ok := v.(string)
		d.odd = d.odd || !ok
		out[k] = s
	}
	return out
}

func (d *podDecoder) time(in map[string]any, key string) *metav1.Time {
	text := d.text(in, key)
	if text == "" {
		return nil
	}
	t, err := time.Parse(time.RFC3339, text)
	d.odd = d.odd || err != nil
	return &metav1.Time{Time: t.Local()}
}
