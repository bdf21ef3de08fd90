package upgradeconfig_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
)

func with(s upgradeconfig.Spec, f func(*upgradeconfig.Spec)) upgradeconfig.Spec {
	f(&s)
	return s
}

func TestDiff(t *testing.T) {
	deleting := object(specA, upgradeconfig.Status{})
	deleting.DeletionTimestamp = &metav1.Time{Time: at("2031-01-01T00:00:00Z")}
	held := upgradeconfig.DiffOptions{KeepWhileUpgrading: true, InProgress: true}
	later := with(specA, func(s *upgradeconfig.Spec) { s.UpgradeAt = "2031-02-04T04:00:00Z" })
	type change = upgradeconfig.Change
	moved := []change{{Field: "upgradeAt", Old: "2031-02-04T03:00:00Z", New: "2031-02-04T04:00:00Z"}}
	for _, tt := range []struct {
		name    string
		current *upgradeconfig.UpgradeConfig
		specs   []upgradeconfig.Spec
		o       upgradeconfig.DiffOptions
		want    clusterapi.EventType
		changes []change
	}{
		{name: "nothing at all", want: ""},
		{name: "no policy", current: object(specA, upgradeconfig.Status{}), want: upgradeconfig.EventDeleted},
		{name: "no policy, in progress, not asked to hold", current: object(specA, underWay("4.20.3")), o: upgradeconfig.DiffOptions{InProgress: true}, want: upgradeconfig.EventDeleted},
		{name: "no policy, in progress", current: object(specA, underWay("4.20.3")), o: held, want: upgradeconfig.EventHeld},
		{name: "no policy, not in progress", current: object(specA, underWay("4.20.3")), o: upgradeconfig.DiffOptions{KeepWhileUpgrading: true}, want: upgradeconfig.EventDeleted},
		{name: "nothing at all, in progress", o: held, want: ""},
		{name: "no object", specs: []upgradeconfig.Spec{specB}, want: upgradeconfig.EventCreated, changes: []change{
			{Field: "desired.version", New: "4.20.4"}, {Field: "desired.channel", New: "stable-4.20"},
			{Field: "upgradeAt", New: "2031-03-04T03:00:00Z"}, {Field: "PDBForceDrainTimeout", Old: "0", New: "30"}, {Field: "type", New: "OSD"},
		}},
		{name: "no object, in progress", specs: []upgradeconfig.Spec{specB}, o: held, want: upgradeconfig.EventCreated, changes: []change{
			{Field: "desired.version", New: "4.20.4"}, {Field: "desired.channel", New: "stable-4.20"},
			{Field: "upgradeAt", New: "2031-03-04T03:00:00Z"}, {Field: "PDBForceDrainTimeout", Old: "0", New: "30"}, {Field: "type", New: "OSD"},
		}},
		{name: "no object, a spec of zeros", specs: []upgradeconfig.Spec{{}}, want: upgradeconfig.EventCreated},
		{name: "equal", current: object(specA, underWay("4.20.3")), specs: []upgradeconfig.Spec{specA}, want: ""},
		{name: "equal, in progress", current: object(specA, underWay("4.20.3")), specs: []upgradeconfig.Spec{specA}, o: held, want: ""},
		{name: "only the first counts", current: object(specA, upgradeconfig.Status{}), specs: []upgradeconfig.Spec{specA, specB}, want: ""},
		{name: "the same instant", current: object(specA, upgradeconfig.Status{}), specs: []upgradeconfig.Spec{
			with(specA, func(s *upgradeconfig.Spec) { s.UpgradeAt = "2031-02-04T05:00:00+02:00" }),
		}, want: ""},
		{name: "the same text that is not a time", current: object(upgradeconfig.Spec{UpgradeAt: "soon"}, upgradeconfig.Status{}), specs: []upgradeconfig.Spec{{UpgradeAt: "soon"}}, want: ""},
		{name: "another text that is not a time", current: object(upgradeconfig.Spec{UpgradeAt: "soon"}, upgradeconfig.Status{}), specs: []upgradeconfig.Spec{{UpgradeAt: "later"}}, want: upgradeconfig.EventReplaced,
			changes: []change{{Field: "upgradeAt", Old: "soon", New: "later"}}},
		{name: "another time", current: object(specA, upgradeconfig.Status{}), specs: []upgradeconfig.Spec{later}, want: upgradeconfig.EventReplaced, changes: moved},
		{name: "another time, in progress", current: object(specA, underWay("4.20.3")), specs: []upgradeconfig.Spec{later}, o: held, want: upgradeconfig.EventHeld, changes: moved},
		{name: "another time, in place", current: object(specA, upgradeconfig.Status{}), specs: []upgradeconfig.Spec{later}, o: upgradeconfig.DiffOptions{Update: true}, want: upgradeconfig.EventUpdated, changes: moved},
		{name: "another time, in place, in progress", current: object(specA, upgradeconfig.Status{}), specs: []upgradeconfig.Spec{later},
			o: upgradeconfig.DiffOptions{Update: true, KeepWhileUpgrading: true, InProgress: true}, want: upgradeconfig.EventHeld, changes: moved},
		{name: "all that can change in place", current: object(specA, upgradeconfig.Status{}), specs: []upgradeconfig.Spec{
			with(specA, func(s *upgradeconfig.Spec) {
				s.UpgradeAt, s.PDBForceDrainTimeout, s.CapacityReservation = "x", 1, false
			}),
		}, o: upgradeconfig.DiffOptions{Update: true}, want: upgradeconfig.EventUpdated, changes: []change{
			{Field: "upgradeAt", Old: "2031-02-04T03:00:00Z", New: "x"}, {Field: "PDBForceDrainTimeout", Old: "45", New: "1"}, {Field: "capacityReservation", Old: "true", New: "false"},
		}},
		{name: "another image does not change in place", current: object(specA, upgradeconfig.Status{}), specs: []upgradeconfig.Spec{
			with(specA, func(s *upgradeconfig.Spec) { s.Desired.Image = "r@sha256:1" }),
		}, o: upgradeconfig.DiffOptions{Update: true}, want: upgradeconfig.EventReplaced, changes: []change{{Field: "desired.image", New: "r@sha256:1"}}},
		{name: "another channel", current: object(specA, upgradeconfig.Status{}), specs: []upgradeconfig.Spec{
			with(specA, func(s *upgradeconfig.Spec) { s.Desired.Channel = "fast-4.20" }),
		}, o: upgradeconfig.DiffOptions{Update: true}, want: upgradeconfig.EventReplaced, changes: []change{{Field: "desired.channel", Old: "stable-4.20", New: "fast-4.20"}}},
		{name: "another type does not change in place", current: object(specA, upgradeconfig.Status{}), specs: []upgradeconfig.Spec{
			with(specA, func(s *upgradeconfig.Spec) { s.Type = upgradeconfig.ARO }),
		}, o: upgradeconfig.DiffOptions{Update: true}, want: upgradeconfig.EventReplaced, changes: []change{{Field: "type", Old: "OSD", New: "ARO"}}},
		{name: "being deleted", current: deleting, specs: []upgradeconfig.Spec{specA}, want: upgradeconfig.EventReplaced},
		{name: "being deleted does not change in place", current: deleting, specs: []upgradeconfig.Spec{later}, o: upgradeconfig.DiffOptions{Update: true}, want: upgradeconfig.EventReplaced, changes: moved},
		{name: "being deleted, in progress", current: deleting, specs: []upgradeconfig.Spec{specA}, o: held, want: upgradeconfig.EventHeld},
		{name: "being deleted, no policy", current: deleting, want: upgradeconfig.EventDeleted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := upgradeconfig.Diff(tt.current, tt.specs, tt.o)
			checktest.Equal(t, tt.want, got.Kind, "%s (%s)", got.Kind, got.Reason)
			checktest.SameIn(t, "changes", tt.changes, got.Changes)
			if got.Reason == "" {
				t.Error("no reason")
			}
			text := ""
			if tt.want != "" {
				text = string(tt.want) + ": " + got.Reason
			}
			for _, c := range tt.changes {
				text += "; " + c.String()
			}
			checktest.Equal(t, text, got.String(), "text")
			var want upgradeconfig.Spec
			if len(tt.specs) > 0 {
				want = tt.specs[0]
			}
			checktest.Equal(t, want, got.Spec, "spec")
		})
	}
}

func drawSpec() *rapid.Generator[upgradeconfig.Spec] {
	return rapid.Custom(func(t *rapid.T) upgradeconfig.Spec {
		return upgradeconfig.Spec{
			Desired: upgradeconfig.Update{
				Version: rapid.SampledFrom([]string{"", "4.20.3", "4.20.4"}).Draw(t, "version"),
				Channel: rapid.SampledFrom([]string{"", "stable-4.20"}).Draw(t, "channel"),
				Image:   rapid.SampledFrom([]string{"", "r@sha256:1"}).Draw(t, "image"),
			},
			UpgradeAt:            rapid.SampledFrom([]string{"", "x", "2031-02-04T03:00:00Z", "2031-02-04T03:00:00+00:00", "2031-02-04T03:00:01Z"}).Draw(t, "at"),
			PDBForceDrainTimeout: rapid.Int32Range(0, 2).Draw(t, "drain"),
			Type:                 rapid.SampledFrom([]upgradeconfig.UpgradeType{"", upgradeconfig.OSD, upgradeconfig.ARO}).Draw(t, "type"),
			CapacityReservation:  rapid.Bool().Draw(t, "capacity"),
		}
	})
}

// What an action does makes the next decision "nothing", whatever the options.
func TestDiffConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var current *upgradeconfig.UpgradeConfig
		if rapid.Bool().Draw(t, "there") {
			current = object(drawSpec().Draw(t, "current"), upgradeconfig.Status{})
		}
		specs := rapid.SliceOfN(drawSpec(), 0, 2).Draw(t, "specs")
		o := upgradeconfig.DiffOptions{Update: rapid.Bool().Draw(t, "update"), KeepWhileUpgrading: rapid.Bool().Draw(t, "keep"), InProgress: rapid.Bool().Draw(t, "inProgress")}
		a := upgradeconfig.Diff(current, specs, o)
		switch a.Kind {
		case "":
			return
		case upgradeconfig.EventHeld:
			if current == nil || !o.KeepWhileUpgrading || !o.InProgress {
				t.Fatal("nothing to hold")
			}
			return
		case upgradeconfig.EventDeleted:
			current = nil
		default:
			current = object(a.Spec, upgradeconfig.Status{})
		}
		if again := upgradeconfig.Diff(current, specs, o); again.Kind != "" {
			t.Fatalf("%s after %s: %s", again.Kind, a.Kind, again.Reason)
		}
	})
}

func TestSelect(t *testing.T) {
	policy := func(id, state, version, next string) upgradeconfig.Policy {
		p := upgradeconfig.Policy{ID: id, State: state, Spec: upgradeconfig.Spec{Desired: upgradeconfig.Update{Version: version}}}
		if next != "" {
			p.NextRun = at(next)
		}
		return p
	}
	image := policy("image", "scheduled", "", "2031-01-07T00:00:00Z")
	image.Spec.Desired.Image = "r@sha256:1"
	upToDate := policy("no version", "Pending", "", "2031-01-01T00:00:00Z")
	upToDate.Automatic = true
	in := []upgradeconfig.Policy{
		policy("late", "scheduled", "4.20.3", "2031-01-09T00:00:00Z"),
		policy("no time", "scheduled", "4.20.3", ""),
		policy("pending", "pending", "4.20.3", "2031-01-01T00:00:00Z"),
		policy("Completed", "Completed", "4.20.3", "2031-01-01T00:00:00Z"),
		policy("CANCELLED", "CANCELLED", "4.20.3", "2031-01-01T00:00:00Z"),
		upToDate,
		policy("started", "started", "4.20.3", "2031-01-05T00:00:00Z"),
		policy("delayed", "delayed", "4.20.3", "2031-01-05T00:00:00Z"),
		policy("failed", "failed", "4.20.3", "2031-01-04T00:00:00Z"),
		policy("empty", "", "4.20.3", "2031-01-03T00:00:00Z"),
		policy("unknown", "asleep", "4.20.3", "2031-01-02T00:00:00Z"),
		image,
		policy("no time either", "scheduled", "4.20.3", ""),
	}
	var got []string
	selected, err := upgradeconfig.Select(in)
	checktest.Good(t, err)
	for _, p := range selected {
		got = append(got, p.ID)
	}
	want := []string{"unknown", "empty", "failed", "started", "delayed", "image", "late", "no time", "no time either"}
	checktest.Same(t, want, got)
	var many, order []string
	in = in[:4]
	for i := range 50 {
		id := strconv.Itoa(i)
		order = append(order, id)
		in = append(in, policy(id, "scheduled", "4.20.3", "2031-01-05T00:00:00Z"))
	}
	if selected, err = upgradeconfig.Select(in); err != nil {
		t.Error(err)
	}
	for _, p := range selected[:50] {
		many = append(many, p.ID)
	}
	checktest.SameIn(t, "equal times keep their order", order, many)
	if ok, why, err := in[3].Counts(); ok || why != "completed" || err != nil {
		t.Errorf("reason %q, error %v", why, err)
	}
	for _, p := range []upgradeconfig.Policy{
		policy("d", "started", "", "2031-01-04T00:00:00Z"), policy("d", "pending", "", "2031-01-04T00:00:00Z"), policy("d", "cancelled", "", "2031-01-04T00:00:00Z"),
		{ID: "d", State: "scheduled", Automatic: true, NextRun: at("2031-01-04T00:00:00Z")},
	} {
		for after, want := range map[string][]string{"2031-01-05T00:00:00Z": nil, "2031-01-03T00:00:00Z": {"a"}} {
			got, err := upgradeconfig.Select([]upgradeconfig.Policy{policy("a", "scheduled", "4.20.3", after), p})
			var ids []string
			for _, p := range got {
				ids = append(ids, p.ID)
			}
			if diff := cmp.Diff(want, ids); diff != "" || !errors.Is(err, upgradeconfig.ErrNoVersion) || !strings.Contains(err.Error(), `policy "d"`) {
				t.Errorf("%+v: %v %s", p, err, diff)
			}
		}
	}
}

func TestInferChannel(t *testing.T) {
	for _, tt := range []struct{ group, version, want string }{
		{"fast", "4.17.3", "fast-4.17"},
		{"", "4.18.0-rc.1", "stable-4.18"},
		{"stable", "4.18.0+build", "stable-4.18"},
		{"eus", "4.15.9", "eus-4.16"},
		{"eus", "4.16.1", "eus-4.16"},
		{"EUS", "4.15.9", "EUS-4.15"},
		{"candidate", "4.17.1", "candidate-4.17"},
		{"nightly", "4.17.0", "nightly-4.17"},
		{"stable", "5.0.0", "stable-5.0"},
	} {
		got := checktest.Get(upgradeconfig.InferChannel(tt.group, tt.version))(t)
		checktest.Equal(t, tt.want, got, "upgradeconfig.InferChannel of %v, %v", tt.group, tt.version)
	}
	for _, tt := range []struct{ group, version string }{
		{"candidate", "4.17"}, {"candidate", "v4.17.3"}, {"", ""}, {"eus", "4.18446744073709551615.0"}, {"eus", "x"}, {"eus", "4.017.0"}, {"", "99999999999999999999.0.0"},
	} {
		got, err := upgradeconfig.InferChannel(tt.group, tt.version)
		var typed *upgradeconfig.ChannelError
		if !errors.As(err, &typed) || got != "" {
			t.Errorf("%q %q: %q, %v", tt.group, tt.version, got, err)
			continue
		}
		group := tt.group
		if group == "" {
			group = "stable"
		}
		if strings.Contains(typed.Error(), "policy") {
			t.Error(typed)
		}
		typed.PolicyID = "p-7"
		checktest.Has(t, typed.Error(), "unable to determine channel from channel group '"+group+"' and version '"+tt.version+"' for policy ID 'p-7'")
	}
}

// TestDiffImageVersion: the version that was found in an image is not a difference
// from a policy that names the image alone.
func TestDiffImageVersion(t *testing.T) {
	const image = "quay.example/release@sha256:aa"
	want := upgradeconfig.Spec{Desired: upgradeconfig.Update{Image: image}, UpgradeAt: "2031-02-04T03:00:00Z"}
	current := &upgradeconfig.UpgradeConfig{Spec: want}
	current.Spec.Desired.Version = "4.20.3"

	if a := upgradeconfig.Diff(current, []upgradeconfig.Spec{want}, upgradeconfig.DiffOptions{}); a.Kind != "" {
		t.Errorf("%s because %s: %v", a.Kind, a.Reason, a.Changes)
	}
	later := want
	later.UpgradeAt = "2031-02-05T03:00:00Z"
	a := upgradeconfig.Diff(current, []upgradeconfig.Spec{later}, upgradeconfig.DiffOptions{Update: true})
	if a.Kind != upgradeconfig.EventUpdated || a.Spec.Desired.Version != "4.20.3" || len(a.Changes) != 1 {
		t.Errorf("%s to %+v: %v", a.Kind, a.Spec, a.Changes)
	}
	if a := upgradeconfig.Diff(current, []upgradeconfig.Spec{later}, upgradeconfig.DiffOptions{}); a.Kind != upgradeconfig.EventReplaced || a.Spec != later {
		t.Errorf("%s to %+v", a.Kind, a.Spec)
	}
	other := want
	other.Desired.Image = "quay.example/release@sha256:bb"
	if a := upgradeconfig.Diff(current, []upgradeconfig.Spec{other}, upgradeconfig.DiffOptions{}); a.Kind != upgradeconfig.EventReplaced || len(a.Changes) != 2 {
		t.Errorf("%s: %v", a.Kind, a.Changes)
	}
}
