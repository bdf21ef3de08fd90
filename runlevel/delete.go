package runlevel

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/runlevel/merge"
)

// delete asks once for an object to be gone, and remembers whether it is. It
// does not wait: while the object is there, [Tracker.PendingDeletions] names
// it.
//
// Only Updating sends requests. The other states look after those that are
// pending, and do nothing else.
func (a *applier) delete(ctx context.Context, t *manifest.Task, state State) error {
	m := t.Manifest
	key := deletionOf(m)
	was := a.tracker.deletion(key)
	if state != Updating && (!was.requested || was.verified) {
		return nil
	}
	if was.overruled {
		a.warn(t, fmt.Sprintf("%s: the release deletes %s and applies it: it stays", m, key))
		return nil
	}

	existing, err := a.api.Get(ctx, m.GVK(), clusterapi.KeyOf(m.Object()))
	if clusterapi.IsMissing(err) { // with its kind, perhaps
		a.tracker.setDeletion(key, deletion{requested: true, verified: true})
		return nil
	}
	if err != nil {
		return fmt.Errorf("error running delete for %s, err=cannot get %s to delete, err=%w", key, key, err)
	}
	if was.verified {
		text := fmt.Sprintf("%s has reappeared after having been deleted", key)
		a.log.WarnContext(ctx, text)
		a.tell(t, EventWarning, text, nil)
		return nil
	}
	if was.requested {
		return nil
	}
	// the uid, so that an object created again in the meantime is not deleted
	opts := clusterapi.DeleteOptions{UID: existing.GetUID()}
	if err := a.api.Delete(ctx, m.GVK(), clusterapi.KeyOf(m.Object()), opts); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete request for %s failed, err=%w", key, err)
	}
	a.tracker.setDeletion(key, deletion{requested: true})
	return nil
}

// applied records that an object was applied, which ends the deletion of it that
// another release asked for. The release's own deletion is not repeated.
func (a *applier) applied(m *manifest.Manifest) {
	key := deletionOf(m)
	a.tracker.applied(key, a.deletes[key])
}

// deletionsOf are the objects that the included ones of tasks delete.
func deletionsOf(tasks []*manifest.Task, included func(*manifest.Manifest) bool) map[deletionKey]bool {
	var out map[deletionKey]bool
	for _, t := range tasks {
		if m := t.Manifest; m.Annotations()[annotationDelete] == "true" && !isClusterOperator(m) && included(m) {
			if out == nil {
				out = make(map[deletionKey]bool)
			}
			out[deletionOf(m)] = true
		}
	}
	return out
}

func deletionOf(m *manifest.Manifest) deletionKey {
	id := m.Identity()
	return deletionKey{group: id.Group, kind: deletionKind(m.GVK()), namespace: id.Namespace, name: id.Name}
}

// deletionKind returns a kind as texts about deletions have it: in lower case
// where the cluster-version operator knows the kind, else as written.
func deletionKind(gvk schema.GroupVersionKind) string {
	if merge.HasRule(gvk) {
		return strings.ToLower(gvk.Kind)
	}
	return gvk.Kind
}
