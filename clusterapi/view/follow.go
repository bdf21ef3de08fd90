package view

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/options"
	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// FollowOptions are the options of [Follow]. API and Observe are required.
type FollowOptions struct {
	// API is the cluster; it is only read. If it is a [clusterapi.Watcher], changes
	// are seen at once, else by lists at intervals.
	API clusterapi.ClusterAPI
	// Observe gets a new status whenever it differs from the one before by more
	// than the time that passed, or the error for which there is none. It is called
	// from one goroutine at a time.
	Observe func(*Status, error)
	// Alerts and Components are as those of [StatusOptions].
	Alerts     func(context.Context) ([]clusterapi.Alert, error)
	Components func(*configv1.ClusterVersion) []Component
	// Settle is the least time between two looks; zero means a second.
	Settle time.Duration
	// Interval is the time between two looks while nothing changes but the time;
	// zero means 30 seconds.
	Interval time.Duration
	// Clock is the time; nil means the real one.
	Clock clock.WithTicker
	// Logger gets failures; nil means no logging.
	Logger *slog.Logger
}

// Follow observes how the status of a cluster's update changes until ctx ends, and
// then returns nil. Its errors are that API or Observe is missing, or that a
// duration is negative. What cannot be read is tried again.
func Follow(ctx context.Context, o FollowOptions) error {
	p, err := FollowProcess(o)
	if err != nil {
		return err
	}
	return reconcile.Run(ctx, reconcile.Options{API: o.API, Clock: o.Clock, Logger: o.Logger}, p)
}

// FollowProcess is [Follow] as a reconciler for a driver of one's own. Its errors
// are those of Follow.
func FollowProcess(o FollowOptions) (reconcile.Process, error) {
	switch {
	case o.API == nil:
		return reconcile.Process{}, errors.New("view: FollowOptions.API is required")
	case o.Observe == nil:
		return reconcile.Process{}, errors.New("view: FollowOptions.Observe is required")
	}
	if err := options.NonNegative(o); err != nil {
		return reconcile.Process{}, err
	}
	o.Settle = cmp.Or(o.Settle, time.Second)
	o.Interval = cmp.Or(o.Interval, 30*time.Second)
	return reconcile.Process{Name: "follow", New: func(api clusterapi.ClusterAPI) []reconcile.Reconciler {
		return []reconcile.Reconciler{&follower{o: o, reader: statusReader{
			reader: api, o: StatusOptions{Alerts: o.Alerts, Components: o.Components}, fresh: map[string]bool{},
		}}}
	}}, nil
}

// follower looks at the status when something changes, and at intervals.
type follower struct {
	o      FollowOptions
	reader statusReader
	looked time.Time
	last   *Status
	fault  string // of the last look
}

func (f *follower) Name() string { return "status" }

func (f *follower) Keys() []reconcile.Key { return []reconcile.Key{{}} }

// Watches is empty: what cannot be watched must not hold up the rest.
func (f *follower) Watches() []reconcile.Watch { return nil }

// watches are the kinds that the status depends on.
func (f *follower) watches() []reconcile.Watch {
	kinds := []schema.GroupVersionKind{
		configv1.GroupVersion.WithKind("ClusterVersion"),
		configv1.GroupVersion.WithKind("ClusterOperator"),
		mcfgv1.GroupVersion.WithKind("MachineConfigPool"),
		mcfgv1.GroupVersion.WithKind("MachineConfig"),
		corev1.SchemeGroupVersion.WithKind("Node"),
		appsv1.SchemeGroupVersion.WithKind("Deployment"),
	}
	if f.o.Components != nil {
		kinds = append(kinds, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))
	}
	watches := make([]reconcile.Watch, len(kinds))
	for i, gvk := range kinds {
		changed := func(now time.Time, _, _ *clusterapi.Object) []reconcile.Wake {
			delete(f.reader.fresh, gvk.Kind)
			return []reconcile.Wake{{After: min(max(0, f.looked.Add(f.o.Settle).Sub(now)), f.o.Settle)}}
		}
		watches[i] = reconcile.Watch{GVK: gvk, Trim: identity, Changed: changed}
		if gvk.Kind == "Deployment" && f.o.Components == nil {
			watches[i].Options.Namespace = "openshift-machine-config-operator"
		}
	}
	return watches
}

// identity is all that is kept of an object that is read again when it changes.
func identity(u *unstructured.Unstructured) *unstructured.Unstructured {
	kept := &unstructured.Unstructured{}
	kept.SetGroupVersionKind(u.GroupVersionKind())
	kept.SetNamespace(u.GetNamespace())
	kept.SetName(u.GetName())
	kept.SetUID(u.GetUID())
	kept.SetResourceVersion(u.GetResourceVersion())
	return kept
}

// Reconcile reads the status, and lets it be observed if it is new.
func (f *follower) Reconcile(ctx context.Context, q reconcile.Request) (reconcile.Result, error) {
	f.looked = q.Now
	objects, err := f.reader.read(ctx)
	if ctx.Err() != nil {
		return reconcile.Result{}, ctx.Err()
	}
	if err != nil {
		f.observe(nil, err)
		return reconcile.Result{}, err
	}
	f.observe(AssessStatus(objects, q.Now))
	return reconcile.Result{At: q.Now.Add(f.o.Interval), Watches: f.watches()}, nil
}

// observe passes on what differs from what was observed before.
func (f *follower) observe(status *Status, err error) {
	fault := ""
	if err != nil {
		fault = err.Error()
	}
	if fault == f.fault && (err != nil || f.last != nil && status.Same(f.last)) {
		return
	}
	f.fault, f.last = fault, status
	if p := panics.Catch(func() error { f.o.Observe(status, err); return nil }); p != nil && f.o.Logger != nil {
		f.o.Logger.Error("the observer failed", "error", p)
	}
}
