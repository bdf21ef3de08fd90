package forecast_test

import (
	"context"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/forecast"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// A cluster that has been updated shows how long its operators and reboots take, one
// that was only installed nothing.
func TestObservedTiming(t *testing.T) {
	o := newOriginal(t, simulation.Options{}, nil, reconcile.Faults{})
	checktest.Same(
		t, forecast.DefaultTiming(), checktest.Get(forecast.ObservedTiming(context.Background(), o.Cluster, nil))(t),
	)
	o.Advance(t, 3*time.Hour)
	timing := checktest.Get(forecast.ObservedTiming(context.Background(), o.Cluster, nil))(t)
	checktest.Has(t, timing.Operator.Source, "observed: 1 updates of this cluster, in which all operators took 24m0s")
	checktest.Equal(t, 6*time.Minute*24/60, timing.Operator.Median, "an operator's work")
	checktest.Equal(t, 0, len(timing.Operators), "operators without the release's order")
	named := checktest.Get(forecast.ObservedTiming(t.Context(), o.Cluster, o.Images[1]))(t)
	checktest.Has(t, named.Operators["dns"].Source, "observed: in the update to 4.21.1")
	for name, d := range named.Operators {
		if (d.Median - 6*time.Minute).Abs() > time.Minute {
			t.Errorf("operator %s takes %s, and took 6m", name, d.Median)
		}
	}
	other := checktest.Get(forecast.ObservedTiming(t.Context(), o.Cluster, o.Images[0]))(t)
	checktest.Same(t, timing, other)
	checktest.Has(t, timing.Reboots["worker"].Source, "observed: 3 nodes that returned in the update to 4.21.1")
	if timing.Drain != forecast.DefaultTiming().Drain {
		t.Errorf("nothing shows how long drains take: %+v", timing.Drain)
	}
	for name, d := range timing.Reboots {
		if d.Median < 3*time.Minute || d.Median > 4*time.Minute {
			t.Errorf("pool %s reboots in %s, and took 3m", name, d.Median)
		}
	}
}

// cutReader lacks all objects of a kind but the first, and says so with err.
type cutReader struct {
	clusterapi.Reader
	kind string
	err  error
}

func (r cutReader) List(
	ctx context.Context, gvk schema.GroupVersionKind, o clusterapi.ListOptions,
) (*unstructured.UnstructuredList, error) {
	list, err := r.Reader.List(ctx, gvk, o)
	if err == nil && gvk.Kind == r.kind {
		list.Items, err = list.Items[:1], r.err
	}
	return list, err
}

// Times between some of the nodes, or of the operators, are not observed.
func TestObservedTimingOfSome(t *testing.T) {
	o := newOriginal(t, simulation.Options{}, nil, reconcile.Faults{})
	o.Advance(t, 3*time.Hour)
	full := checktest.Get(forecast.ObservedTiming(t.Context(), o.Cluster, nil))(t)
	for _, err := range []error{nil, clusterapi.ErrNotCollected} {
		some := checktest.Get(forecast.ObservedTiming(t.Context(), cutReader{o.Cluster, "Node", err}, nil))(t)
		checktest.Equal(t, 0, len(some.Reboots), "pools, with %v", err)
		checktest.Same(t, full.Operator, some.Operator)
	}
	some := checktest.Get(forecast.ObservedTiming(t.Context(), cutReader{o.Cluster, "ClusterOperator", clusterapi.ErrNotCollected}, nil))(t)
	// The documentation divides the update, of which the operators are 60 of 75 minutes.
	control, _ := o.ends(t)
	if control.IsZero() || some.Operator.Median < full.Operator.Median {
		t.Errorf("an operator takes %s, and %s if one of them is known", full.Operator.Median, some.Operator.Median)
	}
	checktest.Same(t, full.Reboots, some.Reboots)
}

// Operators that were all done within seconds of an update's start have times, too.
func TestObservedTimingOfSeconds(t *testing.T) {
	o := newOriginal(t, simulation.Options{}, nil, reconcile.Faults{})
	o.Advance(t, 3*time.Hour)
	cv := checktest.Get(clusterapi.Get[configv1.ClusterVersion](t.Context(), o.Cluster, clusterapi.Key("", "version")))(t)
	newest := &cv.Status.History[0]
	for _, co := range checktest.Get(clusterapi.List[configv1.ClusterOperator](t.Context(), o.Cluster, clusterapi.ListOptions{}))(t) {
		for _, c := range co.Status.Conditions {
			done := c.LastTransitionTime.Add(-2 * time.Second)
			if c.Type == configv1.OperatorProgressing && co.Name != "machine-config" && done.After(newest.StartedTime.Time) {
				newest.StartedTime.Time = done
			}
		}
	}
	timing := checktest.Get(forecast.ObservedTiming(t.Context(), versionReader{o.Cluster, cv}, o.Images[1]))(t)
	checktest.Equal(t, time.Second, timing.Operator.Median, "an operator's work")
	checktest.FailIf(t, len(timing.Operators) == 0, "no operator was observed")
	for name, d := range timing.Operators {
		checktest.FailIf(t, d.P90 < d.Median || d.P90 > time.Minute, "operator %s: %+v", name, d)
	}
}

// versionReader has another ClusterVersion.
type versionReader struct {
	clusterapi.Reader
	cv *configv1.ClusterVersion
}

func (r versionReader) Get(
	ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName,
) (*unstructured.Unstructured, error) {
	if gvk.Kind == "ClusterVersion" {
		return clusterapi.ToUnstructured(r.cv)
	}
	return r.Reader.Get(ctx, gvk, key)
}
