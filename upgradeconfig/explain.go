package upgradeconfig

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
)

// ExplainOptions are the options of [Explain].
type ExplainOptions struct {
	DiffOptions
	// TimeOut is the length of the upgrade window, of which upgradeAt is the
	// beginning; 0 and less mean 120 minutes, [reconcile.Never] that it does not end.
	TimeOut time.Duration
	// Faults that a validation found; nil: none is known.
	Faults []error
}

// Explain says in sentences what becomes of policies and of the object, nil if
// there is none: which policy counts and why the others do not, what a sync
// will do and why, and when the upgrade starts. The policies may be in any
// order and include those that do not count.
func Explain(policies []Policy, current *UpgradeConfig, now time.Time, o ExplainOptions) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }

	for _, p := range policies {
		switch ok, why, err := p.Counts(); {
		case err != nil:
			say("policy %s is damaged: %v", p.ID, err)
		case !ok:
			say("policy %s ignored: %s", p.ID, why)
		}
	}
	selected, err := Select(policies)
	if err != nil && len(selected) == 0 {
		say("nothing is done while the answer of the provider is damaged")
		return out
	}
	var specs []Spec
	for i, p := range selected {
		specs = append(specs, p.Spec)
		if i == 0 {
			say("policy %s counts: %s at %s", p.ID, release(p.Spec.Desired), cmp.Or(p.Spec.UpgradeAt, "no time"))
			continue
		}
		say("policy %s has to wait for policy %s", p.ID, selected[0].ID)
	}
	if len(selected) == 0 {
		say("no policy counts")
	}

	action := Diff(current, specs, o.DiffOptions)
	out = append(out, action.sentence())
	spec, status := action.Spec, Status{}
	switch action.Kind {
	case ActionDelete:
		return out
	case ActionHold:
		spec, status = current.Spec, current.Status
	case ActionUpdate:
		status = current.Status
	case ActionNone:
		if current == nil {
			return out
		}
		status = current.Status
	}
	out = append(out, o.progress(spec, status, now))
	for _, err := range o.Faults {
		say("not valid: %s", err)
	}
	return out
}

func (a Action) sentence() string {
	verb := map[ActionKind]string{
		ActionNone: "nothing to do", ActionCreate: "will create", ActionReplace: "will replace", ActionUpdate: "will update in place",
		ActionDelete: "will delete", ActionHold: "will leave it as it is",
	}[a.Kind]
	text := verb + ": " + a.Reason
	if a.Kind == ActionCreate || len(a.Changes) == 0 {
		return text
	}
	var changes []string
	for _, c := range a.Changes {
		changes = append(changes, c.String())
	}
	return text + " (" + strings.Join(changes, ", ") + ")"
}

func release(u Update) string {
	switch {
	case u.Image != "":
		return u.Image
	case u.Channel != "":
		return u.Version + " from " + u.Channel
	}
	return cmp.Or(u.Version, "no version")
}

// progress says how far the upgrade is or when it starts.
func (o ExplainOptions) progress(spec Spec, status Status, now time.Time) string {
	e, _ := status.Entry(spec.Desired.Version)
	switch e.Phase {
	case PhaseUpgrading:
		text := "upgrading"
		if e.StartTime != nil {
			text += " for " + span(now.Sub(e.StartTime.Time))
		}
		if len(e.Conditions) > 0 {
			c := e.Conditions[0]
			text += fmt.Sprintf(", %s: %s", c.Type, cmp.Or(c.Message, string(c.Status)))
		}
		return text
	case PhaseUpgraded:
		if e.CompleteTime != nil {
			return "upgraded at " + e.CompleteTime.UTC().Format(time.RFC3339)
		}
		return "upgraded"
	case PhaseFailed:
		return "the upgrade failed, and is not tried again for this UpgradeConfig"
	}
	at, err := time.Parse(time.RFC3339, spec.UpgradeAt)
	if err != nil {
		return fmt.Sprintf("never starts: upgradeAt %q is not a time", spec.UpgradeAt)
	}
	text := "starts in " + span(at.Sub(now))
	if now.After(at) {
		text = "due for " + span(now.Sub(at))
	}
	timeOut := o.TimeOut
	switch {
	case timeOut == reconcile.Never:
		return text
	case timeOut <= 0:
		timeOut = 120 * time.Minute
	}
	end := at.Add(timeOut)
	if !now.Before(end) {
		return text + ", window ended " + end.Format(time.RFC3339)
	}
	return text + ", window ends " + end.Format(time.RFC3339)
}

// span is a duration in hours and minutes, and in seconds only if it is short.
func span(d time.Duration) string {
	if d < time.Minute {
		return d.Round(time.Second).String()
	}
	return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
}
