package upgrade

import (
	"errors"
	"fmt"
	"time"

	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// How soon to look at an UpgradeConfig again.
const (
	longWait  = 5 * time.Minute // if nothing happens to it
	shortWait = time.Minute     // while its upgrade is under way
	dueWait   = time.Second     // at the very time of an upgrade, which starts after it
)

// preHealthMinutes must remain for a health check ahead of the upgrade.
const preHealthMinutes = 120

// activity is what comes next for an UpgradeConfig.
type activity string

const (
	activityNone        activity = "None"        // nothing more for now
	activityDecide      activity = "Decide"      // decide again, with the new entry
	activityHealthCheck activity = "HealthCheck" // check the cluster's health ahead of the upgrade
	activityValidate    activity = "Validate"    // validate the UpgradeConfig
	activityRefresh     activity = "Refresh"     // ask the provider once more: it may have withdrawn the policy
	activitySteps       activity = "Steps"       // run the steps of the upgrade
	activityGiveUp      activity = "GiveUp"      // fail the upgrade, which has not commenced in time
	activityWithdrawn   activity = "Withdrawn"   // the upgrade had commenced, and its request is gone: fail it if that lasts
)

// phaseOptions are those of [Options] that a configuration can set, except that 0
// means no limit. The zero value is a configuration in which everything is absent.
type phaseOptions struct {
	PreHealthCheck        bool
	TimeOut, DelayTrigger time.Duration
	SkipBreached          bool // with a TimeOut of 0 no window is ever over
}

// situation is what a decision is made from. A nil Config reports that there is
// none, a nil ClusterVersion that nothing is known of the cluster. The last three
// fields are the results of activities; nil: not done yet.
type situation struct {
	Config         *upgradeconfig.UpgradeConfig
	ClusterVersion *configv1.ClusterVersion
	Now            time.Time

	HealthChecked bool // with any result
	Validated     *validated
	Refreshed     *refreshed
}

// validated is the result of activityValidate.
type validated struct {
	upgradeconfig.Validity
	Err error
}

// refreshed is the result of activityRefresh, as Options.Refresh returns it.
type refreshed struct {
	Differs bool
	Err     error
}

// decision is what [decide] decides.
type decision struct {
	Do      activity
	Entry   *upgradeconfig.HistoryEntry // to be stored first; nil: nothing is
	Delayed bool                        // the provider has to hear of a delay, once
	After   time.Duration               // when to look again, if nothing is to be done
	Reason  string                      // why nothing is done, in a clause
	Err     error                       // a fault to report
}

// decide decides what happens next to an UpgradeConfig by the phase of the
// history entry of its desired version; the package's doc has the table. A pass
// does what it says and asks again, until it says activityNone.
func decide(s situation, o phaseOptions) decision {
	c := s.Config
	switch {
	case c == nil:
		return stay(longWait, noConfig, nil)
	case c.DeletionTimestamp != nil:
		return stay(longWait, "the UpgradeConfig is being deleted", nil)
	}
	e, ok := c.Status.Entry(c.Spec.Desired.Version)
	if !ok {
		return first(s)
	}
	switch e.Phase {
	case upgradeconfig.PhaseNew:
		return fresh(s, e, o)
	case upgradeconfig.PhasePending:
		return pending(s, e, o)
	case upgradeconfig.PhaseUpgrading:
		return upgrade(s, e, o)
	case upgradeconfig.PhaseUpgraded, upgradeconfig.PhaseFailed:
		return stay(longWait, "the upgrade is over", nil)
	}
	return stay(longWait, "", fmt.Errorf("upgradeconfig: the history entry of version %q has the phase %q, which does not exist", e.Version, e.Phase))
}

const noConfig = "there is no UpgradeConfig"

func stay(after time.Duration, reason string, err error) decision {
	return decision{Do: activityNone, After: after, Reason: reason, Err: err}
}

func commencedError(err error) error {
	return fmt.Errorf("could not tell if cluster was upgrading: %w", err)
}

func first(s situation) decision {
	desired := s.Config.Spec.Desired
	commenced, err := hasCommenced(desired, s.ClusterVersion)
	if err != nil {
		return stay(shortWait, "", commencedError(err))
	}
	e := upgradeconfig.HistoryEntry{Version: desired.Version, PrecedingVersion: precedingVersion(desired.Version, s.ClusterVersion), Phase: upgradeconfig.PhaseNew}
	if commenced {
		e.Phase, e.StartTime = upgradeconfig.PhaseUpgrading, seconds(s.Now)
	}
	return decision{Do: activityDecide, Entry: &e}
}

func fresh(s situation, e upgradeconfig.HistoryEntry, o phaseOptions) decision {
	wait := whenDue(s.Config.Spec.UpgradeAt, s.Now, o.TimeOut).Wait
	if o.PreHealthCheck && !s.HealthChecked && wait/time.Minute > preHealthMinutes {
		return decision{Do: activityHealthCheck}
	}
	e.Phase = upgradeconfig.PhasePending
	return decision{Do: activityNone, Entry: &e, After: shortWait, Reason: "the upgrade is pending"}
}

func pending(s situation, e upgradeconfig.HistoryEntry, o phaseOptions) decision {
	if _, err := stepsOf(s.Config.Spec.Type); err != nil {
		return stay(longWait, "", err)
	}
	due := whenDue(s.Config.Spec.UpgradeAt, s.Now, o.TimeOut)
	after := longWait
	if due.Wait > 0 && due.Wait < after {
		after = due.Wait
	}
	v := s.Validated
	switch {
	case v == nil:
		return decision{Do: activityValidate}
	case v.Err != nil:
		return stay(after, "the UpgradeConfig is not valid", v.Err)
	case !v.IsValid:
		return stay(after, v.Message, nil)
	case !v.IsAvailableUpdate:
		return stay(after, v.Message, nil)
	case !due.Ready && due.Wait > 0:
		return stay(after, fmt.Sprintf("the upgrade starts in %s", due.Wait), nil)
	case !due.Ready && isTime(s.Config.Spec.UpgradeAt):
		return stay(dueWait, "the upgrade starts now", nil)
	case !due.Ready:
		return stay(after, "upgradeAt is not a time", nil)
	case due.Breached && o.SkipBreached && o.TimeOut > 0:
		return stay(after, "the window for the upgrade is over", nil)
	}
	r := s.Refreshed
	switch {
	case r == nil:
		return decision{Do: activityRefresh}
	case r.Err != nil && !errors.Is(r.Err, upgradeconfig.ErrNotConfigured):
		return stay(shortWait, "the provider cannot be asked once more", r.Err)
	case r.Err == nil && r.Differs:
		e.Phase = upgradeconfig.PhaseNew
		return decision{Do: activityNone, Entry: &e, After: shortWait, Reason: "the provider has changed the policy"}
	}
	e.Phase, e.StartTime = upgradeconfig.PhaseUpgrading, seconds(s.Now)
	return decision{Do: activityDecide, Entry: &e}
}

func upgrade(s situation, e upgradeconfig.HistoryEntry, o phaseOptions) decision {
	t := s.Config.Spec.Type
	if _, err := stepsOf(t); err != nil {
		return stay(longWait, "", err)
	}
	commenced, err := hasCommenced(s.Config.Spec.Desired, s.ClusterVersion)
	if err != nil {
		return stay(shortWait, "", commencedError(err))
	}
	if e.IsTrue(upgradeconfig.UpgradeCommenced) && !e.IsTrue(upgradeconfig.ControlPlaneUpgraded) && !commenced && !isUnderWay(s.Config.Spec.Desired, s.ClusterVersion, e.StartTime) {
		return decision{Do: activityWithdrawn}
	}
	commenced = commenced || e.IsTrue(upgradeconfig.UpgradeCommenced)
	if isOverdue(t, e, commenced, s.Now, o.TimeOut) {
		return decision{Do: activityGiveUp}
	}
	return decision{Do: activitySteps, Delayed: isDelayed(e, commenced, s.Now, o.DelayTrigger)}
}

func isTime(text string) bool {
	_, err := time.Parse(time.RFC3339, text)
	return err == nil
}

// seconds is a time as the API keeps it.
func seconds(t time.Time) *metav1.Time {
	return &metav1.Time{Time: t.UTC().Truncate(time.Second)}
}
