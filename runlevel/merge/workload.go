package merge

import (
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// podDefaults adds to the defaults of a pod template: a port of the host is the
// container's under hostNetwork, and a security context without anything is none.
func podDefaults(p *corev1.PodSpec) {
	for _, list := range [][]corev1.Container{p.InitContainers, p.Containers} {
		for i := range list {
			c := &list[i]
			for j := range c.Ports {
				if p.HostNetwork {
					setDefault(&c.Ports[j].HostPort, c.Ports[j].ContainerPort)
				}
			}
			s := c.SecurityContext
			if s == nil {
				continue
			}
			if s.Capabilities != nil && len(s.Capabilities.Add)+len(s.Capabilities.Drop) == 0 {
				s.Capabilities = nil
			}
			if *s == (corev1.SecurityContext{}) {
				c.SecurityContext = nil
			}
		}
	}
}

func deployment(existing, required *appsv1.Deployment) error {
	e, r := &existing.Spec, &required.Spec
	e.Replicas, e.Selector, e.Paused, e.MinReadySeconds, e.Strategy = r.Replicas, r.Selector, r.Paused, r.MinReadySeconds, r.Strategy
	setIfGiven(&e.RevisionHistoryLimit, r.RevisionHistoryLimit)
	setIfGiven(&e.ProgressDeadlineSeconds, r.ProgressDeadlineSeconds)
	podTemplate(&e.Template, &r.Template)
	return nil
}

// daemonSet leaves the update strategy to administrators.
func daemonSet(existing, required *appsv1.DaemonSet) error {
	existing.Spec.Selector = required.Spec.Selector
	podTemplate(&existing.Spec.Template, &required.Spec.Template)
	return nil
}

// cronJobDefaults adds those of its Jobs, which a server fills in when it makes them.
func cronJobDefaults(c *batchv1.CronJob) {
	j := &c.Spec.JobTemplate.Spec
	setPointer(&j.BackoffLimit, 6)
	setPointer(&j.CompletionMode, batchv1.NonIndexedCompletion)
	setPointer(&j.Suspend, false)
	setPointer(&j.ManualSelector, false)
	podDefaults(&j.Template.Spec)
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

func job(existing, required *batchv1.Job) error {
	if err := jobSpec(&existing.Spec, &required.Spec); err != nil {
		return errors.New("the manifest: Job " + required.Namespace + "/" + required.Name + ": " + err.Error())
	}
	return nil
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
