package memory

import (
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// Load stores objects as they are, as from a dump of a cluster: status,
// deletionTimestamp, generation, creationTimestamp and managedFields are kept,
// and the UID where an object has one. Only the resourceVersion is new. Lists
// are stored item by item.
//
// Neither Validate nor Intercept is called, and fields that a schema lacks are
// kept until the next write. Objects are stored in the given order, those that
// can be; the error joins what kept the others out (no kind or name, a name
// that is taken).
func (c *Cluster) Load(objs ...*unstructured.Unstructured) error {
	var errs []error
	for i, obj := range objs {
		if obj == nil {
			errs = append(errs, fmt.Errorf("object %d: is nil", i))
			continue
		}
		if obj.IsList() {
			list, err := obj.ToList()
			if err != nil {
				errs = append(errs, fmt.Errorf("object %d: %w", i, err))
				continue
			}
			for j := range list.Items {
				if err := c.load(&list.Items[j]); err != nil {
					errs = append(errs, fmt.Errorf("object %d, item %d: %w", i, j, err))
				}
			}
			continue
		}
		if err := c.load(obj); err != nil {
			errs = append(errs, fmt.Errorf("object %d: %w", i, err))
		}
	}
	return errors.Join(errs...)
}

func (c *Cluster) load(obj *unstructured.Unstructured) error {
	k, err := c.kind(obj.GroupVersionKind())
	if err != nil {
		return err
	}
	content, err := copyTree(obj.Object, "")
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{}
	u.Object, _ = content.(map[string]any)
	if err := c.place(k, u); err != nil {
		return err
	}
	if u.GetName() == "" {
		return fmt.Errorf("%s without a name", u.GetKind())
	}
	m := metadata(u)
	if m["creationTimestamp"] == nil {
		m["creationTimestamp"] = c.clock.Now().UTC().Format(time.RFC3339)
	}
	if _, ok := m["generation"]; !ok && k.counts {
		m["generation"] = int64(1)
	}
	if k.gvk.GroupKind() == definitionKind && !hasCondition(u, "Established") {
		u.Object["status"] = definitionStatus(u, c.clock.Now(), true)
	}
	e := &entry{obj: u, managed: u.GetManagedFields(), kind: nil}
	r := k.ref(clusterapi.KeyOf(u))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.find(r) != nil {
		return apierrors.NewAlreadyExists(k.resource(), u.GetName())
	}
	if uid := u.GetUID(); uid == "" {
		m["uid"] = c.newUID()
	} else if other, taken := c.uidIndex[uid]; taken {
		return fmt.Errorf("%s %s: UID %s is that of %s %s", u.GetKind(), u.GetName(), uid, other.kind.Kind, other.key.Name)
	}
	m["resourceVersion"] = c.nextRevision()
	c.put(r, nil, e)
	return nil
}
