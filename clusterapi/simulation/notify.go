package simulation

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
)

// noticeNamespace has the ConfigMaps by which the program notifies the behaviours
// about a part: that it has another fault, or that there is another release to
// expect.
const noticeNamespace = "clusterupdate-simulation"

// notify makes a behaviour look at a part. Before the first behaviour starts it
// does nothing.
func (c *Cluster) notify(behaviour string, part reconcile.Key) {
	if !c.begun.Load() {
		return
	}
	u := object(kindConfigMap, noticeNamespace, strings.Join([]string{behaviour, part.Namespace, part.Name}, "."), map[string]any{
		"data": map[string]any{"behaviour": behaviour, "namespace": part.Namespace, "name": part.Name},
	})
	c.notifying.Lock()
	defer c.notifying.Unlock()
	// Both do what they do on any cluster: no fault of the API strikes them.
	_ = c.Remove(kindConfigMap, clusterapi.KeyOf(u))
	if err := c.Load(u); err != nil {
		c.logger.Warn("a behaviour of the simulated cluster could not be notified", "behaviour", behaviour, "part", part, "error", err)
	}
}

// watchNotices wakes the behaviour for the parts that it is notified of.
func (b *behaviour) watchNotices() reconcile.Watch {
	return reconcile.Watch{GVK: kindConfigMap, Options: clusterapi.ListOptions{Namespace: noticeNamespace},
		Changed: func(_ time.Time, _, new *clusterapi.Object) []reconcile.Wake {
			if new == nil {
				return nil
			}
			data, _, _ := unstructured.NestedStringMap(new.Unstructured().Object, "data")
			if data["behaviour"] != b.name {
				return nil
			}
			part := reconcile.Key{Namespace: data["namespace"], Name: data["name"]}
			if b.onNotice != nil {
				return b.onNotice(part)
			}
			return []reconcile.Wake{{Key: part}}
		}}
}
