package upgrade_test

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/internal/fixture"
)

// scheduledPolicy is a provider with a policy whose state it keeps like OCM
// does: only allowed transitions are taken.
type scheduledPolicy struct {
	policies []upgradeconfig.Policy
	// fault, if set, is called around each request.
	fault func(request string, do func()) error

	mu    sync.Mutex
	state upgradeconfig.State
	told  []upgradeconfig.State // transitions that were made
	texts []string
	calls int
}

func (p *scheduledPolicy) around(request string, do func()) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls++
	if p.fault == nil {
		do()
		return nil
	}
	return p.fault(request, do)
}

func (p *scheduledPolicy) Policies(ctx context.Context) (out []upgradeconfig.Policy, err error) {
	err = p.around("Policies", func() { out = slices.Clone(p.policies) })
	return out, err
}

func (p *scheduledPolicy) String() string { return "scheduled policy" }

func (p *scheduledPolicy) Notify(_ context.Context, n upgradeconfig.Notification) error {
	return p.around("Notify "+string(n.State), func() {
		if n.State.ServiceLog() || p.state.Allows(n.State) {
			p.told = append(p.told, n.State)
			p.texts = append(p.texts, n.Description)
		}
		if !n.State.ServiceLog() && p.state.Allows(n.State) {
			p.state = n.State
		}
	})
}

var (
	objectKey  = fixture.Key
	specA      = fixture.SpecA
	policies   = fixture.Policies
	object     = fixture.Object
	underWay   = fixture.UnderWay
	store      = fixture.Store
	stored     = fixture.Stored
	newCluster = fixture.NewCluster
	at         = fixture.At
	serving    = fixture.Serving
	history    = fixture.History
	configMap  = fixture.ConfigMap
	errText    = fixture.Text
	data       = fixture.Data
)

func must[T any](v T, err error) T { return checktest.Must(v, err) }

// looseDefinition is the definition without what its schema says of fields: to
// validate them takes a third of the time of an upgrade.
func looseDefinition() *unstructured.Unstructured {
	u := upgradeconfig.Definition()
	versions := u.Object["spec"].(map[string]any)["versions"].([]any)
	versions[0].(map[string]any)["schema"] = map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}
	return u
}

// What a controller keeps in the cluster.
const (
	annotationSent = clusterapi.AnnotationPrefix + "told"
	annotationOpen = clusterapi.AnnotationPrefix + "upgrade-open"
)
