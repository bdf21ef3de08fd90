package simulation

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// statefulSetReaction plays rollouts of stateful sets, without pods.
func (c *Cluster) statefulSetReaction() reaction {
	return reaction{
		name:  loopStatefulSets,
		kinds: only(kindStatefulSet),
		keys:  pathOf,
		react: func(ctx context.Context, key string) (time.Duration, error) {
			ss, err := clusterapi.Get[appsv1.StatefulSet](ctx, c, keyOfPath(key))
			if err != nil || ss.DeletionTimestamp != nil {
				return 0, ignoreNotFound(err)
			}
			n := replicasOf(ss.Spec.Replicas)
			if ss.Status.ObservedGeneration == ss.Generation && ss.Status.UpdatedReplicas == n && ss.Status.AvailableReplicas == n {
				return 0, nil
			}
			left := c.seen.remaining(fmt.Sprintf("statefulset %s %d", ss.UID, ss.Generation), c.timing.Workload, c.clock.Now())
			_, err = clusterapi.Modify(ctx, c, keyOfPath(key), modifyStatus, func(stored *appsv1.StatefulSet) error {
				s := &stored.Status
				s.ObservedGeneration = ss.Generation
				s.UpdatedReplicas = 0
				if left <= 0 {
					s.Replicas, s.CurrentReplicas, s.UpdatedReplicas, s.ReadyReplicas, s.AvailableReplicas = n, n, n, n, n
				}
				return nil
			})
			return left, ignoreNotFound(err)
		},
	}
}

// jobReaction plays Jobs, without pods: active for a while, then complete.
func (c *Cluster) jobReaction() reaction {
	return reaction{
		name:  loopJobs,
		kinds: only(kindJob),
		keys:  pathOf,
		react: func(ctx context.Context, key string) (time.Duration, error) {
			job, err := clusterapi.Get[batchv1.Job](ctx, c, keyOfPath(key))
			if err != nil || job.DeletionTimestamp != nil {
				return 0, ignoreNotFound(err)
			}
			if job.Status.CompletionTime != nil || job.Spec.Suspend != nil && *job.Spec.Suspend || jobFailed(&job.Status) {
				return 0, nil
			}
			now := metav1.NewTime(c.clock.Now())
			left := c.timing.Job
			if job.Status.StartTime != nil {
				left = job.Status.StartTime.Add(c.timing.Job).Sub(now.Time)
			}
			_, err = clusterapi.Modify(ctx, c, keyOfPath(key), modifyStatus, func(stored *batchv1.Job) error {
				s := &stored.Status
				if s.StartTime == nil {
					s.StartTime = &now
				}
				if left > 0 {
					s.Active = replicasOf(stored.Spec.Parallelism)
					return nil
				}
				s.Active, s.Succeeded, s.CompletionTime = 0, replicasOf(stored.Spec.Completions), &now
				s.Conditions = append(s.Conditions, batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue,
					Reason: batchv1.JobReasonCompletionsReached, Message: "Reached expected number of succeeded pods",
					LastProbeTime: now, LastTransitionTime: now})
				return nil
			})
			return max(left, 0), ignoreNotFound(err)
		},
	}
}

func jobFailed(s *batchv1.JobStatus) bool {
	for i := range s.Conditions {
		if s.Conditions[i].Type == batchv1.JobFailed && s.Conditions[i].Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}
