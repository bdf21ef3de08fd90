package preview

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/manifest"
)

var namespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace")

// makeNamespaces makes those that operators of the release make once they run, unless the
// cluster has them.
func (r *run) makeNamespaces(ctx context.Context) error {
	if r.o.Running == nil || r.o.Payload == nil {
		return nil
	}
	for _, name := range manifest.NewNamespaces(r.o.Running, r.o.Payload) {
		ns := &unstructured.Unstructured{}
		ns.SetGroupVersionKind(namespaceKind)
		ns.SetName(name)
		_, err := r.Cluster.Create(ctx, ns, clusterapi.CreateOptions{})
		switch {
		case err == nil:
			r.made = append(r.made, name)
		case !apierrors.IsAlreadyExists(err):
			return errorf("namespace %s: %w", name, err)
		}
	}
	return nil
}

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
