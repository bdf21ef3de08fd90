package upgrade_test

import (
	"context"
	"slices"
	"sync"

	"github.com/clusterupdate/clusterupdate/upgradeconfig"
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
