package upgradeconfig

import (
	"cmp"
	"fmt"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// Action is what is to be done about the UpgradeConfig.
type Action struct {
	// Kind is the type of the event that doing it makes: [EventCreated],
	// [EventReplaced], which deletes the object and creates it without its history
	// and with another UID, [EventUpdated], [EventDeleted] or [EventHeld]. Empty:
	// nothing is to be done.
	Kind clusterapi.EventType
	// Spec is the one that the provider wants; zero if it wants none.
	Spec Spec
	// Changes are the fields in which the object differs from Spec, in the
	// order of the object's fields. An object that does not exist differs in
	// every field that Spec sets.
	Changes []Change
	// Reason is why, as a clause.
	Reason string
}

// String returns "kind: reason; changes"; empty if nothing is to be done.
func (a Action) String() string {
	if a.Kind == "" {
		return ""
	}
	text := string(a.Kind) + ": " + a.Reason
	for _, c := range a.Changes {
		text += "; " + c.String()
	}
	return text
}

// Change is a field of the spec in which the UpgradeConfig differs from the
// policy, such as desired.version.
type Change struct {
	Field string `json:"field"`
	Old   string `json:"old"`
	New   string `json:"new"`
}

// String is "field: old → new".
func (c Change) String() string {
	return c.Field + ": " + cmp.Or(c.Old, `""`) + " → " + cmp.Or(c.New, `""`)
}

// DiffOptions are the options of [Diff].
type DiffOptions struct {
	// KeepWhileUpgrading leaves an object alone whose upgrade is in progress.
	KeepWhileUpgrading bool
	// InProgress reports that it is: the entry of the desired version is in phase
	// Upgrading and a step of it is done, or the ClusterVersion is Progressing.
	InProgress bool
	// Update changes an object in place if only the time, the drain time-out
	// or the capacity reservation differ.
	Update bool
}

// Diff decides what is to be done about the object, nil if absent, given the specs
// that the provider wants. Only the first spec counts. Without any the object is
// deleted. An object that does not have that spec, or that is being deleted, is
// replaced.
//
// Diff compares all fields of the spec; two texts of one instant are equal. A
// policy that names an image and no version wants the version of that image,
// which the object has by then. Metadata and status do not count.
func Diff(current *UpgradeConfig, specs []Spec, o DiffOptions) Action {
	a := diff(current, specs, o.Update)
	if o.KeepWhileUpgrading && o.InProgress && a.disturbs() {
		a.Reason += ", but its upgrade is in progress"
		a.Kind = EventHeld
	}
	return a
}

// disturbs reports whether the action would touch an object that exists.
func (a Action) disturbs() bool {
	return a.Kind == EventReplaced || a.Kind == EventUpdated || a.Kind == EventDeleted
}

func diff(current *UpgradeConfig, specs []Spec, update bool) Action {
	switch {
	case len(specs) == 0 && current == nil:
		return Action{Reason: "there is no policy and no UpgradeConfig"}
	case len(specs) == 0:
		return Action{Kind: EventDeleted, Reason: "there is no policy"}
	}
	want := specs[0]
	if current == nil {
		return Action{Kind: EventCreated, Spec: want, Changes: changes(Spec{}, want), Reason: "there is a policy but no UpgradeConfig"}
	}
	known := withVersion(want, current.Spec)
	a := Action{Spec: want, Changes: changes(current.Spec, known)}
	switch {
	case current.DeletionTimestamp != nil:
		a.Kind, a.Reason = EventReplaced, "the UpgradeConfig is being deleted"
	case len(a.Changes) == 0:
		a.Reason = "the UpgradeConfig has the policy's spec"
	case update && current.Spec.Desired == known.Desired && current.Spec.Type == want.Type:
		a.Kind, a.Spec, a.Reason = EventUpdated, known, "the UpgradeConfig differs from the policy, but not in its release"
	default:
		a.Kind, a.Reason = EventReplaced, "the UpgradeConfig differs from the policy"
	}
	return a
}

// withVersion completes a spec that names an image alone by the version that
// was found in that image.
func withVersion(want, current Spec) Spec {
	if want.Desired.Version == "" && want.Desired.Image != "" && want.Desired.Image == current.Desired.Image {
		want.Desired.Version = current.Desired.Version
	}
	return want
}

func changes(from, to Spec) []Change {
	var out []Change
	add := func(field, old, new string) {
		if old != new {
			out = append(out, Change{Field: field, Old: old, New: new})
		}
	}
	add("desired.version", from.Desired.Version, to.Desired.Version)
	add("desired.channel", from.Desired.Channel, to.Desired.Channel)
	add("desired.image", from.Desired.Image, to.Desired.Image)
	if !sameInstant(from.UpgradeAt, to.UpgradeAt) {
		add("upgradeAt", from.UpgradeAt, to.UpgradeAt)
	}
	add("PDBForceDrainTimeout", fmt.Sprint(from.PDBForceDrainTimeout), fmt.Sprint(to.PDBForceDrainTimeout))
	add("type", string(from.Type), string(to.Type))
	add("capacityReservation", fmt.Sprint(from.CapacityReservation), fmt.Sprint(to.CapacityReservation))
	return out
}

// sameInstant compares two times in RFC 3339. Texts that are not times are
// equal if they are the same text.
func sameInstant(a, b string) bool {
	if a == b {
		return true
	}
	ta, errA := time.Parse(time.RFC3339, a)
	tb, errB := time.Parse(time.RFC3339, b)
	return errA == nil && errB == nil && ta.Equal(tb)
}
