package kubernetes_test

import (
	"context"
	"slices"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// actors play, through the API, what a bare API server lacks: workloads get
// the status that controllers and kubelets would give them, and an operator
// reports the versions of the release that the ClusterVersion wants once its
// workloads are stored in the form that this release has.
type actors struct {
	api      clusterapi.ClusterAPI
	releases releases
}

// operandNamespaces are those that no manifest makes, though manifests have
// objects in them: operators make them, here by name of their ClusterOperator.
var operandNamespaces = map[string][]string{
	"authentication":               {"openshift-authentication", "openshift-oauth-apiserver"},
	"kube-apiserver":               {"openshift-kube-apiserver"},
	"kube-controller-manager":      {"openshift-kube-controller-manager"},
	"kube-scheduler":               {"openshift-kube-scheduler"},
	"openshift-apiserver":          {"openshift", "openshift-apiserver"},
	"openshift-controller-manager": {"openshift-controller-manager", "openshift-route-controller-manager"},
}

// play starts actors, which stop at the end of the test, or earlier by the
// returned function.
func play(t testing.TB, a actors) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		told := false
		for ctx.Err() == nil {
			// The API may fail in these tests: what is left undone is done
			// in the next round.
			failed := false
			for _, f := range []func(context.Context) error{a.deployments, a.daemonSets, a.jobs, a.operators} {
				if err := f(ctx); err != nil && ctx.Err() == nil && !meta.IsNoMatchError(err) {
					if failed = true; !told {
						t.Logf("actors: %v", err)
					}
				}
			}
			told = failed
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	}()
	stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(stop)
	return stop
}

// each changes the status of every object of a kind for which f makes a
// difference.
func each[T any](ctx context.Context, api clusterapi.ClusterAPI, key func(*T) (namespace, name string), f func(*T)) error {
	list, err := clusterapi.List[T](ctx, api, clusterapi.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list {
		after, err := copyOf(&list[i])
		if err != nil {
			return err
		}
		if f(after); equality.Semantic.DeepEqual(&list[i], after) {
			continue
		}
		_, err = clusterapi.Modify(ctx, api, clusterapi.Key(key(&list[i])), clusterapi.ModifyOptions{Status: true}, func(obj *T) error {
			f(obj)
			return nil
		})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
	return nil
}

func copyOf[T any](obj *T) (*T, error) {
	u, err := clusterapi.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	return clusterapi.FromUnstructured[T](u)
}

func (a actors) deployments(ctx context.Context) error {
	key := func(d *appsv1.Deployment) (string, string) { return d.Namespace, d.Name }
	return each(ctx, a.api, key, func(d *appsv1.Deployment) {
		n := int32(1)
		if d.Spec.Replicas != nil {
			n = *d.Spec.Replicas
		}
		s := &d.Status
		s.ObservedGeneration = d.Generation
		s.Replicas, s.UpdatedReplicas, s.ReadyReplicas, s.AvailableReplicas = n, n, n, n
		if len(s.Conditions) == 0 {
			s.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable"}}
		}
	})
}

func (a actors) daemonSets(ctx context.Context) error {
	key := func(d *appsv1.DaemonSet) (string, string) { return d.Namespace, d.Name }
	return each(ctx, a.api, key, func(d *appsv1.DaemonSet) {
		s := &d.Status
		s.ObservedGeneration = d.Generation
		s.DesiredNumberScheduled, s.CurrentNumberScheduled, s.UpdatedNumberScheduled, s.NumberReady, s.NumberAvailable = 3, 3, 3, 3, 3
	})
}

func (a actors) jobs(ctx context.Context) error {
	key := func(j *batchv1.Job) (string, string) { return j.Namespace, j.Name }
	return each(ctx, a.api, key, func(j *batchv1.Job) {
		if j.Status.Succeeded > 0 {
			return
		}
		now := metav1.Now().Rfc3339Copy()
		zero := int32(0)
		j.Status.StartTime, j.Status.CompletionTime, j.Status.Succeeded = &now, &now, 1
		j.Status.Ready, j.Status.Terminating = &zero, &zero
		for _, c := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
			j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: c, Status: corev1.ConditionTrue, LastProbeTime: now, LastTransitionTime: now})
		}
	})
}

// operators report. They make their own ClusterOperator, as real ones do,
// unless the update has done so before.
func (a actors) operators(ctx context.Context) error {
	cv, err := clusterapi.Get[configv1.ClusterVersion](ctx, a.api, clusterapi.Key("", "version"))
	if err != nil {
		return err
	}
	i := slices.IndexFunc(a.releases, func(r *release) bool { return r.version() == cv.Status.Desired.Version })
	if i < 0 {
		return nil
	}
	for _, op := range a.releases[i].payload.Operators() {
		ready, err := a.ready(ctx, op)
		if err != nil {
			return err
		}
		if !ready {
			continue
		}
		if err := a.report(ctx, op); err != nil && !apierrors.IsConflict(err) {
			return err
		}
	}
	return nil
}

func (a actors) ready(ctx context.Context, op manifest.Operator) (bool, error) {
	for _, w := range op.Workloads {
		stored, err := a.api.Get(ctx, w.GVK(), clusterapi.KeyOf(w.Object()))
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if !simulation.Applied(stored, w.Object()) {
			return false, nil
		}
	}
	return true, nil
}

func (a actors) report(ctx context.Context, op manifest.Operator) error {
	key := clusterapi.Key("", op.Name)
	co, err := clusterapi.Get[configv1.ClusterOperator](ctx, a.api, key)
	switch {
	case apierrors.IsNotFound(err):
		_, err := clusterapi.Create(ctx, a.api, &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: op.Name}}, clusterapi.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	case err != nil:
		return err
	case equality.Semantic.DeepEqual(co.Status.Versions, op.Versions):
		return nil
	}
	for _, name := range operandNamespaces[op.Name] {
		_, err := clusterapi.Create(ctx, a.api, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, clusterapi.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	_, err = clusterapi.Modify(ctx, a.api, key, clusterapi.ModifyOptions{Status: true}, func(co *configv1.ClusterOperator) error {
		co.Status.Versions = op.Versions
		now := metav1.Now().Rfc3339Copy()
		co.Status.Conditions = []configv1.ClusterOperatorStatusCondition{
			{Type: configv1.OperatorAvailable, Status: configv1.ConditionTrue, LastTransitionTime: now},
			{Type: configv1.OperatorProgressing, Status: configv1.ConditionFalse, LastTransitionTime: now},
			{Type: configv1.OperatorDegraded, Status: configv1.ConditionFalse, LastTransitionTime: now},
			{Type: configv1.OperatorUpgradeable, Status: configv1.ConditionTrue, LastTransitionTime: now},
		}
		return nil
	})
	return err
}
