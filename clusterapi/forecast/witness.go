package forecast

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/objects"
)

// witness watches a run: when something has moved last, what fails for good, and what
// the timeline shows of operators. It is a reconciler that writes nothing.
type witness struct {
	lines *lines
	moved time.Time
	// states are hashes of all states that an object has had: a return to one does
	// not count as movement.
	states map[string]map[uint64]bool
	errors map[string]lasting // of reconcilers, by subject
}

// lasting is an error that has return since.
type lasting struct {
	since time.Time
	err   error
}

func newWitness(l *lines, now time.Time) *witness {
	return &witness{lines: l, moved: now, states: make(map[string]map[uint64]bool), errors: make(map[string]lasting)}
}

// process is the witness as a separate process.
func (w *witness) process() reconcile.Process {
	made := func(clusterapi.ClusterAPI) []reconcile.Reconciler { return []reconcile.Reconciler{w} }
	return reconcile.Process{Name: "forecast", New: made}
}

// Name implements [reconcile.Reconciler].
func (w *witness) Name() string { return "witness" }

// Reconcile implements [reconcile.Reconciler]: it has nothing to do.
func (w *witness) Reconcile(context.Context, reconcile.Request) (reconcile.Result, error) {
	return reconcile.Result{}, nil
}

// Watches implements [reconcile.Reconciler].
func (w *witness) Watches() (watches []reconcile.Watch) {
	for _, gvk := range []schema.GroupVersionKind{
		configv1.GroupVersion.WithKind("ClusterVersion"),
		configv1.GroupVersion.WithKind("ClusterOperator"),
		mcfgv1.GroupVersion.WithKind("MachineConfigPool"),
		corev1.SchemeGroupVersion.WithKind("Node"),
		{Group: "apps", Version: "v1", Kind: "Deployment"},
		{Group: "apps", Version: "v1", Kind: "DaemonSet"},
		{Group: "apps", Version: "v1", Kind: "StatefulSet"},
		{Group: "apps", Version: "v1", Kind: "ReplicaSet"},
		{Group: "batch", Version: "v1", Kind: "Job"},
	} {
		watches = append(watches, reconcile.Watch{GVK: gvk, Changed: w.changed})
	}
	return watches
}

// changed notes a change of an object, if the object has not had the new state before.
func (w *witness) changed(now time.Time, old, new *clusterapi.Object) []reconcile.Wake {
	o := new
	if new == nil {
		o = old
	}
	id := o.Kind().Kind + " " + o.Key().String()
	known := w.states[id]
	if known == nil {
		known = make(map[uint64]bool)
		w.states[id] = known
	}
	state := uint64(0) // gone
	if new != nil {
		state = stateOf(new)
	}
	if !known[state] {
		known[state] = true
		w.moved = now
	}
	if o.Kind().Kind == "ClusterOperator" && new != nil {
		w.lines.operator(now, new)
	}
	return nil
}

// stateOf stands for what matters of an object, times left out: of a ClusterVersion the
// history alone, which a refused release does not change.
func stateOf(o *clusterapi.Object) uint64 {
	content := o.Unstructured().Object
	status, _ := content["status"].(map[string]any)
	if o.Kind().Kind == "ClusterVersion" {
		return objects.Hash(status["history"], isTime)
	}
	metadata, _ := content["metadata"].(map[string]any)
	return objects.Hash([]any{metadata["annotations"], content["spec"], content["status"]}, isTime)
}

func isTime(field string) bool { return strings.HasSuffix(field, "Time") }

// driver takes an event of the driver.
func (w *witness) driver(e clusterapi.Event) {
	switch e.Type {
	case reconcile.EventFailed, reconcile.EventWatchFailed:
		last, ok := w.errors[e.Subject]
		if !ok || last.err.Error() != e.Err.Error() {
			last = lasting{e.Time, e.Err}
		}
		w.errors[e.Subject] = last
	case reconcile.EventRecovered, reconcile.EventWatchRecovered:
		delete(w.errors, e.Subject)
	}
}

// forGood is how long an error lasts that counts as one that does not go away.
const forGood = time.Hour

// failed returns the error that has lasted longest, nil if none has for an hour.
func (w *witness) failed(now time.Time) error {
	var first *lasting
	var where string
	for _, subject := range slices.Sorted(maps.Keys(w.errors)) {
		e := w.errors[subject]
		if now.Sub(e.since) >= forGood && (first == nil || e.since.Before(first.since)) {
			first = &e
			where = subject
		}
	}
	if first == nil {
		return nil
	}
	return &failure{subject: where, since: first.since, err: first.err}
}

// failure is an error that ends a run.
type failure struct {
	subject string
	since   time.Time
	err     error
}

func (f *failure) Error() string { return f.subject + ": " + f.err.Error() }
func (f *failure) Unwrap() error { return f.err }
