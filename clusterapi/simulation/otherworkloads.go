package simulation

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
)

// statefulSets plays rollouts of stateful sets, without pods.
func (p *process) statefulSets() *behaviour {
	seen := make(since)
	return &behaviour{
		name:    "stateful sets",
		watches: []reconcile.Watch{p.watch(kindStatefulSet, wakeChanged(0))},
		look: func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			o, ss, err := read[appsv1.StatefulSet](ctx, p, kindStatefulSet, named(r.Key))
			if o == nil || err != nil {
				return reconcile.Result{}, err
			}
			n := replicasOf(ss.Spec.Replicas)
			if ss.Status.ObservedGeneration == ss.Generation && ss.Status.UpdatedReplicas == n && ss.Status.AvailableReplicas == n {
				return reconcile.Result{}, nil
			}
			left := seen.remaining(fmt.Sprintf("%s %d", ss.UID, ss.Generation), rolloutTime, r.Now)
			_, err = change(ctx, p, o, true, func(ss *appsv1.StatefulSet) {
				s := &ss.Status
				s.ObservedGeneration = ss.Generation
				s.UpdatedReplicas = 0
				if left <= 0 {
					s.Replicas = n
					s.CurrentReplicas = n
					s.UpdatedReplicas = n
					s.ReadyReplicas = n
					s.AvailableReplicas = n
				}
			})
			return later(r, left), err
		},
	}
}

// jobs plays Jobs, without pods: active for a while, then complete.
func (p *process) jobs() *behaviour {
	return &behaviour{
		name:    "jobs",
		watches: []reconcile.Watch{p.watch(kindJob, wakeChanged(0))},
		look: func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			o, job, err := read[batchv1.Job](ctx, p, kindJob, named(r.Key))
			if o == nil || err != nil || job.Status.CompletionTime != nil || job.Spec.Suspend != nil && *job.Spec.Suspend || jobFailed(&job.Status) {
				return reconcile.Result{}, err
			}
			now := metav1.NewTime(r.Now)
			left := jobTime
			if job.Status.StartTime != nil {
				left = job.Status.StartTime.Add(jobTime).Sub(r.Now)
			}
			_, err = change(ctx, p, o, true, func(job *batchv1.Job) {
				s := &job.Status
				if s.StartTime == nil {
					s.StartTime = &now
				}
				if left > 0 {
					s.Active = replicasOf(job.Spec.Parallelism)
					return
				}
				s.Active, s.Succeeded, s.CompletionTime = 0, replicasOf(job.Spec.Completions), &now
				s.Conditions = append(s.Conditions, batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue,
					Reason: batchv1.JobReasonCompletionsReached, Message: "Reached expected number of succeeded pods",
					LastProbeTime: now, LastTransitionTime: now})
			})
			return later(r, left), err
		},
	}
}

func jobFailed(s *batchv1.JobStatus) bool {
	return slices.ContainsFunc(s.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == batchv1.JobFailed && c.Status == corev1.ConditionTrue
	})
}
