package clusterapi

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// timed, alerting and assuming are what else a [Reader] may have, as a recording
// does. A reader that wraps another asks that.
type (
	timed    interface{ Time() time.Time }
	alerting interface {
		Firing(ctx context.Context) ([]Alert, error)
	}
	assuming interface {
		Assumed(gvk schema.GroupVersionKind) bool
	}
)

// TimeOf returns the time at which a cluster was as it is read: what the method
// Time() time.Time of r returns, if it has one. It is zero for a reader without, such
// as a live cluster, and for a recording of which the time is not known.
func TimeOf(r Reader) time.Time {
	if t, ok := r.(timed); ok {
		return t.Time()
	}
	return time.Time{}
}

// AlertsOf returns the alerts, pending ones too, that a reader has: what its method
// Firing(context.Context) ([]Alert, error) returns. The error is [ErrNotCollected] for
// a reader without that method and for a recording without alerts. The alerts are
// shared and must not be changed.
func AlertsOf(ctx context.Context, r Reader) ([]Alert, error) {
	if a, ok := r.(alerting); ok {
		return a.Firing(ctx)
	}
	return nil, ErrNotCollected
}

// Assumed reports whether r takes the objects of a kind for all that there are though
// nothing recorded shows that: what its method Assumed(schema.GroupVersionKind) bool
// returns. It is false for a reader without that method.
func Assumed(r Reader, gvk schema.GroupVersionKind) bool {
	a, ok := r.(assuming)
	return ok && a.Assumed(gvk)
}
