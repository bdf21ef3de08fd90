package view

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// StatusOptions are the options of [ReadStatus]. The zero value works.
type StatusOptions struct {
	// Now is the time of the status; zero means the reader's (see
	// [clusterapi.TimeOf]), else the real one.
	Now time.Time
	// Alerts returns those that fire; nil means those of the reader (see
	// [clusterapi.AlertsOf]), and none if it has none.
	Alerts func(context.Context) ([]clusterapi.Alert, error)
	// Components returns those of the release that the cluster updates to, as far as
	// they belong on it. With them the status reports at which runlevel the update
	// is; nil leaves that out.
	Components func(*configv1.ClusterVersion) []Component
	// Drains reads the pods of cordoned nodes, and budgets, so that Status.Waits names
	// what holds a drain.
	Drains bool
}

// ReadStatus reads what an update's status is computed from, and returns that
// status: what oc adm upgrade status shows, as data. What cannot be read is named
// in Status.Unknown. Its errors are those of ctx, of reading the ClusterVersion, and
// of [AssessStatus]. It can be called concurrently.
func ReadStatus(ctx context.Context, r clusterapi.Reader, o StatusOptions) (*Status, error) {
	s := statusReader{reader: r, o: o}
	objects, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	return AssessStatus(objects, timeOf(r, o.Now))
}

// timeOf returns the time of a view: now, else the reader's, else the real one.
func timeOf(r clusterapi.Reader, now time.Time) time.Time {
	if now.IsZero() {
		now = clusterapi.TimeOf(r)
	}
	if now.IsZero() {
		now = clock.RealClock{}.Now()
	}
	return now
}

// statusReader reads the objects of a status. Those of a kind that is fresh are kept.
// A kind that the cluster does not serve has no objects; one that cannot be read, or not
// in full, is in Objects.Missing.
type statusReader struct {
	reader  clusterapi.Reader
	o       StatusOptions
	objects Objects
	fresh   map[string]bool // by kind; nil: none is kept
}

func (s *statusReader) read(ctx context.Context) (*Objects, error) {
	s.objects.Missing = nil
	cv, err := clusterapi.Read[configv1.ClusterVersion](ctx, s.reader, clusterapi.Key("", "version"))
	switch {
	case clusterapi.IsMissing(err):
		cv = nil
	case err != nil:
		return nil, fmt.Errorf("reading the ClusterVersion: %w", err)
	}
	s.objects.ClusterVersion = cv
	if s.o.Components != nil && cv != nil {
		s.objects.Components = s.o.Components(cv)
	}
	err = errors.Join(
		readKind(ctx, s, kindOperator, &s.objects.ClusterOperators, readAll[configv1.ClusterOperator]),
		readKind(ctx, s, kindPool, &s.objects.MachineConfigPools, readAll[mcfgv1.MachineConfigPool]),
		readKind(ctx, s, kindNode, &s.objects.Nodes, readAll[corev1.Node]),
		readKind(ctx, s, kindConfig, &s.objects.MachineConfigs, readConfigs),
	)
	deployments, daemonSets := readOperatorDeployment, readNothing
	if s.o.Components != nil {
		deployments, daemonSets = readAll[appsv1.Deployment], readAll[appsv1.DaemonSet]
	}
	err = errors.Join(err,
		readKind(ctx, s, kindDeploy, &s.objects.Deployments, deployments),
		readKind(ctx, s, kindDaemon, &s.objects.DaemonSets, daemonSets),
	)
	if s.o.Drains {
		err = errors.Join(err,
			readKind(ctx, s, kindPod, &s.objects.Pods, podsOfCordoned(s.objects.Nodes)),
			readKind(ctx, s, kindBudget, &s.objects.PodDisruptionBudgets, readAll[policyv1.PodDisruptionBudget]),
		)
	}
	if err != nil {
		return nil, err
	}
	if err := s.readAlerts(ctx); err != nil {
		return nil, err
	}
	s.objects.Assumed = nil
	for _, gvk := range assumedKinds {
		if clusterapi.Assumed(s.reader, gvk) {
			s.objects.Assumed = append(s.objects.Assumed, gvk.Kind)
		}
	}
	objects := s.objects
	return &objects, nil
}

// readAlerts reads the alerts. It fails only when ctx ends.
func (s *statusReader) readAlerts(ctx context.Context) error {
	read := s.o.Alerts
	if read == nil {
		read = func(ctx context.Context) ([]clusterapi.Alert, error) { return clusterapi.AlertsOf(ctx, s.reader) }
	}
	alerts, err := read(ctx)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && (s.o.Alerts != nil || !errors.Is(err, clusterapi.ErrNotCollected)):
		s.objects.Missing = append(s.objects.Missing, Missing{Kind: kindAlert, Reason: err.Error()})
	}
	s.objects.Alerts = alerts
	return nil
}

// assumedKinds are those of which the absence of an object says something.
var assumedKinds = []schema.GroupVersionKind{
	configv1.GroupVersion.WithKind("ClusterOperator"),
	mcfgv1.GroupVersion.WithKind("MachineConfigPool"),
	corev1.SchemeGroupVersion.WithKind("Node"),
	mcfgv1.GroupVersion.WithKind("MachineConfig"),
}

// readKind reads all objects of a kind, unless they are still fresh. It fails only
// when ctx ends.
func readKind[T any](
	ctx context.Context, s *statusReader, kind string, into *[]*T,
	list func(context.Context, clusterapi.Reader) ([]*T, error),
) error {
	if s.fresh[kind] {
		return nil
	}
	objects, err := list(ctx, s.reader)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	*into = objects
	switch {
	case err == nil || meta.IsNoMatchError(err):
		if s.fresh != nil {
			s.fresh[kind] = true
		}
	default:
		s.objects.Missing = append(s.objects.Missing, Missing{Kind: kind, Reason: strings.TrimPrefix(err.Error(), kind+": ")})
	}
	return nil
}

// readAll reads all objects of a kind that can be decoded, with an error that
// reports which cannot.
func readAll[T any](ctx context.Context, r clusterapi.Reader) ([]*T, error) {
	return readSome[T](ctx, r, clusterapi.ListOptions{})
}

// readSome is readAll of the objects that options select.
func readSome[T any](ctx context.Context, r clusterapi.Reader, o clusterapi.ListOptions) ([]*T, error) {
	gvk, err := clusterapi.KindOf[T]()
	if err != nil {
		return nil, err
	}
	objects, err := clusterapi.ListShared(ctx, r, gvk, o)
	var all []*T
	var first error
	faults := 0
	for _, object := range objects {
		t, fault := clusterapi.As[T](object)
		if fault == nil {
			all = append(all, t)
			continue
		}
		if faults++; first == nil {
			first = fmt.Errorf("%s: %w", object.Name(), fault)
		}
	}
	if faults > 1 {
		first = fmt.Errorf("%w (and %d more that cannot be decoded)", first, faults-1)
	}
	return all, errors.Join(first, err)
}

// podsOfCordoned reads the pods of the nodes that take no new ones.
func podsOfCordoned(nodes []*corev1.Node) func(context.Context, clusterapi.Reader) ([]*corev1.Pod, error) {
	return func(ctx context.Context, r clusterapi.Reader) ([]*corev1.Pod, error) {
		var all []*corev1.Pod
		var errs []error
		for _, n := range nodes {
			if !n.Spec.Unschedulable {
				continue
			}
			pods, err := readSome[corev1.Pod](ctx, r, clusterapi.ListOptions{NodeName: n.Name})
			all = append(all, pods...)
			errs = append(errs, err)
		}
		return all, errors.Join(errs...)
	}
}

// readConfigs reads the metadata of MachineConfigs, which are large and of which
// the status needs nothing else.
func readConfigs(ctx context.Context, r clusterapi.Reader) ([]*mcfgv1.MachineConfig, error) {
	objects, err := clusterapi.ListShared(ctx, r, mcfgv1.GroupVersion.WithKind(kindConfig), clusterapi.ListOptions{})
	configs := make([]*mcfgv1.MachineConfig, len(objects))
	for i, object := range objects {
		u := object.Unstructured()
		configs[i] = &mcfgv1.MachineConfig{ObjectMeta: metav1.ObjectMeta{Name: u.GetName(), Annotations: u.GetAnnotations()}}
	}
	return configs, err
}

// readOperatorDeployment reads the deployment that reports which machine-config
// operator should run.
func readOperatorDeployment(ctx context.Context, r clusterapi.Reader) ([]*appsv1.Deployment, error) {
	const name = "machine-config-operator"
	d, err := clusterapi.Read[appsv1.Deployment](ctx, r, clusterapi.Key("openshift-"+name, name))
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return []*appsv1.Deployment{d}, nil
}

func readNothing(context.Context, clusterapi.Reader) ([]*appsv1.DaemonSet, error) {
	return nil, nil
}
