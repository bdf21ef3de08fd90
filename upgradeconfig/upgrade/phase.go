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
	// lookAgain is how often one is looked at that nothing happens to.
	lookAgain = 5 * time.Minute
	// lookSoon is how often one is looked at while its upgrade is under way.
	lookSoon = time.Minute

	// preHealthMinutes must remain for a health check ahead of the upgrade.
	preHealthMinutes = 120
	// moment is how long to wait at the very time of an upgrade, which starts
	// after it.
	moment = time.Second
)

// activity is what has to be done before a decision about a phase can be made.
type activity string

// The activities.
const (
	// ActivityNone: nothing more for now.
	activityNone activity = "None"
	// ActivityDecide: decide again, with the new entry.
	activityDecide activity = "Decide"
	// ActivityHealthCheck: check the cluster's health ahead of the upgrade.
	activityHealthCheck activity = "HealthCheck"
	// ActivityValidate: validate the UpgradeConfig.
	activityValidate activity = "Validate"
	// ActivityRefresh: ask the provider once more, so that a policy that was
	// withdrawn since the last sync does not start an upgrade.
	activityRefresh activity = "Refresh"
	// ActivitySteps: run the steps of the upgrade.
	activitySteps activity = "Steps"
	// ActivityGiveUp: give the upgrade up, as it has not commenced in time.
	activityGiveUp activity = "GiveUp"
)

// phaseOptions are the rules about phases that a configuration can set. The
// zero value is a configuration in which everything is absent.
type phaseOptions struct {
	// PreHealthCheck checks the cluster's health when an UpgradeConfig appears
	// more than two hours ahead.
	PreHealthCheck bool
	// TimeOut is how long an upgrade may take to commence; 0: without a limit.
	TimeOut time.Duration
	// DelayTrigger is after which time the provider hears that an upgrade has
	// not commenced; 0: never.
	DelayTrigger time.Duration
	// SkipBreached does not start an upgrade whose window is over. By default
	// it starts, however late it is. With a TimeOut of 0 no window is ever
	// over.
	SkipBreached bool
}

// situation is what a decision about a phase is made from. The last three
// fields are what came of activities; nil: it was not carried out yet.
//
// A nil Config says that there is none, a nil ClusterVersion that nothing is
// known of the cluster.
type situation struct {
	Config         *upgradeconfig.UpgradeConfig
	ClusterVersion *configv1.ClusterVersion
	Now            time.Time

	// HealthChecked is set when the health was checked ahead of the upgrade,
	// whatever came of it.
	HealthChecked bool
	Validated     *validated
	Refreshed     *refreshed
}

// validated is what came of [activityValidate].
type validated struct {
	upgradeconfig.Validity
	Err error
}

// refreshed is what came of [activityRefresh].
type refreshed struct {
	// Differs says that the UpgradeConfig was not what the provider says: it
	// was changed or held. See [Result.Differs].
	Differs bool
	// Err is the failure. [upgradeconfig.ErrNotConfigured] does not count.
	Err error
}

// decision is what [decide] decides.
type decision struct {
	// Do is what comes next; what it finds goes into the situation of the next
	// decision.
	Do activity
	// Entry is the history entry of the desired version as it is to be stored
	// first; nil: nothing is to be stored.
	Entry *upgradeconfig.HistoryEntry
	// Delayed says that the provider has to hear of a delay, once.
	Delayed bool
	// After is when to look again; 0 unless Do is activityNone.
	After time.Duration
	// Reason says in a clause why nothing is done.
	Reason string
	// Err is a fault to report.
	Err error
}

// decide decides what happens next to an UpgradeConfig, by the phase of the
// history entry of its desired version:
//
//   - none: it gets an entry, New, or Upgrading if the cluster was told to
//     update to that release already;
//   - New: Pending, after a health check ahead if there is time for one;
//   - Pending: Upgrading, once it is valid, due, and the provider asked once
//     more still wants it;
//   - Upgrading: its steps, or the end of it if it does not commence in time;
//   - Upgraded, Failed: nothing more.
//
// It is a pure function: drivers carry out what it says and ask again, until it
// says [activityNone].
func decide(s situation, o phaseOptions) decision {
	c := s.Config
	switch {
	case c == nil:
		return stay(lookAgain, noConfig, nil)
	case c.DeletionTimestamp != nil:
		return stay(lookAgain, "the UpgradeConfig is being deleted", nil)
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
		return stay(lookAgain, "the upgrade is over", nil)
	}
	return stay(lookAgain, "", fmt.Errorf("upgradeconfig: the history entry of version %q has the phase %q, which does not exist", e.Version, e.Phase))
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
		return stay(lookSoon, "", commencedError(err))
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
	return decision{Do: activityNone, Entry: &e, After: lookSoon, Reason: "the upgrade is pending"}
}

func pending(s situation, e upgradeconfig.HistoryEntry, o phaseOptions) decision {
	if _, err := stepsOf(s.Config.Spec.Type); err != nil {
		return stay(lookAgain, "", err)
	}
	due := whenDue(s.Config.Spec.UpgradeAt, s.Now, o.TimeOut)
	after := lookAgain
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
		return stay(moment, "the upgrade starts now", nil)
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
		return stay(lookSoon, "the provider cannot be asked once more", r.Err)
	case r.Err == nil && r.Differs:
		e.Phase = upgradeconfig.PhaseNew
		return decision{Do: activityNone, Entry: &e, After: lookSoon, Reason: "the provider has changed the policy"}
	}
	e.Phase, e.StartTime = upgradeconfig.PhaseUpgrading, seconds(s.Now)
	return decision{Do: activityDecide, Entry: &e}
}

func upgrade(s situation, e upgradeconfig.HistoryEntry, o phaseOptions) decision {
	t := s.Config.Spec.Type
	if _, err := stepsOf(t); err != nil {
		return stay(lookAgain, "", err)
	}
	commenced, err := hasCommenced(s.Config.Spec.Desired, s.ClusterVersion)
	if err != nil {
		return stay(lookSoon, "", commencedError(err))
	}
	// An upgrade that has commenced stays so, even if the request is taken back.
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
