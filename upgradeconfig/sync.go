package upgradeconfig

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// Result is what a sync did.
type Result struct {
	// Action that was taken.
	Action Action
	// Policies are those of the provider that count, in their order; the first one
	// becomes the UpgradeConfig.
	Policies []Policy
	// Changed reports that the UpgradeConfig was written.
	Changed bool
}

// Differs reports that the UpgradeConfig was not what the provider wants: it was
// changed, or held. An upgrade that was about to start must then not start.
func (r Result) Differs() bool { return r.Changed || r.Action.Kind == EventHeld }

func (r Result) policy() string {
	if len(r.Policies) == 0 {
		return ""
	}
	return r.Policies[0].ID
}

// Sync makes the UpgradeConfig what the provider says, once: it reads the
// object, asks the provider, and does what [Diff] decides. Nothing is written
// if they agree, nor if the provider gives no answer.
//
// A write is on condition that the object is still the one that the decision
// was about; if it is not, the sync starts over. A sync that was broken off, or
// whose answer was lost, leaves the next one all that it needs.
//
// Errors wrap one of the sentinels of this package and the cause, such as
// [ErrRetrievePolicies]. A panic of the backend or the provider is an error, a
// [clusterapi.PanicError]. Sync neither uses nor changes the back-off of
// [Manager.Run].
func (m *Manager) Sync(ctx context.Context) (result Result, err error) {
	err = m.passes.Do(ctx, func() (err error) {
		result, err = m.sync(ctx)
		if err == nil {
			m.report(ctx, result)
		}
		return err
	})
	return result, err
}

// Refresh is [Manager.Sync] in the form in which package upgrade asks the
// provider once more; differs is [Result.Differs]. Its errors are those of Sync.
func (m *Manager) Refresh(ctx context.Context) (differs bool, err error) {
	r, err := m.Sync(ctx)
	return r.Differs(), err
}

// Notify implements [Notifier]: it passes n on to the provider that the
// configuration names now, and returns the provider's error. The log gets n if
// there is no provider, or one that is not a Notifier.
func (m *Manager) Notify(ctx context.Context, n Notification) error {
	p, err := m.provider(ctx)
	if err != nil && !errors.Is(err, ErrNotConfigured) {
		return err
	}
	if to, ok := p.(Notifier); ok {
		return to.Notify(ctx, n)
	}
	n.Log(ctx, m.o.Logger)
	return nil
}

func (m *Manager) sync(ctx context.Context) (Result, error) {
	current, err := m.read(ctx)
	if err != nil {
		return Result{}, err
	}
	policies, err := m.policies(ctx)
	if err != nil {
		return Result{}, err
	}
	action, err := m.decide(ctx, current, policies)
	if err != nil {
		return Result{}, err
	}
	result := Result{Action: action, Policies: policies}
	if err := m.act(ctx, current, action); err != nil {
		return result, err
	}
	result.Changed = action.Kind != "" && action.Kind != EventHeld
	return result, nil
}

// read returns the object, nil if absent.
func (m *Manager) read(ctx context.Context) (*UpgradeConfig, error) {
	current, err := clusterapi.Get[UpgradeConfig](ctx, m.o.API, m.key())
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRetrieveConfig, err)
	}
	return current, nil
}

func (m *Manager) policies(ctx context.Context) ([]Policy, error) {
	p, err := m.provider(ctx)
	if err != nil {
		return nil, err
	}
	all, err := p.Policies(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRetrievePolicies, err)
	}
	policies, err := Select(all)
	switch {
	case err != nil && len(policies) == 0:
		return nil, fmt.Errorf("%w: %w", ErrRetrievePolicies, err)
	case err != nil: // about one that has to wait anyway
		m.o.Logger.Warn("policy cannot be read", "error", err)
		m.emit(clusterapi.Event{Type: EventPolicyFault, Err: err, Message: err.Error()}, EventData{})
	}
	return policies, nil
}

func (m *Manager) provider(ctx context.Context) (Provider, error) {
	if m.o.Provider != nil {
		return m.o.Provider, nil
	}
	if m.o.FromConfig == nil {
		return nil, ErrNotConfigured
	}
	c, err := ReadConfig(ctx, m.o.API, m.o.Namespace)
	if err != nil {
		return nil, err
	}
	if err := c.checkSource(); err != nil {
		if errors.Is(err, errNoSource) {
			err = fmt.Errorf("%w: %w", ErrNotConfigured, err)
		}
		return nil, err
	}
	if c.source() == sourceLocal {
		return Local{API: m.o.API, Namespace: m.o.Namespace, Name: m.o.Name}, nil
	}
	p, err := m.o.FromConfig(ctx, c)
	if err == nil && p == nil {
		err = ErrNotConfigured
	}
	return p, err
}

// decide asks whether an upgrade is in progress only if that matters.
func (m *Manager) decide(ctx context.Context, current *UpgradeConfig, policies []Policy) (Action, error) {
	var specs []Spec
	if len(policies) > 0 {
		specs = []Spec{policies[0].Spec}
	}
	o := DiffOptions{Update: m.o.Update, KeepWhileUpgrading: m.o.KeepWhileUpgrading}
	action := Diff(current, specs, o)
	if !m.o.KeepWhileUpgrading || !action.disturbs() {
		return action, nil
	}
	var err error
	o.InProgress, err = readInProgress(ctx, m.o.API, current)
	if err != nil {
		return Action{}, err
	}
	return Diff(current, specs, o), nil
}

// report reports what a sync did.
func (m *Manager) report(ctx context.Context, r Result) {
	heard := m.o.Observe != nil || m.o.Logger.Enabled(ctx, slog.LevelInfo)
	for i := 1; i < len(r.Policies) && heard; i++ {
		text := fmt.Sprintf("policy %s has to wait for policy %s", r.Policies[i].ID, r.Policies[0].ID)
		m.o.Logger.Info(text)
		m.emit(clusterapi.Event{Type: EventIgnored, Message: text}, EventData{Policy: r.Policies[i].ID})
	}
	a := r.Action
	data := EventData{Action: a.Kind, Changes: a.Changes, Policy: r.policy(), Version: a.Spec.Desired.Version}
	if a.Kind != "" {
		m.o.Logger.Info("UpgradeConfig "+string(a.Kind), "reason", a.Reason, "changes", a.Changes)
		m.emit(clusterapi.Event{Type: a.Kind, Message: a.Reason}, data)
	}
	m.emit(clusterapi.Event{Type: EventSynced, Message: a.Reason}, data)
}
