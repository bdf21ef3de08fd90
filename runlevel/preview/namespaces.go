package preview

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

var namespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace")

// assumedNamespaces are those that something is created in, though nobody knows
// whether the cluster has them, and the release does not make them.
func (r *run) assumedNamespaces(ctx context.Context, p *Preview) map[string]bool {
	out := make(map[string]bool)
	known := make(map[string]bool)
	for i := range p.Changes {
		if o := p.Changes[i].Object; o.GroupKind() == namespaceKind.GroupKind() {
			known[o.Name] = true
		}
	}
	for i := range p.Changes {
		c := &p.Changes[i]
		ns := c.Object.Namespace
		if c.Action != Create || ns == "" || known[ns] {
			continue
		}
		known[ns] = true
		if _, err := r.base.GetShared(ctx, namespaceKind, clusterapi.Key("", ns)); errors.Is(err, clusterapi.ErrNotCollected) {
			out[ns] = true
		}
	}
	return out
}
