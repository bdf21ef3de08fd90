package runlevel

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// jobPoll is the time between two looks at a Job that is awaited.
const jobPoll = 2 * time.Second

// check judges an object as the write returned it. A roll-out that is under
// way is good: the ClusterOperator of the component carries the real wait.
func (a *applier) check(t *manifest.Task, stored *clusterapi.Object) error {
	switch t.Manifest.GVK() {
	case deploymentKind:
		return checkDeployment(stored)
	case daemonSetKind:
		if stored.Unstructured().GetDeletionTimestamp() != nil {
			return fmt.Errorf("daemonset %s is being deleted", stored.Key())
		}
	case jobKind:
		return a.checkJob(t, stored, false)
	case crdKind:
		return checkCRD(stored.Unstructured())
	}
	return nil
}

// checkDeployment fails for a Deployment that has no prospect of rolling out.
func checkDeployment(stored *clusterapi.Object) error {
	d, err := clusterapi.As[appsv1.Deployment](stored)
	if err != nil {
		return err
	}
	name := d.Namespace + "/" + d.Name
	if d.DeletionTimestamp != nil {
		return fmt.Errorf("deployment %s is being deleted", name)
	}
	var failure, available, progressing appsv1.DeploymentCondition
	for _, c := range d.Status.Conditions {
		switch c.Type {
		case appsv1.DeploymentReplicaFailure:
			failure = c
		case appsv1.DeploymentAvailable:
			available = c
		case appsv1.DeploymentProgressing:
			progressing = c
		}
	}
	reason, message := ReasonWorkloadNotProgressing, ""
	switch {
	case failure.Status == corev1.ConditionTrue:
		message = fmt.Sprintf("deployment %s has a replica failure %s: %s", name, quote(failure.Reason), quote(failure.Message))
	case available.Status == corev1.ConditionFalse && progressing.Status == corev1.ConditionFalse:
		reason = ReasonWorkloadNotAvailable
		message = fmt.Sprintf("deployment %s is not available %s (%s) or progressing %s (%s)", name,
			quote(available.Reason), quote(available.Message), quote(progressing.Reason), quote(progressing.Message))
	case progressing.Status == corev1.ConditionFalse && progressing.Reason == "ProgressDeadlineExceeded":
		message = fmt.Sprintf("deployment %s is Progressing=False: %s: %s", name, quote(progressing.Reason), quote(progressing.Message))
	default:
		return nil
	}
	return &TaskError{Reason: reason, Message: message, Name: name, Err: errors.New(message)}
}

// checkJob fails for a Job that has failed. For one that runs, if that is to be
// awaited, it returns a *jobPending.
func (a *applier) checkJob(t *manifest.Task, stored *clusterapi.Object, again bool) error {
	job, err := clusterapi.As[batchv1.Job](stored)
	if err != nil {
		return err
	}
	if err := jobError(job); err != nil || !a.awaitJobs {
		return err
	}
	name := job.Namespace + "/" + job.Name
	if c := jobCondition(job, batchv1.JobFailed); c != nil {
		return fmt.Errorf("job %s failed: %s: %s", name, quote(c.Reason), quote(c.Message))
	}
	if jobComplete(job) {
		return nil
	}
	if !again {
		a.tell(t, EventWaiting, "waiting on job "+name, nil)
	}
	return &jobPending{name: name, again: func(ctx context.Context) error {
		stored, err := clusterapi.GetShared(ctx, a.api, jobKind, stored.Key())
		if err != nil {
			return err
		}
		return a.checkJob(t, stored, true)
	}}
}

// jobPending reports that a Job is to be looked at again after jobPoll.
type jobPending struct {
	name  string
	again func(ctx context.Context) error
}

func (e *jobPending) Error() string { return "waiting on job " + e.name }

// jobUnfinished is the error of a wait that the context ended. When the time
// of the pass is over, that the Job still runs is what to tell.
func jobUnfinished(name string, ctxErr error) error {
	if !errors.Is(ctxErr, context.DeadlineExceeded) {
		return ctxErr
	}
	return &TaskError{Effect: EffectNone, Reason: ReasonJobNotComplete, Name: name,
		Message: fmt.Sprintf("job %s has not completed", name), Err: ctxErr}
}

// jobError judges as the cluster-version operator does: one that still runs,
// or has a success, is good.
func jobError(job *batchv1.Job) error {
	if job.Status.Succeeded > 0 || job.Status.Active > 0 {
		return nil
	}
	reason, message := "DeadlineExceeded", "Job was active longer than specified deadline"
	failed := jobCondition(job, batchv1.JobFailed)
	if failed != nil {
		reason, message = quote(failed.Reason), quote(failed.Message)
	}
	if job.Status.Failed > 0 || failed != nil && failed.Reason == "DeadlineExceeded" {
		return fmt.Errorf("deadline exceeded, reason: %q, message: %q", reason, message)
	}
	return nil
}

// jobComplete reports whether all that the Job is to do has been done.
func jobComplete(job *batchv1.Job) bool {
	wanted := int32(1)
	if job.Spec.Completions != nil {
		wanted = *job.Spec.Completions
	}
	return job.Status.Succeeded >= wanted || jobCondition(job, batchv1.JobComplete) != nil
}

// jobCondition returns a condition that is True, else nil.
func jobCondition(job *batchv1.Job, kind batchv1.JobConditionType) *batchv1.JobCondition {
	for i, c := range job.Status.Conditions {
		if c.Type == kind && c.Status == corev1.ConditionTrue {
			return &job.Status.Conditions[i]
		}
	}
	return nil
}

// checkCRD fails until a CustomResourceDefinition is served. Its resources
// could not be applied before.
func checkCRD(stored *unstructured.Unstructured) error {
	conditions, _, err := unstructured.NestedSlice(stored.Object, "status", "conditions")
	if err != nil {
		return fmt.Errorf("CustomResourceDefinition %s: %w", stored.GetName(), err)
	}
	var others []string
	for _, c := range conditions {
		c, _ := c.(map[string]any)
		kind, _, _ := unstructured.NestedString(c, "type")
		status, _, _ := unstructured.NestedString(c, "status")
		reason, _, _ := unstructured.NestedString(c, "reason")
		message, _, _ := unstructured.NestedString(c, "message")
		if kind != "Established" {
			others = append(others, kind+"="+status)
			continue
		}
		if status != "True" {
			return fmt.Errorf("CustomResourceDefinition %s Established=%s, %s: %s", stored.GetName(), quote(status), quote(reason), quote(message))
		}
		return nil
	}
	return fmt.Errorf("CustomResourceDefinition %s does not declare an Established status condition: [%s]",
		stored.GetName(), bounded.Join(others, " ", maxList))
}
