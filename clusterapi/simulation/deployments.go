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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
)

// deployments plays the deployment controller.
func (p *process) deployments() *behaviour {
	seen := make(since)
	return &behaviour{
		name: "deployments",
		watches: []reconcile.Watch{
			p.watch(kindDeployment, wakeChanged(0)),
			p.watch(kindReplicaSet, itsController(kindDeployment.Kind)),
		},
		look: func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			o, d, err := read[appsv1.Deployment](ctx, p, kindDeployment, named(r.Key))
			switch {
			case o == nil || err != nil:
				return reconcile.Result{}, err
			case d.Annotations[annotationPods] == "true":
				return reconcile.Result{}, p.deployPods(ctx, o, d, r.Now)
			}
			return p.rollOutDeployment(ctx, o, d, r, seen)
		},
	}
}

// rollOutDeployment plays a rollout without pods: the status reports that it began,
// and after a while that it is done.
func (p *process) rollOutDeployment(ctx context.Context, o *clusterapi.Object, d *appsv1.Deployment, r reconcile.Request, seen since) (reconcile.Result, error) {
	replicas := replicasOf(d.Spec.Replicas)
	if s := &d.Status; s.ObservedGeneration == d.Generation && s.UpdatedReplicas == replicas && s.AvailableReplicas == replicas &&
		deploymentCondition(s, appsv1.DeploymentAvailable) != nil {
		return reconcile.Result{}, nil
	}
	left := seen.remaining(fmt.Sprintf("%s %d", d.UID, d.Generation), rolloutTime, r.Now)
	_, err := change(ctx, p, o, true, func(d *appsv1.Deployment) {
		s := &d.Status
		s.ObservedGeneration = d.Generation
		if left > 0 {
			s.UpdatedReplicas = 0
			s.Replicas, s.ReadyReplicas = s.AvailableReplicas, s.AvailableReplicas
			s.UnavailableReplicas = max(replicas-s.AvailableReplicas, 0)
		} else {
			s.Replicas = replicas
			s.UpdatedReplicas = replicas
			s.ReadyReplicas = replicas
			s.AvailableReplicas = replicas
			s.UnavailableReplicas = 0
		}
		setDeploymentConditions(s, replicas, metav1.NewTime(r.Now))
	})
	return later(r, left), err
}

// deployPods keeps one ReplicaSet for the present pod template and lets the
// others go once its pods are available.
func (p *process) deployPods(ctx context.Context, o *clusterapi.Object, d *appsv1.Deployment, now time.Time) error {
	replicas := replicasOf(d.Spec.Replicas)
	name := d.Name + "-" + templateHash(&d.Spec.Template)
	all, err := clusterapi.ListShared(ctx, p.api, kindReplicaSet, clusterapi.ListOptions{Namespace: d.Namespace})
	if err != nil {
		return err
	}
	var current *clusterapi.Object
	var spec *appsv1.ReplicaSet // of current
	var total, ready, available int32
	var old []*clusterapi.Object
	for _, o := range all {
		rs, err := clusterapi.As[appsv1.ReplicaSet](o)
		if err != nil {
			return err
		}
		if owner := metav1.GetControllerOfNoCopy(rs); owner == nil || owner.UID != d.UID {
			continue
		}
		if rs.Name == name {
			current, spec = o, rs
		} else if replicasOf(rs.Spec.Replicas) != 0 {
			old = append(old, o)
		}
		total += rs.Status.Replicas
		ready += rs.Status.ReadyReplicas
		available += rs.Status.AvailableReplicas
	}
	if current == nil {
		return createTyped(ctx, p, replicaSetFor(d, name, replicas))
	}
	if replicasOf(spec.Spec.Replicas) != replicas {
		if err := p.scale(ctx, current, replicas); err != nil {
			return err
		}
	} else if spec.Status.ObservedGeneration == spec.Generation && spec.Status.AvailableReplicas >= replicas {
		for _, rs := range old {
			if err := p.scale(ctx, rs, 0); err != nil {
				return err
			}
		}
	}
	updated := spec.Status.Replicas
	_, err = change(ctx, p, o, true, func(d *appsv1.Deployment) {
		s := &d.Status
		s.ObservedGeneration = d.Generation
		s.Replicas = total
		s.UpdatedReplicas = updated
		s.ReadyReplicas = ready
		s.AvailableReplicas = available
		s.UnavailableReplicas = max(replicas-available, 0)
		setDeploymentConditions(s, replicas, metav1.NewTime(now))
	})
	return err
}

func (p *process) scale(ctx context.Context, rs *clusterapi.Object, replicas int32) error {
	_, err := change(ctx, p, rs, false, func(rs *appsv1.ReplicaSet) { rs.Spec.Replicas = &replicas })
	return err
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
	return find(s.Conditions, func(c *appsv1.DeploymentCondition) bool { return c.Type == t })
}

// replicasOf is a replicas field: absent means 1.
func replicasOf(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}
