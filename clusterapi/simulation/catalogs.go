package simulation

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
)

// The states of a catalog's connection.
const (
	catalogConnecting = "CONNECTING"
	catalogReady      = "READY"
)

// catalogs plays what becomes of a CatalogSource: its server answers as soon as
// its pod would be up. One that reports anything else than that it connects
// stays as it is.
func (p *process) catalogs() *behaviour {
	return &behaviour{
		name:    "catalogs",
		watches: []reconcile.Watch{p.watch(kindCatalogSource, wakeChanged(0))},
		look: func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			o, cs, err := read[olmapi.CatalogSource](ctx, p, kindCatalogSource, named(r.Key))
			if o == nil || err != nil {
				return reconcile.Result{}, err
			}
			state := cs.Status.ConnectionState
			switch {
			case state == nil:
				_, err := p.writeStatus(ctx, o, map[string]any{"connectionState": connection(cs, catalogConnecting, r.Now)})
				return later(r, max(p.c.timing.PodStart, 1)), err
			case state.LastObservedState == catalogConnecting:
				if left := timeAt(o, "status", "connectionState", "lastConnect").Add(p.c.timing.PodStart).Sub(r.Now); left > 0 {
					return later(r, left), nil
				}
				_, err := p.writeStatus(ctx, o, map[string]any{"connectionState": connection(cs, catalogReady, r.Now)})
				return reconcile.Result{}, err
			}
			return reconcile.Result{}, nil
		},
	}
}

func connection(cs *olmapi.CatalogSource, state string, now time.Time) map[string]any {
	address := cs.Spec.Address
	if address == "" {
		address = cs.Name + "." + cs.Namespace + ".svc:50051"
	}
	return map[string]any{"address": address, "lastObservedState": state, "lastConnect": wireTime(now)}
}

// writeStatus sets fields of an object's status, provided that it is still as it
// was read.
func (p *process) writeStatus(ctx context.Context, o *clusterapi.Object, fields map[string]any) (*clusterapi.Object, error) {
	u := o.Unstructured().DeepCopy()
	status, _ := u.Object["status"].(map[string]any)
	if status == nil {
		status = make(map[string]any)
		u.Object["status"] = status
	}
	for k, v := range fields {
		status[k] = v
	}
	return p.write(ctx, o, u, true)
}

func wireTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// timeAt is a time that an object records, zero if it does not.
func timeAt(o *clusterapi.Object, fields ...string) time.Time {
	text, _, _ := unstructured.NestedString(o.Unstructured().Object, fields...)
	t, _ := time.Parse(time.RFC3339, text)
	return t
}
