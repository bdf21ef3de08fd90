package merge

import (
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func deploymentDefaults(d *appsv1.Deployment) {
	setPointer(&d.Spec.Replicas, 1)
	s := &d.Spec.Strategy
	setDefault(&s.Type, appsv1.RollingUpdateDeploymentStrategyType)
	if s.Type == appsv1.RollingUpdateDeploymentStrategyType {
		setPointer(&s.RollingUpdate, appsv1.RollingUpdateDeployment{})
		setPointer(&s.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
		setPointer(&s.RollingUpdate.MaxSurge, intstr.FromString("25%"))
	}
	podDefaults(&d.Spec.Template.Spec)
}

func deployment(existing, required *appsv1.Deployment) error {
	e, r := &existing.Spec, &required.Spec
	e.Replicas, e.Selector, e.Paused, e.MinReadySeconds, e.Strategy = r.Replicas, r.Selector, r.Paused, r.MinReadySeconds, r.Strategy
	setIfGiven(&e.RevisionHistoryLimit, r.RevisionHistoryLimit)
	setIfGiven(&e.ProgressDeadlineSeconds, r.ProgressDeadlineSeconds)
	podTemplate(&e.Template, &r.Template)
	return nil
}

func daemonSetDefaults(d *appsv1.DaemonSet) { podDefaults(&d.Spec.Template.Spec) }

// daemonSet leaves the update strategy to administrators.
func daemonSet(existing, required *appsv1.DaemonSet) error {
	existing.Spec.Selector = required.Spec.Selector
	podTemplate(&existing.Spec.Template, &required.Spec.Template)
	return nil
}

func cronJobDefaults(c *batchv1.CronJob) {
	setPointer(&c.Spec.Suspend, false)
	setPointer(&c.Spec.SuccessfulJobsHistoryLimit, 3)
	setPointer(&c.Spec.FailedJobsHistoryLimit, 1)
	setDefault(&c.Spec.ConcurrencyPolicy, batchv1.AllowConcurrent)
	jobSpecDefaults(&c.Spec.JobTemplate.Spec)
}

func cronJob(existing, required *batchv1.CronJob) error {
	e, r := &existing.Spec, &required.Spec
	e.StartingDeadlineSeconds, e.Suspend = r.StartingDeadlineSeconds, r.Suspend
	e.SuccessfulJobsHistoryLimit, e.FailedJobsHistoryLimit = r.SuccessfulJobsHistoryLimit, r.FailedJobsHistoryLimit
	e.Schedule, e.TimeZone, e.ConcurrencyPolicy = r.Schedule, r.TimeZone, r.ConcurrencyPolicy
	mergeMeta(&e.JobTemplate.ObjectMeta, &r.JobTemplate.ObjectMeta)
	if err := jobSpec(&e.JobTemplate.Spec, &r.JobTemplate.Spec); err != nil {
		return errors.New("the manifest: CronJob " + required.Namespace + "/" + required.Name + ": spec.jobTemplate." + err.Error())
	}
	return nil
}

func jobDefaults(j *batchv1.Job) { jobSpecDefaults(&j.Spec) }

func job(existing, required *batchv1.Job) error {
	if err := jobSpec(&existing.Spec, &required.Spec); err != nil {
		return errors.New("the manifest: Job " + required.Namespace + "/" + required.Name + ": " + err.Error())
	}
	return nil
}

// jobSpecDefaults has none for parallelism and completions, as the
// cluster-version operator has none: a Job that names neither is written in every
// pass.
func jobSpecDefaults(j *batchv1.JobSpec) {
	setPointer(&j.BackoffLimit, 6)
	setPointer(&j.CompletionMode, batchv1.NonIndexedCompletion)
	setPointer(&j.Suspend, false)
	setPointer(&j.ManualSelector, false)
	if j.PodFailurePolicy != nil {
		for _, rule := range j.PodFailurePolicy.Rules {
			for i := range rule.OnPodConditions {
				setDefault(&rule.OnPodConditions[i].Status, corev1.ConditionTrue)
			}
		}
	}
	podDefaults(&j.Template.Spec)
}

func jobSpec(e, r *batchv1.JobSpec) error {
	if r.Selector != nil {
		return errors.New("spec.selector: must not be set, for the server chooses it")
	}
	e.Parallelism, e.Completions, e.ActiveDeadlineSeconds = r.Parallelism, r.Completions, r.ActiveDeadlineSeconds
	e.BackoffLimit, e.CompletionMode, e.Suspend, e.ManualSelector = r.BackoffLimit, r.CompletionMode, r.Suspend, r.ManualSelector
	e.TTLSecondsAfterFinished, e.PodFailurePolicy = r.TTLSecondsAfterFinished, r.PodFailurePolicy
	podTemplate(&e.Template, &r.Template)
	return nil
}

// setIfGiven overwrites a value by one that the manifest has.
func setIfGiven[T any](value **T, to *T) {
	if to != nil {
		*value = to
	}
}

// setTextIfGiven overwrites a text by one that is not empty.
func setTextIfGiven[T ~string](value *T, to T) {
	if to != "" {
		*value = to
	}
}
