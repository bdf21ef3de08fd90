package memory

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// Load stores objects as they are, as from a dump of a cluster: status,
// deletionTimestamp, generation, creationTimestamp and managedFields are kept,
// and the UID where an object has one. Only the resourceVersion is new. Lists
// are stored item by item. CustomResourceDefinitions are stored first, so that
// their kinds are served.
//
// Neither Validate nor Intercept is called, and fields that a schema lacks are
// kept until the next write. Load stores all that it can; the error joins the reasons
// why an object was not stored (a kind that is not served, no name, a name that is
// taken).
func (c *Cluster) Load(objs ...*unstructured.Unstructured) error {
	var definitions, others []loading
	var errs []error
	add := func(where string, obj *unstructured.Unstructured) {
		if isDefinition(obj) {
			definitions = append(definitions, loading{where, obj})
		} else {
			others = append(others, loading{where, obj})
		}
	}
	for i, obj := range objs {
		where := "object " + strconv.Itoa(i)
		switch {
		case obj == nil:
			errs = append(errs, fmt.Errorf("%s: is nil", where))
		case obj.IsList():
			list, err := obj.ToList()
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", where, err))
				continue
			}
			for j := range list.Items {
				add(where+", item "+strconv.Itoa(j), &list.Items[j])
			}
		default:
			add(where, obj)
		}
	}
	for _, l := range slices.Concat(definitions, others) { // or the kinds of the others would not be known
		if err := c.load(l.obj); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", l.where, err))
		}
	}
	return bounded.Errors(errs...)
}

// loading is an object to store, and its place among the arguments of Load.
type loading struct {
	where string
	obj   *unstructured.Unstructured
}

func isDefinition(obj *unstructured.Unstructured) bool {
	return obj.GroupVersionKind().GroupKind() == definitionKind
}

func (c *Cluster) load(obj *unstructured.Unstructured) error {
	content, err := copyTree(obj.Object, nil, "")
	if err != nil {
		return err
	}
	tree, _ := content.(map[string]any)
	return c.loadTree(tree)
}

// loadTree stores an object that nobody changes any more.
func (c *Cluster) loadTree(tree map[string]any) error {
	u := &unstructured.Unstructured{Object: tree}
	k, err := c.kind(u.GroupVersionKind())
	if err != nil {
		return err
	}
	e, err := c.loaded(k, u)
	if err != nil {
		return err
	}
	u = e.obj
	m := metadata(u)
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

// loaded is an object that Load or a base adds. Its UID and resourceVersion are
// left to the caller.
func (c *Cluster) loaded(k *kind, obj *unstructured.Unstructured) (*entry, error) {
	u := withMetadata(obj, func(map[string]any) {})
	if err := c.place(k, u); err != nil {
		return nil, err
	}
	if u.GetName() == "" {
		return nil, fmt.Errorf("%s without a name", u.GetKind())
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
	return &entry{obj: u, managed: u.GetManagedFields(), kind: nil}, nil
}
