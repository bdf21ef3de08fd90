package ocm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/clusterupdate/clusterupdate/upgradeconfig"
)

// Notify tells OCM how an upgrade goes: it sets the state of the policy that
// has the version and the time of n.Config, if the state that OCM has allows
// that; see [upgradeconfig.State.Allows]. A notification for the service log is
// posted there instead, if [Options.ServiceLogs] is set.
//
// Nothing is sent, and nil returned, without a Config, for a transition that is
// not allowed, and for service logs that are off. Errors are
// [*NotificationError] around [ErrNoPolicy], [ErrConvertState] or what
// Policies returns. A change is never sent twice by one call, since the first
// one may have had its effect.
func (p *Provider) Notify(ctx context.Context, n upgradeconfig.Notification) error {
	if n.Config == nil || n.State.ServiceLog() && !p.o.ServiceLogs {
		return nil
	}
	if err := p.notify(ctx, n); err != nil {
		return &NotificationError{State: n.State, Err: err}
	}
	return nil
}

func (p *Provider) notify(ctx context.Context, n upgradeconfig.Notification) error {
	c, err := p.connection(ctx)
	if err != nil {
		return err
	}
	cl, err := c.cluster(ctx)
	if err != nil {
		return fmt.Errorf("failed to retrieve internal ocm cluster ID: %w", err)
	}
	if n.State.ServiceLog() {
		if err := c.change(ctx, http.MethodPost, serviceLogs, newServiceLog(cl, n)); err != nil {
			return fmt.Errorf("can't send notification: can't post service log: %w", err)
		}
		return nil
	}
	pol, err := p.find(ctx, c, cl, n.Config.Spec)
	if err != nil {
		return fmt.Errorf("can't determine policy ID to notify for: %w", err)
	}
	value, description, err := p.state(ctx, c, cl, pol)
	if err != nil {
		return fmt.Errorf("can't determine policy state: %w", err)
	}
	from, err := stateOf(value, description)
	if err != nil {
		return fmt.Errorf("can't determine policy state: %w", err)
	}
	if !from.Allows(n.State) {
		p.o.Logger.Info("notification not sent: the policy's state does not allow it", "policy", pol.wire.ID, "from", from, "to", n.State)
		return nil
	}
	if err := p.setState(ctx, c, cl, pol, values[n.State], n.Description); err != nil {
		return fmt.Errorf("can't send notification: %w", err)
	}
	return nil
}

// find returns the policy that became the UpgradeConfig: the one of its
// version and its instant, however that is written.
func (p *Provider) find(ctx context.Context, c *connection, cl *cluster, spec upgradeconfig.Spec) (policy, error) {
	at, err := time.Parse(time.RFC3339, spec.UpgradeAt)
	if err != nil {
		return policy{}, fmt.Errorf("%w: its upgradeAt %q is not a time in RFC 3339", ErrNoPolicy, spec.UpgradeAt)
	}
	listed, err := p.policies(ctx, c, cl)
	if err != nil {
		return policy{}, err
	}
	for _, l := range listed {
		// An UpgradeConfig has whole seconds.
		if l.wire.Version == spec.Desired.Version && !l.nextRun.IsZero() && l.nextRun.Truncate(time.Second).Equal(at.Truncate(time.Second)) {
			return l, nil
		}
	}
	return policy{}, fmt.Errorf("%w: version %q at %s", ErrNoPolicy, spec.Desired.Version, spec.UpgradeAt)
}

// states are OCM's values and the states that they stand for.
var states = map[string]upgradeconfig.State{
	"pending":   upgradeconfig.StatePending,
	"scheduled": upgradeconfig.StateScheduled,
	"started":   upgradeconfig.StateStarted,
	"delayed":   upgradeconfig.StateSkipped, // or StateDelayed, or StateScaleSkipped
	"completed": upgradeconfig.StateCompleted,
	"failed":    upgradeconfig.StateFailed,
	"cancelled": upgradeconfig.StateCancelled,
}

// values are OCM's values for the states that it accepts.
var values = map[upgradeconfig.State]string{
	upgradeconfig.StateStarted:      "started",
	upgradeconfig.StateScaleSkipped: "delayed",
	upgradeconfig.StateDelayed:      "delayed",
	upgradeconfig.StateSkipped:      "delayed",
	upgradeconfig.StateCompleted:    "completed",
	upgradeconfig.StateFailed:       "failed",
}

// stateOf returns the state that OCM's value stands for. OCM has one value for
// three kinds of delay. The description distinguishes two: a delay whose text has
// the word retry is StateDelayed, any other StateSkipped. An unknown value is
// [ErrConvertState].
func stateOf(value, description string) (upgradeconfig.State, error) {
	state, ok := states[value]
	if !ok {
		return "", fmt.Errorf("%w: %q", ErrConvertState, value)
	}
	if value == "delayed" && strings.Contains(description, "retry") {
		state = upgradeconfig.StateDelayed
	}
	return state, nil
}

// setState changes the state of a policy. The state of a hosted control plane's
// policy is a field of the policy.
func (p *Provider) setState(ctx context.Context, c *connection, cl *cluster, pol policy, value, description string) error {
	path, err := p.policyPath(cl, pol)
	if err != nil {
		return fmt.Errorf("can't set upgrade policy state: %w", err)
	}
	var document any = stateChange{Kind: "UpgradePolicyState", Value: value, Description: description}
	if p.hosted(cl) {
		document = struct {
			Kind  string `json:"kind"`
			State any    `json:"state"`
		}{"ControlPlaneUpgradePolicy", document}
	} else {
		path += "/state"
	}
	err = c.change(ctx, http.MethodPatch, path, document)
	if e, ok := errors.AsType[*RequestError](err); ok {
		return fmt.Errorf("can't set upgrade policy state: %w", &changeError{e})
	}
	return err
}

type stateChange struct {
	Kind        string `json:"kind"`
	Value       string `json:"value"`
	Description string `json:"description"`
}

// changeError words a RequestError as the managed-upgrade operator does.
type changeError struct{ err *RequestError }

func (e *changeError) Error() string {
	return fmt.Sprintf("request to '%s' returned error '%s'", e.err.URL, e.err.detail())
}

func (e *changeError) Unwrap() error { return e.err }

const serviceLogs = "/api/service_logs/v1/cluster_logs"

// serviceLog is an entry of the service log, which the cluster's owner reads.
type serviceLog struct {
	Severity      string   `json:"severity"`
	ServiceName   string   `json:"service_name"`
	LogType       string   `json:"log_type"`
	ClusterID     string   `json:"cluster_id"`
	Summary       string   `json:"summary"`
	Description   string   `json:"description"`
	DocReferences []string `json:"doc_references,omitempty"`
	InternalOnly  bool     `json:"internal_only"`
}

func newServiceLog(cl *cluster, n upgradeconfig.Notification) serviceLog {
	return serviceLog{
		Severity:      "Info",
		ServiceName:   "RedHat Managed Upgrade Notifications",
		LogType:       "Cluster Updates",
		ClusterID:     cl.id,
		Summary:       n.Summary,
		Description:   n.Description,
		DocReferences: n.References,
	}
}
