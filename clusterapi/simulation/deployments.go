package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// deploymentReaction plays the deployment controller.
func (c *Cluster) deploymentReaction() reaction {
	return reaction{
		name:  loopDeployments,
		kinds: only(kindDeployment, kindReplicaSet),
		keys: func(u *unstructured.Unstructured) []string {
			if u.GetKind() == kindReplicaSet.Kind {
				return ownerPath(u, kindDeployment.Kind)
			}
			return pathOf(u)
		},
		react: func(ctx context.Context, key string) (time.Duration, error) {
			d, err := clusterapi.Get[appsv1.Deployment](ctx, c, keyOfPath(key))
			if err != nil || d.DeletionTimestamp != nil {
				return 0, ignoreNotFound(err)
			}
			if d.Annotations[AnnotationPods] == "true" {
				return c.reactDeploymentWithPods(ctx, d)
			}
			return c.rollOutDeployment(ctx, d)
		},
	}
}

// rollOutDeployment plays a rollout without pods: the status says that it
// began, and after a while that it is done.
func (c *Cluster) rollOutDeployment(ctx context.Context, d *appsv1.Deployment) (time.Duration, error) {
	replicas := replicasOf(d.Spec.Replicas)
	now := metav1.NewTime(c.clock.Now())
	s := &d.Status
	if s.ObservedGeneration == d.Generation && s.UpdatedReplicas == replicas && s.AvailableReplicas == replicas &&
		deploymentCondition(s, appsv1.DeploymentAvailable) != nil {
		return 0, nil
	}
	wait := fmt.Sprintf("deployment %s %d", d.UID, d.Generation)
	left := c.seen.remaining(wait, c.timing.Workload, now.Time)
	_, err := clusterapi.Modify(ctx, c, clusterapi.Key(d.Namespace, d.Name), modifyStatus, func(stored *appsv1.Deployment) error {
		s := &stored.Status
		s.ObservedGeneration = d.Generation
		if left > 0 {
			s.UpdatedReplicas = 0
			s.Replicas, s.ReadyReplicas = s.AvailableReplicas, s.AvailableReplicas
			s.UnavailableReplicas = max(replicas-s.AvailableReplicas, 0)
		} else {
			s.Replicas, s.UpdatedReplicas, s.ReadyReplicas, s.AvailableReplicas, s.UnavailableReplicas = replicas, replicas, replicas, replicas, 0
		}
		setDeploymentConditions(s, replicas, now)
		return nil
	})
	return left, ignoreNotFound(err)
}

// reactDeploymentWithPods keeps one ReplicaSet for the present pod template
// and lets the others go once its pods are available.
func (c *Cluster) reactDeploymentWithPods(ctx context.Context, d *appsv1.Deployment) (time.Duration, error) {
	replicas := replicasOf(d.Spec.Replicas)
	name := d.Name + "-" + templateHash(&d.Spec.Template)
	all, err := clusterapi.List[appsv1.ReplicaSet](ctx, c, clusterapi.ListOptions{Namespace: d.Namespace})
	if err != nil {
		return 0, err
	}
	var current *appsv1.ReplicaSet
	var total, ready, available int32
	var old []*appsv1.ReplicaSet
	for i := range all {
		rs := &all[i]
		if owner := metav1.GetControllerOf(rs); owner == nil || owner.UID != d.UID {
			continue
		}
		if rs.Name == name {
			current = rs
		} else {
			old = append(old, rs)
		}
		total += rs.Status.Replicas
		ready += rs.Status.ReadyReplicas
		available += rs.Status.AvailableReplicas
	}
	if current == nil {
		_, err := clusterapi.Create(ctx, c, replicaSetFor(d, name, replicas), create)
		return 0, ignoreExists(err)
	}
	if replicasOf(current.Spec.Replicas) != replicas {
		if err := c.scale(ctx, current, replicas); err != nil {
			return 0, err
		}
	}
	if current.Status.ObservedGeneration == current.Generation && current.Status.AvailableReplicas >= replicas {
		for _, rs := range old {
			if replicasOf(rs.Spec.Replicas) != 0 {
				if err := c.scale(ctx, rs, 0); err != nil {
					return 0, err
				}
			}
		}
	}
	updated := current.Status.Replicas
	_, err = clusterapi.Modify(ctx, c, clusterapi.Key(d.Namespace, d.Name), modifyStatus, func(stored *appsv1.Deployment) error {
		s := &stored.Status
		s.ObservedGeneration = d.Generation
		s.Replicas, s.UpdatedReplicas, s.ReadyReplicas, s.AvailableReplicas = total, updated, ready, available
		s.UnavailableReplicas = max(replicas-available, 0)
		setDeploymentConditions(s, replicas, metav1.NewTime(c.clock.Now()))
		return nil
	})
	return 0, ignoreNotFound(err)
}

func (c *Cluster) scale(ctx context.Context, rs *appsv1.ReplicaSet, replicas int32) error {
	_, err := clusterapi.Modify(ctx, c, clusterapi.Key(rs.Namespace, rs.Name), modify, func(rs *appsv1.ReplicaSet) error {
		rs.Spec.Replicas = &replicas
		return nil
	})
	return ignoreNotFound(err)
}

// replicaSetFor is the ReplicaSet of a Deployment's present template.
func replicaSetFor(d *appsv1.Deployment, name string, replicas int32) *appsv1.ReplicaSet {
	hash := strings.TrimPrefix(name, d.Name+"-")
	template := d.Spec.Template.DeepCopy()
	template.Labels = withLabel(template.Labels, appsv1.DefaultDeploymentUniqueLabelKey, hash)
	selector := d.Spec.Selector.DeepCopy()
	if selector == nil {
		selector = &metav1.LabelSelector{}
	}
	selector.MatchLabels = withLabel(selector.MatchLabels, appsv1.DefaultDeploymentUniqueLabelKey, hash)
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: d.Namespace, Name: name, Labels: maps.Clone(template.Labels),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, kindDeployment)},
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: &replicas, Selector: selector, Template: *template},
	}
}

func withLabel(labels map[string]string, key, value string) map[string]string {
	out := maps.Clone(labels)
	if out == nil {
		out = make(map[string]string, 1)
	}
	out[key] = value
	return out
}

// templateHash names the version of a pod template.
func templateHash(t *corev1.PodTemplateSpec) string {
	data, err := json.Marshal(t)
	if err != nil {
		data = fmt.Append(nil, *t) // an API type always marshals
	}
	h := fnv.New32a()
	h.Write(data)
	return fmt.Sprintf("%08x", h.Sum32())
}

func setDeploymentConditions(s *appsv1.DeploymentStatus, replicas int32, now metav1.Time) {
	available := appsv1.DeploymentCondition{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue,
		Reason: "MinimumReplicasAvailable", Message: "Deployment has minimum availability."}
	// At most a quarter of the replicas, rounded down, may be missing.
	if s.AvailableReplicas < replicas-replicas/4 {
		available.Status, available.Reason, available.Message = corev1.ConditionFalse, "MinimumReplicasUnavailable", "Deployment does not have minimum availability."
	}
	progressing := appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue,
		Reason: "ReplicaSetUpdated", Message: "ReplicaSet is progressing."}
	if s.UpdatedReplicas == replicas && s.AvailableReplicas == replicas && s.Replicas == replicas {
		progressing.Reason, progressing.Message = "NewReplicaSetAvailable", "ReplicaSet has successfully progressed."
	}
	for _, want := range []appsv1.DeploymentCondition{available, progressing} {
		old := deploymentCondition(s, want.Type)
		if old == nil {
			want.LastTransitionTime, want.LastUpdateTime = now, now
			s.Conditions = append(s.Conditions, want)
			continue
		}
		if old.Status == want.Status && old.Reason == want.Reason && old.Message == want.Message {
			continue
		}
		want.LastTransitionTime, want.LastUpdateTime = old.LastTransitionTime, now
		if old.Status != want.Status {
			want.LastTransitionTime = now
		}
		*old = want
	}
}

func deploymentCondition(s *appsv1.DeploymentStatus, t appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	for i := range s.Conditions {
		if s.Conditions[i].Type == t {
			return &s.Conditions[i]
		}
	}
	return nil
}

// replicasOf is a replicas field: absent means 1.
func replicasOf(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}

// ownerPath is the key of an object's controller, if it is of a kind.
func ownerPath(u *unstructured.Unstructured, kind string) []string {
	if owner := metav1.GetControllerOfNoCopy(u); owner != nil && owner.Kind == kind {
		return []string{join(u.GetNamespace(), owner.Name)}
	}
	return nil
}

// keyOfPath is the inverse of path.
func keyOfPath(p string) types.NamespacedName {
	if namespace, name, ok := strings.Cut(p, "/"); ok {
		return clusterapi.Key(namespace, name)
	}
	return clusterapi.Key("", p)
}

func ignoreExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
