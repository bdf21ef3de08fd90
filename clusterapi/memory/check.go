package memory

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// checks are copies of shared objects, from before anybody saw it.
type checks struct {
	mu     sync.Mutex
	shared []checked
}

type checked struct {
	object *clusterapi.Object
	was    *unstructured.Unstructured
}

// checked remembers how a shared object is, where [Options].CheckShared says so.
func (c *Cluster) checked(o *clusterapi.Object) *clusterapi.Object {
	if c.o.CheckShared {
		c.checks.mu.Lock()
		defer c.checks.mu.Unlock()
		c.checks.shared = append(c.checks.shared, checked{o, o.Unstructured().DeepCopy()})
	}
	return o
}

// CheckShared returns an error that names what somebody changed of the objects that
// the cluster has stored and shares, or of the values that [clusterapi.As] made of
// them. It is nil if nothing was changed, and without [Options].CheckShared. Call
// it when nobody is using the cluster.
func (c *Cluster) CheckShared() error {
	c.checks.mu.Lock()
	defer c.checks.mu.Unlock()
	var errs []error
	for _, s := range c.checks.shared {
		if err := s.object.Unchanged(s.was); err != nil {
			errs = append(errs, err)
		}
		if len(errs) == 10 {
			break
		}
	}
	return bounded.Errors(errs...)
}
