package upgrade

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/internal/panics"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/internal/loop"
)

// pass is one pass of a [Controller].
type pass struct {
	c           *Controller
	phases      phaseOptions
	serviceLogs bool
	validation  upgradeconfig.ValidateOptions

	config   *upgradeconfig.UpgradeConfig // as the pass sees it
	stored   upgradeconfig.Status         // as it was last read or written
	entry    upgradeconfig.HistoryEntry   // of the desired version
	cv       *configv1.ClusterVersion
	record   record // as it is stored
	waitsFor string // what the step under way waits for
	left     error  // the capacity and windows of another upgrade that are not closed yet
}

func (p *pass) run(ctx context.Context) (Progress, error) {
	var err error
	p.cv, err = clusterversion.Get(ctx, p.c.o.API)
	if err != nil {
		return Progress{}, fmt.Errorf("%w: %w", upgradeconfig.ErrClusterVersion, err)
	}
	// An upgrade opens nothing before all of the one before it is closed.
	p.left = p.c.closeLeft(ctx, p.cv, p.config)
	if ctx.Err() != nil {
		return Progress{}, ctx.Err()
	}
	if p.left != nil && lostRace(p.left) {
		return Progress{}, p.left
	}
	out, err := p.proceed(ctx)
	if p.left == nil {
		return out, err
	}
	if out.After == 0 || out.After > shortWait {
		out.After = shortWait
	}
	return out, errors.Join(p.left, err)
}

// proceed takes the upgrade as far as it can go for now.
func (p *pass) proceed(ctx context.Context) (Progress, error) {
	err := p.configure(ctx)
	if err != nil {
		return Progress{}, err
	}
	p.record, err = recordOf(p.config)
	if err != nil {
		return Progress{}, err
	}
	for _, e := range ends {
		switch {
		case p.entry.Phase != e.phase:
		case p.entry.IsFalse(e.condition): // by a pass that was cut short before it notified anybody
			return p.notifyEnd(ctx, e)
		default:
			if err := p.sendLogs(ctx); err != nil {
				return Progress{}, err
			}
		}
	}
	s := situation{Config: p.config, ClusterVersion: p.cv}
	for {
		s.Now = p.c.now()
		d := decide(s, p.phases)
		if d.Entry != nil {
			p.entry = *d.Entry
			if err := p.store(ctx); err != nil {
				if s.Refreshed != nil && s.Refreshed.Differs && lostRace(err) {
					return Progress{Reason: d.Reason, After: shortWait}, nil
				}
				return Progress{}, err
			}
			p.emitPhase()
		}
		out := Progress{Reason: d.Reason, After: d.After}
		switch d.Do {
		case activityNone:
			return out, d.Err
		case activityHealthCheck:
			p.checkAhead(ctx)
			s.HealthChecked = true
		case activityValidate:
			s.Validated, err = p.validate(ctx)
			if err != nil {
				return Progress{}, err
			}
		case activityRefresh:
			s.Refreshed = p.refresh(ctx)
		case activityGiveUp:
			return p.giveUp(ctx, true)
		case activityWithdrawn:
			return p.withdrawn(ctx)
		case activitySteps:
			return p.steps(ctx, d.Delayed)
		}
		if ctx.Err() != nil {
			return Progress{}, ctx.Err()
		}
	}
}

// configure takes the rules from the options or from the ConfigMap.
func (p *pass) configure(ctx context.Context) error {
	p.phases = phaseOptions{PreHealthCheck: p.c.o.PreHealthCheck, TimeOut: p.c.o.TimeOut, DelayTrigger: p.c.o.DelayTrigger, SkipBreached: p.c.o.SkipBreached}
	p.serviceLogs, p.validation = p.c.o.ServiceLogs, p.c.o.Validate
	if !p.c.o.FromConfig {
		return nil
	}
	c, err := upgradeconfig.ReadConfig(ctx, p.c.o.API, p.c.o.Namespace)
	if err != nil {
		return err
	}
	if err := c.CheckWindow(); err != nil {
		return err
	}
	p.phases.TimeOut, p.phases.DelayTrigger = c.TimeOut(), c.DelayTrigger()
	p.phases.PreHealthCheck = c.Enabled("PreHealthCheck")
	p.serviceLogs = c.Enabled("ServiceLogNotification")
	p.validation.Cincinnati = c.Validation.Cincinnati
	return nil
}

// store writes the entry into the status, on condition that the object is as
// this pass knows it; else the error is loop.ErrChanged.
func (p *pass) store(ctx context.Context) error {
	o := clusterapi.ModifyOptions{Status: true, FieldManager: clusterapi.ManagerPolicy}
	stored, err := clusterapi.Modify(ctx, p.c.o.API, p.c.key(), o, func(c *upgradeconfig.UpgradeConfig) error {
		if !p.same(c) || !equality.Semantic.DeepEqual(c.Status, p.stored) {
			return loop.ErrChanged
		}
		c.Status.SetEntry(p.entry)
		return nil
	})
	if err != nil {
		return err
	}
	p.stored = stored.Status
	p.config.Status = stored.Status.DeepCopy()
	return nil
}

// same reports whether what is stored still is the policy of this pass.
func (p *pass) same(c *upgradeconfig.UpgradeConfig) bool {
	return c.UID == p.config.UID && c.DeletionTimestamp == nil && c.Spec == p.config.Spec
}

// isDeleted reports whether the UpgradeConfig no longer exists.
func (p *pass) isDeleted(ctx context.Context) bool {
	_, err := p.c.o.API.Get(ctx, kind, p.c.key())
	return apierrors.IsNotFound(err)
}

// lostRace reports whether a write was too late.
func lostRace(err error) bool {
	return errors.Is(err, loop.ErrChanged) || apierrors.IsNotFound(err) || apierrors.IsConflict(err)
}

// checkAhead checks the cluster's health long before the upgrade. Findings do not
// stop anything.
func (p *pass) checkAhead(ctx context.Context) {
	if p.c.o.Health == nil {
		return
	}
	failing, err := p.c.o.Health(ctx, p.config)
	if err != nil {
		p.c.o.Logger.Warn("the health check ahead of the upgrade failed", "error", err)
		return
	}
	if len(failing) == 0 {
		return
	}
	p.c.o.Logger.Warn("the health check ahead of the upgrade has findings", "failing", failing)
	p.log(p.notify(ctx, upgradeconfig.StatePreHealthCheckSL, failing))
}

// validate validates, and gives the spec the version of its image.
func (p *pass) validate(ctx context.Context) (*validated, error) {
	v, err := upgradeconfig.Validate(ctx, p.config.Spec, p.cv, p.validation)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	fault := err
	if fault == nil && len(v.Findings) > 0 {
		fault = v.Findings[0]
	}
	p.c.emit(clusterapi.Event{Type: upgradeconfig.EventValidated, Err: fault, Message: v.Message}, upgradeconfig.EventData{Version: v.Version})
	if v.Version != p.config.Spec.Desired.Version {
		if err := p.setVersion(ctx, v.Version); err != nil {
			return nil, err
		}
		return nil, loop.ErrChanged // to another version, which has another entry
	}
	return &validated{Validity: v, Err: err}, nil
}

func (p *pass) setVersion(ctx context.Context, version string) error {
	o := clusterapi.ModifyOptions{FieldManager: clusterapi.ManagerPolicy}
	_, err := clusterapi.Modify(ctx, p.c.o.API, p.c.key(), o, func(c *upgradeconfig.UpgradeConfig) error {
		if !p.same(c) {
			return loop.ErrChanged
		}
		c.Spec.Desired.Version = version
		return nil
	})
	return err
}

func (p *pass) refresh(ctx context.Context) *refreshed {
	if p.c.o.Refresh == nil {
		return &refreshed{Err: upgradeconfig.ErrNotConfigured}
	}
	differs, err := p.c.o.Refresh(ctx)
	return &refreshed{Differs: differs, Err: err}
}

// withdrawn ends an upgrade whose request was taken back or aimed elsewhere after
// it had commenced, once that has lasted.
func (p *pass) withdrawn(ctx context.Context) (Progress, error) {
	noticed, ok := p.entry.Condition(upgradeconfig.FailedUpgrade)
	if ok && (noticed.StartTime == nil || p.c.now().Sub(noticed.StartTime.Time) >= withdrawnFor) {
		return p.giveUp(ctx, false)
	}
	if !ok {
		setFailed(&p.entry, errWithdrawn, p.c.now())
		if err := p.store(ctx); err != nil {
			return Progress{}, err
		}
		p.emitStep(upgradeconfig.FailedUpgrade)
	}
	return Progress{After: shortWait, Reason: errWithdrawn.Error()}, nil
}

// withdrawnFor is how long a request has to be away. What was read may be old, and
// people correct themselves.
const withdrawnFor = 5 * time.Minute

var errWithdrawn = errors.New("the cluster is not asked to update to that version any more")

// giveUp ends an upgrade that cannot come to its end: it closes what the upgrade
// opened, and then the upgrade has failed. breached reports that it has not
// commenced in time.
func (p *pass) giveUp(ctx context.Context, breached bool) (Progress, error) {
	closed, err := p.c.closeAll(ctx, p.config)
	if err == nil && !closed {
		err = errClosing
	}
	if ctx.Err() != nil {
		return Progress{}, ctx.Err()
	}
	if err == nil && p.left == nil { // else the annotation is about another upgrade
		err = p.c.noteClosed(ctx, p.cv)
	}
	if err != nil && lostRace(err) {
		return Progress{}, err
	}
	if err == nil {
		p.entry.Phase = upgradeconfig.PhaseFailed
		setFailed(&p.entry, errors.New("FailedUpgrade notification not sent yet"), p.c.now())
	} else {
		setFailed(&p.entry, err, p.c.now())
	}
	if err := p.store(ctx); err != nil {
		return Progress{}, err
	}
	p.emitStep(upgradeconfig.FailedUpgrade)
	if err != nil {
		return Progress{After: shortWait}, err
	}
	if breached {
		p.c.emit(clusterapi.Event{Type: upgradeconfig.EventBreached, Message: "the upgrade has not commenced in time"}, upgradeconfig.EventData{Version: p.entry.Version})
	}
	p.emitPhase()
	return p.notifyEnd(ctx, failed)
}

// release removes extra capacity, and reports whether it is gone.
func (p *pass) release(ctx context.Context) (bool, error) {
	if p.c.o.Capacity == nil {
		return true, nil
	}
	return p.c.o.Capacity.Release(ctx, p.config)
}

// steps runs the steps of the upgrade, up to the first that is not done.
func (p *pass) steps(ctx context.Context, delayed bool) (Progress, error) {
	if p.left != nil {
		return Progress{After: shortWait, Reason: "what another upgrade opened is being closed"}, nil
	}
	if p.entry.IsFalse(upgradeconfig.FailedUpgrade) { // it was about to fail
		p.entry.Conditions = slices.DeleteFunc(p.entry.Conditions, func(c upgradeconfig.Condition) bool { return c.Type == upgradeconfig.FailedUpgrade })
		if err := p.store(ctx); err != nil {
			return Progress{}, err
		}
	}
	late := p.notifyDue(ctx, delayed)
	steps, err := stepsOf(p.config.Spec.Type)
	if err != nil {
		return Progress{}, err
	}
	var last upgradeconfig.ConditionType
	for {
		commenced, err := p.commenced()
		if err != nil {
			return Progress{}, err
		}
		step, ok := nextStep(steps, p.entry, last, commenced)
		if !ok {
			break
		}
		if step == upgradeconfig.CompletedNotificationSent {
			if err := p.c.noteClosed(ctx, p.cv); err != nil {
				return Progress{}, errors.Join(late, err)
			}
			out, err := p.complete(ctx)
			return out, errors.Join(late, err)
		}
		done, err := p.step(ctx, step)
		if err != nil || !done {
			return Progress{After: shortWait, Reason: p.message(step)}, errors.Join(late, err)
		}
		last = step
	}
	if err := p.c.noteClosed(ctx, p.cv); err != nil {
		return Progress{}, errors.Join(late, err)
	}
	if err := p.storeUpgraded(ctx); err != nil {
		return Progress{}, err
	}
	return Progress{After: longWait, Reason: completed.reason}, late
}

func (p *pass) storeUpgraded(ctx context.Context) error {
	p.entry.Phase, p.entry.CompleteTime = upgradeconfig.PhaseUpgraded, seconds(p.c.now())
	if err := p.store(ctx); err != nil {
		return err
	}
	p.emitPhase(p.alerts(ctx)...)
	return nil
}

// complete ends the upgrade.
func (p *pass) complete(ctx context.Context) (Progress, error) {
	begun := startStep(&p.entry, upgradeconfig.CompletedNotificationSent, p.c.now())
	if err := p.storeUpgraded(ctx); err != nil {
		return Progress{}, err
	}
	if begun {
		p.emitStep(upgradeconfig.CompletedNotificationSent)
	}
	return p.notifyEnd(ctx, completed)
}

// end is how an upgrade ends. Its phase is stored together with the condition
// e.condition, which is False; then the provider is notified, and then the condition is
// True. So the provider hears of it at least once, and twice only after a crash in
// between.
type end struct {
	phase     upgradeconfig.Phase
	condition upgradeconfig.ConditionType
	state     upgradeconfig.State
	reason    string
	set       func(e *upgradeconfig.HistoryEntry, err error, now time.Time) // condition
}

var (
	completed = end{upgradeconfig.PhaseUpgraded, upgradeconfig.CompletedNotificationSent, upgradeconfig.StateCompleted, "the upgrade is over",
		func(e *upgradeconfig.HistoryEntry, err error, now time.Time) {
			endStep(e, upgradeconfig.CompletedNotificationSent, err == nil, err, now)
		}}
	failed = end{upgradeconfig.PhaseFailed, upgradeconfig.FailedUpgrade, upgradeconfig.StateFailed, "the upgrade has failed", setFailed}
	ends   = []end{completed, failed}
)

// notifyEnd tells the provider that the upgrade has ended.
func (p *pass) notifyEnd(ctx context.Context, e end) (Progress, error) {
	err := panics.Catch(func() error { return p.notify(ctx, e.state, nil) })
	if ctx.Err() != nil {
		return Progress{}, ctx.Err()
	}
	before, _ := p.entry.Condition(e.condition)
	e.set(&p.entry, err, p.c.now())
	if err := p.store(ctx); err != nil {
		return Progress{}, err
	}
	if after, _ := p.entry.Condition(e.condition); differs(after, before) {
		p.emitStep(e.condition)
	}
	if err != nil {
		return Progress{After: shortWait, Reason: p.message(e.condition)}, err
	}
	return Progress{After: longWait, Reason: e.reason}, nil
}

// alerts are those that the upgrade caused.
func (p *pass) alerts(ctx context.Context) []string {
	if p.c.o.Alerts == nil || p.entry.StartTime == nil {
		return nil
	}
	alerts, err := p.c.o.Alerts(ctx, p.entry.StartTime.Time)
	if err != nil {
		p.c.o.Logger.Warn("the alerts during the upgrade are not known", "error", err)
		return nil
	}
	return alerts
}

// step runs a step. Its condition is stored before, so that no step of a
// withdrawn policy is run, and after.
func (p *pass) step(ctx context.Context, t upgradeconfig.ConditionType) (bool, error) {
	if startStep(&p.entry, t, p.c.now()) {
		if t == upgradeconfig.WorkerNodesUpgraded && p.entry.WorkerStartTime == nil {
			p.entry.WorkerStartTime = seconds(p.c.now())
		}
		if err := p.store(ctx); err != nil {
			return false, err
		}
		p.emitStep(t)
	}
	var done bool
	p.waitsFor = ""
	before, _ := p.entry.Condition(t)
	err := panics.Catch(func() (err error) { // of a hook: then the step failed
		done, err = p.execute(ctx, t)
		return err
	})
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if errors.Is(err, loop.ErrChanged) {
		return false, err
	}
	done = done && err == nil
	changed := endStep(&p.entry, t, done, err, p.c.now())
	if after, _ := p.entry.Condition(t); p.waitsFor != "" && !done && err == nil {
		after.Message += ": " + p.waitsFor
		p.entry.SetCondition(after, p.c.now())
		changed = differs(after, before)
	}
	if t == upgradeconfig.WorkerNodesUpgraded && done {
		p.entry.WorkerCompleteTime = seconds(p.c.now())
	}
	if changed || !done {
		if err := p.store(ctx); err != nil {
			return false, err
		}
	}
	if changed {
		p.emitStep(t)
	}
	return done, err
}

// commenced reports whether the cluster has the request to update.
func (p *pass) commenced() (bool, error) {
	if p.entry.IsTrue(upgradeconfig.UpgradeCommenced) {
		return true, nil
	}
	commenced, err := hasCommenced(p.config.Spec.Desired, p.cv)
	if err != nil {
		err = commencedError(err)
	}
	return commenced, err
}

func (p *pass) message(t upgradeconfig.ConditionType) string {
	c, _ := p.entry.Condition(t)
	return c.Message
}

func (p *pass) emitPhase(alerts ...string) {
	e := p.entry
	p.c.o.Logger.Info("phase", "version", e.Version, "phase", e.Phase)
	p.c.emit(clusterapi.Event{Type: upgradeconfig.EventPhase, Message: fmt.Sprintf("the upgrade to %s is %s", e.Version, e.Phase)},
		upgradeconfig.EventData{Version: e.Version, PrecedingVersion: e.PrecedingVersion, Phase: e.Phase, Alerts: alerts})
}

func (p *pass) emitStep(t upgradeconfig.ConditionType) {
	c, _ := p.entry.Condition(t)
	p.c.emit(clusterapi.Event{Type: upgradeconfig.EventStep, Message: c.Message},
		upgradeconfig.EventData{Version: p.entry.Version, PrecedingVersion: p.entry.PrecedingVersion, Phase: p.entry.Phase, Condition: &c})
}

// differs reports whether a condition changed in more than its times.
func differs(c, old upgradeconfig.Condition) bool {
	return old.Status != c.Status || old.Reason != c.Reason || old.Message != c.Message
}
