package ocm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/httpclient"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
)

// Provider has the upgrade policies that OCM has for a cluster, and tells OCM
// how their upgrades go. It is safe for concurrent use. Make one with [New].
type Provider struct {
	api    clusterapi.Reader
	o      Options
	base   string
	agent  bool
	client *httpclient.Client
	sleep  func(ctx context.Context, d time.Duration) error // between tries; nil: by the options' clock
	ready  *connection                                      // nil: one is made for each use
}

var (
	_ upgradeconfig.Provider = (*Provider)(nil)
	_ upgradeconfig.Notifier = (*Provider)(nil)
)

// New returns a provider that reads the pull secret and the cluster's ID each
// time it is used, so that it can be kept for long. It reads nothing yet. It
// returns an error for options that cannot work, negative numbers among them;
// the error for a URL is an [upgradeconfig.ConfigError].
func New(api clusterapi.Reader, o Options) (*Provider, error) {
	if api == nil {
		return nil, errors.New("ocm: a cluster to read from is required")
	}
	_, driven := o.Clock.(*reconcile.Clock)
	driven = driven || o.Clock == nil
	base, agent, err := o.check()
	if err != nil {
		return nil, err
	}
	p := &Provider{api: api, o: o, base: base, agent: agent, client: newClient(o, agent)}
	if driven {
		p.sleep = reconcile.Sleep
	}
	return p, nil
}

// FromConfig returns a function for [upgradeconfig.ManagerOptions] that makes the
// provider of one sync with the OCM which the configuration names. It also takes
// the upgrade type and the gate for service logs from there; all else from o. The
// provider has read the pull secret and the cluster's ID, and keeps them. Errors
// are those of [New], and [ErrAccessToken] if these cannot be read.
func FromConfig(api clusterapi.Reader, o Options) func(context.Context, *upgradeconfig.Config) (upgradeconfig.Provider, error) {
	return func(ctx context.Context, c *upgradeconfig.Config) (upgradeconfig.Provider, error) {
		o := o
		o.URL, o.Type = c.ConfigManager.OCMBaseURL, c.Type()
		o.ServiceLogs = c.Enabled("ServiceLogNotification")
		if o.URL == "" { // which would mean the public OCM
			_, err := upgradeconfig.BaseURL("")
			return nil, err
		}
		p, err := New(api, o)
		if err != nil {
			return nil, err
		}
		p.ready, err = p.connect(ctx)
		if err != nil {
			return nil, err
		}
		return p, nil
	}
}

// String names the provider: "OCM" and the URL.
func (p *Provider) String() string { return "OCM " + p.base }

func (p *Provider) connection(ctx context.Context) (*connection, error) {
	if p.ready != nil {
		return p.ready, nil
	}
	return p.connect(ctx)
}

// Policies returns the policies that count, the next one first. OCM is asked
// for the cluster, its policies, and then for their states, one by one in the
// order of their times.
//
// Errors are [ErrAccessToken], [ErrNoClusterID], [ErrProviderUnavailable],
// [ErrRetrievingPolicies] (with a [clusterapi.LimitError] if there are too many),
// [ErrProcessingPolicies] and the error of a state that could not be read, all
// with a [*RequestError] if a request failed. What is wrong with a policy
// that comes after the first one that counts is an event and not an error.
//
// An empty list without an error reports that OCM has none: it has answered every
// request in full.
func (p *Provider) Policies(ctx context.Context) ([]upgradeconfig.Policy, error) {
	c, cl, listed, err := p.list(ctx)
	if err != nil {
		return nil, err
	}
	var out []upgradeconfig.Policy
	for _, l := range listed {
		policy, counts, err := p.policy(ctx, c, cl, l)
		switch {
		case err != nil && (len(out) == 0 || ctx.Err() != nil):
			return nil, err
		case err != nil:
			p.fault(l.wire.ID, err)
		case counts:
			out = append(out, policy)
		}
	}
	return out, nil
}

// list connects and returns the policies in the order of their times.
func (p *Provider) list(ctx context.Context) (*connection, *cluster, []policy, error) {
	c, err := p.connection(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	cl, err := c.cluster(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	listed, err := p.policies(ctx, c, cl)
	return c, cl, inOrder(listed), err
}

// policy asks for the state of a policy and converts it if it counts.
func (p *Provider) policy(ctx context.Context, c *connection, cl *cluster, l policy) (upgradeconfig.Policy, bool, error) {
	policy := upgradeconfig.Policy{ID: l.wire.ID, NextRun: l.nextRun, Automatic: l.wire.ScheduleType == "automatic"}
	policy.Spec.Desired.Version = l.wire.Version
	var err error
	policy.State, _, err = p.state(ctx, c, cl, l)
	if err != nil {
		return policy, false, err
	}
	counts, why, err := policy.Counts()
	if err != nil {
		return policy, false, fmt.Errorf("%w: policy %q: %w", ErrProcessingPolicies, l.wire.ID, err)
	}
	if !counts {
		p.o.Logger.Info("policy ignored", "policy", l.wire.ID, "reason", why)
		return policy, false, nil
	}
	spec, err := p.convert(cl, l)
	if err != nil {
		return policy, false, fmt.Errorf("%w: policy %q: %w", ErrProcessingPolicies, l.wire.ID, c.secrets.Error(err))
	}
	policy.Spec = spec
	return policy, true, nil
}

// fault reports a policy that waits for an earlier one anyway.
func (p *Provider) fault(id string, err error) {
	p.o.Logger.Warn("policy cannot be read", "policy", id, "error", err)
	if p.o.Observe != nil {
		p.o.Observe(clusterapi.Event{
			Type: upgradeconfig.EventPolicyFault, Time: p.o.Clock.Now(), Err: err, Data: &upgradeconfig.EventData{Policy: id},
			Message: fmt.Sprintf("policy %s cannot be read: %v", id, err),
		})
	}
}
