package clusterapi_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// knowing is a reader that knows its time and alerts.
type knowing struct{ clusterapi.Reader }

var recordedAt = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func (knowing) Time() time.Time { return recordedAt }

func (knowing) Firing(context.Context) ([]clusterapi.Alert, error) {
	return []clusterapi.Alert{{State: "firing"}}, nil
}

func (knowing) Assumed(gvk schema.GroupVersionKind) bool { return gvk.Kind == "Node" }

// What a reader knows besides its objects reaches those who read a wrapper or a fork.
func TestRecorded(t *testing.T) {
	base := knowing{memory.New(memory.Options{})}
	later := recordedAt.Add(time.Hour)
	for name, tt := range map[string]struct {
		reader clusterapi.Reader
		time   time.Time
		knows  bool // alerts, and what is assumed
	}{
		"itself":               {base, recordedAt, true},
		"read only":            {clusterapi.ReadOnly(base), recordedAt, true},
		"a fork":               {memory.New(memory.Options{Base: base}), recordedAt, true},
		"a fork with a clock":  {memory.New(memory.Options{Base: base, Clock: reconcile.NewClock(later)}), later, true},
		"read only, of a fork": {clusterapi.ReadOnly(memory.New(memory.Options{Base: clusterapi.ReadOnly(base)})), recordedAt, true},
		"a live cluster":       {struct{ clusterapi.Reader }{base}, time.Time{}, false},
		"of a live cluster":    {clusterapi.ReadOnly(memory.New(memory.Options{Base: struct{ clusterapi.Reader }{base}})), time.Time{}, false},
		"in memory":            {memory.New(memory.Options{}), time.Time{}, false},
		"none":                 {nil, time.Time{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := clusterapi.TimeOf(tt.reader)
			checktest.FailIf(t, !got.Equal(tt.time), "time %s, want %s", got, tt.time)
			alerts, err := clusterapi.AlertsOf(t.Context(), tt.reader)
			if !tt.knows {
				checktest.ErrorIs(t, clusterapi.ErrNotCollected, err)
			}
			checktest.Equal(t, tt.knows, len(alerts) == 1, "alerts")
			checktest.Equal(t, tt.knows, clusterapi.Assumed(tt.reader, schema.GroupVersionKind{Version: "v1", Kind: "Node"}), "Node is assumed")
			checktest.Equal(t, false, clusterapi.Assumed(tt.reader, schema.GroupVersionKind{Version: "v1", Kind: "Pod"}), "Pod is assumed")
		})
	}
}
