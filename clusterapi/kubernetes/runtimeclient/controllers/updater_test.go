package controllers_test

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes/internal/testserver"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/runlevel"
	"github.com/clusterupdate/clusterupdate/signature"
)

func init() { processes["updater"] = updater }

// samples are the embedded releases.
type samples struct{}

func (samples) Payload(_ context.Context, r configv1.Release) (fs.FS, error) {
	return sample.Payload(r.Image)
}

func (samples) InitialRelease(context.Context) (configv1.Release, error) {
	return configv1.Release{Version: sample.FromVersion, Image: sample.FromImage}, nil
}

// updater is an Updater of the embedded releases.
func updater(o order, say func(line)) (reconcile.Process, error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		return reconcile.Process{}, err
	}
	api, err := kubernetes.New(config, kubernetes.Options{})
	if err != nil {
		return reconcile.Process{}, err
	}
	u, err := clusterupdate.New(clusterupdate.Options{
		API: api, Payloads: samples{}, Verifier: signature.Insecure(), Workers: 2, Interval: time.Hour,
		Observe: func(e clusterapi.Event) {
			say(line{string(e.Type), fmt.Sprint(e.Data.(*clusterupdate.EventData).Release.Version, " ", e.Message, " ", e.Err)})
			if p := e.Data.(*clusterupdate.EventData).Pass; p != nil && p.Data.(*runlevel.Progress).Task != nil {
				say(line{"task", fmt.Sprint(e.Data.(*clusterupdate.EventData).Release.Version, " ", p.Type, " ", p.Data.(*runlevel.Progress).Task)})
			}
		},
	})
	if err != nil {
		return reconcile.Process{}, err
	}
	return u.Process(), nil
}

// TestUpdaterReplicas has two replicas update a cluster. The leader is killed
// in mid-update three times, and one is stopped for longer than its lease, and
// then goes on.
func TestUpdaterReplicas(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an API server")
	}
	s := testserver.Start(t)
	config := s.Config()
	config.QPS = -1
	api := checktest.Get(kubernetes.New(config, kubernetes.Options{}))(t)
	c := &played{t: t, api: api, held: map[string]bool{}}
	c.prepare()
	c.play()
	permit(t, api, "updater")
	both := newReplicas(t, order{Kubeconfig: s.Kubeconfig(t), Process: "updater"})
	await(t, "the installation", 2*time.Minute, func() bool { return c.history() == sample.FromVersion+" Completed" })
	c.acknowledge()

	// An operator that reports late holds the update where a leader is killed.
	holds := []string{"etcd", "kube-controller-manager", "ingress", "machine-config"}
	for _, name := range holds {
		c.hold(name, true)
	}
	c.request(sample.ToVersion, sample.ToImage)
	for _, name := range holds[:3] {
		leader := both.leader()
		await(t, "the update waits for "+name, 2*time.Minute, func() bool { return c.waitsFor(name) })
		leader.kill()
		both.drop(leader)
		if h := c.history(); h != sample.ToVersion+" Partial, "+sample.FromVersion+" Completed" {
			t.Fatalf("history in the middle: %s", h)
		}
		c.hold(name, false)
	}
	stopped := both.leader()
	await(t, "the update waits for machine-config", 2*time.Minute, func() bool { return c.waitsFor("machine-config") })
	stopped.signal(syscall.SIGSTOP)
	both.drop(stopped)
	both.leader()
	c.hold("machine-config", false)
	completed := sample.ToVersion + " Completed, " + sample.FromVersion + " Completed"
	await(t, "the update", 2*time.Minute, func() bool { return c.history() == completed })
	before := c.version()
	made := len(stopped.said("task"))
	stopped.signal(syscall.SIGCONT)
	await(t, "the end of the replica that was stopped", 30*time.Second, func() bool {
		select {
		case <-stopped.ended:
			return true
		default:
			return false
		}
	})
	after := c.version()
	checktest.Equal(t, completed, c.history(), "history at the end")
	checktest.FailIf(t, before.Status.Desired.Image != sample.ToImage || after.Status.Desired.Image != sample.ToImage,
		"desired is %s, then %s", before.Status.Desired.Image, after.Status.Desired.Image)
	// At most the calls under way when it was stopped come to their end.
	late := len(stopped.said("task")) - made
	checktest.FailIf(t, late > 2*2, "the replica that was stopped told of %d tasks afterwards", late)
	c.checkApplied()
}

// played is a cluster without controllers, in which the test plays those that
// an update waits for.
type played struct {
	t   testing.TB
	api clusterapi.ClusterAPI

	mu   sync.Mutex
	held map[string]bool // operators that do not report yet
}

// prepare makes what an installer leaves behind.
func (c *played) prepare() {
	c.t.Helper()
	for _, m := range c.payload(sample.FromImage).Manifests {
		if m.GVK().Kind != "CustomResourceDefinition" {
			continue
		}
		if _, err := c.api.Create(c.t.Context(), m.Object(), clusterapi.CreateOptions{}); err != nil {
			c.t.Fatalf("%s: %v", m, err)
		}
	}
	await(c.t, "ClusterVersions are served", time.Minute, func() bool {
		cv := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}, Spec: configv1.ClusterVersionSpec{ClusterID: "8d4c5c1a-8e0e-4bd9-9d5d-8d2a4c9f7f01"}}
		_, err := clusterapi.Create(c.t.Context(), c.api, cv, clusterapi.CreateOptions{})
		return err == nil || apierrors.IsAlreadyExists(err)
	})
}

func (c *played) payload(image string) *manifest.Payload {
	c.t.Helper()
	fsys, err := sample.Payload(image)
	if err != nil {
		c.t.Fatal(err)
	}
	p, err := manifest.Load(c.t.Context(), fsys, manifest.LoadOptions{Image: image})
	if err != nil {
		c.t.Fatal(err)
	}
	return p
}

func (c *played) version() *configv1.ClusterVersion {
	c.t.Helper()
	cv, err := clusterapi.Get[configv1.ClusterVersion](c.t.Context(), c.api, clusterapi.Key("", "version"))
	if err != nil {
		c.t.Fatal(err)
	}
	return cv
}

func (c *played) history() string {
	var out []string
	for _, h := range c.version().Status.History {
		out = append(out, h.Version+" "+string(h.State))
	}
	return strings.Join(out, ", ")
}

// waitsFor reports whether the update waits for an operator.
func (c *played) waitsFor(operator string) bool {
	for _, cond := range c.version().Status.Conditions {
		if cond.Type == configv1.OperatorProgressing && strings.Contains(cond.Message, operator) {
			return true
		}
	}
	return false
}

func (c *played) request(version, image string) {
	c.t.Helper()
	_, err := clusterapi.Modify(c.t.Context(), c.api, clusterapi.Key("", "version"), clusterapi.ModifyOptions{}, func(cv *configv1.ClusterVersion) error {
		cv.Spec.DesiredUpdate = &configv1.Update{Version: version, Image: image}
		return nil
	})
	if err != nil {
		c.t.Fatal(err)
	}
}

// acknowledge opens the gates of the release.
func (c *played) acknowledge() {
	c.t.Helper()
	gates, err := clusterapi.Get[corev1.ConfigMap](c.t.Context(), c.api, clusterapi.Key("openshift-config-managed", "admin-gates"))
	if err != nil {
		c.t.Fatal(err)
	}
	_, err = clusterapi.Modify(c.t.Context(), c.api, clusterapi.Key("openshift-config", "admin-acks"), clusterapi.ModifyOptions{}, func(cm *corev1.ConfigMap) error {
		cm.Data = map[string]string{}
		for gate := range gates.Data {
			cm.Data[gate] = "true"
		}
		return nil
	})
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *played) hold(operator string, held bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held[operator] = held
}

// play gives workloads their status, and makes operators report the versions
// of the release that is wanted once their workloads are as it has them.
func (c *played) play() {
	operators := map[string][]manifest.Operator{}
	for _, image := range []string{sample.FromImage, sample.ToImage} {
		operators[image] = c.payload(image).Operators()
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ; ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
			if err := c.round(ctx, operators); err != nil && ctx.Err() == nil && !meta.IsNoMatchError(err) && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
				c.t.Errorf("playing controllers: %v", err)
				return
			}
		}
	}()
	c.t.Cleanup(func() {
		cancel()
		<-done
	})
}

func (c *played) round(ctx context.Context, operators map[string][]manifest.Operator) error {
	status := clusterapi.ModifyOptions{Status: true}
	deployments, err := clusterapi.List[appsv1.Deployment](ctx, c.api, clusterapi.ListOptions{})
	if err != nil {
		return err
	}
	for _, d := range deployments {
		_, err := clusterapi.Modify(ctx, c.api, clusterapi.Key(d.Namespace, d.Name), status, func(d *appsv1.Deployment) error {
			n := int32(1)
			if d.Spec.Replicas != nil {
				n = *d.Spec.Replicas
			}
			d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
				Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable"}}}
			return nil
		})
		if err != nil {
			return err
		}
	}
	sets, err := clusterapi.List[appsv1.DaemonSet](ctx, c.api, clusterapi.ListOptions{})
	if err != nil {
		return err
	}
	for _, d := range sets {
		_, err := clusterapi.Modify(ctx, c.api, clusterapi.Key(d.Namespace, d.Name), status, func(d *appsv1.DaemonSet) error {
			d.Status = appsv1.DaemonSetStatus{ObservedGeneration: d.Generation, DesiredNumberScheduled: 3, CurrentNumberScheduled: 3, UpdatedNumberScheduled: 3, NumberReady: 3, NumberAvailable: 3}
			return nil
		})
		if err != nil {
			return err
		}
	}
	jobs, err := clusterapi.List[batchv1.Job](ctx, c.api, clusterapi.ListOptions{})
	if err != nil {
		return err
	}
	for _, j := range jobs {
		_, err := clusterapi.Modify(ctx, c.api, clusterapi.Key(j.Namespace, j.Name), status, func(j *batchv1.Job) error {
			if j.Status.Succeeded > 0 {
				return nil
			}
			now, none := metav1.Now().Rfc3339Copy(), int32(0)
			j.Status = batchv1.JobStatus{StartTime: &now, CompletionTime: &now, Succeeded: 1, Ready: &none, Terminating: &none}
			for _, kind := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
				j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, LastProbeTime: now, LastTransitionTime: now})
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	cv, err := clusterapi.Get[configv1.ClusterVersion](ctx, c.api, clusterapi.Key("", "version"))
	if err != nil {
		return err
	}
	for _, op := range operators[cv.Status.Desired.Image] {
		if err := c.report(ctx, op); err != nil {
			return err
		}
	}
	return nil
}

// report lets an operator report its versions.
func (c *played) report(ctx context.Context, op manifest.Operator) error {
	c.mu.Lock()
	held := c.held[op.Name]
	c.mu.Unlock()
	if held && slices.ContainsFunc(op.Versions, func(v configv1.OperandVersion) bool { return v.Version == sample.ToVersion }) {
		return nil
	}
	for _, w := range op.Workloads {
		stored, err := c.api.Get(ctx, w.GVK(), clusterapi.KeyOf(w.Object()))
		if apierrors.IsNotFound(err) || err == nil && !simulation.Applied(stored, w.Object()) {
			return nil
		} else if err != nil {
			return err
		}
	}
	co := &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: op.Name}}
	if _, err := clusterapi.Create(ctx, c.api, co, clusterapi.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	_, err := clusterapi.Modify(ctx, c.api, clusterapi.Key("", op.Name), clusterapi.ModifyOptions{Status: true}, func(co *configv1.ClusterOperator) error {
		if slices.Equal(co.Status.Versions, op.Versions) {
			return nil
		}
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

// checkApplied looks for every manifest of the newer release.
func (c *played) checkApplied() {
	c.t.Helper()
	filter := manifest.DefaultFilter()
	for _, m := range c.payload(sample.ToImage).Manifests {
		if !filter.Judge(m).Included {
			continue
		}
		_, deleted := m.Annotations()["release.openshift.io/delete"]
		stored, err := c.api.Get(c.t.Context(), m.GVK(), clusterapi.KeyOf(m.Object()))
		switch {
		case deleted && !apierrors.IsNotFound(err):
			c.t.Errorf("%s is to be deleted: %v", m, err)
		case !deleted && err != nil:
			c.t.Errorf("%s: %v", m, err)
		case !deleted && m.GVK().Kind == "Deployment" && !simulation.Applied(stored, m.Object()):
			c.t.Errorf("%s is not as the release has it", m)
		}
	}
}
